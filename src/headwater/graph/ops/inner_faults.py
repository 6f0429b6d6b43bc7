"""Failures of operations within compiled loops and branches.

While a program is traced, each operation of a body that may fail records a boolean. Code outside of a loop or branch
cannot use values that were traced within it. So the loop or branch returns the booleans together with its own results,
and the outer code records them again. The runtime checks all of them after the run (`headwater.graph.runtime.compile`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeVar

import numpy as np

from headwater.lazy_jax import jnp

_Result = TypeVar("_Result")
Faults = dict[str, Any]
"""Maps names of operations to booleans: whether they fail."""

_noted: Final[ContextVar[Faults | None]] = ContextVar("noted", default=None)


@contextmanager
def noting(faults: Faults | None) -> Generator[None]:
    """Returns a context in which failures are recorded in ``faults``, or ignored if it is None."""
    token = _noted.set(faults)
    try:
        yield
    finally:
        _noted.reset(token)


def are_noted() -> bool:
    """Returns whether failures are recorded in the current context."""
    return _noted.get() is not None


def record_faults(found: Mapping[str, Any]) -> None:
    """Records the booleans of operations that may fail; ignores None, which represents an operation that cannot
    fail."""
    faults = _noted.get()
    if faults is not None:
        for name, fault in found.items():
            if fault is not None:
                faults[name] = fault if name not in faults else faults[name] | fault


def with_faults(function: Callable[..., _Result]) -> Callable[..., tuple[_Result, Faults]]:
    """Wraps ``function`` so that it returns its result together with its failures, instead of recording the failures in
    the current context."""

    def run(*args: Any) -> tuple[_Result, Faults]:
        faults: Faults = {}
        with noting(faults if are_noted() else None):
            result = function(*args)
        return result, {name: jnp.asarray(fault, np.bool_) for name, fault in faults.items()}

    return run
