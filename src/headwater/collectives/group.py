"""The processes of a mirrored job find each other: a channel between every two of them, and lifelines."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from headwater.cluster.addresses import Address, parse_address
from headwater.cluster.config import EVALUATOR, ClusterConfigError, TaskConfig
from headwater.cluster.names import TaskName
from headwater.cluster.spec import ClusterSpec
from headwater.collectives.collective import Collective
from headwater.collectives.pulse import Pulse, heartbeat_s
from headwater.errors import DeadlineExceededError
from headwater.task.kinds import OPEN_COLLECTIVE
from headwater.task.service import Service
from headwater.task.shell import TaskShell
from headwater.telemetry.snapshot import Group as GroupProgress
from headwater.telemetry.snapshot import Snapshot, Wait
from headwater.transport.channel import Channel
from headwater.transport.frames import Frame
from headwater.transport.handlers import DeviceInfo
from headwater.transport.handshake import Identity
from headwater.transport.links import Wiring
from headwater.transport.listener import listens_here
from headwater.transport.security import Security
from headwater.transport.waiting import Patience, Waiter

_log = logging.getLogger("headwater")
#: Jobs whose tasks hold replicas, in the order of their ranks.
_JOBS = ("chief", "master", "worker")


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
        self._closed = threading.Event()
        self._arrived = threading.Condition()
        self._channels: dict[int, Channel] = {}

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
        for rank in range(self.rank):
            channel = self.shell.link(self.members[rank].task).take()
            channel.send(Frame(OPEN_COLLECTIVE))
            self._add(rank, channel)
        self._wait_for_all()
        for rank, member in enumerate(self.members):
            if rank != self.rank and not listens_here(member.address):
                self._pulse.listen(rank, str(member.task), member.address)
        names = [str(member) for member in self.members]
        self._collective = Collective(self.rank, names, self._channels)
        self._collective.barrier(f"start of a job of {len(names)} processes")

    def welcome(self, channel: Channel) -> None:
        """Keeps a channel that another process opened, until the group is closed."""
        task = channel.peer.partition(" ")[0]
        for rank, member in enumerate(self.members):
            if str(member.task) == task and rank > self.rank:
                self._add(rank, channel)
                self._closed.wait()
                return
        _log.warning("%s sent %s away, which is no process of higher rank in this job", self.shell.me, channel.peer)

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

    def _add(self, rank: int, channel: Channel) -> None:
        with self._arrived:
            earlier = self._channels.get(rank)
            if earlier is not None and not earlier.peer_gone():
                channel.close()
                return
            self._channels[rank] = channel
            self._arrived.notify_all()

    def _wait_for_all(self) -> None:
        patience = self.shell.wiring.waiter.patience
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
                        None, None, f"{self.shell.me} gave up waiting for {', '.join(missing)}: are they running?"
                    )
                _log.warning("%s waits for %s to connect; gives up in %d s", self.shell.me, ", ".join(missing), left)

    def _silent(self, rank: int, reason: str) -> None:
        with self._arrived:
            channel = self._channels.get(rank)
        if channel is not None:
            channel.break_off(reason)

    def close(self) -> None:
        """Leaves the job: the others get an error that names this process, if they still want something of it."""
        self._closed.set()
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
