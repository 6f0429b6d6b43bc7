"""Interface of a served set of parameters, or of a part of one."""

from __future__ import annotations

from typing import Protocol

from headwater.cluster.claims import Claim
from headwater.cluster.telemetry.snapshot import GroupProgress, VariableSize
from headwater.cluster.telemetry.watchdog import ProgressWatchdog
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.ps.recovery import WayBack


class Hosted(Protocol):
    """A set of parameters on a task, or a replica or shard of one.

    See `headwater.ps.host.HostedParameters`, `headwater.ps.replicas.shard.ShardCopy` and
    `headwater.ps.shards.holder.ShardHolder`.
    """

    @property
    def version(self) -> int: ...

    @property
    def counts_steps(self) -> bool: ...

    @property
    def steps(self) -> int: ...

    @property
    def way_back(self) -> WayBack | None: ...

    def serve(self, channel: Channel, hello: Frame, watchdog: ProgressWatchdog) -> None: ...

    def serve_peer(self, channel: Channel, first: Frame) -> None: ...

    def refusal(self, task: Claim) -> str: ...

    def job_over(self) -> None: ...

    def worker_ended(self) -> None: ...

    def close(self) -> None: ...

    def sizes(self) -> list[VariableSize]: ...

    def group(self) -> GroupProgress: ...

    def waits(self) -> list[tuple[str, float]]: ...
