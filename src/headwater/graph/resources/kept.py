"""What a task keeps besides variables, where another task keeps a second copy of it.

A resource that may be copied changes under the one lock of the task's resources, and counts its changes. What it is can
be said in words and arrays, of which another task makes the same; most small ones travel so after each change. Larger
ones change by operations that the other task carries out, too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import numpy as np

if TYPE_CHECKING:
    from headwater.graph.resources.containers import Resources

T = TypeVar("T")


class Key(NamedTuple):
    """A resource: its container, the name of its class as `Resources.get_or_make` is asked for it, and its name."""

    container: str
    kind: str
    name: str


class State(NamedTuple):
    """All that another copy of a resource has to know.

    Attributes:
      words: what a frame's header can hold.
      arrays: that stay as they are.
    """

    words: Sequence[Any]
    arrays: Sequence[Any] = ()


class Kept:
    """A resource of which another task may have a copy.

    Attributes:
      changes: how many there were, of those that another copy has to hear of.
    """

    changes: int = 0

    @property
    def repeats(self) -> bool:
        """Whether another copy hears of changes as operations that it carries out; else it hears all there is."""
        return False

    def share(self, lock: threading.RLock) -> None:
        """From now on, it changes under ``lock`` only."""
        raise NotImplementedError

    def state(self) -> State:
        """All there is to know. The lock is held."""
        raise NotImplementedError

    def take_state(self, state: State) -> None:
        """Becomes what ``state`` says. The lock is held."""
        raise NotImplementedError

    @classmethod
    def made_of(cls, state: State, resources: Resources) -> Kept:
        """One for `take_state`, of a task that has ``resources``."""
        raise NotImplementedError


class StillWaitsError(Exception):
    """An operation has to wait, where it may not.

    Args:
      condition, ready, what: what it has to wait for, see `headwater.graph.resources.queues.Waiting.wait_until`.
    """

    def __init__(self, condition: threading.Condition, ready: Callable[[], bool], what: str) -> None:
        super().__init__(what)
        self.condition: threading.Condition = condition
        self.ready: Callable[[], bool] = ready
        self.what: str = what


def at_first(waiting: object, name: str, value: T) -> T:
    """What ``value`` was when the operation was tried first, where ``waiting`` is one that is tried again and again."""
    notes: dict[str, Any] | None = getattr(waiting, "notes", None)
    return value if notes is None else notes.setdefault(name, value)


def is_handle(value: object) -> bool:
    """Whether a value of a tensor stands for such a resource."""
    if not isinstance(value, np.ndarray):
        return False
    array = cast("np.ndarray[Any, Any]", value)
    return array.dtype == object and not array.ndim and isinstance(array.item(), Kept)
