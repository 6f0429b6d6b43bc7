"""Detection of a program's TensorFlow version: graphs and sessions (1), or eager execution (2)."""

from __future__ import annotations

import dis
import os
import sys
import tokenize
from collections.abc import Mapping, Sequence
from types import CodeType
from typing import Final

from headwater import shapes
from headwater.tf1.compat import modules

VARIABLE: Final = "HEADWATER_DIALECT"
"""The environment variable that selects the API's version: ``1``, ``2`` or ``auto``."""

_ONLY_2: Final = frozenset({"ClusterCoordinator", "GradientTape", "enable_eager_execution", "enable_v2_behavior"})
_ONLY_1: Final = frozenset(
    {
        "InteractiveSession",
        "MonitoredTrainingSession",
        "Session",
        "Supervisor",
        "contrib",
        "disable_eager_execution",
        "disable_v2_behavior",
        "get_variable",
        "global_variables_initializer",
        "initialize_all_variables",
        "placeholder",
    }
)
_SESSION_NAMES: Final = frozenset(
    {
        "AdamOptimizer",
        "ConfigProto",
        "Estimator",
        "GradientDescentOptimizer",
        "Graph",
        "app",
        "estimator",
        "flags",
        "gfile",
        "graph_util",
        "python",
        "slim",
    }
)
"""Names that indicate programs of TensorFlow 1, although TensorFlow 2 has some of them, too."""
_AMBIGUOUS_NAMES: Final = frozenset({"eval", "io", "logging", "run", "summary", "test", "train"})
"""Names with which a program without Keras may create sessions, or operations for later sessions."""
_NUMPY: Final = ".numpy"
"""Stands for the attribute ``numpy`` of an object: only tensors of TensorFlow 2 have it."""
_ALONE: Final = frozenset({"keras", "numpy", "tensorflow"}) | sys.stdlib_module_names
_MAX_FILES: Final = 100
"""Maximum number of modules beside a program that are examined."""
_MODULES: Mapping[str, Sequence[str]] = {
    **modules.MODULES,
    "tensorflow.compat.v1": ("headwater.tf1.compat.tf",),
    "tensorflow.compat.v2": ("tf",),
}


class _Chosen:
    eager = False


def is_eager() -> bool:
    """Returns whether ``import tensorflow`` imports TensorFlow 2's API in this process."""
    return _Chosen.eager


def install(code: CodeType | None, wanted: str | None = None) -> None:
    """Makes ``import tensorflow`` mean Headwater in this process.

    Args:
      code: the program; None if it is not known.
      wanted: ``1``, ``2`` or ``auto``; the environment's choice, or ``auto``, if None.

    Raises:
      ValueError: the environment variable has an invalid value.
    """
    choice = wanted or os.environ.get(VARIABLE) or "auto"
    if choice not in ("1", "2", "auto"):
        raise ValueError(f"{VARIABLE} must be 1, 2 or auto, not {choice!r}")
    if choice == "auto":
        choice = dialect_of(code) if code is not None else "1"
    _Chosen.eager = choice == "2"
    shapes.use_numbers(_Chosen.eager)
    modules.install(modules.Finder(_MODULES, "headwater.tf2.namespace.tf") if _Chosen.eager else None)


def dialect_of(code: CodeType) -> str:
    """Returns ``2`` for a program of TensorFlow 2, else ``1``.

    A program is of TensorFlow 2 if it, or a module beside it that it imports, uses names that only TensorFlow 2 has; if
    it uses Keras; or if it has nothing that a session needs and imports no package that could make one. Names that
    TensorFlow 2 lacks make it a program of TensorFlow 1, unless it enables eager execution itself.
    """
    names, imported = _names(code)
    if names & {"enable_eager_execution", "enable_v2_behavior"}:
        return "2"
    if names & _ONLY_1 or "tensorflow.compat.v1" in names:
        return "1"
    if names & (_ONLY_2 | {_NUMPY}) or ("function" in names and names & {"tf", "tensorflow"}):
        return "2"
    if names & _SESSION_NAMES or "tensorflow" not in imported:
        return "1"
    return "2" if "keras" in names or (imported <= _ALONE and not names & _AMBIGUOUS_NAMES) else "1"


def _names(code: CodeType) -> tuple[set[str], set[str]]:
    """Returns the names in a program and in imported modules beside it, and the packages that these import."""
    names: set[str] = set()
    packages: set[str] = set()
    folder = os.path.dirname(code.co_filename)
    waiting, seen = [code], {code.co_filename}
    while waiting:
        found = waiting.pop()
        waiting += [inner for inner in found.co_consts if isinstance(inner, CodeType)]
        names.update(found.co_names)
        if any(
            each.opname in ("LOAD_ATTR", "LOAD_METHOD") and each.argval == "numpy"
            for each in dis.get_instructions(found)
        ):
            names.add(_NUMPY)
        for module in _imports(found):
            path = os.path.join(folder, *module.split(".")) + ".py"
            beside = os.path.isfile(path)
            if not beside:
                packages.add(module.partition(".")[0])
            elif path not in seen and len(seen) < _MAX_FILES:
                seen.add(path)
                waiting += _compiled(path)
    return names, packages


def _imports(code: CodeType) -> list[str]:
    """Returns the modules that a code object imports, except for imports in its inner functions."""
    return [str(each.argval) for each in dis.get_instructions(code) if each.opname == "IMPORT_NAME" and each.argval]


def _compiled(path: str) -> list[CodeType]:
    """Returns a list with the code of a file, or an empty list if it cannot be read: its import reports the reason."""
    try:
        with tokenize.open(path) as file:
            return [compile(file.read(), path, "exec", dont_inherit=True)]
    except (OSError, SyntaxError, ValueError):
        return []
