"""The processes of a mirrored job find each other: a channel between every two of them, and lifelines."""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import dataclass

from headwater.cluster.addresses import Address, parse_address
from headwater.cluster.config import EVALUATOR, ClusterConfigError, TaskConfig
from headwater.cluster.names import TaskName
from headwater.collectives.collective import Collective
from headwater.collectives.pulse import Pulse, heartbeat_s
from headwater.errors import DeadlineExceededError, OpError
from headwater.task.kinds import OPEN_COLLECTIVE
from headwater.transport.channel import Channel
from headwater.transport.connect import connect
from headwater.transport.frames import Frame
from headwater.transport.handshake import Identity, new_generation
from headwater.transport.listener import Listener, listens_here
from headwater.transport.options import TransportOptions
from headwater.transport.security import Security
from headwater.transport.waiting import Patience, Waiter
from headwater.transport.workplace import Workplace

_log = logging.getLogger("headwater")
#: Jobs whose tasks hold replicas, in the order of their ranks.
_JOBS = ("chief", "master", "worker")
#: How long whoever opens a channel may take to say what it is for, in seconds.
_HELLO_S = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """One process of the job.

    Attributes:
      task: its name.
      address: where it listens.
    """

    task: TaskName
    address: Address

    def __str__(self) -> str:
        return f"{self.task.job} {self.task.index} ({self.address})"


def members_of(config: TaskConfig | None) -> tuple[list[Member], int]:
    """All processes of the job by rank, and which of them this is; none for a job of this process alone.

    Raises:
      ClusterConfigError: this task can be none of them.
    """
    if config is None or not config.cluster or (config.task is not None and config.task.job == EVALUATOR):
        return [], 0
    found = [
        Member(task=task, address=parse_address(address))
        for job in _JOBS
        for task, address in config.cluster.tasks()
        if task.job == job
    ]
    if not found:
        raise ClusterConfigError("TF_CONFIG cluster", f"has no task that can hold a replica: no {' or '.join(_JOBS)}")
    if config.task is None:
        raise ClusterConfigError("TF_CONFIG task", "is missing: this process cannot know which of the cluster it is")
    ranks = [rank for rank, member in enumerate(found) if member.task == config.task]
    if not ranks:
        raise ClusterConfigError("TF_CONFIG task.type", f"is {config.task.job!r}, which holds no replica")
    return (found, ranks[0]) if len(found) > 1 else ([], 0)


class Group:
    """This process and all others of the job, once each has a channel to each other.

    Each dials those of lower rank, and is dialled by the others.

    Args:
      members: all processes, by rank.
      rank: which of them this is.
      security: who is let in.
      patience: how long to wait for the others.
      silence_s: who gives no sign of life for so long is lost, in seconds; ``HEADWATER_HEARTBEAT_S`` if None.

    Raises:
      UnavailableError, AlreadyExistsError, PermissionDeniedError: the others cannot be reached, or this task's address
        cannot be had; the message says what to look at.
      LostPeerError: a process was there and went.
    """

    def __init__(
        self,
        members: list[Member],
        rank: int,
        *,
        security: Security | None = None,
        patience: Patience | None = None,
        silence_s: float | None = None,
    ) -> None:
        silence_s = heartbeat_s(os.environ) if silence_s is None else silence_s
        self.members = members
        self.rank = rank
        self._me = Identity(task=str(members[rank].task), generation=new_generation())
        self._security = security or Security.from_environment()
        self._waiter = Waiter(patience)
        self._options = TransportOptions()
        self._workplace = Workplace()
        self._closed = threading.Event()
        self._arrived = threading.Condition()
        self._channels: dict[int, Channel] = {}
        self._pulse = Pulse(silence_s, self._silent, me=self._me, security=self._security)
        try:
            self._listener = Listener(
                members[rank].address,
                me=self._me,
                security=self._security,
                on_channel=self._welcome,
                options=self._options,
                workplace=self._workplace,
            )
        except OpError:
            self._workplace.close()
            raise
        self._listener.start()
        try:
            self._meet()
        except BaseException:
            self.close()
            raise

    def _meet(self) -> None:
        for rank in range(self.rank):
            channel = self._dial(self.members[rank])
            channel.send(Frame(OPEN_COLLECTIVE))
            self._add(rank, channel)
        self._wait_for_all()
        for rank, member in enumerate(self.members):
            if rank != self.rank and not listens_here(member.address):
                self._pulse.listen(rank, str(member.task), member.address)
        names = [str(member) for member in self.members]
        self.collective: Collective = Collective(self.rank, names, self._channels)
        self.collective.barrier(f"start of a job of {len(names)} processes")

    def _dial(self, member: Member) -> Channel:
        wanted = Identity(task=str(member.task), generation=0)

        def attempt() -> Channel:
            return connect(member.address, me=self._me, wanted=wanted, security=self._security, options=self._options)

        return self._waiter.connect(attempt, me=self._me.task, peer=str(member.task), address=member.address)

    def _welcome(self, channel: Channel) -> None:
        """Keeps a channel that another process opened, until the group is closed."""
        kind = channel.recv(_HELLO_S).kind
        task = channel.peer.partition(" ")[0]
        for rank, member in enumerate(self.members):
            if str(member.task) == task and rank > self.rank and kind == OPEN_COLLECTIVE:
                self._add(rank, channel)
                self._closed.wait()
                return
        _log.warning("%s sent %s away, which is no process of higher rank in this job", self._me.task, channel.peer)

    def _add(self, rank: int, channel: Channel) -> None:
        with self._arrived:
            earlier = self._channels.get(rank)
            if earlier is not None and not earlier.peer_gone():
                channel.close()
                return
            self._channels[rank] = channel
            self._arrived.notify_all()

    def _wait_for_all(self) -> None:
        patience = self._waiter.patience
        left = patience.deadline_s
        with self._arrived:
            while len(self._channels) < len(self.members) - 1:
                pause = min(patience.report_s, left)
                if self._arrived.wait(pause):
                    continue
                left -= pause
                missing = [
                    str(member)
                    for rank, member in enumerate(self.members)
                    if rank != self.rank and rank not in self._channels
                ]
                if left <= 0:
                    raise DeadlineExceededError(
                        None, None, f"{self._me.task} gave up waiting for {', '.join(missing)}: are they running?"
                    )
                _log.warning("%s waits for %s to connect; gives up in %d s", self._me.task, ", ".join(missing), left)

    def _silent(self, rank: int, reason: str) -> None:
        with self._arrived:
            channel = self._channels.get(rank)
        if channel is not None:
            channel.break_off(reason)

    def close(self) -> None:
        """Leaves the job: the others get an error that names this process, if they still want something of it."""
        self._closed.set()
        self._waiter.cancel()
        self._pulse.close()
        for channel in list(self._channels.values()):
            channel.close()
        self._listener.stop()
        self._workplace.close()
