"""What operations that run on the host may use besides their inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from headwater.graph.resources.containers import Resources, Signature
from headwater.graph.resources.queues import Waiting

R = TypeVar("R")


class RunningStep(Waiting, Protocol):
    """The step that an operation runs in.

    Attributes:
      number: the step's number, the same on all tasks.
      session: handle of the session that it belongs to.
      follows: whether it does again what another task has done.
    """

    number: int
    session: str
    follows: bool

    def at_end(self, call: Callable[[], object]) -> None:
        """Has ``call`` called when nothing of the step runs on this task any more, whatever became of it."""
        ...

    def check(self) -> None:
        """Raises CancelledError when the step was cancelled, DeadlineExceededError when its time is over."""
        ...

    def commit(self) -> None:
        """See `headwater.graph.runtime.step.Step.commit`."""
        ...


class HostContext(Protocol):
    """The operation's place: its name, its step and what its task keeps between steps."""

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
        self,
        container: str,
        shared_name: str,
        kind: type[R],
        make: Callable[[], R],
        signature: Signature | None = None,
    ) -> R:
        """The task's resource of class ``kind`` that the operation stands for, made when it is not there.

        One with a ``shared_name`` is shared by all sessions, which must agree on its ``signature``, see
        `Resources.get_or_make`; one without belongs to this session alone.
        """
        ...
