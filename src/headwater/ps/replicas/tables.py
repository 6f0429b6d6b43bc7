"""A replica of a part of the tables that grow: it serves workers as primary, or follows the primary as backup.

The primary forwards the requests of workers to the backup unchanged, in the order in which it has executed them. The
backup executes them with the same code. Both get equal rows, because a row depends only on these requests: its initial
values depend on seed and key, and its admission depends on earlier uses. The one exception is eviction: among rows that
were used equally, the choice depends on their positions. So the primary evicts rows before it executes a request, and
sends the evicted keys to the backup.

The frames of a feed (see `headwater.state.feed`)::

    STATE        (number, clients)      begins the snapshot, without any table. ``clients``: the number and the last
                                        update of each worker's program
    OPEN_TABLES  (number, name, packed, step, rate)   makes a table without rows. Tensors: the learning rates of its
                                        last updates, then the keys that were seen but have no row
                                        (`headwater.tables.shards.Shards.sightings`)
    ROWS         (number, name)         rows, as `headwater.tables.Table.store_records` takes them
    EVICT        (number, name)         keys of evicted rows, [n, 2]
    ROUND        (number, words)        gradients of the present round, see `TableRounds.to_parts`
    LOOK_UP, UPDATE, SETTLE, WRITE_TABLE (number, client, ...)   as a worker sends them, see
                                        `headwater.ps.tables.protocol`
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

import numpy as np
from numpy.typing import NDArray

from headwater.cluster.task import kinds
from headwater.cluster.task.answers import bad_header
from headwater.cluster.task.waiting import CHECK_INTERVAL_S
from headwater.cluster.telemetry.snapshot import GroupProgress, TableLoad
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.errors import DeadlineExceededError, UnavailableError
from headwater.ps.hosted import HostedReplica
from headwater.ps.protocol import TABLES
from headwater.ps.shards.directory import Load
from headwater.ps.tables.host import Client, TableService
from headwater.ps.tables.protocol import Array, names_function, pack, unpack
from headwater.ps.tables.rounds import TableRounds
from headwater.state.feed import Feed, FeedChannel
from headwater.state.member import DIAL_TIMEOUT_S
from headwater.state.sites import Site
from headwater.state.views import Copy
from headwater.tables.description import TableConfig
from headwater.tables.snapshots import TableSnapshot
from headwater.tables.table import Keys, Table

_log = logging.getLogger("headwater")

_Change = tuple[int, Sequence[object], Sequence[Array]]


class Programs:
    """Configurations of the tables that the program of this task makes.

    A frame cannot contain a function. So a table whose optimizer is a function cannot be created from the frames of a
    worker or a primary; the program of this task has to register it here.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._made: dict[str, tuple[TableConfig, str | None]] = {}

    def make(self, name: str, config: TableConfig, folder: str | None = None) -> None:
        """Registers a table of the program; see `TableService.make`."""
        with self._changed:
            self._made[name] = config, folder
            self._changed.notify_all()

    def wait(self, name: str, goes_on: Callable[[], bool]) -> tuple[TableConfig, str | None]:
        """Waits until the program has made a table, as long as ``goes_on`` returns True.

        Returns:
          The configuration and the folder of the table.

        Raises:
          UnavailableError: the program has not made the table.
        """
        with self._changed:
            while not self._changed.wait_for(lambda: name in self._made, CHECK_INTERVAL_S):
                if not goes_on():
                    raise UnavailableError(f"the program has not made table {name!r}")
            return self._made[name]


class CopiedTables(TableService):
    """The contents of a replica of a part of all tables. A reset or a step-down of the replica replaces them.

    Args:
      copy: the replica.
      task, index, tasks: see `TableService`.

    Attributes:
      order: held while a change is executed and sent to the backup, so that both replicas execute changes in the same
        order.
    """

    def __init__(self, copy: TablesCopy, task: str, index: int, tasks: int) -> None:
        super().__init__(task, index, tasks)
        self._copy = copy
        self._channels: dict[Channel, None] = {}  # an ordered set, so that simulations are reproducible
        self.order: threading.RLock = threading.RLock()

    # Workers ----------------------------------------------------------------------------------------------------------

    def serve(self, channel: Channel, hello: Frame) -> None:
        self._channels[channel] = None
        try:
            super().serve(channel, hello)
        finally:
            self._channels.pop(channel, None)

    def with_same_tables(self) -> CopiedTables:
        """Returns a new service with the same tables. Connections to this service cannot use it. `order` is held."""
        service = CopiedTables(self._copy, self._task, self._index, self._tasks)
        service.saving = self.saving
        with self._lock:
            service._tables, service._clients, service.rounds = self._tables, self._clients, self.rounds
        return service

    def _require_served(self) -> None:
        """Checks that these are still the contents of the replica. `order` is held.

        Raises:
          UnavailableError: a reset or a step-down has replaced these contents.
        """
        if not self._copy.is_present(self):
            raise UnavailableError(f"{self._task} no longer serves these tables")

    def end(self, reason: str) -> None:
        """Ends all connections of workers."""
        for channel in list(self._channels):
            channel.break_off(reason)

    def _secure(self, channel: Channel) -> None:
        self._copy.secure(self, channel)

    def _await_program(self, name: str, packed: object, channel: Channel) -> None:
        if name not in self._tables:
            self.make(name, *self._copy.programs.wait(name, lambda: not channel.peer_gone()))
        super()._await_program(name, packed, channel)

    # Changes ----------------------------------------------------------------------------------------------------------

    def _send_to_backup(self, kind: int, header: Sequence[object], tensors: Sequence[Array]) -> None:
        feed = self._copy.feed_of(self)
        if feed is not None:
            feed.send(kind, header, tensors)

    @contextmanager
    def _changes(
        self, client: Client, frame: Frame, keys: Callable[[], list[tuple[Table, Keys]]], *, looks_up: bool = False
    ) -> Generator[None]:
        # Hold the lock until the change is sent, so that the backup executes changes in the same order.
        with self.order:
            self._require_served()
            for table, of_table in keys():
                gone: list[NDArray[np.int64]] = []
                # Evict rows before the change, and send the evicted keys to the backup: among rows that were used
                # equally, the backup could choose others.
                try:
                    table.make_room(of_table, gone, looks_up=looks_up)
                finally:  # rows may have been evicted even if there is still not enough room
                    if gone:
                        self._send_to_backup(kinds.EVICT, (table.name,), [np.concatenate(gone)])
            try:
                yield
            except BaseException:
                # The change may have been executed in part, so the backup must be filled again.
                feed = self._copy.feed_of(self)
                if feed is not None:
                    feed.end()
                raise
            self._send_to_backup(frame.kind, (client.number, *frame.header), frame.tensors)

    def make(self, name: str, config: TableConfig, folder: str | None = None) -> Table:
        with self.order:
            self._require_served()
            known = name in self._tables
            table = super().make(name, config, folder)
            if not known:
                self._send_to_backup(*_opened(table))
                for shard in range(config.shards if len(table) else 0):
                    self._send_to_backup(kinds.ROWS, (name,), table.shard_records(shard))
            return table

    # Replication ------------------------------------------------------------------------------------------------------

    def snapshot(self) -> tuple[list[_Change], list[tuple[Table, TableSnapshot]]]:
        """Returns the whole state except rows, and snapshots of the rows. `order` and `saving` are held."""
        with self._lock:
            clients = [(client.number, client.last) for client in self._clients.values()]
        tables = self.tables()
        words, tensors = self.rounds.to_parts()
        begins: list[_Change] = [
            (kinds.STATE, (clients,), ()),
            (kinds.ROUND, (words,), tensors),
            *(_opened(table) for table in tables),
        ]
        # A snapshot does not copy all rows: it keeps the old values of rows that change while it is sent.
        return begins, [(table, TableSnapshot(table)) for table in tables]

    def follow(self, frame: Frame, channel: Channel) -> None:
        """Repeats a change that the primary has made."""
        match frame.kind, frame.header:
            case kinds.STATE, (int(), [*clients]):
                for number, last in clients:
                    self._client(number).last = last
            case kinds.ROUND, (int(), words):
                self.rounds = TableRounds.from_parts(words, frame.tensors)
            case kinds.OPEN_TABLES, (int(), str(name), packed, int(step), float(rate)):
                # A function cannot be sent in a frame, so the program of this task has to register the table with it.
                function = names_function(packed)
                config = self._copy.programs.wait(name, lambda: not channel.closed)[0] if function else unpack(packed)
                table = self.make(name, config)
                table.shards.sightings = frame.tensors[1:]
                table.restore_progress(step, rate, frame.tensors[0])
            case kinds.ROWS, (int(), str(name)):
                self._table(name).store_records(*frame.tensors)
            case kinds.EVICT, (int(), str(name)):
                table, (words, checks) = self._table(name), frame.tensors[0].T
                table.remove(Keys(words.copy(), checks.copy() if table.config.strings else checks[:0]))
            case kind, (int(), int(client), *header):
                self._handle(self._client(client), Frame(kind, tuple(header), frame.tensors), channel)
            case _:
                raise bad_header(frame, channel.peer)


def _opened(table: Table) -> _Change:
    header = (table.name, pack(table.config), table.step, float(table.learning_rate))
    return kinds.OPEN_TABLES, header, [table.rates.copy(), *table.shards.sightings]


class TablesCopy(HostedReplica):
    """A replica of a part of the tables: of each table, the part has a share of the keys.

    Args:
      shard: number of the part.
      tasks: number of parts.
      programs: tables of this task's program.
      moves: whether parts move between ``ps``.
      site: see `HostedReplica`.

    Attributes:
      programs: tables of this task's program.
    """

    def __init__(self, shard: int, *, tasks: int, programs: Programs, site: Site, moves: bool = False) -> None:
        self.programs: Programs = programs
        self._tasks = tasks
        self._moving = tasks if moves else None
        self._since = 0.0
        super().__init__(TABLES, shard, site=site, description=f"part {shard} of the tables")
        self.start()

    def _reset(self) -> None:
        self._contents: CopiedTables = CopiedTables(self, self._task, self._shard, self._tasks)

    def _end(self) -> None:
        self._contents.end(f"{self._task} no longer serves {self._description}")

    def _step_down(self) -> None:
        contents = self._contents
        with contents.order, self._changed:
            self._stop_serving()
            # The tables stay in place, under a new service to which old connections have no access.
            self._contents = contents.with_same_tables()
        contents.end(f"{self._task} no longer serves {self._description}")

    # Service interface ------------------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """Largest number of updates of a table."""
        return max((table.step for table in self._contents.tables()), default=0)

    def load(self) -> Load:
        """Returns the load of the tables on this task. The rate is an estimate: a use of a row counts as a sent row."""
        statistics = [(table.statistics(), 4 * table.config.dim) for table in self._contents.tables()]
        uses = sum((one.hits + one.misses) * nbytes for one, nbytes in statistics)
        rate = uses / max(1.0, time.monotonic() - self._since)
        return Load(nbytes=sum(one.nbytes for one, _ in statistics), rate=rate, backup=self.backup)

    def loads(self) -> tuple[TableLoad, ...]:
        """Returns the statistics of the tables, if this replica is the primary."""
        return self._contents.loads() if self._serving else ()

    def group(self) -> GroupProgress:
        return self.add_status(GroupProgress(name=self._description, updates=self.version))

    # Workers ----------------------------------------------------------------------------------------------------------

    def serve(self, channel: Channel, hello: Frame, watchdog: object = None) -> None:
        """Serves a worker if this replica is the primary; otherwise rejects it, so that it tries another replica."""
        del watchdog
        contents = self._await_serving(channel, lambda: self._contents)
        if contents is not None:
            contents.serve(channel, Frame(hello.kind, hello.header[:2]))

    def secure(self, contents: CopiedTables, channel: Channel) -> None:
        """Waits until the backup has all changes that the next answer on ``channel`` acknowledges.

        For errors see `_secure_answer`.
        """
        feed = self._feed
        # Read the number before the wait: this answer does not depend on changes that are sent later.
        number = feed.last_number if feed is not None else 0
        self._secure_answer(channel, feed, number, lambda: self._contents is contents)

    def is_present(self, contents: CopiedTables) -> bool:
        """Returns whether ``contents`` are the replica's present contents."""
        return self._contents is contents

    def feed_of(self, contents: CopiedTables) -> Feed | None:
        """Returns the feed for changes of ``contents``; None if these are not served, or there is no backup."""
        return self._feed if self._contents is contents else None

    def _request_other_replica(self) -> None:
        """Sends the other tasks a request for their replicas, so that the tasks create the replicas.

        A task creates its tables at the first request of a worker, and perhaps no worker has reached that task yet.
        """
        for number in self._processes.numbers():
            if number == self._site.ps:
                continue
            link = self._processes.link(number)
            link.reach(DIAL_TIMEOUT_S)
            channel = link.open_channel_now()
            try:
                channel.send(Frame(kinds.OPEN_TABLES, (0, (), self._shard, self._moving, 1 + self._site.has_backup)))
                channel.recv(CHECK_INTERVAL_S)
            except DeadlineExceededError:
                pass  # the task has received the request; it answers when its program has made the tables
            finally:
                link.release_channel(channel, False)

    # Backup and primary -----------------------------------------------------------------------------------------------

    def _apply(self, frame: Frame, channel: Channel) -> None:
        if frame.kind == kinds.STATE:  # a new snapshot replaces all earlier contents
            with self._changed:
                self._reset()
        self._contents.follow(frame, channel)

    def _install_fed_state(self) -> None:
        self._since = time.monotonic()
        view = self._standing.view
        # The first view is the start of the job and not a failover, so it is not reported.
        if view is not None and view.term > 1:
            _log.warning("%s serves %s now: %s", self._task, self._description, view)

    @property
    def _fills_slowly(self) -> bool:
        return True

    def _start_feed(self, channel: FeedChannel, other: Copy) -> Feed:
        contents = self._contents
        # Excludes saves of the tables until all rows have been sent.
        contents.saving.acquire()
        with contents.order:
            try:
                begins, snapshots = contents.snapshot()
            except BaseException:
                contents.saving.release()
                raise

            def filled() -> None:
                for _, snapshot in snapshots:
                    snapshot.abandon()
                contents.saving.release()

            rows = ((kinds.ROWS, (table.name,), piece) for table, snapshot in snapshots for piece in snapshot.pieces())
            feed = Feed(channel, other, itertools.chain(begins, rows), filled)
            self._attach_feed(feed)
        return feed

    def _between_changes(self) -> AbstractContextManager[object]:
        return self._contents.order


class CopiesOfTables:
    """A ``ps``'s replicas of parts of all tables.

    Args:
      sites: sites of the replicas, by the number of the part.
      parts: number of parts.
      moves: whether the replicas may move between ``ps``.

    Attributes:
      copies: the replicas, by the number of the part.
    """

    def __init__(self, sites: Mapping[int, Site], parts: int, *, moves: bool) -> None:
        self._programs = Programs()
        self.copies: dict[int, TablesCopy] = {
            shard: TablesCopy(shard, tasks=parts, programs=self._programs, site=site, moves=moves)
            for shard, site in sites.items()
        }

    def make(self, name: str, config: TableConfig, folder: str | None = None) -> None:
        """Registers a table; see `TableService.make`. It is made when a worker opens it."""
        self._programs.make(name, config, folder)

    def serve(self, channel: Channel, hello: Frame) -> None:
        """Serves a worker; see `TablesCopy.serve`."""
        match hello.header:
            case (int(), _, int(shard), None | int(), int()) if shard in self.copies:
                self.copies[shard].serve(channel, hello)
            case _:
                raise bad_header(hello, channel.peer)

    def loads(self) -> tuple[TableLoad, ...]:
        """Returns the statistics of all tables for which this task is primary."""
        return tuple(load for copy in self.copies.values() for load in copy.loads())

    def before_end(self) -> None:
        """Does nothing: each replica is shut down, or moves, through its service."""

    def close(self, *, over: bool) -> None:
        """Does nothing: the replicas are closed through their service."""
        del over
