"""The context of host operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from headwater.graph.resources.containers import Resources, Signature
from headwater.graph.resources.queues import Waiting

R = TypeVar("R")


class RunningStep(Waiting, Protocol):
    """The step of an operation.

    Attributes:
      number: the step's number, the same on all tasks.
      session: handle of the session to which the step belongs.
      follows: whether the step repeats a change of the primary, on a backup.
    """

    number: int
    session: str
    follows: bool

    def at_end(self, call: Callable[[], object]) -> None:
        """Registers a callback for the end of the step on this task, whether it succeeds or fails."""
        ...

    def check(self) -> None:
        """Raises CancelledError if the step was cancelled, DeadlineExceededError if its deadline has passed."""
        ...

    def commit(self) -> None:
        """See `headwater.graph.runtime.step.Step.commit`."""
        ...


class HostContext(Protocol):
    """An operation's context: its name, its step and its task's resources."""

    @property
    def op_name(self) -> str:
        """The operation's name."""
        ...

    @property
    def task(self) -> str:
        """Full name of the task."""
        ...

    @property
    def step(self) -> RunningStep:
        """The step, for waiting."""
        ...

    @property
    def resources(self) -> Resources:
        """The task's containers."""
        ...

    def resource(
        self, container: str, shared_name: str, kind: type[R], make: Callable[[], R], signature: Signature | None = None
    ) -> R:
        """Returns the task's resource of class ``kind`` to which the operation refers; creates it if missing.

        A resource with a ``shared_name`` is shared by all sessions, which must agree on its ``signature``, see
        `Resources.get_or_make`. Without a ``shared_name``, the resource belongs to this session alone.
        """
        ...
