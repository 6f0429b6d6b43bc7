"""A copy of a shard of parameters on this ``ps``: it serves workers, or follows the copy that does."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from headwater.cluster.claims import Claim
from headwater.parameters.host import HostedParameters
from headwater.parameters.recovery import WayBack
from headwater.parameters.replicas.feed import ParameterFeed
from headwater.parameters.replicas.recorded import Change, RecordedUpdater, repeat
from headwater.parameters.state_saver import ROWS_AT_ONCE
from headwater.parameters.updater import HostedTable
from headwater.replicas.copy import KeptCopy, Site
from headwater.replicas.feed import Feed
from headwater.replicas.views import Copy, View, as_words
from headwater.task import kinds
from headwater.task.answers import bad_header
from headwater.task.waiting import LOOK_S
from headwater.telemetry.snapshot import GroupProgress, VariableSize
from headwater.telemetry.watchdog import ProgressWatchdog
from headwater.transport.channel import Channel
from headwater.transport.frames import Frame

_log = logging.getLogger("headwater")

#: How long after a copy has taken over workers may take to come to it, in seconds; see `HostMemory.take_over`.
COME_S = 15.0


def shard_name(name: str, shard: int) -> str:
    """What a set's shard is called where each shard has two copies."""
    return f"{name}/{shard}"


class ShardCopy(KeptCopy):
    """One of the two copies of a shard.

    Args:
      name: of the set of parameters.
      shard: its number.
      make: makes what holds the values, empty, with the updater inside.
      site: see `KeptCopy`.
    """

    def __init__(
        self,
        name: str,
        shard: int,
        *,
        make: Callable[[], tuple[HostedParameters, RecordedUpdater]],
        site: Site,
    ) -> None:
        self._make = make
        self._steps = 0
        super().__init__(name, shard, site=site, called=f"shard {shard} of {name!r}")
        self.start()

    def _begin(self) -> None:
        self._memory: Any = None
        self._told: Any = None
        # Changes whose memory has yet to come: without it, it is not known whose they were.
        self._ahead: list[Change] = []
        host, updater = self._make()
        for table in updater.tables:
            table.watch()
        host.secured = lambda channel: self._secure(host, channel)
        self._host: HostedParameters = host
        self._updater: RecordedUpdater = updater

    def _end(self) -> None:
        self._steps += self._host.steps
        self._host.workers.end_talks()

    # What the task asks -----------------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """How many updates the values have seen."""
        memory = self._memory
        return self._host.version if self._serving or memory is None else memory[0][1]

    @property
    def counts_steps(self) -> bool:
        """Whether its version is the job's step."""
        return self._serving and self._host.counts_steps

    @property
    def steps(self) -> int:
        """Gradients of workers that it has answered."""
        return self._steps + self._host.steps

    @property
    def way_back(self) -> WayBack | None:
        """None: it has no state of its own in a folder."""
        return None

    def sizes(self) -> list[VariableSize]:
        """What it holds; see `HostedParameters.sizes`."""
        return self._host.sizes()

    def group(self) -> GroupProgress:
        """How training goes, and how the copies stand."""
        return replace(
            self._host.group(),
            updates=self.version,
            copies=self.described(),
            lacks_second=self.lacks_second,
            second_behind=self.behind,
        )

    def waits(self) -> list[tuple[str, float]]:
        """Which workers wait here."""
        return self._host.waits()

    def refusal(self, task: Claim) -> str:
        """See `HostedParameters.refusal`."""
        return self._host.refusal(task)

    def job_over(self) -> None:
        super().job_over()
        self._host.job_over()

    def worker_ended(self) -> None:
        """See `HostedParameters.worker_ended`."""
        self._host.worker_ended()

    # Workers ----------------------------------------------------------------------------------------------------------

    def serve(self, channel: Channel, hello: Frame, watchdog: ProgressWatchdog) -> None:
        """Answers a worker, where this copy serves; tells it to try the other one where that does."""
        host = self._await_serving(channel, lambda: self._host)
        if host is not None:
            host.serve(channel, hello, watchdog)

    def _secure(self, host: HostedParameters, channel: Channel) -> None:
        """Returns once the other copy has all that the next answer on ``channel`` says, or the view has no other one.

        Raises:
          UnavailableError: this copy does not serve any more, or the worker is gone.
        """
        feed, number = self._note(host)
        self._secure_answer(channel, feed, number, lambda: self._host is host)

    def _note(self, host: HostedParameters) -> tuple[Feed | None, int]:
        """Sends the other copy what has happened since; the number of the frame that it has to confirm."""
        with host.lock:
            if self._host is not host or not self._serving:
                return None, 0
            noted, feed = self._updater.take(), self._feed
            if not isinstance(feed, ParameterFeed) or feed.broken.is_set():
                return feed, 0
            memory = host.memory.words()
            host.updates.accounts.flush()
            if noted:
                for change in noted[:-1]:
                    feed.change(change, None)
                feed.change(noted[-1], memory)
            elif memory != self._told:
                feed.remember(memory)
            self._told = memory
            return feed, feed.given

    # Following and leading -------------------------------------------------------------------------------------------

    def _apply(self, frame: Frame, channel: Channel) -> None:
        self._carry_out(frame, channel.peer)

    def _carry_out(self, frame: Frame, peer: str) -> None:
        updater = self._updater.inner
        match frame.kind, frame.header:
            case kinds.STATE, (int(), int(count), memory):
                self._memory, self._ahead = memory, []
                repeat(updater, Change(kinds.FILL, (count,), frame.tensors))
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

    def _take_up(self) -> None:
        if self._memory is not None:
            self._host.memory.take_over(self._memory, COME_S)
            _log.warning(
                "%s serves %s now, from update %d on: %s",
                self._task,
                self._called,
                self._host.version,
                self._standing.view,
            )
        if self._over:
            self._host.job_over()

    @property
    def _fills_slowly(self) -> bool:
        return bool(self._updater.tables)

    def _begin_feed(self, channel: Channel, other: Copy) -> Feed:
        host, tables = self._host, self._updater.tables
        with host.lock:
            feed = ParameterFeed(channel, other, self._all(host), lambda: self._all_sent(host, tables))
            self._feeds(feed)
        return feed

    def _begin_going_on(self, channel: Channel, other: Copy, view: View) -> Feed:
        return ParameterFeed(channel, other, [(kinds.NEW_VIEW, (as_words(view), self._aim), ())])

    def _all(self, host: HostedParameters) -> Iterator[Change]:
        """Brings another copy all there is at this moment; then `_all_sent`. The host's lock is held."""
        self._note(host)
        tables = self._updater.tables
        memory = self._told = host.memory.words()
        values, state = self._updater.values(None), self._updater.state().values()
        begins = [Change(kinds.STATE, (len(values), None if tables else memory), [*values, *state])]
        rows = [self._rows(host, number) for number in range(len(tables))]
        ends = [Change(kinds.MEMORY, (memory,), ())] if tables else []
        for table in tables:
            table.begin_saving(whole=True)
        return chain(begins, *rows, ends)

    @staticmethod
    def _all_sent(host: HostedParameters, tables: Sequence[HostedTable]) -> None:
        with host.lock:
            for table in tables:
                table.saving_failed()  # rows that change are put aside no more

    def _step_down(self) -> None:
        host = self._host
        with host.lock:
            changes = [
                Change(kind, header, [np.array(tensor) for tensor in tensors])
                for kind, header, tensors in self._all(host)
            ]
            self._all_sent(host, self._updater.tables)
            self._stops_serving()
        self._end()
        with self._changed:
            self._begin()
        for kind, header, tensors in changes:
            self._carry_out(Frame(kind, (0, *header), tensors), self._task)

    def _rows(self, host: HostedParameters, number: int) -> Iterator[Change]:
        """All rows of a table, as they were when saving them began."""
        while True:
            with host.lock:
                taken = self._updater.tables[number].take_saved(ROWS_AT_ONCE)
            if taken is None:
                return
            numbers, arrays = taken
            yield Change(kinds.ROWS, (number,), [numbers, *arrays])

    def _between_changes(self) -> AbstractContextManager[Any]:
        return self._host.lock

    def _is_filled(self) -> bool:
        return self._host.turns.wait_filled(LOOK_S)

    def _look_after(self) -> None:
        self._host.workers.leave_absent()
