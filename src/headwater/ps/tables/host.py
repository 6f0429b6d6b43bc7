"""Server side of embedding tables: the part that runs on a ``ps`` and holds the rows."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headwater.cluster.task import kinds
from headwater.cluster.task.answers import bad_header, error_frame
from headwater.cluster.task.waiting import CHECK_INTERVAL_S
from headwater.cluster.telemetry.snapshot import TableLoad
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError, UnavailableError
from headwater.ps.tables.arrivals import TableKeys, answer_rows, arrived_gradients, read_request
from headwater.ps.tables.protocol import Array, are_equal, names_function, pack, split_array, unpack
from headwater.ps.tables.rounds import Round, RowGradients, TableRounds, as_round, combine_gradients
from headwater.tables import together
from headwater.tables.description import TableConfig
from headwater.tables.snapshots import TableSnapshot, part_path, restore
from headwater.tables.table import Keys, Table

if TYPE_CHECKING:
    from headwater.ps.tables.deposits import TableDeposit
    from headwater.ps.tables.saver import TableSaver

_log = logging.getLogger("headwater")

#: Interval, in updates of a table, at which the rows that its eviction policy considers expired are removed.
_SWEEP_STEPS = 1000
#: Number of the most used keys that a task reports.
_HOT_KEYS = 5
#: Shortest interval between two determinations of these keys, which read all rows, in seconds.
_HOT_S = 30.0


@dataclass(slots=True)
class Client:
    """Record of the updates of a worker's program, by which repeated updates are recognized.

    Attributes:
      number: the random number of the program.
      last: the number of its last update.
      restored: whether ``last`` was restored from a save, so that later updates may be lost.
      lock: held while an update of the program is handled.
    """

    number: int
    last: int = 0
    restored: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


class TableService:
    """Service of all tables of one ``ps``.

    A thread serves the channel of each worker. Reading or changing rows requires only the locks of their table.

    Args:
      task: this task's name, for errors and logs.
      index: the number of this ``ps``.
      tasks: number of ``ps``.

    Attributes:
      saving: held during a save of tables, so that there is one at a time.
      saver: saves the tables periodically; None if that was not requested.
      deposit: deposits the tables with the chief at a graceful shutdown; None if the saver or a backup has them.
      rounds: gradients of rows for the present round of synchronous training.
      lost_updates: number of workers' updates that were lost with an earlier incarnation of this task.
    """

    def __init__(self, task: str, index: int, tasks: int) -> None:
        self._task = task
        self._index = index
        self._tasks = tasks
        self._lock = threading.Condition()
        self._tables: dict[str, Table] = {}
        self._clients: dict[int, Client] = {}
        #: Most used keys of each table, with the time at which they were determined.
        self._hot: dict[str, tuple[float, tuple[tuple[int, int], ...]]] = {}
        self.saving: threading.Lock = threading.Lock()
        self.saver: TableSaver | None = None
        self.deposit: TableDeposit | None = None
        self.lost_updates: int = 0
        self._went_back = False
        #: Gradients of the present round of synchronous training; changed under `_in_round`.
        self.rounds: TableRounds = TableRounds()
        self._in_round = threading.Lock()
        self._ends = False
        self._ended = threading.Event()

    def make(self, name: str, config: TableConfig, folder: str | None = None) -> Table:
        """Creates a table for the program of this task, unless a worker has opened it before.

        Raises:
          FailedPreconditionError: there is another table with that name.
        """
        with self._lock:
            known = self._tables.get(name)
            if known is None:
                known = Table(name, config, task=self._task)
                own = any(one.restore(known) for one in (self.saver, self.deposit) if one is not None)
                # The task's own saves and deposited rows are newer than the rows in the folder.
                if folder is not None and not own:
                    self._restore(known, folder)
                self._tables[name] = known
                self._lock.notify_all()
            elif not are_equal(pack(known.config), pack(config)):
                raise FailedPreconditionError(
                    f"table {name!r} on {self._task} has another configuration: {known.config}, not {config}"
                )
            return known

    def restore_counts(self, clients: Mapping[int, int], rounds: TableRounds | None = None) -> None:
        """Restores the state of an earlier incarnation, apart from the rows.

        Args:
          clients: by the number of a worker's program, how many of its updates the saved tables contain.
          rounds: the gradients of a round that was not over; None if there are none.
        """
        self.rounds = rounds or TableRounds()
        self._went_back = True
        self._clients = {number: Client(number=number, last=last, restored=True) for number, last in clients.items()}

    @contextmanager
    def blocked_updates(self) -> Generator[dict[int, int]]:
        """Blocks updates while the context is entered; yields the number of updates of each worker's program."""
        with ExitStack() as stack:
            stack.enter_context(self._lock)  # prevents the registration of new clients
            for client in self._clients.values():
                stack.enter_context(client.lock)
            yield {number: client.last for number, client in self._clients.items()}

    def stop_changes(self) -> None:
        """Stops all changes permanently. Workers wait for the next incarnation of this task."""
        with self.blocked_updates():
            self._ends = True

    def before_end(self) -> None:
        """Deposits the tables at a graceful shutdown during the job, while this task can still reach others."""
        if self.deposit is not None:
            self.deposit.deposit()

    def close(self, *, over: bool) -> None:
        """Ends the saves at shutdown. ``over``: the job is over."""
        if self.saver is not None:
            self.saver.close(over=over)

    def tables(self) -> list[Table]:
        """Returns all tables, sorted by name."""
        with self._lock:
            return [self._tables[name] for name in sorted(self._tables)]

    def loads(self) -> tuple[TableLoad, ...]:
        """Returns the statistics of all tables."""
        loads: list[TableLoad] = []
        now = time.monotonic()
        for table in self.tables():
            described = table.statistics()
            looked, hot = self._hot.get(table.name, (-math.inf, ()))
            if now - looked >= _HOT_S:
                hot = tuple(table.hottest(_HOT_KEYS))
                self._hot[table.name] = now, hot
            loads.append(
                TableLoad(
                    name=table.name,
                    rows=described.rows,
                    nbytes=described.nbytes,
                    file_bytes=described.file_bytes,
                    hits=described.hits,
                    misses=described.misses,
                    made=described.made,
                    refused=described.refused,
                    dropped=described.dropped,
                    evicted=described.evicted,
                    updates=described.step,
                    hot=hot,
                    saved=str(self.saver) if self.saver is not None else "",
                    lost_updates=self.lost_updates,
                )
            )
        return tuple(loads)

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
        client, frame = self._client(number), hello
        while True:
            try:
                answer = self._open(tables, channel) if frame is hello else self._handle(client, frame, channel)
            except Exception as error:  # noqa: BLE001 - as in `headwater.ps.host`
                answer = error_frame(0, error, self._task)
            self._secure(channel)  # a worker does not repeat an answered request, so its change must be safe first
            channel.send(answer)
            frame = channel.recv()

    def _client(self, number: int) -> Client:
        with self._lock:
            return self._clients.setdefault(number, Client(number=number, restored=self._went_back))

    def _secure(self, channel: Channel) -> None:
        """Waits until no failover can lose the changes that the next answer acknowledges. Replicas override this."""

    def _changes(
        self, client: Client, frame: Frame, keys: Callable[[], list[tuple[Table, Keys]]], *, looks_up: bool = False
    ) -> AbstractContextManager[object]:
        """Returns the context in which a change of tables is made.

        Args:
          client: the client that requests it.
          frame: the request.
          keys: returns the keys that may get rows, by table.
          looks_up: see `Table.make_room`.
        """
        del client, frame, keys, looks_up
        return nullcontext()

    def _open(self, tables: Any, channel: Channel) -> Frame:
        for described in tables:
            match described:
                case (str(name), packed, None | str() as folder):
                    pass
                case _:
                    raise InvalidArgumentError(f"malformed description of a table: {str(described)[:80]}")
            if names_function(packed):
                self._await_program(name, packed, channel)
            else:
                self.make(name, unpack(packed), folder)
        return Frame(kinds.DONE)

    def _await_program(self, name: str, packed: object, channel: Channel) -> None:
        """Waits until the program of this task has made a table."""
        with self._lock:
            while not self._lock.wait_for(lambda: name in self._tables, CHECK_INTERVAL_S):
                if channel.peer_gone():
                    raise UnavailableError(f"{channel.peer} has disconnected")
            if not are_equal(pack(self._tables[name].config), packed):
                raise FailedPreconditionError(
                    f"table {name!r} on {self._task} has another configuration, {self._tables[name].config}: all tasks "
                    "must run the same program"
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
            raise NotFoundError(f"{self._task} has no table {name!r}")
        return table

    def _handle(self, client: Client, frame: Frame, channel: Channel) -> Frame:
        match frame.kind, frame.header:
            case kinds.LOOK_UP, (bool(training), [*names], [*forms], [*bags], [*counts], [*sizes], named):
                asked = read_request(self._table, names, forms, bags, counts, sizes, frame.tensors)
                if named is not None:
                    self._apply_present_round(client, as_round(named), channel)
                changes = self._changes(client, frame, asked.pairs, looks_up=True) if training else nullcontext()
                with changes:
                    rows = together.look_up(asked.tables, asked.words, asked.checks, asked.counts, training=training)
                return answer_rows(asked, rows)
            case kinds.SETTLE, (int(), int()):
                self._apply_present_round(client, as_round(frame.header), channel)
                return Frame(kinds.DONE)
            case kinds.UPDATE, (int(number), [*names], [*rates], [*forms], [*bags], [*counts], [*sizes], given):
                # Under this lock the update and its number change together, which `blocked_updates` relies on.
                with client.lock:
                    ends = self._ends
                    # Updates are idempotent: an update with a number that was applied before is answered, but not
                    # applied.
                    if not ends and number > client.last:
                        if client.restored:
                            self._warn_of_lost_updates(client, number, names, channel.peer)
                        asked = read_request(self._table, names, forms, bags, counts, sizes, frame.tensors)
                        gradients = arrived_gradients(asked, rates)
                        if given is None:
                            with self._changes(client, frame, asked.admitted):
                                self._update(asked, gradients, rates)
                                client.last = number
                        else:
                            self._gather(client, frame, RowGradients.of(asked, rates, gradients))
                if ends:
                    self._await_end(channel)
                return Frame(kinds.DONE)
            case kinds.SAVE_TABLE, (str(name), str(folder), int(number), bool(delta)):
                return self._save(self._table(name), folder, number, delta)
            case kinds.DESCRIBE_TABLE, (str(name), int(count)):
                table = self._table(name)
                return Frame(kinds.DONE, (asdict(table.statistics()), table.hottest(min(count, 10_000))))
            case kinds.READ_TABLE, (str(name), int(shard)):
                table = self._table(name)
                if not 0 <= shard < table.config.shards:
                    raise InvalidArgumentError(f"table {name!r} on {self._task} has no shard {shard}")
                return Frame(kinds.DONE, (table.step, table.config.shards), table.shard_records(shard))
            case kinds.WRITE_TABLE, (str(name), None | int() as step):
                if self._ends:
                    self._await_end(channel)
                self._write(client, self._table(name), step, frame.tensors)
                return Frame(kinds.DONE)
            case _:
                raise bad_header(frame, channel.peer)

    def _warn_of_lost_updates(self, client: Client, number: int, names: Sequence[str], peer: str) -> None:
        """Logs updates of a worker that are lost, because they were applied after the save that this task restored."""
        client.restored = False
        lost = number - 1 - client.last
        if lost > 0:
            self.lost_updates += lost
            _log.warning(
                "%s has lost updates %d to %d of %s, which were applied after the last save of its tables: %s",
                self._task,
                client.last + 1,
                number - 1,
                peer,
                ", ".join(map(repr, names)),
            )

    def _await_end(self, channel: Channel) -> None:
        """Waits until this task ends, after its tables were saved. The worker then asks the next incarnation."""
        while not channel.peer_gone():
            self._ended.wait(CHECK_INTERVAL_S)
        raise UnavailableError(f"{self._task} ends")

    def _gather(self, client: Client, frame: Frame, gradients: RowGradients) -> None:
        """Stores gradients until their round is over; ``client.lock`` is held."""
        number, *_, described = frame.header
        match described:
            case (int(incarnation), int(version), int(worker)):
                named = Round(incarnation, version)
            case _:
                raise InvalidArgumentError(f"malformed round of a worker: {str(described)[:80]}")
        with self._in_round:
            self._end_round(client, named)
            with self._changes(client, frame, list[tuple[Table, Keys]]):
                self.rounds.gather(named, worker, gradients)
                client.last = number

    def _apply_present_round(self, client: Client, named: Round, channel: Channel) -> None:
        """Applies the gradients of the present round if a worker names a later round, because the present round is then
        over."""
        with self._in_round:
            if not self.rounds.is_later(named):
                return
        # `_in_round` was released before this line, because all threads acquire ``client.lock`` before `_in_round`.
        # Another thread may have ended the round meanwhile, so `_end_round` checks again.
        with client.lock:
            ends = self._ends
            if not ends:
                with self._in_round:
                    self._end_round(client, named)
        if ends:
            self._await_end(channel)

    def _end_round(self, client: Client, named: Round) -> None:
        """Applies the gradients of the present round if it is over. ``client.lock`` and ``_in_round`` are held."""
        if not self.rounds.is_later(named):
            return
        over: list[tuple[TableKeys, NDArray[np.float32], list[float | None]]] = []

        def keys() -> list[tuple[Table, Keys]]:
            return [pair for asked, _, _ in over for pair in asked.admitted()]

        if contributions := self.rounds.complete_round_gradients(named):
            over.append(combine_gradients(contributions, self._table))
        with self._changes(client, Frame(kinds.SETTLE, named), keys):
            for asked, gradients, rates in over:
                self._update(asked, gradients, rates)
            self.rounds.start(named)

    def _update(self, asked: TableKeys, gradients: NDArray[np.float32], rates: Sequence[float | None]) -> None:
        for table, rate in zip(asked.tables, rates, strict=True):  # all were validated before
            if rate is not None:
                table.learning_rate = rate
        if all(table.config.optimizer.kind >= 0 for table in asked.tables):
            together.apply(asked.tables, asked.words, asked.checks, asked.counts, gradients)
        else:
            for (table, keys), part in zip(asked.pairs(), split_array(gradients, asked.element_counts()), strict=True):
                table.apply(keys, part.reshape(-1, table.config.dim))
        for table in asked.tables:
            if table.step % _SWEEP_STEPS == 0:
                table.sweep()

    def _write(self, client: Client, table: Table, step: int | None, tensors: Sequence[Array]) -> None:
        words = tensors[0] if len(tensors) == 2 else None
        if words is None or words.dtype != np.int64 or words.ndim != 2 or words.shape[1] != table.config.words:
            raise InvalidArgumentError(f"table {table.name!r} on {self._task}: no rows to store arrived")
        if step is not None:
            none = Frame(kinds.WRITE_TABLE, (table.name, step), [tensor[:0] for tensor in tensors])
            with self._changes(client, none, list[tuple[Table, Keys]]):
                table.clear()
                table.restore_progress(step, table.learning_rate, table.rates)
        rows = Frame(kinds.WRITE_TABLE, (table.name, None), tensors)
        with self._changes(client, rows, lambda: [(table, table.keys_of(words))]):
            table.store_records(words, tensors[1])

    def _save(self, table: Table, folder: str, number: int, delta: bool) -> Frame:
        with self.saving:
            return self._save_alone(table, folder, number, delta)

    def _save_alone(self, table: Table, folder: str, number: int, delta: bool) -> Frame:
        if delta and table.saved_in and table.saved_in != folder:
            raise FailedPreconditionError(
                f"table {table.name!r} on {self._task} was saved in {table.saved_in} after it was saved in {folder}: a "
                "delta would lack earlier changes; save all rows"
                + (". With recovery='own' the ps saves its tables itself" if self.saver is not None else "")
            )
        snapshot = TableSnapshot(table, delta=delta)
        part = snapshot.write(part_path(folder, table.name, number, self._index, self._tasks))
        return Frame(kinds.DONE, (part.file, part.rows, part.gone, part.nbytes, snapshot.step))
