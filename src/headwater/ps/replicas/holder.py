"""The replicas of a set's shards on a ``ps``. Each shard has one or two replicas, which can move between ``ps``.

A replica moves by changes of the view, while workers continue to push: the primary feeds a replica on another ``ps``,
and hands off to it if that replica is to serve; see `headwater.state.copy`. A shard with one replica has a backup only
while it moves. This module sets the desired placement of each shard's replicas: at the request of another ``ps`` or of
a command, or because this ``ps`` joins or shuts down.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from headwater.cluster.claims import Claim
from headwater.cluster.task import kinds
from headwater.cluster.task.answers import bad_header, error_frame
from headwater.cluster.task.waiting import CHECK_INTERVAL_S, Reminder
from headwater.cluster.telemetry.snapshot import GroupProgress, VariableSize
from headwater.cluster.telemetry.watchdog import ProgressWatchdog
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.errors import FailedPreconditionError, OpError, UnavailableError
from headwater.ps.hosted import Hosted, HostedReplica
from headwater.ps.replicas.processes import KnownServers, server_name, server_number
from headwater.ps.shards.directory import Directory, ShardReport
from headwater.ps.shards.moves import MOVE_TIMEOUT_S, balance_shards
from headwater.ps.shards.places import Places
from headwater.state.aims import Placement
from headwater.state.leaving import LOST_TIMEOUT_S, shut_down_now

_log = logging.getLogger("headwater")

#: How long a ``ps`` that shuts down waits until other ``ps`` have its replicas, in seconds. It does not wait if there
#: are no other ``ps``.
LEAVE_TIMEOUT_S: Final = 300.0


class CopyHolder(Hosted):
    """The replicas of a set's shards on this ``ps``: one of each shard, most of which may be spare.

    Args:
      directory: the locations of shards, as far as this task knows.
      servers: the ``ps`` known to this task.
      copies: the replicas of all shards, by shard.
      replicas: number of replicas of each shard.
      task: this task's name.
      address: the address at which the other ``ps`` reach this task.
      end_with_job: called with the reason if this task joins after the job is over.
      on_start: called with the name of another ``ps`` that reports its start.
    """

    def __init__(
        self,
        directory: Directory,
        servers: KnownServers,
        copies: Mapping[int, HostedReplica],
        *,
        replicas: int,
        task: str,
        address: str,
        end_with_job: Callable[[str], None],
        on_start: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.copies: Mapping[int, HostedReplica] = copies
        self._replicas = replicas
        self._directory = directory
        self._servers = servers
        self._name = directory.name
        self._task = task
        self._address = address
        self._end_with_job = end_with_job
        self._on_start = on_start
        self._changed = threading.Condition()
        self._leaves = False
        self._over = False
        self._closed = False
        directory.merge(Places(addresses={task: address}))

    # Joining and leaving ----------------------------------------------------------------------------------------------

    def join(self) -> None:
        """Announces this ``ps`` to all other ``ps``, and requests replicas from them if this ``ps`` has none.

        If the job is over, ends this task instead.
        """
        report = self._announce(begins=True)
        while not (self._closed or self._leaves or self._over):
            # A restarted ps requests nothing if views name its replicas, or primaries are filling them.
            if any(not copy.is_spare for copy in self.copies.values() if copy.view is not None):
                return
            # In a finished job there are no workers to serve and no replicas to move.
            if any(one.over for one in report):
                self._end_with_job("another ps reports it")
                return
            try:
                if all(copy.view is not None for copy in self.copies.values()):
                    moved = balance_shards(self._directory, me=self._report_shards())
                    _log.warning("%s has joined: %d shards of %r have moved", self._task, len(moved), self._name)
                    return
            except OpError as error:
                _log.info("%s has no copies of %r yet: %s", self._task, self._name, error.message)
                report = self._announce()
            self._pause(CHECK_INTERVAL_S)

    def hand_off(self, is_needed: Callable[[], bool]) -> None:
        """Moves the replicas to other ``ps``, because this task shuts down during the job, and accepts no further ones.

        State that no other ``ps`` takes is deposited with the chief.

        Args:
          is_needed: returns whether workers still need the replicas. While they do, this call waits for lost ``ps``,
            which may return and take the replicas.
        """
        with self._changed:
            self._leaves = True
        others = self._await_others(is_needed)
        # `balance_shards` needs as many ps as a shard has replicas.
        if len(others) >= self._replicas:
            try:
                balance_shards(self._directory, without=(self._task,), me=self._report_shards())
            except OpError as error:
                _log.warning("%s lets the other ps choose the placement of its replicas: %s", self._task, error.message)
        # After this announcement, primaries replace their backups on this task by replicas on ps that stay, and another
        # ps that shuts down does not wait for this one.
        self._servers.leaving.add(self._task)
        self._announce(leaves=True)
        give_up_at = time.monotonic() + LEAVE_TIMEOUT_S
        # If all others have announced their shutdown, none of them takes replicas.
        while (shards := self._replica_shards()) and others and self._others() and time.monotonic() < give_up_at:
            if self._closed or self._over:
                break
            self._pause(CHECK_INTERVAL_S)
        if shards:
            _log.warning("%s ends with its copies of shards %s of %r", self._task, _listed(shards), self._name)
        else:
            _log.warning("%s has handed off its copies of %r", self._task, self._name)
        if not self._over:
            shut_down_now(list(self.copies.values()))

    def _await_others(self, is_needed: Callable[[], bool]) -> list[ShardReport]:
        """Returns the reports of other ``ps`` that take replicas.

        If no ``ps`` takes replicas, waits for lost ``ps`` to return, while ``is_needed`` returns True and for at most
        `LOST_TIMEOUT_S`. Does not wait for a ``ps`` that has announced its shutdown.
        """
        began, reminder = time.monotonic(), Reminder()
        while True:
            answers = self._directory.query_all()
            reports = [one for one in answers.values() if one.takes]
            lost = [task for task in self._others() if task not in answers]
            shards, waited_s = self._replica_shards(), time.monotonic() - began
            if reports or not (shards and lost and is_needed()) or self._closed or waited_s >= LOST_TIMEOUT_S:
                return reports
            if reminder.is_due():
                _log.warning(
                    "%s waits to end until %s takes its copies of shards %s of %r",
                    self._task,
                    " or ".join(lost),
                    _listed(shards),
                    self._name,
                )
            self._pause(CHECK_INTERVAL_S)

    def _others(self) -> list[str]:
        """Returns the other ``ps`` that have not announced their shutdown."""
        return [task for task in map(server_name, self._servers.staying()) if task != self._task]

    def _replica_shards(self) -> list[int]:
        """Returns the shards of which this task has a replica, complete or not yet."""
        return [shard for shard, copy in self.copies.items() if not copy.is_spare]

    def _announce(self, *, begins: bool = False, leaves: bool = False) -> list[ShardReport]:
        """Announces this ``ps`` to every other one; returns the reports of all that answer."""
        reports: list[ShardReport] = []
        for task in self._directory.servers():
            try:
                if task != self._task:
                    reports.append(self._directory.exchange_places(task, begins=begins, leaves=leaves)[0])
            except OpError as error:
                _log.debug("%s could not be notified of %s: %s", task, self._task, error.message)
        return reports

    def _pause(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._over, seconds)

    # Other tasks ------------------------------------------------------------------------------------------------------

    def serve(self, channel: Channel, hello: Frame, watchdog: ProgressWatchdog) -> None:
        """Serves a worker if this replica is the primary; otherwise sends an error that names the primary's task."""
        self._copy_of(hello, channel).serve(channel, hello, watchdog)

    def serve_peer(self, channel: Channel, first: Frame) -> None:
        """Receives frames of a primary, and answers requests of other tasks about shards."""
        if first.kind == kinds.BACKUP:
            return self._copy_of(first, channel).serve_peer(channel, first)
        try:
            match first.kind, first.header:
                case kinds.WHERE, (str(), str(asker), words, bool(begins), bool(leaves)):
                    answer = self._answer(asker, Places.of(words), begins=begins, leaves=leaves)
                case kinds.MOVE, (str(), int(shard), str(primary), str(address), str(backup), str(its)):
                    self._directory.merge(Places(addresses={primary: address} | ({backup: its} if backup else {})))
                    answer = Frame(kinds.DONE, self._move(shard, primary, backup))
                case _:
                    raise bad_header(first, channel.peer)
        except Exception as error:
            if channel.peer_gone():
                raise
            answer = error_frame(0, error, self._task)
        return channel.send(answer)

    def _copy_of(self, first: Frame, channel: Channel) -> HostedReplica:
        _, _, number = str(first.header[0]).rpartition("/")
        if not number.isdecimal() or int(number) not in self.copies:
            raise bad_header(first, channel.peer)
        return self.copies[int(number)]

    def _answer(self, asker: str, known: Places, *, begins: bool, leaves: bool) -> Frame:
        self._directory.merge(known)
        if begins and (address := known.addresses.get(asker)):
            self._directory.record_address(asker, address)
        if leaves:
            self._servers.leaving.add(asker)
        elif begins:
            # The restarted ps no longer shuts down, whatever its earlier incarnation announced.
            self._servers.leaving.discard(asker)
            self._on_start(asker)
        # Views are the source of places: a failover changes the primary without a move.
        for shard, copy in self.copies.items():
            if (view := copy.view) is not None:
                self._directory.record_move(shard, view.term, server_name(view.primary.ps))
        report = self._report_shards()
        loads = [(shard, load.nbytes, load.rate, load.backup) for shard, load in report.loads.items()]
        return Frame(kinds.DONE, (self._directory.words(), report.takes, report.over, loads))

    def _report_shards(self) -> ShardReport:
        """Returns this ``ps``'s report, on the shards for which it is primary."""
        loads = {shard: copy.load() for shard, copy in self.copies.items() if copy.serves}
        return ShardReport(takes=not (self._leaves or self._closed or self._over), over=self._over, loads=loads)

    def _move(self, shard: int, primary: str, backup: str) -> tuple[float, int]:
        """Moves the replicas of a shard; this task must have the primary.

        Returns when all replicas are in place, or when a new primary serves, which then completes the move.

        Args:
          shard: the number of the shard.
          primary: the name of the ``ps`` for the primary.
          backup: the name of the ``ps`` for the backup; empty for a shard with one replica.

        Returns:
          How long workers could not use the shard, in seconds; and its size in bytes.

        Raises:
          FailedPreconditionError: the shard cannot move.
          UnavailableError: this task does not have the primary, the shard has not moved within `MOVE_TIMEOUT_S`
            seconds, or another request has changed its desired placement meanwhile.
        """
        copy = self.copies.get(shard)
        if copy is None or not copy.serves:
            raise UnavailableError(f"shard {shard} of {self._name!r} is not served by {self._task}")
        if self._over:
            raise FailedPreconditionError(f"no shards of {self._name!r} move: the job is over")
        # The size is determined now, as this replica may be empty after the move.
        nbytes, stays = copy.load().nbytes, primary == self._task
        aim = Placement(server_number(primary), server_number(backup) if backup else None)
        copy.request_placement(*aim)
        give_up_at = time.monotonic() + MOVE_TIMEOUT_S
        while not copy.wait_for(lambda: not copy.serves or (stays and copy.has_desired_placement), CHECK_INTERVAL_S):
            if self._closed or self._over or copy.requested_placement != aim or time.monotonic() >= give_up_at:
                raise UnavailableError(f"shard {shard} of {self._name!r} has not moved to {primary}")
        return (0.0 if stays else copy.interruption_s), nbytes

    # Service interface ------------------------------------------------------------------------------------------------

    @property
    def _serving(self) -> list[HostedReplica]:
        return [copy for copy in self.copies.values() if copy.serves]

    @property
    def version(self) -> int:
        """Number of updates applied to the first shard for which this is the primary."""
        return next((copy.version for copy in self._serving), 0)

    @property
    def counts_steps(self) -> bool:
        return self.copies[0].counts_steps

    @property
    def steps(self) -> int:
        """Number of pushed gradients that were answered, for one shard."""
        return max(copy.steps for copy in self.copies.values())

    def sizes(self) -> list[VariableSize]:
        """Returns the sizes of the shards for which this is the primary; see `HostedParameters.sizes`."""
        return [size for copy in self._serving for size in copy.sizes()]

    def group(self) -> GroupProgress:
        """Returns the progress of the training, and this task's replicas."""
        serving = [shard for shard, copy in self.copies.items() if copy.serves]
        following = [shard for shard in self._replica_shards() if shard not in serving]
        lacking = [shard for shard in serving if self.copies[shard].lacks_backup]
        roles = f"primary of {_listed(serving)}, backup of {_listed(following)}" if self._replicas > 1 else ""
        group = self.copies[serving[0]].group() if serving else GroupProgress(name=self._name)
        return replace(
            group,
            name=self._name,
            copies=roles + (f", NO BACKUP of {_listed(lacking)}" if lacking else ""),
            lacks_backup=bool(lacking),
            backup_lag=sum(copy.unconfirmed_frames for copy in self._serving),
            shards=f"{_listed(serving)} of {len(self.copies)}",
        )

    def waits(self) -> list[tuple[str, float]]:
        return [wait for copy in self.copies.values() for wait in copy.waits()]

    def refusal(self, task: Claim) -> str:
        return next((reason for copy in self.copies.values() if (reason := copy.refusal(task))), "")

    def job_over(self) -> None:
        with self._changed:
            self._over = True
            self._changed.notify_all()
        for copy in self.copies.values():
            copy.job_over()

    def record_worker_end(self) -> None:
        for copy in self.copies.values():
            copy.record_worker_end()

    def close(self) -> None:
        """Closes all replicas, because the task stops."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for copy in self.copies.values():
            copy.close()


def _listed(shards: Iterable[int]) -> str:
    return ", ".join(map(str, shards)) or "none"
