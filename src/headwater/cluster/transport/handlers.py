"""What a task answers on the control plane, in plain Python: the seam between gRPC and the layers above."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from headwater.cluster.claims import Claim


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskStatus:
    """Who a task is and how it fares.

    Attributes:
      task: its name.
      generation: of its present life.
      started: when that life began, in seconds since 1970.
      pid: its process id.
      version: of Headwater.
      details: anything else that layers above have to say.
    """

    task: str
    generation: int
    started: float
    pid: int
    version: str
    details: Mapping[str, bytes] = field(default_factory=dict[str, bytes])


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceInfo:
    """One device of a task.

    Attributes:
      name: its full name.
      type: such as ``"CPU"``.
      memory_limit: in bytes; 0 where none is known.
      incarnation: a number that changes with every life of the task.
    """

    name: str
    type: str
    memory_limit: int = 0
    incarnation: int = 0


class TaskHandler(Protocol):
    """What every task answers to the masters of its cluster.

    Methods are called from several threads. An OpError that one raises arrives at the caller as the same class.
    """

    def status_details(self) -> Mapping[str, bytes]:
        """`TaskStatus.details`."""
        ...

    def list_devices(self) -> Sequence[DeviceInfo]:
        """The task's devices."""
        ...

    def add_plan(self, session: str, number: int, plan: bytes, owner: Claim) -> None:
        """Takes the task's part of a session's steps.

        Args:
          session: whose.
          number: to call it by, in the session.
          plan: packed.
          owner: the claim of the task whose master has the session.
        """
        ...

    def release(self, session: str) -> None:
        """Ends a session here; one that is not known is over already."""
        ...

    def cancel_step(self, session: str, step: int, reason: str) -> None:
        """Gives up a step; one that is not known is over already."""
        ...

    def reset(self, containers: Sequence[str]) -> None:
        """Forgets the state in ``containers``, in all where none is named, and every session."""
        ...

    def shutdown(self, reason: str, chief: Claim, gone: Collection[str]) -> None:
        """The job is over: makes the task's server end as soon as no worker is connected any more.

        Args:
          reason: why, for people.
          chief: the claim of the task whose program is done.
          gone: tasks that have come to other servers, and are gone: this one need not wait until they come.

        Raises:
          FailedPreconditionError: another task has that place; see `headwater.cluster.claims`.
        """
        ...

    def join(self, job: str, address: str) -> tuple[int, Mapping[str, str]]:
        """Gives a task that is not in the cluster spec a place in the cluster, for as long as it is connected.

        Returns:
          Its index in ``job``, and the addresses of all tasks by their names.
        """
        ...


class MasterHandler(Protocol):
    """What a task answers to clients that have their graph run by it."""

    def create_session(self, config: bytes, graph_def: bytes) -> str:
        """Starts a session; its handle."""
        ...

    def extend_session(self, session: str, graph_def: bytes) -> None:
        """Adds operations to a session's graph."""
        ...

    def make_callable(
        self, session: str, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str], options: bytes
    ) -> int:
        """Plans a request; the number to call it by."""
        ...

    def release_callable(self, session: str, number: int) -> None:
        """Forgets a callable; one that is not known is gone already."""
        ...

    def close_session(self, session: str) -> None:
        """Ends a session; one that is not known is over already."""
        ...

    def reset(self, containers: Sequence[str]) -> None:
        """Forgets the state of all tasks in ``containers``, in all where none is named, and every session."""
        ...

    def session_devices(self, session: str) -> Sequence[str]:
        """Full names of the devices that a session may use."""
        ...
