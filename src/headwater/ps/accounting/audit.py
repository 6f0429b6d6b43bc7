"""Checks from the journals, independently of the ledger, that every example of an epoch was applied exactly once."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from headwater.data.io.files import glob
from headwater.data.io.tfrecord import TFRecordReader
from headwater.errors import DataLossError, NotFoundError
from headwater.ps.accounting.intervals import Intervals, Span
from headwater.ps.accounting.journal import FILES
from headwater.ps.accounting.order import shuffled


class Entry(NamedTuple):
    """A range that was applied by an update.

    Attributes:
      start, stop: the positions from ``start`` up to, but excluding, ``stop``.
      update: version of the parameters after the update.
      time: in seconds since 1970.
      worker: the worker that pushed the gradient.
    """

    start: int
    stop: int
    update: int
    time: float
    worker: str


@dataclass(kw_only=True, slots=True)
class Epoch:
    """The records of an epoch in the journals.

    Attributes:
      training, epoch: the number of the training, and of the epoch in that training. size: number of examples.
      unit: unit of counting, see `headwater.ps.accounting.ledger.Plan`.
      shuffle, seed: determine the order of the examples, see `Plan`. entries: ranges that were applied, and not rolled
      back.
      over: whether the ledger recorded the end of the epoch.
      back: number of positions that were returned to be assigned again.
      aside: ranges that were set aside, with the latest reason.
    """

    training: int
    epoch: int
    size: int
    unit: str
    shuffle: bool
    seed: int
    entries: list[Entry] = field(default_factory=list[Entry])
    over: bool = False
    back: int = 0
    aside: dict[Span, str] = field(default_factory=dict[Span, str])

    def missing(self) -> list[Span]:
        """Returns the positions that were not applied."""
        return Intervals((entry.start, entry.stop) for entry in self.entries).gaps(0, self.size)

    def double(self) -> list[tuple[Span, list[Entry]]]:
        """Returns the positions that were applied more than once, with their entries."""
        edges = sorted({edge for entry in self.entries for edge in (entry.start, entry.stop)})
        begins: dict[int, list[Entry]] = {}
        for entry in self.entries:
            begins.setdefault(entry.start, []).append(entry)
        doubles: list[tuple[Span, list[Entry]]] = []
        overlapping: list[Entry] = []
        for start, stop in itertools.pairwise(edges):
            overlapping = [entry for entry in overlapping if entry.stop > start] + begins.get(start, [])
            if len(overlapping) > 1:
                doubles.append(((start, stop), sorted(overlapping, key=lambda entry: entry.update)))
        return doubles

    def outside_epoch(self) -> list[Entry]:
        """Returns the applied entries that lie outside the epoch."""
        return [entry for entry in self.entries if entry.stop > self.size or entry.start < 0]

    def by_worker(self) -> dict[str, int]:
        """Returns the number of applied positions, by worker."""
        counts: dict[str, int] = {}
        for entry in sorted(self.entries, key=lambda entry: entry.worker):
            counts[entry.worker] = counts.get(entry.worker, 0) + entry.stop - entry.start
        return counts

    @property
    def exact(self) -> bool:
        """Whether each position was applied exactly once; in an epoch that is not over, whether each was applied at
        most once."""
        return not self.double() and not self.outside_epoch() and not (self.over and self.missing())

    def place_of(self, example: int) -> int:
        """Returns the position of an example in this epoch."""
        if not self.shuffle:
            return example
        return shuffled(self.seed, self.epoch, self.size).tolist().index(example)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rollback:
    """A restart of a ``ps`` with older parameters.

    Attributes:
      time: in seconds since 1970.
      update: version of the restored parameters.
      updates: number of earlier updates that no longer count.
      places: number of positions in these updates.
    """

    time: float
    update: int
    updates: int
    places: int


@dataclass(kw_only=True, slots=True)
class Run:
    """All incarnations of a ledger.

    Attributes:
      name: the name of the set of parameters.
      task: the task that kept the ledger.
      files: its journals, in their order.
      epochs: the epochs, by the numbers of their training and epoch.
      rollbacks: the restarts that undid updates.
    """

    name: str
    task: str
    files: list[str] = field(default_factory=list[str])
    epochs: dict[tuple[int, int], Epoch] = field(default_factory=dict[tuple[int, int], Epoch])
    rollbacks: list[Rollback] = field(default_factory=list[Rollback])

    @property
    def exact(self) -> bool:
        return all(epoch.exact for epoch in self.epochs.values())


@dataclass(frozen=True, kw_only=True, slots=True)
class Audit:
    """Contents of the journals of a folder.

    Attributes:
      runs: the runs by the number of their ledger, in the order of their start.
      damage: description of each unreadable file, with the offset of the damage in bytes.
    """

    runs: dict[int, Run]
    damage: Sequence[str]

    @property
    def exact(self) -> bool:
        """Whether every epoch that is over was applied exactly once, and all files could be read."""
        return not self.damage and all(run.exact for run in self.runs.values())


def audit(logdir: str) -> Audit:
    """Reads all journals in a log folder.

    Raises:
      NotFoundError: the folder has no journals.
    """
    paths = sorted(glob(os.path.join(logdir, FILES)), key=_start_text)
    if not paths:
        raise NotFoundError(
            f"{logdir} has no journal of examples ({FILES}): the first ps writes one into the folder that "
            "HEADWATER_LOG_DIR or ParameterServer(log_dir=...) names, once workers take examples of ps.batches or fit"
        )
    runs: dict[int, Run] = {}
    damage: list[str] = []
    for path in paths:
        run: Run | None = None
        try:
            for offset, record in _records(path):
                try:
                    run = _first(runs, path, record) if run is None else _apply_record(run, record)
                except (ValueError, TypeError, KeyError, IndexError) as error:
                    raise DataLossError(
                        f"{path}: the record at offset {offset} is not a journal record: {error!r}"
                    ) from error
        except DataLossError as error:
            damage.append(error.message)  # the other files can still be checked
    return Audit(runs=runs, damage=damage)


def _start_text(path: str) -> str:
    """Returns the time in the name of a journal as a sort key: the times in all names have the same length."""
    return ".".join(os.path.basename(path).rsplit(".", 4)[1:3])


def _records(path: str) -> Iterator[tuple[int, list[object]]]:
    with TFRecordReader(path) as reader:
        while True:
            offset = reader.offset
            block = reader.read_block(1)
            if not block:
                return
            yield offset, json.loads(block[0])


def _first(runs: dict[int, Run], path: str, record: Sequence[Any]) -> Run:
    match record:
        case ["begins" | "restored" | "continued" as kind, int(number), str(name), str(task), time, *update]:
            run = runs.setdefault(number, Run(name=name, task=task))
            run.files.append(path)
            # Updates after the restored version were lost with the earlier incarnation, so their records do not count.
            if kind == "restored":
                _roll_back(run, float(time), int(update[0]))
            return run
        case _:
            raise ValueError(f"a journal does not begin with {record}")


def _apply_record(run: Run, record: Sequence[Any]) -> Run:
    match record:
        case ["epoch", int(training), int(epoch), int(size), str(unit), int(), bool(shuffle), int(seed)]:
            known = run.epochs.get((training, epoch))
            if known is None:
                run.epochs[training, epoch] = Epoch(
                    training=training, epoch=epoch, size=size, unit=unit, shuffle=shuffle, seed=seed
                )
            elif (known.size, known.unit, known.shuffle, known.seed) != (size, unit, shuffle, seed):
                raise ValueError(f"epoch {epoch} begins once more, with other data")
        case ["applied", int(update), time, int(training), [*given]]:
            for worker, epoch, start, stop in given:
                run.epochs[training, epoch].entries.append(
                    Entry(int(start), int(stop), update, float(time), str(worker))
                )
        case ["back", _, int(training), str(), int(epoch), int(start), int(stop), int(), bool(aside), str(reason)]:
            known = run.epochs[training, epoch]
            known.back += stop - start
            if aside:
                known.aside[start, stop] = reason
        case ["over", _, int(training), int(epoch)]:
            run.epochs[training, epoch].over = True
        case _:
            raise ValueError(f"{record[0]!r} is not a kind of record")
    return run


def _roll_back(run: Run, time: float, update: int) -> None:
    gone: list[Entry] = []
    for epoch in run.epochs.values():
        later = [entry for entry in epoch.entries if entry.update > update]
        if later:
            gone += later
            epoch.entries = [entry for entry in epoch.entries if entry.update <= update]
            epoch.over = False  # the restored ledger has yet to apply the ranges again
    run.rollbacks.append(
        Rollback(
            time=time,
            update=update,
            updates=len({entry.update for entry in gone}),
            places=sum(entry.stop - entry.start for entry in gone),
        )
    )


def spans_text(spans: Iterable[Span]) -> str:
    """Describes ranges."""
    return ", ".join(f"[{start}, {stop})" for start, stop in spans)
