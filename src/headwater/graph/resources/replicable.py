"""Interface of replicated resources other than variables.

A replicable resource is changed under the lock of the task's resources, and counts its changes. Its state can be
encoded as words and arrays. Most small resources are sent to the backup as full states after each change. For larger
resources, the backup repeats each operation that has changed the resource on the primary.
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
    """The key of a resource: container, name of the class passed to `Resources.get_or_make`, and name."""

    container: str
    kind: str
    name: str


class ResourceState(NamedTuple):
    """The complete state of a resource.

    Attributes:
      words: values that a frame's header can hold.
      arrays: arrays that will not change.
    """

    words: Sequence[Any]
    arrays: Sequence[Any] = ()


class ReplicableResource:
    """A resource that can be replicated.

    Attributes:
      changes: number of changes that have to be replicated.
    """

    changes: int = 0

    @property
    def repeats(self) -> bool:
        """Whether the backup repeats the operations that change the resource; otherwise it gets the full state after
        each change."""
        return False

    def share(self, lock: threading.RLock) -> None:
        """Replaces the resource's own lock: from now on, all changes are made under ``lock``."""
        raise NotImplementedError

    def state(self) -> ResourceState:
        """Returns the complete state. The caller holds the lock."""
        raise NotImplementedError

    def install_state(self, state: ResourceState) -> None:
        """Installs ``state``. The caller holds the lock."""
        raise NotImplementedError

    @classmethod
    def made_of(cls, state: ResourceState, resources: Resources) -> ReplicableResource:
        """Creates a resource for `install_state`, on a task with ``resources``."""
        raise NotImplementedError


class StillWaitsError(Exception):
    """Raised by an operation that has to wait, if the step only tries the operation and must not block.

    Args:
      condition, ready, what: the wait, see `headwater.graph.resources.queues.Waiting.wait_until`.
    """

    def __init__(self, condition: threading.Condition, ready: Callable[[], bool], what: str) -> None:
        super().__init__(what)
        self.condition: threading.Condition = condition
        self.ready: Callable[[], bool] = ready
        self.what: str = what


def first_value(waiting: object, name: str, value: T) -> T:
    """Returns ``value`` at an operation's first try, and the same object again at each later try.

    Only operations on replicated tasks are tried again, after each wait. For other steps, returns ``value``.

    Args:
      waiting: the step of the operation.
      name: identifies the value among those of the operation.
      value: the value for the first try.
    """
    # Only steps of replicated tasks have notes. Elsewhere, an operation waits in place and is not tried again.
    notes = getattr(waiting, "notes", None)
    return value if notes is None else notes.setdefault(name, value)


def is_handle(value: object) -> bool:
    """Returns whether a tensor's value is a handle of such a resource."""
    if not isinstance(value, np.ndarray):
        return False
    array = cast("np.ndarray[Any, Any]", value)
    return array.dtype == object and not array.ndim and isinstance(array.item(), ReplicableResource)
