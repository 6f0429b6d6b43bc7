"""Snapshots of a task's status, and rates between two snapshots, such as steps and bytes per second.

A snapshot is sent as JSON, in the details of the control plane's status.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from headwater.cluster.telemetry.troubles import Trouble
from headwater.cluster.telemetry.watchdog import WorkerProgress

if TYPE_CHECKING:
    from headwater.data.io.json_types import JsonObject

SNAPSHOT_DETAIL = "snapshot"
"""Key of the status detail that holds a snapshot."""
MAX_VARIABLES = 50
"""Maximum number of variables that a snapshot lists."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PeerTraffic:
    """Traffic with another task or client, over all channels that are open now.

    Attributes:
      peer: the name of the task or client.
      channels: the number of open channels.
      sent, received: bytes sent and received over these channels.
    """

    peer: str
    channels: int
    sent: int
    received: int


@dataclass(frozen=True, kw_only=True, slots=True)
class VariableSize:
    """A variable of a task.

    Attributes:
      name: the variable's name, prefixed by its container if that is not the default one.
      nbytes: size in bytes; 0 without a value.
      dtype, shape: dtype and shape of the value; empty without one.
      updates: how many times the value was replaced.
    """

    name: str
    nbytes: int
    dtype: str = ""
    shape: tuple[int, ...] = ()
    updates: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Wait:
    """A step that waits.

    Attributes:
      what: the reason for the wait, in words.
      seconds: for how long it has waited, in seconds.
    """

    what: str
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupProgress:
    """The training of a group of variables with the same consistency; see `headwater.ps.consistency`.

    Attributes:
      name: the name of the group.
      updates: the number of updates of its variables.
      staleness: mean staleness of all gradients applied so far, in updates.
      staleness_max: the greatest staleness, in updates.
      dropped: the number of gradients dropped as too stale.
      workers: the participating workers, if they are known.
      waiting: which task waits for which, in words; empty without waits.
      consistency, optimizer: the names of the consistency and the optimizer, if they are known. examples: progress of
      epochs whose examples are accounted for, in words; empty without any.
      saved: the state of the group that this task has saved, and lost updates, in words; empty if it saves no state.
      saved_bytes: bytes written for these saves so far.
      lost_updates: the number of updates lost when the task was restarted from a saved state.
      copies: the role of the task's replica and the progress of the other replica, in words; empty without replication.
      lacks_backup: whether the task is a primary that has no complete backup now.
      backup_lag: the number of frames that the backup has yet to confirm to the primary.
      shards: the shards that the task has, and their total number, in words; empty if shards do not move.
    """

    name: str
    updates: int = 0
    staleness: float = 0.0
    staleness_max: int = 0
    dropped: int = 0
    workers: tuple[str, ...] = ()
    waiting: str = ""
    consistency: str = ""
    optimizer: str = ""
    examples: str = ""
    saved: str = ""
    saved_bytes: int = 0
    lost_updates: int = 0
    copies: str = ""
    lacks_backup: bool = False
    backup_lag: int = 0
    shards: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class TableLoad:
    """The part of an embedding table that is on this task.

    Attributes:
      name: the name of the table.
      rows: the number of rows.
      nbytes: bytes in memory for rows, state, keys and index.
      file_bytes: size of the file with the rows that are not in memory, in bytes.
      hits, misses: lookups of rows that were in memory, and in the file.
      made: the number of rows ever created, which is the number of admitted keys.
      refused: lookups of keys that had not been admitted.
      dropped: gradients of keys that had not been admitted.
      evicted: the number of evicted rows.
      updates: the number of updates.
      hot: the most used keys with the number of uses, most used first; for strings, the first words of the keys. They
        may be slightly outdated, because a pass over all rows is needed to find them.
      saved: the task's own saves of its tables, in words; empty if it makes no saves.
      lost_updates: updates lost by all of the task's tables when it was restarted from a save.
    """

    name: str
    rows: int = 0
    nbytes: int = 0
    file_bytes: int = 0
    hits: int = 0
    misses: int = 0
    made: int = 0
    refused: int = 0
    dropped: int = 0
    evicted: int = 0
    updates: int = 0
    hot: tuple[tuple[int, int], ...] = ()
    saved: str = ""
    lost_updates: int = 0

    @property
    def hit_rate(self) -> float:
        """The fraction of lookups that found their row in memory; 1 before the first lookup."""
        return self.hits / (self.hits + self.misses) if self.hits + self.misses else 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """A task at one moment.

    Attributes:
      at: the time by the task's clock, in seconds of any origin.
      steps: the number of parts of steps that the task has run since it started.
      sessions: the number of sessions that have plans on the task.
      global_step: the value of a variable of that name; None if the task has none.
      peers: traffic with others.
      variables: the largest variables, at most `MAX_VARIABLES`.
      variables_count, variables_bytes: the number and size of all variables.
      waits: steps that wait.
      groups: the training of groups of variables, if an optimizer reports it.
      tables: dynamic embedding tables.
      workers: the progress of each worker's steps here.
      troubles: failures of the process to write.
      cluster: the address of every task that this task knows, by name.
      metrics: the address at which the task serves metrics; empty if it serves none.
    """

    at: float
    steps: int = 0
    sessions: int = 0
    global_step: int | None = None
    peers: tuple[PeerTraffic, ...] = ()
    variables: tuple[VariableSize, ...] = ()
    variables_count: int = 0
    variables_bytes: int = 0
    waits: tuple[Wait, ...] = ()
    groups: tuple[GroupProgress, ...] = ()
    tables: tuple[TableLoad, ...] = ()
    workers: tuple[WorkerProgress, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    cluster: dict[str, str] = field(default_factory=dict[str, str])
    metrics: str = ""

    def encode(self) -> bytes:
        """Returns the snapshot as JSON."""
        return json.dumps(self, default=_plain).encode()

    @staticmethod
    def decode(data: bytes) -> Snapshot:
        """Decodes the output of `encode`, also of another version: unknown fields are ignored.

        Raises:
          ValueError: the data are not a snapshot.
        """
        try:
            raw: JsonObject = json.loads(data)
            known = {name: raw[name] for name in Snapshot.__dataclass_fields__ if name in raw}
            for name, kind in _PARTS:
                known[name] = tuple(_make(kind, item) for item in raw.get(name, ()))
            return Snapshot(**known)
        except (TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ValueError(f"not the snapshot of a task: {error}") from error


def _plain(value: Any) -> JsonObject:
    """Returns the fields of a part without copying them, as a task may have a thousand workers to report."""
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


_PARTS: tuple[tuple[str, object], ...] = (
    ("peers", PeerTraffic),
    ("variables", VariableSize),
    ("waits", Wait),
    ("groups", GroupProgress),
    ("tables", TableLoad),
    ("workers", WorkerProgress),
    ("troubles", Trouble),
)


def _make(kind: Any, raw: JsonObject) -> Any:
    values = {name: raw[name] for name in kind.__dataclass_fields__ if name in raw}
    for name, value in values.items():
        # JSON has no tuples, and the fields of a snapshot are immutable.
        if isinstance(value, list):
            items = cast(list[Any], value)
            values[name] = tuple(tuple(cast(list[Any], item)) if isinstance(item, list) else item for item in items)
    return kind(**values)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rates:
    """Rates of a task between two snapshots, per second.

    Attributes:
      steps: parts of steps.
      global_step: shared steps; None if unknown.
      bytes: bytes sent and received, by peer.
      rows: rows looked up, by embedding table.
    """

    steps: float
    global_step: float | None
    bytes: dict[str, tuple[float, float]]
    rows: dict[str, float] = field(default_factory=dict[str, float])


def rates(before: Snapshot, after: Snapshot) -> Rates:
    """Returns the rates between two snapshots of one incarnation of a task. Channels closed meanwhile do not count."""
    seconds = max(after.at - before.at, 1e-9)
    old = {peer.peer: peer for peer in before.peers}
    traffic: dict[str, tuple[float, float]] = {}
    for peer in after.peers:
        was = old.get(peer.peer)
        sent, received = (was.sent, was.received) if was is not None else (0, 0)
        # Use at least 0: the sum over open channels decreases when a channel is closed.
        traffic[peer.peer] = max(0, peer.sent - sent) / seconds, max(0, peer.received - received) / seconds
    looked_up = {table.name: table.hits + table.misses for table in before.tables}
    both = before.global_step is not None and after.global_step is not None
    return Rates(
        steps=max(0, after.steps - before.steps) / seconds,
        global_step=((after.global_step or 0) - (before.global_step or 0)) / seconds if both else None,
        bytes=traffic,
        rows={
            table.name: max(0, table.hits + table.misses - looked_up.get(table.name, 0)) / seconds
            for table in after.tables
        },
    )


def total_traffic(channels: Sequence[tuple[str, int, int]]) -> tuple[PeerTraffic, ...]:
    """Sums (peer, sent, received) by peer, in the order of names."""
    sums_of: dict[str, list[int]] = {}
    for peer, sent, received in channels:
        sums = sums_of.setdefault(peer, [0, 0, 0])
        for index, amount in enumerate((1, sent, received)):
            sums[index] += amount
    return tuple(
        PeerTraffic(peer=peer, channels=count, sent=sent, received=received)
        for peer, (count, sent, received) in sorted(sums_of.items())
    )
