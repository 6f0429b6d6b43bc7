"""A copy of what a ``ps`` holds of tables that grow: it serves workers, or follows the copy that does.

What a worker asks goes to the other copy as it came, in the order in which it was done here, and is done there by the
same code. What becomes of a row depends on nothing but that: its first values on seed and key, its admission on what
was seen before. Only which of several rows goes that were used equally depends on where they are. So room is made
before a call, and the other copy hears which keys went.

The frames of a feed (see `headwater.state.feed`)::

    STATE        (number, clients)      there are no tables; number and last update of each worker's program
    OPEN_TABLES  (number, name, packed, step, rate)   a table without rows: factors of its last updates, then keys that
                                        were seen, and have no row (`headwater.tables.shards.Shards.sightings`)
    ROWS         (number, name)         rows, as `headwater.tables.Table.store_records` takes them
    EVICT        (number, name)         keys of rows that go, [n, 2]
    LOOK_UP, UPDATE, WRITE_TABLE (number, client, ...)   as a worker sends them, see
                                        `headwater.ps.table_protocol`
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwater.cluster.claims import Claim
from headwater.cluster.task import kinds
from headwater.cluster.task.answers import bad_header
from headwater.cluster.task.waiting import LOOK_S
from headwater.cluster.telemetry.snapshot import GroupProgress, TableLoad, VariableSize
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.errors import DeadlineExceededError, UnavailableError
from headwater.ps.protocol import TABLES
from headwater.ps.recovery import WayBack
from headwater.ps.shards.directory import Load
from headwater.ps.table_host import Client, TableService
from headwater.ps.table_protocol import Array, names_function, pack, unpack
from headwater.state.copy import KeptCopy
from headwater.state.feed import Feed, FeedChannel
from headwater.state.member import DIAL_S
from headwater.state.sites import Site
from headwater.state.views import Copy
from headwater.tables import Table, TableConfig
from headwater.tables.snapshots import TableSnapshot
from headwater.tables.table import Keys

_log = logging.getLogger("headwater")

_Change = tuple[int, Sequence[object], Sequence[Array]]


class Programs:
    """Tables that the program of this task makes: an optimizer that is a function does not travel."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._made: dict[str, tuple[TableConfig, str | None]] = {}

    def make(self, name: str, config: TableConfig, folder: str | None = None) -> None:
        """The program has a table of that name; see `TableService.make`."""
        with self._changed:
            self._made[name] = config, folder
            self._changed.notify_all()

    def wait(self, name: str, goes_on: Callable[[], bool]) -> tuple[TableConfig, str | None]:
        """Waits for a table, as long as ``goes_on`` says.

        Raises:
          UnavailableError: it has not come.
        """
        with self._changed:
            while not self._changed.wait_for(lambda: name in self._made, LOOK_S):
                if not goes_on():
                    raise UnavailableError(None, None, f"the program has not made table {name!r}")
            return self._made[name]


class CopiedTables(TableService):
    """A part of all tables, in one life of a copy of it.

    Args:
      copy: that has them.
      task, index, tasks: see `TableService`.

    Attributes:
      order: held while they change, and while the other copy is told so.
    """

    def __init__(self, copy: TablesCopy, task: str, index: int, tasks: int) -> None:
        super().__init__(task, index, tasks)
        self._copy = copy
        self._channels: dict[Channel, None] = {}  # in order
        self.order: threading.RLock = threading.RLock()

    # Workers ----------------------------------------------------------------------------------------------------------

    def serve(self, channel: Channel, hello: Frame) -> None:
        self._channels[channel] = None
        try:
            super().serve(channel, hello)
        finally:
            self._channels.pop(channel, None)

    def successor(self) -> CopiedTables:
        """The same tables, of which those who are served by this one hear no more. `order` is held."""
        made = CopiedTables(self._copy, self._task, self._index, self._tasks)
        made.saving = self.saving
        with self._lock:
            made._tables, made._clients = self._tables, self._clients
        return made

    def _require_served(self) -> None:
        """Looks whether these are what the copy has; `order` is held.

        Raises:
          UnavailableError: others have taken their place.
        """
        if not self._copy.has(self):
            raise UnavailableError(None, None, f"{self._task} serves these tables no more")

    def end(self, reason: str) -> None:
        """No worker is served any more."""
        for channel in list(self._channels):
            channel.break_off(reason)

    def _secure(self, channel: Channel) -> None:
        self._copy.secure(self, channel)

    def _await_program(self, name: str, packed: object, channel: Channel) -> None:
        if name not in self._tables:
            self.make(name, *self._copy.programs.wait(name, lambda: not channel.peer_gone()))
        super()._await_program(name, packed, channel)

    # Changes ----------------------------------------------------------------------------------------------------------

    def _tell(self, kind: int, header: Sequence[object], tensors: Sequence[Array]) -> None:
        feed = self._copy.feed_of(self)
        if feed is not None:
            feed.send(kind, header, tensors)

    @contextmanager
    def _changes(
        self, client: Client, frame: Frame, keys: Callable[[], list[tuple[Table, Keys]]], *, looks_up: bool = False
    ) -> Generator[None]:
        with self.order:
            self._require_served()
            for table, of_table in keys():
                gone: list[NDArray[np.int64]] = []
                try:
                    table.make_room(of_table, gone, looks_up=looks_up)
                finally:  # some may have gone where there is no room, too
                    if gone:
                        self._tell(kinds.EVICT, (table.name,), [np.concatenate(gone)])
            try:
                yield
            except BaseException:
                # How far it came is not known: the other copy is filled up anew.
                feed = self._copy.feed_of(self)
                if feed is not None:
                    feed.end()
                raise
            self._tell(frame.kind, (client.number, *frame.header), frame.tensors)

    def make(self, name: str, config: TableConfig, folder: str | None = None) -> Table:
        with self.order:
            self._require_served()
            known = name in self._tables
            table = super().make(name, config, folder)
            if not known:
                self._tell(*_opened(table))
                for shard in range(config.shards if len(table) else 0):
                    self._tell(kinds.ROWS, (name,), table.shard_records(shard))
            return table

    # The other copy ---------------------------------------------------------------------------------------------------

    def everything(self) -> tuple[list[_Change], list[tuple[Table, TableSnapshot]]]:
        """What there is, but for rows, and snapshots of these. `order` is held, and `saving`."""
        with self._lock:
            clients = [(client.number, client.last) for client in self._clients.values()]
        tables = self.tables()
        begins: list[_Change] = [(kinds.STATE, (clients,), ()), *(_opened(table) for table in tables)]
        return begins, [(table, TableSnapshot(table)) for table in tables]

    def follow(self, frame: Frame, channel: Channel) -> None:
        """Does what the primary has done."""
        match frame.kind, frame.header:
            case kinds.STATE, (int(), [*clients]):
                for number, last in clients:
                    self._client(number).last = last
            case kinds.OPEN_TABLES, (int(), str(name), packed, int(step), float(rate)):
                function = names_function(packed)
                config = self._copy.programs.wait(name, lambda: not channel.closed)[0] if function else unpack(packed)
                table = self.make(name, config)
                table.shards.sightings = frame.tensors[1:]
                table.restored(step, rate, frame.tensors[0])
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


class TablesCopy(KeptCopy):
    """One of the two copies of a part of all tables: that of the keys that belong to it.

    Args:
      shard: number of the part.
      tasks: how many parts there are.
      programs: tables of this task's program.
      moves: whether parts move between ``ps``.
      site: see `KeptCopy`.

    Attributes:
      programs: see above.
    """

    def __init__(
        self,
        shard: int,
        *,
        tasks: int,
        programs: Programs,
        site: Site,
        moves: bool = False,
    ) -> None:
        self.programs: Programs = programs
        self._tasks = tasks
        self._moving = tasks if moves else None
        self._since = 0.0
        super().__init__(TABLES, shard, site=site, called=f"part {shard} of the tables")
        self.start()

    def _begin(self) -> None:
        self._contents: CopiedTables = CopiedTables(self, self._task, self._shard, self._tasks)

    def _end(self) -> None:
        self._contents.end(f"{self._task} serves {self._called} no more")

    def _step_down(self) -> None:
        contents = self._contents
        with contents.order, self._changed:
            self._stops_serving()
            self._contents = contents.successor()
        contents.end(f"{self._task} serves {self._called} no more")

    # What the task asks -----------------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """How many updates the table has seen that has seen most."""
        return max((table.step for table in self._contents.tables()), default=0)

    @property
    def counts_steps(self) -> bool:
        """No: parameters do."""
        return False

    @property
    def steps(self) -> int:
        """None: parameters count them."""
        return 0

    @property
    def way_back(self) -> WayBack | None:
        """None: it has no state of its own in a folder."""
        return None

    def load(self) -> Load:
        """What its tables make this task do. Each use of a row is taken for a row that travels."""
        told = [(table.statistics(), 4 * table.config.dim) for table in self._contents.tables()]
        uses = sum((one.hits + one.misses) * nbytes for one, nbytes in told)
        rate = uses / max(1.0, time.monotonic() - self._since)
        return Load(nbytes=sum(one.nbytes for one, _ in told), rate=rate, second=self.second)

    def loads(self) -> tuple[TableLoad, ...]:
        """What its tables say of themselves, where this copy serves."""
        return self._contents.loads() if self._serving else ()

    def sizes(self) -> list[VariableSize]:
        """Nothing: tables are told of by `loads`."""
        return []

    def group(self) -> GroupProgress:
        """How the copies stand."""
        return GroupProgress(
            name=self._called,
            updates=self.version,
            copies=self.described(),
            lacks_second=self.lacks_second,
            second_behind=self.behind,
        )

    def waits(self) -> list[tuple[str, float]]:
        """None: no worker waits for others here."""
        return []

    def refusal(self, task: Claim) -> str:
        """Any task may use tables."""
        del task
        return ""

    def worker_ended(self) -> None:
        """No worker waits for it here."""

    # Workers ----------------------------------------------------------------------------------------------------------

    def serve(self, channel: Channel, hello: Frame, watchdog: object = None) -> None:
        """Answers a worker, where this copy serves; tells it to try the other one where that does."""
        del watchdog
        contents = self._await_serving(channel, lambda: self._contents)
        if contents is not None:
            contents.serve(channel, Frame(hello.kind, hello.header[:2]))

    def secure(self, contents: CopiedTables, channel: Channel) -> None:
        """Returns once the other copy has all that the next answer on ``channel`` may say; see `_secure_answer`."""
        feed = self._feed
        number = feed.given if feed is not None else 0
        self._secure_answer(channel, feed, number, lambda: self._contents is contents)

    def has(self, contents: CopiedTables) -> bool:
        """Whether ``contents`` are what it has."""
        return self._contents is contents

    def feed_of(self, contents: CopiedTables) -> Feed | None:
        """Where changes of ``contents`` go to; None where these are not served, or there is no other copy."""
        return self._feed if self._contents is contents else None

    def _wake_other(self) -> None:
        """The other task makes its copy when it is asked for one; no worker may have reached it."""
        home, beside = self._site.pair
        link = self._processes.link(home if self._site.ps == beside else beside)
        link.reach(DIAL_S)
        channel = link.take_now()
        try:
            channel.send(Frame(kinds.OPEN_TABLES, (0, (), self._shard, self._moving)))
            channel.recv(LOOK_S)
        except DeadlineExceededError:
            pass  # it waits, too
        finally:
            link.give_back(channel, False)

    # Following and leading --------------------------------------------------------------------------------------------

    def _apply(self, frame: Frame, channel: Channel) -> None:
        if frame.kind == kinds.STATE:
            with self._changed:
                self._begin()
        self._contents.follow(frame, channel)

    def _take_up(self) -> None:
        self._since = time.monotonic()
        view = self._standing.view
        if view is not None and view.term > 1:
            _log.warning("%s serves %s now: %s", self._task, self._called, view)

    @property
    def _fills_slowly(self) -> bool:
        return True

    def _begin_feed(self, channel: FeedChannel, other: Copy) -> Feed:
        contents = self._contents
        contents.saving.acquire()
        with contents.order:
            try:
                begins, snapshots = contents.everything()
            except BaseException:
                contents.saving.release()
                raise

            def filled() -> None:
                for _, snapshot in snapshots:
                    snapshot.abandon()
                contents.saving.release()

            rows = ((kinds.ROWS, (table.name,), piece) for table, snapshot in snapshots for piece in snapshot.pieces())
            feed = Feed(channel, other, itertools.chain(begins, rows), filled)
            self._feeds(feed)
        return feed

    def _between_changes(self) -> AbstractContextManager[Any]:
        return self._contents.order


class CopiesOfTables:
    """What a ``ps`` has of all tables: copies of some parts.

    Args:
      copies: by number of the part.
      programs: tables of this task's program.
    """

    def __init__(self, copies: dict[int, TablesCopy], programs: Programs) -> None:
        self.copies: dict[int, TablesCopy] = copies
        self._programs = programs

    def make(self, name: str, config: TableConfig, folder: str | None = None) -> None:
        """See `TableService.make`; a table is made when a worker opens it."""
        self._programs.make(name, config, folder)

    def serve(self, channel: Channel, hello: Frame) -> None:
        """Answers a worker; see `TablesCopy.serve`."""
        match hello.header:
            case (int(), _, int(shard), None | int()) if shard in self.copies:
                self.copies[shard].serve(channel, hello)
            case _:
                raise bad_header(hello, channel.peer)

    def loads(self) -> tuple[TableLoad, ...]:
        """What all tables that are served say of themselves."""
        return tuple(load for copy in self.copies.values() for load in copy.loads())

    def before_end(self) -> None:
        """See `TableService.before_end`: nothing is left with the chief, as second copies have all."""

    def close(self, *, over: bool) -> None:
        """The task ends; so do its copies, by themselves."""
        del over
