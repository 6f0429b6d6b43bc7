"""The end that has the rows of embedding tables: what runs on a ``ps``."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from headwater.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    UnavailableError,
)
from headwater.parameters.table_protocol import Array, as_words, names_function, pack, same, unpack
from headwater.parameters.table_requests import Part, arrived_bags, pool_part, spread_part
from headwater.parameters.waiting import LOOK_S
from headwater.tables import Table, TableConfig
from headwater.tables.kernels import all_finite
from headwater.tables.row_formats import Format, decode, encode, require_format
from headwater.tables.snapshots import Snapshot, part_path, restore
from headwater.tables.table import Keys
from headwater.task import kinds
from headwater.task.answers import bad_header, error_frame
from headwater.telemetry.snapshot import TableLoad
from headwater.transport.channel import Channel
from headwater.transport.frames import Frame

_log = logging.getLogger("headwater")

#: Number of updates of a table after which rows that its eviction policy calls expired are removed.
_SWEEP_STEPS = 1000
#: How many of the most used keys a task tells of, and how often it looks for them, in seconds: all rows are looked at.
_HOT_KEYS = 5
_HOT_S = 30.0


@dataclass(slots=True)
class _Client:
    """What is known of a worker's program: the number of its last update, and a lock that guards it; whether that is
    what a save says."""

    last: int = 0
    restored: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


class Saver(Protocol):
    """See `headwater.parameters.table_saver.TableSaver`."""

    def restore(self, table: Table) -> bool: ...

    def close(self, *, over: bool) -> None: ...


class TableService:
    """All tables of one ``ps``.

    Each worker's channel has a thread, and no lock is held while rows are read or changed but those of the table.

    Args:
      task: this task's name, for people.
      index: its number among the ``ps``.
      tasks: how many ``ps`` there are.

    Attributes:
      saving: held while tables are being saved: one save at a time.
      saver: saves them by itself; None where that was not asked for.
      lost_updates: how many are lost that workers had made before this task was started anew.
    """

    def __init__(self, task: str, index: int, tasks: int) -> None:
        self._task = task
        self._index = index
        self._tasks = tasks
        self._lock = threading.Condition()
        self._tables: dict[str, Table] = {}
        self._clients: dict[int, _Client] = {}
        #: By table when its most used keys were looked for, and what they were.
        self._hot: dict[str, tuple[float, tuple[tuple[int, int], ...]]] = {}
        self.saving: threading.Lock = threading.Lock()
        self.saver: Saver | None = None
        self.lost_updates: int = 0
        self._went_back = False
        self._ends = False
        self._ended = threading.Event()

    def make(self, name: str, config: TableConfig, folder: str | None = None) -> Table:
        """Makes a table for the program of this task, unless a worker has asked for it before.

        Raises:
          FailedPreconditionError: there is another table of that name.
        """
        with self._lock:
            known = self._tables.get(name)
            if known is None:
                known = Table(name, config, task=self._task)
                own = self.saver is not None and self.saver.restore(known)
                if folder is not None and not own:
                    self._restore(known, folder)
                self._tables[name] = known
                self._lock.notify_all()
            elif not same(pack(known.config), pack(config)):
                raise FailedPreconditionError(
                    None, None, f"table {name!r} on {self._task} is another one: {known.config}, not {config}"
                )
            return known

    def go_on(self, clients: Mapping[int, int]) -> None:
        """Tables will be those of a save, which holds so many updates of each worker's program."""
        self._went_back = True
        self._clients = {number: _Client(last=last, restored=True) for number, last in clients.items()}

    @contextmanager
    def still(self) -> Generator[dict[int, int]]:
        """While it is entered, no update is made; how many each worker's program has made."""
        with ExitStack() as stack:
            stack.enter_context(self._lock)  # none comes that is not known
            for client in self._clients.values():
                stack.enter_context(client.lock)
            yield {number: client.last for number, client in self._clients.items()}

    def ends(self) -> None:
        """From now on nothing changes any more: workers wait for the task's next life."""
        with self.still():
            self._ends = True

    def close(self, *, over: bool) -> None:
        """The task ends, perhaps because the job is over."""
        if self.saver is not None:
            self.saver.close(over=over)

    def tables(self) -> list[Table]:
        """All tables, by name."""
        with self._lock:
            return [self._tables[name] for name in sorted(self._tables)]

    def loads(self) -> tuple[TableLoad, ...]:
        """What all tables say of themselves."""
        found: list[TableLoad] = []
        now = time.monotonic()
        for table in self.tables():
            told = table.statistics()
            looked, hot = self._hot.get(table.name, (-math.inf, ()))
            if now - looked >= _HOT_S:
                hot = tuple(table.hottest(_HOT_KEYS))
                self._hot[table.name] = now, hot
            found.append(
                TableLoad(
                    name=table.name,
                    rows=told.rows,
                    nbytes=told.nbytes,
                    file_bytes=told.file_bytes,
                    hits=told.hits,
                    misses=told.misses,
                    made=told.made,
                    refused=told.refused,
                    dropped=told.dropped,
                    evicted=told.evicted,
                    updates=told.step,
                    hot=hot,
                    saved=str(self.saver) if self.saver is not None else "",
                    lost_updates=self.lost_updates,
                )
            )
        return tuple(found)

    def serve(self, channel: Channel, hello: Frame) -> None:
        """Answers a worker until its channel ends.

        Raises:
          UnavailableError, CancelledError: the channel has ended.
        """
        match hello.header:
            case (int(number), tables):
                pass
            case _:
                raise bad_header(hello, channel.peer)
        with self._lock:
            client = self._clients.setdefault(number, _Client(restored=self._went_back))
        frame = hello
        while True:
            try:
                answer = self._open(tables, channel) if frame is hello else self._handle(client, frame, channel)
            except (OpError, MemoryError) as error:
                answer = error_frame(0, error, self._task)
            channel.send(answer)
            frame = channel.recv()

    def _open(self, tables: Any, channel: Channel) -> Frame:
        for told in tables:
            match told:
                case (str(name), packed, None | str() as folder):
                    pass
                case _:
                    raise InvalidArgumentError(None, None, f"a table is told as {str(told)[:80]}")
            if names_function(packed):
                self._await_program(name, packed, channel)
            else:
                self.make(name, unpack(packed), folder)
        return Frame(kinds.DONE)

    def _await_program(self, name: str, packed: Any, channel: Channel) -> None:
        """Waits until the program of this task has made a table."""
        with self._lock:
            while not self._lock.wait_for(lambda: name in self._tables, LOOK_S):
                if channel.peer_gone():
                    raise UnavailableError(None, None, f"{channel.peer} is gone")
            if not same(pack(self._tables[name].config), packed):
                raise FailedPreconditionError(
                    None,
                    None,
                    f"table {name!r} on {self._task} is another one, {self._tables[name].config}: all tasks must run "
                    "the same program",
                )

    def _restore(self, table: Table, folder: str) -> None:
        try:
            save = restore(table, folder, task=self._index, tasks=self._tasks)
        except NotFoundError as error:
            _log.info("table %r on %s begins empty: %s", table.name, self._task, error.message)
        else:
            _log.info("table %r on %s has %d rows of save %d", table.name, self._task, len(table), save.number)

    def _table(self, name: str) -> Table:
        table = self._tables.get(name)
        if table is None:
            raise NotFoundError(None, None, f"{self._task} has no table {name!r}")
        return table

    def _handle(self, client: _Client, frame: Frame, channel: Channel) -> Frame:
        match frame.kind, frame.header:
            case kinds.LOOK_UP, (bool(training), [*names], [*forms], [*bags]):
                return self._look_up(training, _asked(names, forms, bags), frame.tensors)
            case kinds.UPDATE, (int(number), [*names], [*rates], [*forms], [*bags]):
                with client.lock:
                    ends = self._ends
                    if not ends and number > client.last:
                        if client.restored:
                            self._tell_lost(client, number, names, channel.peer)
                        self._update(_asked(names, forms, bags), rates, frame.tensors)
                        client.last = number
                if ends:
                    self._await_end(channel)
                return Frame(kinds.DONE)
            case kinds.SAVE_TABLE, (str(name), str(folder), int(number), bool(delta)):
                return self._save(self._table(name), folder, number, delta)
            case kinds.TELL_TABLE, (str(name), int(count)):
                table = self._table(name)
                return Frame(kinds.DONE, (asdict(table.statistics()), table.hottest(min(count, 10_000))))
            case kinds.READ_TABLE, (str(name), int(shard)):
                table = self._table(name)
                if not 0 <= shard < table.config.shards:
                    raise InvalidArgumentError(None, None, f"table {name!r} on {self._task} has no shard {shard}")
                return Frame(kinds.DONE, (table.step, table.config.shards), table.shard_records(shard))
            case kinds.WRITE_TABLE, (str(name), None | int() as step):
                if self._ends:
                    self._await_end(channel)
                self._write(self._table(name), step, frame)
                return Frame(kinds.DONE)
            case _:
                raise bad_header(frame, channel.peer)

    def _tell_lost(self, client: _Client, number: int, names: Sequence[str], peer: str) -> None:
        """A worker that has made updates before goes on with this task, which has those that were saved."""
        client.restored = False
        lost = number - 1 - client.last
        if lost > 0:
            self.lost_updates += lost
            _log.warning(
                "%s has lost updates %d to %d of %s, which were made since its tables were saved: %s",
                self._task,
                client.last + 1,
                number - 1,
                peer,
                ", ".join(map(repr, names)),
            )

    def _await_end(self, channel: Channel) -> None:
        """The task saves its tables and ends: a worker asks its next life."""
        while not channel.peer_gone():
            self._ended.wait(LOOK_S)
        raise UnavailableError(None, None, f"{self._task} ends")

    def _look_up(self, training: bool, asked: Sequence[tuple[str, Format, int]], tensors: Sequence[Array]) -> Frame:
        rows: list[Array] = []
        arrays = list(tensors)
        for name, form, how in asked:
            table = self._table(name)
            keys = _keys(table, arrays)
            part = arrived_bags(arrays, how, len(keys), _where(table)) if how else None
            found = table.look_up(keys, training=training)
            rows.append(encode(found if part is None else pool_part(part, found), form))
        return Frame(kinds.DONE, (), rows)

    def _update(
        self, asked: Sequence[tuple[str, Format, int]], rates: Sequence[float | None], tensors: Sequence[Array]
    ) -> None:
        arrays = list(tensors)
        checked: list[tuple[Table, Keys, NDArray[np.float32], float | None]] = []
        for (name, form, how), rate in zip(asked, rates, strict=True):
            table = self._table(name)
            keys = _keys(table, arrays)
            part = arrived_bags(arrays, how, len(keys), _where(table)) if how else None
            gradients = _gradients(table, keys, part, form, arrays)
            checked.append((table, keys, gradients, rate))
        for table, keys, gradients, rate in checked:  # all of them are right
            if rate is not None:
                table.learning_rate = rate
            table.apply(keys, gradients)
            if table.step % _SWEEP_STEPS == 0:
                table.sweep()

    def _write(self, table: Table, step: int | None, frame: Frame) -> None:
        if len(frame.tensors) != 2 or frame.tensors[0].dtype != np.int64:
            raise InvalidArgumentError(None, None, f"table {table.name!r} on {self._task}: no rows came to store")
        if step is not None:
            table.clear()
            table.restored(step, table.learning_rate, table.rates)
        table.store_records(frame.tensors[0], frame.tensors[1])

    def _save(self, table: Table, folder: str, number: int, delta: bool) -> Frame:
        with self.saving:
            return self._save_alone(table, folder, number, delta)

    def _save_alone(self, table: Table, folder: str, number: int, delta: bool) -> Frame:
        if delta and table.saved_in and table.saved_in != folder:
            raise FailedPreconditionError(
                None,
                None,
                f"table {table.name!r} on {self._task} was saved in {table.saved_in} after it was saved in {folder}: a "
                "delta would lack what changed before; save all of it"
                + (". With recovery='own' the ps saves its tables itself" if self.saver is not None else ""),
            )
        snapshot = Snapshot(table, delta=delta)
        part = snapshot.write(part_path(folder, table.name, number, self._index, self._tasks))
        return Frame(kinds.DONE, (part.file, part.rows, part.gone, part.nbytes, snapshot.step))


def _take(table: Table, arrays: list[Array]) -> Array:
    if not arrays:
        raise InvalidArgumentError(None, None, f"table {table.name!r} on {table.task}: an array is missing")
    return arrays.pop(0)


def _keys(table: Table, arrays: list[Array]) -> Keys:
    words = as_words(_take(table, arrays))
    if not table.config.strings:
        return Keys(words, words[:0])
    checks = as_words(_take(table, arrays))
    if len(checks) != len(words):
        raise InvalidArgumentError(
            None, None, f"table {table.name!r} on {table.task}: {len(words)} keys have {len(checks)} second words"
        )
    return Keys(words, checks)


def _where(table: Table) -> str:
    return f"table {table.name!r} on {table.task}"


def _asked(names: Sequence[Any], forms: Sequence[Any], bags: Sequence[Any]) -> list[tuple[str, Format, int]]:
    """Which tables, in which form their rows or gradients travel, and whether as pooled ones."""
    try:
        return [
            (str(name), require_format(form, "a form"), int(how))
            for name, form, how in zip(names, forms, bags, strict=True)
        ]
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(None, None, f"tables were asked that cannot be: {error}") from error


def _gradients(table: Table, keys: Keys, part: Part | None, form: Format, arrays: list[Array]) -> NDArray[np.float32]:
    arrived, dim = _take(table, arrays), table.config.dim
    try:
        gradients = np.ascontiguousarray(decode(arrived, dim, form))
    except ValueError as error:
        raise InvalidArgumentError(None, None, f"{_where(table)}: gradients: {error}") from error
    count, what = (len(keys), "keys") if part is None else (len(part.which), "bags")
    if len(gradients) != count:
        raise InvalidArgumentError(
            None,
            None,
            f"{_where(table)}: gradients of {count} {what} have shape {gradients.shape}, not ({count}, {dim})",
        )
    if part is not None:
        gradients = spread_part(part, gradients, len(keys))
    bad = int(all_finite(gradients))
    if bad >= 0:
        raise InvalidArgumentError(
            None, None, f"{_where(table)}: the gradient of key {int(keys.words[bad])} is not finite"
        )
    return gradients
