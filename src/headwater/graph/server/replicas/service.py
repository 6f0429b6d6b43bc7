"""Service of a ``ps`` process for its replicas of a graph's tasks, including their handoff when the process drains."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar, Final

from headwater.cluster.claims import Claim
from headwater.cluster.names import TaskName
from headwater.cluster.task.answers import bad_header
from headwater.cluster.task.kinds import BACKUP, DONE, OPEN_COPY, PROCESSES
from headwater.cluster.task.service import Service
from headwater.cluster.task.shell import TaskShell
from headwater.cluster.telemetry.snapshot import Snapshot
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.graph.master.links import SESSIONS_DETAIL, STEPS_DETAIL
from headwater.graph.server.replicas.copy import GraphCopy, ProcessAccess
from headwater.graph.server.replicas.processes import GONE, LEAVING, GraphProcesses
from headwater.graph.server.snapshot import add_state
from headwater.state.leaving import LEAVE_TIMEOUT_S, LOST_TIMEOUT_S, shut_down_after_transfer
from headwater.state.periodic import Periodic

_log = logging.getLogger("headwater")

#: How often an extra process (beyond the initial ones) checks whether other processes answer, in seconds.
CHECK_INTERVAL_S: Final = 5.0
#: An extra process without a replica assumes that the job is over if no other process has answered for this long, in
#: seconds.
JOB_OVER_AFTER_S: Final = 20.0


class CopyService(Service):
    """Serves masters on primaries, and receives changes on backups.

    Args:
      shell: the task.
      copies: the replicas, one of each task.
      around: the replicas' access to their process.
      processes: the processes that may hold replicas.

    Attributes:
      copies: the replicas.
      processes: the processes that may hold replicas.
    """

    kinds: ClassVar[Collection[int]] = (OPEN_COPY, BACKUP, PROCESSES)

    def __init__(
        self, shell: TaskShell, copies: Sequence[GraphCopy], around: ProcessAccess, processes: GraphProcesses
    ) -> None:
        self.copies: Sequence[GraphCopy] = copies
        self.processes: GraphProcesses = processes
        self._shell = shell
        self._around = around
        self._alone_since: float | None = None
        self._checks = Periodic("looks for other ps", CHECK_INTERVAL_S, self._end_if_alone)

    def start(self) -> None:
        """Starts the replicas, which look for their primaries, and announces this process to the other processes."""
        self.processes.start()
        if self.processes.is_extra:
            self._checks.start()
        for copy in self.copies:
            copy.start()

    def serve(self, channel: Channel, first: Frame) -> None:
        match first.kind, first.header:
            case _, (int(task),) if first.kind == OPEN_COPY and (copy := self._copy_of_task(task)) is not None:
                copy.serve(channel, lambda: self._shell.record_disconnect(channel))
            case _, (str(name), *_) if first.kind == BACKUP and (copy := self._copy_of_name(name)) is not None:
                copy.serve_peer(channel, first)
            case _, (words, bool(over)) if first.kind == PROCESSES:
                self.processes.merge_records(words)
                channel.send(Frame(DONE, (self.processes.words(),)))
                if over and self.processes.is_extra:
                    self._shell.end_with_job(f"{channel.peer} has ended with it")
            case _:
                raise bad_header(first, channel.peer)

    def _end_if_alone(self) -> None:
        """Ends an extra process that has reached no other process for `JOB_OVER_AFTER_S`.

        The job may have ended while this process was disconnected or stopped.
        """
        if self.processes.others_answer() or not all(copy.is_spare for copy in self.copies):
            self._alone_since = None
        elif self._alone_since is None:
            self._alone_since = time.monotonic()
        elif time.monotonic() - self._alone_since >= JOB_OVER_AFTER_S:
            self._shell.end_with_job(
                f"no other ps has been reachable for {JOB_OVER_AFTER_S:g} s, and this one has no state"
            )

    def _copy_of_task(self, index: int) -> GraphCopy | None:
        return next((copy for copy in self.copies if copy.served.index == index), None)

    def _copy_of_name(self, name: str) -> GraphCopy | None:
        return next((copy for copy in self.copies if copy.name == name), None)

    def has_served(self, generation: int) -> bool:
        return any(copy.runtime.has_served(generation) for copy in self.copies)

    def refusal(self, task: Claim) -> str:
        if not task.task:
            return ""
        name = str(TaskName.parse(task.task))
        claim = dataclasses.replace(task, task=TaskName.parse(task.task).device_prefix)
        reasons = (
            copy.runtime.refusal(
                claim,
                address=self._around.address(name),
                connected=lambda generation: self._around.connected(name, generation),
            )
            for copy in self.copies
            if copy.serves
        )
        return next((reason for reason in reasons if reason), "")

    def handle_loss(self, task: str, generation: int) -> None:
        for copy in self.copies:
            # Only a replica that has served this master handles the loss. A backup gets the resulting change of state
            # from the primary, and a master that was not served here has only asked which replica is the primary.
            if (
                generation
                and copy.has_served_master(generation)
                and copy.runtime.lose(generation, "its last connection has ended")
            ):
                _log.warning("%s has lost %s, whose sessions are still open", copy.served, task)

    def is_open(self, session: str) -> bool:
        return any(copy.runtime.has_session(session) for copy in self.copies)

    def job_over(self, reason: str) -> None:
        for copy in self.copies:
            copy.job_over()
            copy.runtime.resources.job_over(reason)

    def before_end(self, *, over: bool) -> None:
        """Hands off this process's replicas to other processes, if the job continues and there are other processes."""
        if not over:
            # Announce the drain before the handoff, so that no other process chooses this one for a replica meanwhile.
            self.processes.set_state(LEAVING)
            self.processes.send_now()
            shut_down_after_transfer(str(self._shell.me), self.copies, self._last_replicas, self._patience_s)
        # Announce the end explicitly. Otherwise other processes would notice it only by missing heartbeats, and would
        # wait for this process to return.
        self.processes.set_state(GONE)
        self.processes.send_now(over=over or self._shell.is_over)

    def _last_replicas(self) -> list[GraphCopy]:
        """Returns the replicas that still have to be handed off; none if the job is over."""
        return [] if self._shell.is_over else [copy for copy in self.copies if not copy.is_free]

    def _patience_s(self) -> float:
        """Returns the limit for the handoff, in seconds.

        It is `LEAVE_TIMEOUT_S` if another process is reachable and does not drain; `LOST_TIMEOUT_S` if workers need the
        state and a lost process may return to receive it; else 0.
        """
        if self.processes.others_stay():
            return LEAVE_TIMEOUT_S
        return LOST_TIMEOUT_S if self.processes.others_stay(lost=self._shell.is_needed) else 0.0

    def close(self) -> None:
        self._checks.stop()
        self.processes.close()
        for copy in self.copies:
            copy.close()

    def details(self) -> Mapping[str, bytes]:
        return {
            STEPS_DETAIL: str(sum(copy.steps for copy in self.copies)).encode(),
            SESSIONS_DETAIL: str(sum(copy.runtime.session_count() for copy in self.copies if copy.serves)).encode(),
        }

    def add_to(self, snapshot: Snapshot) -> Snapshot:
        for copy in self.copies:
            if copy.serves:
                snapshot = add_state(snapshot, copy.runtime)
        groups = (copy.group() for copy in self.copies if not copy.is_spare)
        return dataclasses.replace(snapshot, groups=(*snapshot.groups, *groups))
