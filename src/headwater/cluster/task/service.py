"""Interface of a task's services: steps of graphs, parameters, collectives, calls of a coordinator."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import ClassVar

from headwater.cluster.claims import Claim
from headwater.cluster.telemetry.snapshot import Snapshot
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame


class Service:
    """A service that a task provides to others.

    Attributes:
      kinds: kinds of the first frames of channels for this service; see `headwater.cluster.task.kinds`.
    """

    kinds: ClassVar[Collection[int]] = ()

    def serve(self, channel: Channel, first: Frame) -> None:
        """Serves a channel until it ends; called in a new thread.

        Args:
          channel: the channel; the caller closes it.
          first: the first frame of the channel.

        Raises:
          UnavailableError, CancelledError: the channel has ended.
          OpError: the other end has sent an invalid frame.
        """
        raise NotImplementedError

    def has_served(self, generation: int) -> bool:
        """Returns whether this service has worked for the incarnation of a task with this generation."""
        del generation
        return False

    def handle_loss(self, task: str, generation: int) -> None:
        """Handles the end of the last channel of an incarnation of a task or client."""

    def refusal(self, task: Claim) -> str:
        """Returns why this service rejects a task's claim to its place in the cluster; empty if this service accepts
        the claim."""
        del task
        return ""

    def is_open(self, session: str) -> bool:
        """Returns whether a session known to the progress watchdog is still open."""
        del session
        return False

    def details(self) -> Mapping[str, bytes]:
        """Returns entries for the task's status besides its snapshot, for other tasks."""
        return {}

    def handle_program_end(self, task: str) -> None:
        """Handles the end, without an error, of the program of a worker other than the chief."""

    def job_over(self, reason: str) -> None:
        """Handles the end, without an error, of the chief's program; the task ends once its workers have left."""

    def before_end(self, *, over: bool) -> None:
        """Prepares for the end of the task, for example deposits state. The task still answers others meanwhile.

        Args:
          over: whether the job is over; otherwise the task shuts down during the job.
        """

    def close(self) -> None:
        """Stops the service and releases its resources, because the task stops."""

    def add_to(self, snapshot: Snapshot) -> Snapshot:
        """Returns ``snapshot`` with this service's entries added."""
        return snapshot
