"""Interface of a served set of parameters, or of a part of one."""

from __future__ import annotations

from typing import Protocol

from headwater.cluster.claims import Claim
from headwater.cluster.telemetry.snapshot import GroupProgress, VariableSize
from headwater.cluster.telemetry.watchdog import ProgressWatchdog
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.ps.recovery import RecoveryReport
from headwater.ps.shards.directory import Load
from headwater.state.copy import Replica


class Hosted(Protocol):
    """A set of parameters on a task, or a replica or shard of one. The defaults fit a set that counts no steps.

    See `headwater.ps.host.HostedParameters`, `HostedReplica` and `headwater.ps.replicas.holder.CopyHolder`.
    """

    @property
    def version(self) -> int:
        """Number of updates applied to the values."""
        ...

    @property
    def counts_steps(self) -> bool:
        """Whether `version` is the job's global step."""
        return False

    @property
    def steps(self) -> int:
        """Number of pushed gradients that were answered."""
        return 0

    @property
    def recovery_report(self) -> RecoveryReport | None:
        """Report of the recovery from saved state; None if nothing was recovered, as replicas keep no files."""
        return None

    def serve(self, channel: Channel, hello: Frame, watchdog: ProgressWatchdog) -> None:
        """Answers a worker, whose first frame is ``hello``, until its channel ends."""
        ...

    def serve_peer(self, channel: Channel, first: Frame) -> None:
        """Answers another task, whose first frame is ``first``, until its channel ends."""
        ...

    def refusal(self, task: Claim) -> str:
        """Returns why a task has no right to its place in the cluster; empty if it has the right."""
        del task
        return ""

    def job_over(self) -> None:
        """Marks the job as over: the chief's program has ended."""

    def record_worker_end(self) -> None:
        """Records that the program of a worker has ended without an error."""

    def close(self) -> None:
        """Ends all waits and releases resources, because the task stops."""

    def sizes(self) -> list[VariableSize]:
        """Returns the sizes of this task's blocks and of the optimizer's state."""
        return []

    def group(self) -> GroupProgress:
        """Returns the progress of the training, and the state of the replicas."""
        ...

    def waits(self) -> list[tuple[str, float]]:
        """Returns the workers that wait here, each with the reason and the start of the wait (`time.monotonic`)."""
        return []


class HostedReplica(Replica, Hosted):
    """A replica of a shard of parameters or tables, which can move between ``ps``."""

    def load(self) -> Load:
        """Returns the load of the shard on this task, in bytes and bytes per second."""
        raise NotImplementedError

    def record_worker_end(self) -> None:
        """Does nothing: most kinds of replicas have no workers that wait for each other."""
