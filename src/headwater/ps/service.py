"""The service of parameters: the sets that a ``ps`` serves, and the clients of a worker."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Final

from headwater.cluster.claims import Claim
from headwater.cluster.task import kinds
from headwater.cluster.task.answers import bad_header, error_frame
from headwater.cluster.task.links import WaitingLink
from headwater.cluster.task.service import Service
from headwater.cluster.task.waiting import CHECK_INTERVAL_S, Reminder
from headwater.cluster.telemetry.snapshot import MAX_VARIABLES, GroupProgress, Snapshot, Wait
from headwater.cluster.telemetry.watchdog import ProgressWatchdog
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.errors import FailedPreconditionError, OpError
from headwater.ps.client import ParameterClient
from headwater.ps.hosted import Hosted
from headwater.ps.replicas.holder import CopyHolder
from headwater.ps.state_deposits import StateDeposit
from headwater.ps.state_saver import ParameterSaver
from headwater.state.copy import Replica
from headwater.state.leaving import LOST_TIMEOUT_S, shut_down_after_transfer

ENDED_DETAIL: Final = "a worker has ended"
"""Key of the status detail of a ``ps`` that knows that the program of a worker has ended without an error."""


class ParameterService(Service):
    """All sets of parameters of a task.

    Args:
      task: this task's name.
      watchdog: receives the progress of workers' steps.
      is_needed: see `headwater.cluster.task.shell.TaskShell.is_needed`.
    """

    kinds: ClassVar[Collection[int]] = (kinds.HELLO, kinds.BACKUP, kinds.ROUND_SUM, kinds.WHERE, kinds.MOVE)

    def __init__(self, task: str, watchdog: ProgressWatchdog, *, is_needed: Callable[[], bool]) -> None:
        self._task = task
        self._watchdog = watchdog
        self._is_needed = is_needed
        self._hosted: dict[str, Hosted] = {}
        self._offered: dict[str, Callable[[], object]] = {}
        self._savers: dict[str, ParameterSaver] = {}
        self._state_deposits: list[StateDeposit] = []
        self._used: list[ParameterClient] = []
        self._served: set[int] = set()
        self._has_ended = False
        self._complete = False
        self._make: Callable[[str, bytes], object] | None = None
        self._making = threading.Lock()
        self._closed = threading.Event()
        self._changed = threading.Condition()

    def host(self, name: str, parameters: Hosted, saver: ParameterSaver | StateDeposit | None = None) -> None:
        """Serves the set ``name`` from now on, after ``saver`` has restored its state."""
        if saver is not None:
            saver.restore()
        with self._changed:
            self._hosted[name] = parameters
            has_ended = self._has_ended
            if isinstance(saver, StateDeposit):
                self._state_deposits.append(saver)
            elif saver is not None:
                self._savers[name] = saver
            self._changed.notify_all()
        # The end may have been reported before this set was hosted.
        if has_ended:
            parameters.record_worker_end()

    def refuse_other_sets(self, make: Callable[[str, bytes], object] | None = None) -> None:
        """Refuses workers of other sets from now on, because the program of this task will create no further sets.

        Args:
          make: hosts a set, from its name and from a worker's description, which then is not refused.
        """
        with self._changed:
            self._complete, self._make = True, make
            self._changed.notify_all()

    def offer(self, name: str, make: Callable[[], object]) -> None:
        """Registers a function that hosts the parts of a set on demand.

        Args:
          name: the name of the set.
          make: called when another task asks for a part that this task does not host, and repeatedly until the part
            is hosted. It does nothing while the set cannot be hosted yet.
        """
        self._offered[name] = make

    def use(self, client: ParameterClient) -> ParameterClient:
        """Includes the activity of ``client`` in snapshots."""
        self._used.append(client)
        return client

    def serve(self, channel: Channel, first: Frame) -> None:
        """Serves a channel that begins with a worker's HELLO, or with another task's request about replicas or shards.

        Waits until the program of this task hosts the requested set; answers with an error if it never will.
        """
        match first.header:
            case (str(name), *_):
                pass
            case _:
                raise bad_header(first, channel.peer)
        # The name may be of a part, ``SET/NUMBER``.
        offered = self._offered.get(name.rpartition("/")[0] or name)
        reminder = Reminder()
        while (parameters := self._host_of(name)) is None:
            if offered is not None:
                offered()
            with self._changed:
                self._changed.wait_for(lambda: self._host_of(name) is not None, CHECK_INTERVAL_S)
            if channel.peer_gone():
                return
            if first.kind == kinds.HELLO and self._complete and offered is None:
                try:
                    self._host_described(name, first.header[-1])
                except Exception as error:  # noqa: BLE001  a worker without an answer would wait forever
                    channel.send(error_frame(0, error, self._task))
                    return
            reminder.send_if_due(channel, f"the program of {self._task} to create {name!r}")
        if first.kind == kinds.HELLO:
            with self._changed:
                # Only HELLO counts: other tasks open channels, too, but only workers are served.
                self._served.add(channel.peer_generation)
            parameters.serve(channel, first, self._watchdog)
        else:
            parameters.serve_peer(channel, first)

    def _host_described(self, name: str, description: object) -> None:
        """Hosts a set that this task's program does not create, from a worker's description.

        Raises:
          FailedPreconditionError: the worker has sent no description, or this task cannot use one.
        """
        with self._making:
            if self._host_of(name) is not None:
                return
            if self._make is None or not isinstance(description, bytes):
                raise FailedPreconditionError(
                    f"{self._task} serves {', '.join(map(repr, self._hosted))} until the job is over, and its program "
                    f"cannot create {name!r} any more: train one set in a job, or train the same one again"
                )
            self._make(name, description)

    def _host_of(self, name: str) -> Hosted | None:
        """Returns the host of a set, or of its part ``SET/NUMBER``."""
        return self._hosted.get(name) or self._hosted.get(name.rpartition("/")[0])

    def has_served(self, generation: int) -> bool:
        return generation in self._served

    def refusal(self, task: Claim) -> str:
        return next((reason for one in list(self._hosted.values()) if (reason := one.refusal(task))), "")

    def is_open(self, session: str) -> bool:
        return session in self._hosted

    def job_over(self, reason: str) -> None:
        for parameters in self._hosted_parameters():
            parameters.job_over()

    def before_end(self, *, over: bool) -> None:
        if over:
            return
        hosted = self._hosted_parameters()
        copies = [one for one in hosted if isinstance(one, Replica)]
        # `hand_off` is for replicas that move, and `shut_down_after_transfer` for replicas that do not.
        for one in hosted:
            if isinstance(one, CopyHolder):
                one.hand_off(self._is_needed)
        shut_down_after_transfer(
            self._task,
            copies,
            lambda: [copy for copy in copies if copy.would_lose_state],
            lambda: LOST_TIMEOUT_S if self._is_needed() else 0.0,
        )
        for one in self._state_deposits:
            one.deposit()

    def handle_program_end(self, task: str) -> None:
        self.record_worker_end()

    def record_worker_end(self) -> None:
        """Records that the program of a worker has ended without an error, as the worker or another ``ps`` reports."""
        with self._changed:
            self._has_ended = True
        for parameters in self._hosted_parameters():
            parameters.record_worker_end()

    def fetch_ended_workers(self, others: Sequence[WaitingLink]) -> None:
        """Asks each of the other ``ps`` once, as soon as it can be reached, whether the program of a worker has ended.

        This task may have been restarted, and would otherwise wait for that worker, which will not connect.
        """
        while (others := [link for link in others if not self._fetch_ended_from(link)]) and not self._has_ended:
            if self._closed.wait(CHECK_INTERVAL_S):
                return

    def _fetch_ended_from(self, other: WaitingLink) -> bool:
        """Returns whether another ``ps`` has answered. If that ``ps`` reports an ended worker, records it."""
        try:
            details = other.reach(0.0).details
        except OpError:
            return False
        if ENDED_DETAIL in details:
            self.record_worker_end()
        return True

    def details(self) -> Mapping[str, bytes]:
        return {ENDED_DETAIL: b""} if self._has_ended else {}

    def _hosted_parameters(self) -> list[Hosted]:
        with self._changed:
            return list(self._hosted.values())

    def close(self) -> None:
        self._closed.set()
        for one in (*list(self._hosted.values()), *list(self._savers.values())):
            one.close()

    def _group(self, name: str, parameters: Hosted) -> GroupProgress:
        group, saver = parameters.group(), self._savers.get(name)
        if saver is None:
            return group
        back = parameters.recovery_report
        lost = back.lost if back is not None else 0
        return replace(group, saved=str(saver), saved_bytes=saver.written_bytes, lost_updates=lost)

    def add_to(self, snapshot: Snapshot) -> Snapshot:
        hosted = list(self._hosted.values())
        used = list(self._used)
        # Largest first, as a snapshot lists at most `MAX_VARIABLES` variables.
        sizes = sorted(
            itertools.chain.from_iterable(parameters.sizes() for parameters in hosted),
            key=lambda size: (-size.nbytes, size.name),
        )
        steps: dict[str, int] = {}
        for name, parameters in list(self._hosted.items()):
            # A push is counted by every part of a set, but is only one step.
            of = name.rpartition("/")[0] or name
            steps[of] = max(steps.get(of, 0), parameters.steps)
        counted = [parameters.version for parameters in hosted if parameters.counts_steps]
        waits = [wait for party in (*hosted, *(client.conversation for client in used)) for wait in party.waits()]
        return replace(
            snapshot,
            steps=snapshot.steps + sum(client.steps for client in used) + sum(steps.values()),
            global_step=max(counted, default=snapshot.global_step),
            variables=(*snapshot.variables, *sizes)[:MAX_VARIABLES],
            variables_count=snapshot.variables_count + len(sizes),
            variables_bytes=snapshot.variables_bytes + sum(size.nbytes for size in sizes),
            waits=(*snapshot.waits, *(Wait(what=what, seconds=round(snapshot.at - since, 3)) for what, since in waits)),
            groups=(*snapshot.groups, *(self._group(name, one) for name, one in list(self._hosted.items()))),
        )
