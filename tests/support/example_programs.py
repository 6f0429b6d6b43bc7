"""The programs in ``examples``, loaded for their functions, with flags of the test's own."""

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
    """The module of an example, to which ``import tensorflow`` means Headwater. Nothing else of the process changes.

    Args:
      name: of the file.
      values: of flags; others have their defaults.
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
        # Several examples have flags of the same name.
        defined = {flag: flags.FLAGS[flag].value for flag in set(flags.FLAGS) - known}
        for flag in defined:
            delattr(flags.FLAGS, flag)
    unknown = set(values) - set(defined)
    assert not unknown, f"{name}.py has no flags {unknown}"
    vars(module)["tf"] = tf  # what the finder gave finds the rest by importing, too
    vars(module)["FLAGS"] = SimpleNamespace(**{**defined, **values})
    return module
