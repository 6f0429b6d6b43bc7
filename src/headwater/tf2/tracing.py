"""The current trace of a thread, and the iterators and strategies that the traced function uses."""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import jax

if TYPE_CHECKING:
    from headwater.keras.types import Tree


class Pulls(Protocol):
    """An iterator over a dataset."""

    def pull(self) -> Tree:
        """Returns the next element; raises StopIteration at the end."""
        ...

    def put_back(self, element: Tree) -> None:
        """Makes ``element`` the next element again."""
        ...


class Shares(Protocol):
    """A strategy with several processes."""

    def align(self, variables: Sequence[object]) -> None:
        """Sets new variables to the values that they have in the first process."""
        ...


class Serves(Protocol):
    """A strategy with variables on other tasks."""

    def read(self, variables: Sequence[Any]) -> None:
        """Reads the current values of variables from these tasks."""
        ...

    def write(
        self, optimizer: object, variables: Sequence[Any], gradients: Sequence[jax.Array], written: Sequence[Any] = ()
    ) -> None:
        """Sends gradients for an optimizer on these tasks; ``written`` are variables that changed without optimizer."""
        ...


class RunsInPython(Exception):
    """The traced function cannot be compiled; the message states the reason.

    Attributes:
      quiet: whether to log nothing, because running as Python has no disadvantage.
    """

    quiet = True


class CreatesVariables(Exception):
    """The traced function creates a variable."""


class Tracing:
    """A function that is being traced.

    Attributes:
      pulled: the iterators that the function has used, with their elements in this call.
      stand_ins: traced values in the place of these elements.
      strategies: strategies with replicas that exchange values in it.
      pushes: gradients for variables on other tasks: the strategy, the optimizer, variables, and gradients.
      served: strategies with variables on other tasks that ran a replica in it.
    """

    def __init__(self, pulled: list[tuple[Pulls, object]]) -> None:
        self.pulled = pulled
        self.stand_ins: list[Tree] = []
        self.strategies: dict[int, Shares] = {}
        self.pushes: list[tuple[Serves, object, list[object], list[object]]] = []
        self.served: dict[int, Serves] = {}
        self._next = 0

    def pull(self, iterator: Pulls) -> Tree:
        """Returns the traced value for the next element of an iterator."""
        at = self._next
        self._next += 1
        if at >= len(self.stand_ins):
            raise UnknownElement(iterator)
        return self.stand_ins[at]


class UnknownElement(Exception):
    """The traced function requests an element of an iterator that the trace does not know yet."""

    def __init__(self, iterator: Pulls) -> None:
        super().__init__()
        self.iterator = iterator


class _Here(threading.local):
    def __init__(self) -> None:
        self.tracing: Tracing | None = None
        self.in_python = 0
        self.converting = False


_here = _Here()


def tracing() -> Tracing | None:
    """Returns the current trace of this thread; None in eager execution."""
    return _here.tracing


def converts() -> bool:
    """Returns whether AutoGraph converts the function that this thread traces."""
    return _here.converting


def runs_in_python() -> bool:
    """Returns whether this thread is within a function that could not be compiled."""
    return _here.in_python > 0


@contextmanager
def in_python() -> Generator[None]:
    """A context for the body of a function that could not be compiled and runs as Python."""
    _here.in_python += 1
    try:
        yield
    finally:
        _here.in_python -= 1


@contextmanager
def trace_of(pulled: list[tuple[Pulls, object]], *, converting: bool) -> Generator[Tracing]:
    """A context in which this thread traces; with ``converting``, AutoGraph converts functions that it calls."""
    before = _here.tracing, _here.converting
    _here.tracing, _here.converting = Tracing(pulled), converting
    try:
        yield _here.tracing
    finally:
        _here.tracing, _here.converting = before
