"""Interface of the calls on a task's control plane, in plain Python: it separates gRPC from the layers above."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from headwater.cluster.claims import Claim


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskStatus:
    """Identity and status of a task.

    Attributes:
      task: the task's name.
      generation: the generation of its current incarnation.
      started: the start time of that incarnation, in seconds since 1970.
      pid: the task's process id.
      version: the task's version of Headwater.
      details: further entries, from the layers above.
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
      name: the device's full name.
      type: the type, such as ``"CPU"``.
      memory_limit: in bytes; 0 if none is known.
      incarnation: the generation of the task.
    """

    name: str
    type: str
    memory_limit: int = 0
    incarnation: int = 0


class TaskHandler(Protocol):
    """Calls that every task answers to the masters of its cluster.

    Several threads call these methods. An OpError that a method raises reaches the caller as the same class.
    """

    def status_details(self) -> Mapping[str, bytes]:
        """Returns `TaskStatus.details`."""
        ...

    def list_devices(self) -> Sequence[DeviceInfo]:
        """Returns the task's devices."""
        ...

    def add_plan(self, session: str, number: int, plan: bytes, owner: Claim) -> None:
        """Adds the task's part of a session's steps.

        Args:
          number: the number by which the session runs the plan.
          plan: the packed plan.
          owner: the claim of the task whose master has the session.
        """
        ...

    def release(self, session: str) -> None:
        """Ends a session here; ignores an unknown session, which has ended already."""
        ...

    def cancel_step(self, session: str, step: int, reason: str) -> None:
        """Cancels a step; ignores an unknown step, which has ended already."""
        ...

    def reset(self, containers: Sequence[str]) -> None:
        """Discards the state in ``containers`` (in all if none is named) and every session."""
        ...

    def shutdown(self, reason: str, chief: Claim, gone: Collection[str]) -> None:
        """Tells the task that the job is over: it ends as soon as no worker is connected or awaited.

        Args:
          reason: the reason, for the log.
          chief: the claim of the task whose program has ended.
          gone: tasks that have connected to other servers and left again. This task does not wait for them.

        Raises:
          FailedPreconditionError: the claim is rejected; see `headwater.cluster.claims`.
        """
        ...

    def join(self, job: str, address: str) -> tuple[int, Mapping[str, str]]:
        """Adds a task that is not in the cluster spec to the cluster, for as long as it is connected.

        Args:
          job: the job that the task joins.
          address: the address where the task listens.

        Returns:
          The index of the task in ``job``, and the addresses of all tasks by their names.
        """
        ...


class MasterHandler(Protocol):
    """Calls that a task answers to clients whose graphs it runs."""

    def create_session(self, config: bytes, graph_def: bytes) -> str:
        """Starts a session; returns its handle."""
        ...

    def extend_session(self, session: str, graph_def: bytes) -> None:
        """Adds operations to a session's graph."""
        ...

    def make_callable(
        self, session: str, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str], options: bytes
    ) -> int:
        """Plans a request; returns the number by which to run it."""
        ...

    def release_callable(self, session: str, number: int) -> None:
        """Releases a callable; ignores an unknown callable, which was released already."""
        ...

    def close_session(self, session: str) -> None:
        """Ends a session; ignores an unknown session, which has ended already."""
        ...

    def reset(self, containers: Sequence[str]) -> None:
        """Discards the state of all tasks in ``containers`` (in all if none is named) and every session."""
        ...

    def session_devices(self, session: str) -> Sequence[str]:
        """Returns the full names of the devices that a session may use."""
        ...
