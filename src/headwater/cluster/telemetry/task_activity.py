"""Traffic of a task with other tasks and the staleness of its gradients, in a form that fits a progress report."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self, cast

from headwater.cluster.telemetry.snapshot import Snapshot, rates

if TYPE_CHECKING:
    from headwater.data.io.json_types import JsonObject

_TASK = re.compile(r"/job:(\w+)(?:/replica:\d+)?/task:(\d+)")
_PEER = re.compile(r"\w{1,20}-\d{1,6}")
# The peers with the most traffic; more would not fit into a datagram.
_MAX_PEERS = 64
_MAX_CHARACTERS = 300


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskActivity:
    """The part of a task's report besides its progress.

    Attributes:
      bytes_per_s: bytes per second sent to and received from each other task, by its label (``ps-0``).
      staleness: mean staleness of the gradients that the task has applied, in updates; None if it applies no gradients.
      staleness_max: the greatest staleness of a gradient, in updates.
      waiting: the reason why a step waits, or which task waits for which; empty without waits.
    """

    bytes_per_s: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    staleness: float | None = None
    staleness_max: int = 0
    waiting: str = ""

    def fields(self) -> JsonObject:
        """Returns the report as values that JSON can encode, for `of`."""
        most = sorted(self.bytes_per_s.items(), key=lambda entry: -sum(entry[1]))[:_MAX_PEERS]
        return {
            "bytes_per_s": {peer: [round(sent), round(received)] for peer, (sent, received) in most},
            "staleness": self.staleness,
            "staleness_max": self.staleness_max,
            "waiting": self.waiting[:_MAX_CHARACTERS],
        }

    @classmethod
    def of(cls, value: object) -> Self | None:
        """Decodes the received values of `fields`; returns None if they are malformed."""
        if not isinstance(value, dict):
            return None
        fields = cast("JsonObject", value)
        try:
            staleness = fields.get("staleness")
            return cls(
                bytes_per_s={
                    str(peer): (float(sent), float(received))
                    for peer, (sent, received) in list(fields.get("bytes_per_s", {}).items())[:_MAX_PEERS]
                    if _PEER.fullmatch(str(peer))
                },
                staleness=None if staleness is None else float(staleness),
                staleness_max=int(fields.get("staleness_max", 0)),
                waiting=str(fields.get("waiting", ""))[:_MAX_CHARACTERS],
            )
        except (TypeError, ValueError, AttributeError, OverflowError):
            return None


def activity_of(before: Snapshot | None, now: Snapshot) -> TaskActivity:
    """Returns the report of a task from two snapshots of it. Without the first snapshot, the report has no rates."""
    traffic = rates(before, now).bytes if before is not None else {}
    waits = [wait.what for wait in now.waits if wait.seconds >= 1]
    updates = sum(group.updates for group in now.groups)
    stale = sum(group.staleness * group.updates for group in now.groups)
    return TaskActivity(
        bytes_per_s=_by_label(traffic),
        staleness=stale / updates if updates else None,
        staleness_max=max((group.staleness_max for group in now.groups), default=0),
        waiting="; ".join([*(group.waiting for group in now.groups if group.waiting), *waits]),
    )


def _by_label(traffic: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    sums: dict[str, tuple[float, float]] = {}
    for peer, (sent, received) in traffic.items():
        match = _TASK.search(peer)
        if match is not None:
            label = f"{match[1]}-{match[2]}"
            known = sums.get(label, (0.0, 0.0))
            sums[label] = known[0] + sent, known[1] + received
    return sums
