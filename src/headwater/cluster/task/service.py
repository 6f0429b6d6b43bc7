"""What a task's services have in common: steps of graphs, parameters, collectives, calls of a coordinator."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import ClassVar

from headwater.cluster.claims import Claim
from headwater.cluster.telemetry.snapshot import Snapshot
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame


class Service:
    """One thing that a task does for others.

    Attributes:
      kinds: of the first frames of channels that are for it; see `headwater.cluster.task.kinds`.
    """

    kinds: ClassVar[Collection[int]] = ()

    def serve(self, channel: Channel, first: Frame) -> None:
        """Answers a channel, in a thread of its own, until the channel ends.

        Args:
          channel: the channel; the caller closes it.
          first: the frame that it began with.

        Raises:
          UnavailableError, CancelledError: the channel has ended.
          OpError: the other end has said something that cannot be understood.
        """
        raise NotImplementedError

    def has_served(self, generation: int) -> bool:
        """Whether it has done anything for a life of a task."""
        del generation
        return False

    def lost(self, task: str, generation: int) -> None:
        """The last channel of a life of a task, or of a client, has ended."""

    def refusal(self, task: Claim) -> str:
        """Why a task does not speak for its place in the cluster; empty where it does, as far as is known here."""
        del task
        return ""

    def is_open(self, session: str) -> bool:
        """Whether a session that the progress watchdog was told of is still open."""
        del session
        return False

    def details(self) -> Mapping[str, bytes]:
        """What the task's status says besides its snapshot, for other tasks."""
        return {}

    def ended(self, task: str) -> None:
        """The program of a worker other than the chief has ended without an error."""

    def job_over(self, reason: str) -> None:
        """The program of the chief has ended without an error; the task ends once its workers have."""

    def before_end(self, *, over: bool) -> None:
        """The task is about to end, and still answers; ``over``: because its job is over."""

    def close(self) -> None:
        """The task stops: ends what the service has begun."""

    def add_to(self, snapshot: Snapshot) -> Snapshot:
        """``snapshot`` with what this service knows."""
        return snapshot
