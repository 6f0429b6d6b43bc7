"""A replica of a shard of parameters on this ``ps``: it serves workers as primary, or follows the primary as backup.

The frames of a feed (see `headwater.state.feed`)::

    STATE   (number, count, hyperparameters, memory)   values of ``count`` blocks, then the optimizer's state;
                                            the hyperparameters of the latest update; ``memory`` is None if rows of
                                            tables follow
    ROWS    (number, table)                 numbers of rows of a table, their values, and their optimizer state
    MEMORY  (number, memory)                the primary's record of workers and requests: at the end of the initial
                                            state, or if only the record has changed

and the changes of that state (`headwater.ps.replicas.recorded`)::

    UPDATE_BACKUP  (number, changes, hyperparameters, scale, memory)
                                            gradients, the changes with the numbers ``changes``, then
                                            of each table the numbers of rows and their gradients
    FILL    (number, count, memory)         values of ``count`` blocks, then the optimizer's state
    ASSIGN  (number, memory)                values of all blocks except tables
    WRITE_ROWS  (number, table, start, memory)   as a worker sends it

``memory`` is the result of `headwater.ps.host_memory.HostMemory.words`. Of several changes that are sent together, only
the last frame has a memory, and the earlier frames have None. The backup collects changes, and applies them when it
receives a frame with a memory.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import chain
from typing import Any

from headwater.cluster.claims import Claim
from headwater.cluster.task import kinds
from headwater.cluster.task.answers import bad_header
from headwater.cluster.task.waiting import CHECK_INTERVAL_S
from headwater.cluster.telemetry.snapshot import GroupProgress, VariableSize
from headwater.cluster.telemetry.watchdog import ProgressWatchdog
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.ps.consistency import KOfN
from headwater.ps.host import HostedParameters
from headwater.ps.hosted import HostedReplica
from headwater.ps.membership import CONNECT_TIMEOUT_S
from headwater.ps.replicas.recorded import Change, RecordedUpdater, compile_update, repeat
from headwater.ps.shards.directory import Expect, Load
from headwater.ps.state_deposits import ROUND_S
from headwater.ps.state_saver import ROWS_AT_ONCE
from headwater.ps.updater import HostedTable
from headwater.state.feed import Feed, FeedChannel
from headwater.state.sites import Site
from headwater.state.views import Copy

_log = logging.getLogger("headwater")

#: Makes a shard's host with its updater: a given updater, or else an empty one.
MakeHosted = Callable[["RecordedUpdater | None"], tuple[HostedParameters, RecordedUpdater]]


def shard_name(name: str, shard: int) -> str:
    """Returns the name of a set's shard where shards have replicas or can move."""
    return f"{name}/{shard}"


class ShardCopy(HostedReplica):
    """A replica of a shard.

    Args:
      name: the name of the set of parameters.
      shard: the number of the shard.
      make: makes the host with its updater: a given updater, or else an empty one.
      site: see `HostedReplica`.
      expect: see `Expect`; None if the task need not wait for workers before it ends.
    """

    def __init__(self, name: str, shard: int, *, make: MakeHosted, site: Site, expect: Expect | None = None) -> None:
        self._make = make
        self._expect = expect
        #: Workers whose connection this task awaits before it ends with the job, and the deadline.
        self._awaited: tuple[Collection[str], float] | None = None
        self._steps = 0
        self._since = 0.0
        super().__init__(name, shard, site=site, description=f"shard {shard} of {name!r}")
        self.start()

    def _reset(self) -> None:
        self._install(*self._make(None))

    def _install(self, host: HostedParameters, updater: RecordedUpdater) -> None:
        """Installs the host and its updater as this replica's contents."""
        # `_memory` and `_sent_memory` are records of requests (`HostMemory.words`). `_memory` belongs to the state that
        # a primary has fed to this replica. `_sent_memory` was sent last by this replica, as the primary, to its
        # backup.
        self._memory: Any = None
        self._sent_memory: Any = None
        # Changes that were received before their record of requests (`HostMemory`). They are applied together with it:
        # if this replica were promoted with the changes but without the record, a retry would be applied twice.
        self._ahead: list[Change] = []
        for table in updater.tables:
            table.watch()  # required by `start_saving`, which provides the rows for a new backup
        host.before_answer = lambda channel: self._secure(host, channel)
        host.workers.stays_s = CONNECT_TIMEOUT_S
        self._host: HostedParameters = host
        self._updater: RecordedUpdater = updater

    def _end(self) -> None:
        self._steps += self._host.steps
        self._host.workers.close_connections()

    # Service interface ------------------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        memory = self._memory
        return self._host.version if self._serving or memory is None else memory[0][1]

    @property
    def counts_steps(self) -> bool:
        return self._serving and self._host.counts_steps

    @property
    def steps(self) -> int:
        return self._steps + self._host.steps

    def load(self) -> Load:
        rate = self._host.workers.traffic_bytes / max(1.0, time.monotonic() - self._since)
        return Load(nbytes=sum(size.nbytes for size in self.sizes()), rate=rate, backup=self.backup)

    def sizes(self) -> list[VariableSize]:
        return self._host.sizes()

    def group(self) -> GroupProgress:
        return self.add_status(replace(self._host.group(), updates=self.version))

    def waits(self) -> list[tuple[str, float]]:
        return self._host.waits()

    def refusal(self, task: Claim) -> str:
        return self._host.refusal(task)

    def job_over(self) -> None:
        super().job_over()
        self._host.job_over()

    def record_worker_end(self) -> None:
        self._host.record_worker_end()

    # Workers ----------------------------------------------------------------------------------------------------------

    def serve(self, channel: Channel, hello: Frame, watchdog: ProgressWatchdog) -> None:
        """Serves a worker if this replica is the primary; otherwise rejects it, so that it tries another replica."""
        host = self._await_serving(channel, lambda: self._host)
        if host is not None:
            host.serve(channel, hello, watchdog)

    def _secure(self, host: HostedParameters, channel: Channel) -> None:
        """Waits until the backup, if any, has all changes that the next answer on ``channel`` acknowledges.

        Raises:
          UnavailableError: this replica is no longer the primary, or the worker is disconnected.
        """
        feed, number = self._send_changes(host)
        self._secure_answer(channel, feed, number, lambda: self._host is host)

    def _send_changes(self, host: HostedParameters) -> tuple[Feed | None, int]:
        """Sends the changes since the last call to the backup.

        Returns:
          The feed of the backup, None if there is none; and the number of the last frame, which the backup has to
          confirm.
        """
        with host.lock:
            if self._host is not host or not self._serving:
                return None, 0
            noted, feed = self._updater.pop_changes(), self._feed
            # Without a feed, drop the changes: the next feed begins with the whole state.
            if feed is None or feed.ended.is_set():
                return feed, 0
            try:
                self._send(feed, host, noted)
            except BaseException:
                feed.end()  # the backup lacks these changes: it must be filled again
                raise
            return feed, feed.last_number

    def _send(self, feed: Feed, host: HostedParameters, noted: Sequence[Change]) -> None:
        memory = host.memory.words()
        # Write the journal before sending the changes: a backup that is promoted with these changes assumes that the
        # journal contains them.
        host.updates.accounts.flush()
        if noted:
            # Only the last change carries the record of requests. So the backup applies either all changes that belong
            # to an answer, or none.
            for at, change in enumerate(noted, 1):
                feed.send(change.kind, (*change.header, memory if at == len(noted) else None), change.tensors)
        elif memory != self._sent_memory:
            feed.send(kinds.MEMORY, (memory,), ())
        self._sent_memory = memory

    # Backup and primary ----------------------------------------------------------------------------------------------

    def _apply(self, frame: Frame, channel: Channel) -> None:
        self._apply_frame(frame, channel.peer)

    def _apply_frame(self, frame: Frame, peer: str) -> None:
        updater = self._updater.inner
        match frame.kind, frame.header:
            case kinds.STATE, (int(), int(count), [*hyperparameters], memory):
                self._memory, self._ahead = memory, []
                snapshot = Change(kinds.FILL, (count,), frame.tensors)
                repeat(updater, snapshot)
                # Compile the update now: after a promotion workers would wait for that.
                compile_update(updater, hyperparameters)
                repeat(updater, snapshot)
            case kinds.ROWS, (int(), int(table)):
                updater.tables[table].restore(frame.tensors[0], frame.tensors[1:])
            case kinds.MEMORY, (int(), memory):
                self._memory = memory
            case kind, (int(), *header, memory):
                self._ahead.append(Change(kind, header, frame.tensors))
                if memory is not None:
                    ahead, self._ahead = self._ahead, []
                    for change in ahead:
                        repeat(updater, change)
                    self._memory = memory
            case _:
                raise bad_header(frame, peer)

    def _install_fed_state(self) -> None:
        self._since = time.monotonic()
        if self._memory is not None:
            self._host.memory.install_words(self._memory, CONNECT_TIMEOUT_S)
            self._await_workers(self._host.workers.known_workers())
            _log.warning(
                "%s serves %s now, from update %d on: %s",
                self._task,
                self._description,
                self._host.version,
                self._standing.view,
            )
        # The host may have been created after the end of the job was reported.
        if self._over:
            self._host.job_over()

    @property
    def _fills_slowly(self) -> bool:
        return bool(self._updater.tables)

    def _start_feed(self, channel: FeedChannel, other: Copy) -> Feed:
        host, tables = self._host, self._updater.tables
        with host.lock:
            feed = Feed(channel, other, self._snapshot_changes(host), lambda: self._end_snapshot(host, tables))
            self._attach_feed(feed)
        return feed

    def _snapshot_changes(self, host: HostedParameters) -> Iterator[Change]:
        """Returns the changes that fill a new backup with the present state. The host's lock is held.

        Call `_end_snapshot` once they have been sent.
        """
        # Send the recorded changes to the existing feed now: the snapshot contains them, so the new feed must not get
        # them.
        self._send_changes(host)
        tables = self._updater.tables
        memory = self._sent_memory = host.memory.words()
        values, state = self._updater.values(None), self._updater.state().values()
        header = len(values), list(host.updates.hyperparameters), None if tables else memory
        begins = [Change(kinds.STATE, header, [*values, *state])]
        rows = [self._rows(host, number) for number in range(len(tables))]
        ends = [Change(kinds.MEMORY, (memory,), ())] if tables else []
        # From here on, the current values of a row are set aside before the row changes.
        for table in tables:
            table.start_saving(whole=True)
        return chain(begins, *rows, ends)

    @staticmethod
    def _end_snapshot(host: HostedParameters, tables: Sequence[HostedTable]) -> None:
        with host.lock:
            for table in tables:
                table.abandon_save()  # stop setting aside rows that change

    def _end_rounds(self) -> bool:
        # With k of n gradients, a worker may continue before its gradient is applied. It would not push the gradient
        # again, so the gradient would be lost. With other choices, workers push again to the next primary.
        host = self._host
        goes_on = isinstance(host.updates.state.choice, KOfN)
        return not goes_on or host.waiting.freeze_outside_rounds(f"another ps to serve {self._description}", ROUND_S)

    def _step_down(self) -> None:
        host = self._host
        with host.lock:
            self._send_changes(host)
            memory = host.memory.words()
            with self._changed:
                self._stop_serving()
                # The values stay in place, under a new host. Threads that wait for the old host's lock can no longer
                # change them.
                self._install(*self._make(self._updater.retire()))
                self._memory = memory
        self._steps += host.steps
        host.workers.close_connections()

    def _rows(self, host: HostedParameters, number: int) -> Iterator[Change]:
        """Yields all rows of a table, each as it was when the snapshot began."""
        while True:
            with host.lock:
                taken = self._updater.tables[number].next_saved(ROWS_AT_ONCE)
            if taken is None:
                return
            numbers, arrays = taken
            yield Change(kinds.ROWS, (number,), [numbers, *arrays])

    def _between_changes(self) -> AbstractContextManager[Any]:
        return self._host.lock

    def _is_filled(self) -> bool:
        return self._host.waiting.wait_filled(CHECK_INTERVAL_S)

    def _do_periodic_work(self) -> None:
        self._host.workers.remove_absent_workers()
        if self._awaited is not None and time.monotonic() >= self._awaited[1]:
            self._await_workers(())

    def _await_workers(self, workers: Collection[str]) -> None:
        """Makes this task wait up to `CONNECT_TIMEOUT_S` for these workers to connect, before it ends with the job.

        If the method was called before, these workers replace the workers of the earlier call.
        """
        if self._expect is not None:
            if self._awaited is not None:
                self._expect(self._awaited[0], awaited=False)
            self._awaited = (workers, time.monotonic() + CONNECT_TIMEOUT_S) if workers else None
            self._expect(workers)
