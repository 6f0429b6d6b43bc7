"""The programs in ``examples``, imported as modules, with flags that the test sets."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from absl import flags

from headwater import tf
from headwater.tf1.compat.modules import Finder

FOLDER = Path(__file__).resolve().parents[2] / "examples"


def load(name: str, **values: Any) -> ModuleType:
    """Returns the module of an example, in which ``import tensorflow`` imports Headwater.

    The module, its flags and ``tensorflow`` are removed from the process's registries afterwards.

    Args:
      name: the name of the file, without suffix.
      values: the values of flags; others have their defaults.
    """
    known, modules = set(flags.FLAGS), set(sys.modules)
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    finder = Finder()
    sys.meta_path.insert(0, finder)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.meta_path.remove(finder)
        for imported in set(sys.modules) - modules:
            if imported.partition(".")[0] == "tensorflow":
                del sys.modules[imported]
        # Several examples define flags of the same name, and absl rejects a second definition.
        defined = {flag: flags.FLAGS[flag].value for flag in set(flags.FLAGS) - known}
        for flag in defined:
            delattr(flags.FLAGS, flag)
    unknown = set(values) - set(defined)
    assert not unknown, f"{name}.py has no flags {unknown}"
    # The finder's module imports further modules when they are first used, which fails now that the finder is removed.
    vars(module)["tf"] = tf
    vars(module)["FLAGS"] = SimpleNamespace(**{**defined, **values})
    return module
