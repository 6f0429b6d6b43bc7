"""What a task says of itself at one moment, and what two moments tell: steps and bytes per second.

A snapshot travels as JSON, in the details of the control plane's status.
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
"""How many variables of a task a snapshot lists."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PeerTraffic:
    """What goes to and comes from one other task or client, over all channels that are open now.

    Attributes:
      peer: its name.
      channels: how many are open.
      sent, received: in bytes.
    """

    peer: str
    channels: int
    sent: int
    received: int


@dataclass(frozen=True, kw_only=True, slots=True)
class VariableSize:
    """A variable of a task.

    Attributes:
      name: with its container before it, where that is not the default one.
      nbytes: in bytes; 0 without a value.
      dtype, shape: of its value; empty without one.
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
      what: for what, in words.
      seconds: since when, in seconds.
    """

    what: str
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupProgress:
    """The training of variables that are as consistent as each other; see `headwater.ps.consistency`.

    Attributes:
      name: of the group.
      updates: how many its variables have seen.
      staleness: mean of all gradients applied so far, in updates.
      staleness_max: the greatest.
      dropped: gradients that came too late.
      workers: who takes part, where that is known.
      waiting: which task waits for which, in words; empty without waits.
      consistency, optimizer: which, where that is known.
      examples: how far epochs are whose examples are accounted for, in words; empty without any.
      saved: which state this task has saved of them, and what it has lost, in words; empty where it saves none.
      saved_bytes: written for that so far.
      lost_updates: how many are lost since the state that the task went back to when it was started anew.
      copies: whether the task is the primary of its part or follows it, and how far the other copy is, in words; empty
        where there is one copy only.
      lacks_second: whether the task is a primary whose part has no whole second copy now.
      second_behind: frames that the second copy has yet to confirm to a primary.
      shards: which shards of how many the task has, in words; empty where the group has none that move.
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
    lacks_second: bool = False
    second_behind: int = 0
    shards: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class TableLoad:
    """An embedding table, as far as it is on this task.

    Attributes:
      name: of the table.
      rows: how many there are.
      nbytes: bytes in memory for rows, state, keys and index.
      file_bytes: bytes of the file that has the other rows.
      hits, misses: lookups of rows that were in memory, and in the file.
      made: rows that were ever made: keys that were admitted.
      refused: lookups of keys that had not been admitted.
      dropped: gradients of keys that had not been admitted.
      evicted: rows that went.
      updates: how many it has seen.
      hot: the most used keys with how often, most used first; of strings, their first words. They may be of a moment
        ago: all rows are looked at to find them.
      saved: what its task has saved of its tables by itself, in words; empty where it does not.
      lost_updates: of any of its task's tables, when that went back to what it had saved.
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
        """The part of lookups that found their row in memory; 1 before the first."""
        return self.hits / (self.hits + self.misses) if self.hits + self.misses else 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """A task at one moment.

    Attributes:
      at: by the task's clock, in seconds of any origin.
      steps: parts of steps that it has run since it started.
      sessions: how many have plans here.
      global_step: the value of a variable of that name; None where the task has none.
      peers: traffic with others.
      variables: the largest first; of many, the first ones.
      variables_count, variables_bytes: of all.
      waits: steps that wait.
      groups: how training goes, where an optimizer says so.
      tables: embedding tables that grow.
      workers: how the steps of each worker go here.
      troubles: what its process could not write.
      cluster: every task this one knows, and its address.
      metrics: address of its metrics, where asked for.
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
        """This snapshot as JSON."""
        return json.dumps(self, default=_plain).encode()

    @staticmethod
    def decode(data: bytes) -> Snapshot:
        """What `encode` wrote, perhaps in another version: fields that are not known are passed over.

        Raises:
          ValueError: it is something else.
        """
        try:
            raw: JsonObject = json.loads(data)
            known = {name: raw[name] for name in Snapshot.__dataclass_fields__ if name in raw}
            for name, kind in _PARTS:
                known[name] = tuple(_made(kind, item) for item in raw.get(name, ()))
            return Snapshot(**known)
        except (TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ValueError(f"not the snapshot of a task: {error}") from error


def _plain(value: Any) -> JsonObject:
    """The fields of a part, as they are: a task of a thousand workers tells each that comes of all, without copies."""
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


_PARTS: tuple[tuple[str, Any], ...] = (
    ("peers", PeerTraffic),
    ("variables", VariableSize),
    ("waits", Wait),
    ("groups", GroupProgress),
    ("tables", TableLoad),
    ("workers", WorkerProgress),
    ("troubles", Trouble),
)


def _made(kind: Any, raw: JsonObject) -> Any:
    values = {name: raw[name] for name in kind.__dataclass_fields__ if name in raw}
    for name, value in values.items():
        if isinstance(value, list):
            items = cast(list[Any], value)
            values[name] = tuple(tuple(cast(list[Any], item)) if isinstance(item, list) else item for item in items)
    return kind(**values)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rates:
    """What a task did between two snapshots, per second.

    Attributes:
      steps: parts of steps.
      global_step: shared steps; None where unknown.
      bytes: sent and received, by peer.
      rows: looked up, by embedding table.
    """

    steps: float
    global_step: float | None
    bytes: dict[str, tuple[float, float]]
    rows: dict[str, float] = field(default_factory=dict[str, float])


def rates(before: Snapshot, after: Snapshot) -> Rates:
    """What happened between two snapshots of one life of a task. Channels that were closed meanwhile do not count."""
    seconds = max(after.at - before.at, 1e-9)
    old = {peer.peer: peer for peer in before.peers}
    traffic: dict[str, tuple[float, float]] = {}
    for peer in after.peers:
        was = old.get(peer.peer)
        sent, received = (was.sent, was.received) if was is not None else (0, 0)
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
    """Adds up (peer, sent, received) by peer, in the order of names."""
    found: dict[str, list[int]] = {}
    for peer, sent, received in channels:
        sums = found.setdefault(peer, [0, 0, 0])
        for index, amount in enumerate((1, sent, received)):
            sums[index] += amount
    return tuple(
        PeerTraffic(peer=peer, channels=count, sent=sent, received=received)
        for peer, (count, sent, received) in sorted(found.items())
    )
