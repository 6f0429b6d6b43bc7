"""The processes of a mirrored job find each other: a channel between every two of them, and lifelines."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from headwater.cluster.addresses import Address, parse_address
from headwater.cluster.config import EVALUATOR, TRAINING, ClusterConfigError, TaskConfig
from headwater.cluster.names import TaskName
from headwater.cluster.spec import ClusterSpec
from headwater.cluster.task.kinds import OPEN_COLLECTIVE
from headwater.cluster.task.service import Service
from headwater.cluster.task.shell import TaskShell
from headwater.cluster.telemetry.snapshot import GroupProgress, Snapshot, Wait
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.cluster.transport.handlers import DeviceInfo
from headwater.cluster.transport.handshake import Identity
from headwater.cluster.transport.links import Wiring
from headwater.cluster.transport.listener import listens_here
from headwater.cluster.transport.security import Security
from headwater.cluster.transport.waiting import Patience, Waiter
from headwater.errors import DeadlineExceededError, UnavailableError
from headwater.keras.collectives.collective import Collective
from headwater.keras.collectives.pulse import Pulse, heartbeat_s

_log = logging.getLogger("headwater")
#: Between two looks whether processes that have met are still there, in seconds.
_LOOK_S = 1.0


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
        for job in TRAINING
        for task, address in config.cluster.tasks()
        if task.job == job
    ]
    if not found:
        raise ClusterConfigError(
            "TF_CONFIG cluster", f"has no task that can hold a replica: no {' or '.join(TRAINING)}"
        )
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
      devices: gives the devices of this process.
      security: who is let in.
      patience: how long to wait for the others.
      silence_s: a process that gives no sign of life for so long is lost, in seconds; ``HEADWATER_HEARTBEAT_S`` if
        None.

    Attributes:
      shell: this process as a task.

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
        devices: Callable[[], Sequence[DeviceInfo]] = tuple,
        security: Security | None = None,
        patience: Patience | None = None,
        silence_s: float | None = None,
    ) -> None:
        silence_s = heartbeat_s(os.environ) if silence_s is None else silence_s
        self.members = members
        self.rank = rank
        self._collective: Collective | None = None
        self._closed = False
        self._arrived = threading.Condition()
        self._channels: dict[int, Channel] = {}
        # Those on which this process has said, and heard, that all were met.
        self._told: set[Channel] = set()
        self._ready: set[Channel] = set()

        def wiring(me: Identity) -> Wiring:
            return Wiring(me=me, security=security or Security.from_environment(), waiter=Waiter(patience))

        cluster: dict[str, dict[int, str]] = {}
        for member in members:
            cluster.setdefault(member.task.job, {})[member.task.index] = str(member.address)
        self.shell: TaskShell = TaskShell(
            ClusterSpec(cluster), members[rank].task, devices=devices, elastic=False, wiring=wiring
        )
        self.shell.add_service(_GroupService(self))
        self._pulse = Pulse(silence_s, self._silent, me=self.shell.identity, security=self.shell.wiring.security)
        self.shell.start()
        try:
            self._meet()
        except BaseException:
            self.close()
            raise

    @property
    def collective(self) -> Collective:
        """What all processes do together."""
        assert self._collective is not None
        return self._collective

    def _meet(self) -> None:
        """Returns once all processes have a channel to each other. One that goes before that is met anew."""
        began = reported = time.monotonic()
        patience = self.shell.wiring.waiter.patience
        while True:
            for rank in range(self.rank):
                if rank not in self._channels:
                    # One deadline for all: a process that gives up meanwhile must not begin it anew for the others.
                    left = patience.deadline_s - (time.monotonic() - began)
                    link = self.shell.link(self.members[rank].task)
                    channel = link.take_answered(Frame(OPEN_COLLECTIVE), max(0.0, left))
                    with self._arrived:
                        self._channels[rank] = channel
            missing = self._missing()
            if not missing and self._have_all_met():
                break
            waited = time.monotonic() - began
            what = f"{', '.join(missing)} to connect" if missing else "the others to meet each other"
            if waited >= patience.deadline_s:
                raise DeadlineExceededError(
                    None, None, f"{self.shell.me} gave up waiting for {what}: are they running?"
                )
            if began + waited - reported >= patience.report_s:
                reported = began + waited
                _log.warning("%s waits for %s; gives up in %d s", self.shell.me, what, patience.deadline_s - waited)
        for rank, member in enumerate(self.members):
            if rank != self.rank and not listens_here(member.address):
                self._pulse.listen(rank, str(member.task), member.address)

    def _missing(self) -> list[str]:
        """The processes that this one has no channel to, after it has waited for them for a moment."""
        with self._arrived:
            self._arrived.wait_for(lambda: len(self._channels) == len(self.members) - 1, _LOOK_S)
            for rank, channel in list(self._channels.items()):
                if channel not in self._ready and channel.peer_gone():
                    self._channels.pop(rank).close()
            return [
                str(member)
                for rank, member in enumerate(self.members)
                if rank != self.rank and rank not in self._channels
            ]

    def _have_all_met(self) -> bool:
        """Tells each other process that this one has met all, and waits for a moment to hear the same of it."""
        channels = list(self._channels.values())
        try:
            for channel in [channel for channel in channels if channel not in self._told]:
                channel.send(Frame(OPEN_COLLECTIVE))
                self._told.add(channel)
            for channel in [channel for channel in channels if channel not in self._ready]:
                channel.recv(_LOOK_S)
                self._ready.add(channel)
        except (DeadlineExceededError, UnavailableError):
            return False
        with self._arrived:
            if not self._ready.issuperset(self._channels.values()):  # one was started anew meanwhile
                return False
            names = [str(member) for member in self.members]
            self._collective = Collective(self.rank, names, dict(self._channels))
            return True

    def welcome(self, channel: Channel) -> None:
        """Answers another process that opened a channel, and keeps that until the group is closed.

        A process that was started anew while its former life is still part of this group is sent away until this
        process, which has lost that life, starts again, too.
        """
        task = channel.peer.partition(" ")[0]
        ranks = [rank for rank, member in enumerate(self.members) if str(member.task) == task and rank > self.rank]
        if not ranks:
            _log.warning("%s sent %s away, which is no process of higher rank in this job", self.shell.me, channel.peer)
        elif self._add(ranks[0], channel):
            with self._arrived:
                self._arrived.wait_for(lambda: self._closed or self._channels.get(ranks[0]) is not channel)

    def add_to(self, snapshot: Snapshot) -> Snapshot:
        """``snapshot`` with what this process does together with the others."""
        collective = self._collective
        if collective is None:
            return snapshot
        waits = () if (wait := collective.waits_for) is None else (Wait(what=wait[0], seconds=round(wait[1], 3)),)
        group = GroupProgress(
            name="mirrored",
            updates=collective.calls,
            workers=tuple(str(member.task) for member in self.members),
            waiting="; ".join(f"{self.shell.me} waits for {wait.what}" for wait in waits),
            consistency="synchronous",
        )
        return replace(
            snapshot,
            steps=snapshot.steps + collective.calls,
            waits=(*snapshot.waits, *waits),
            groups=(*snapshot.groups, group),
        )

    def _add(self, rank: int, channel: Channel) -> bool:
        """Takes and answers a channel of a process, and ends an earlier one; once all have met, it only ends that.

        Returns:
          Whether it was taken.
        """
        with self._arrived:
            earlier, meeting = self._channels.get(rank), self._collective is None
            if meeting:
                channel.send(Frame(OPEN_COLLECTIVE))  # before this process goes on, and sends more
                self._channels[rank] = channel
                self._arrived.notify_all()
        if earlier is not None:
            earlier.break_off("it was started anew")
        return meeting

    def _silent(self, rank: int, reason: str) -> None:
        with self._arrived:
            channel = self._channels.get(rank)
        if channel is not None:
            channel.break_off(reason)

    def close(self) -> None:
        """Leaves the job: the others get an error that names this process, if they still want something of it."""
        with self._arrived:
            self._closed = True
            self._arrived.notify_all()
        self._pulse.close()
        for channel in list(self._channels.values()):
            channel.close()
        self.shell.stop()


class _GroupService(Service):
    """Collectives of a group, as its task's shell knows them."""

    kinds: ClassVar[Collection[int]] = (OPEN_COLLECTIVE,)

    def __init__(self, group: Group) -> None:
        self._group = group

    def serve(self, channel: Channel, first: Frame) -> None:
        self._group.welcome(channel)

    def add_to(self, snapshot: Snapshot) -> Snapshot:
        return self._group.add_to(snapshot)
