"""Which of TensorFlow's ways a program is written in: graphs and sessions (1), or values at once (2)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import CodeType
from typing import Final

from headwater.tf1.compat import modules

VARIABLE: Final = "HEADWATER_DIALECT"
"""The environment variable that says it: ``1``, ``2`` or ``auto``."""

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
_MODULES: Mapping[str, Sequence[str]] = {
    **modules.MODULES,
    "tensorflow.compat.v1": ("headwater.tf1.compat.tf",),
    "tensorflow.compat.v2": ("tf",),
}


class _Chosen:
    eager = False


def is_eager() -> bool:
    """Whether ``import tensorflow`` gives TensorFlow 2's way in this process."""
    return _Chosen.eager


def install(code: CodeType | None, wanted: str | None = None) -> None:
    """Makes ``import tensorflow`` mean Headwater in this process.

    Args:
      code: the program; None where it is not known.
      wanted: ``1``, ``2`` or ``auto``; the environment's choice, or ``auto``, when None.

    Raises:
      ValueError: the environment's choice is none of these.
    """
    choice = wanted or os.environ.get(VARIABLE) or "auto"
    if choice not in ("1", "2", "auto"):
        raise ValueError(f"{VARIABLE} must be 1, 2 or auto, not {choice!r}")
    if choice == "auto":
        choice = dialect_of(code) if code is not None else "1"
    _Chosen.eager = choice == "2"
    modules.install(modules.Finder(_MODULES, "headwater.tf2.namespace.tf") if _Chosen.eager else None)


def dialect_of(code: CodeType) -> str:
    """``2`` for a program that names what only TensorFlow 2's way has, and nothing of sessions; else ``1``."""
    names = _names(code)
    if names & {"enable_eager_execution", "enable_v2_behavior"}:
        return "2"
    if names & _ONLY_1 or "tensorflow.compat.v1" in names:
        return "1"
    return "2" if names & _ONLY_2 or ("function" in names and names & {"tf", "tensorflow"}) else "1"


def _names(code: CodeType) -> set[str]:
    found = set(code.co_names)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found.update(_names(inner))
    return found
