"""What a thread traces at the moment, and what a trace learns of iterators and strategies."""

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
        """The next element; StopIteration at the end."""
        ...

    def put_back(self, element: Tree) -> None:
        """Makes ``element`` the next one again."""
        ...


class Shares(Protocol):
    """A strategy with several processes."""

    def align(self, variables: Sequence[Any]) -> None:
        """Gives variables that are new the values that they have in the first process."""
        ...


class Serves(Protocol):
    """A strategy whose variables are elsewhere."""

    def read(self, variables: Sequence[Any]) -> None:
        """Gives variables the values that they have there."""
        ...

    def write(
        self, optimizer: Any, variables: Sequence[Any], gradients: Sequence[jax.Array], written: Sequence[Any] = ()
    ) -> None:
        """Has an optimizer apply gradients there; ``written`` are variables that were changed otherwise."""
        ...


class RunsInPython(Exception):
    """What is traced cannot be compiled; the message says why.

    Attributes:
      quiet: nothing is lost by that, and nothing is said of it.
    """

    quiet = True


class Tracing:
    """A function that is being traced.

    Attributes:
      pulled: what it has asked iterators for: the iterators, and the elements of this call.
      stand_ins: what stands for these elements.
      strategies: those whose replicas exchange in it.
      pushes: gradients for variables that are elsewhere: the strategy, the optimizer, variables, and gradients.
      served: strategies that ran something in it, whose variables are elsewhere.
    """

    def __init__(self, pulled: list[tuple[Pulls, object]]) -> None:
        self.pulled = pulled
        self.stand_ins: list[Tree] = []
        self.strategies: dict[int, Shares] = {}
        self.pushes: list[tuple[Serves, object, list[object], list[object]]] = []
        self.served: dict[int, Serves] = {}
        self._next = 0

    def pull(self, iterator: Pulls) -> Tree:
        """What stands for the next element of an iterator."""
        at = self._next
        self._next += 1
        if at >= len(self.stand_ins):
            raise UnknownElement(iterator)
        return self.stand_ins[at]


class UnknownElement(Exception):
    """An element of an iterator is asked for that the trace does not know yet."""

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
    """The function that this thread traces; None where what it does is done at once."""
    return _here.tracing


def converts() -> bool:
    """Whether AutoGraph converts what this thread traces."""
    return _here.converting


def runs_in_python() -> bool:
    """Whether this thread is within a function that could not be compiled."""
    return _here.in_python > 0


@contextmanager
def in_python() -> Generator[None]:
    """What this thread does within the block belongs to a function that could not be compiled."""
    _here.in_python += 1
    try:
        yield
    finally:
        _here.in_python -= 1


@contextmanager
def trace_of(pulled: list[tuple[Pulls, object]], *, converting: bool) -> Generator[Tracing]:
    """Within the block this thread traces; ``converting``: what it calls is converted by AutoGraph."""
    before = _here.tracing, _here.converting
    _here.tracing, _here.converting = Tracing(pulled), converting
    try:
        yield _here.tracing
    finally:
        _here.tracing, _here.converting = before
