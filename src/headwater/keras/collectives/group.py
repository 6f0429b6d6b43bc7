"""Rendezvous of the processes of a mirrored job: a channel between each pair of them, and lifelines."""

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
from headwater.cluster.transport.handshake import PeerIdentity
from headwater.cluster.transport.links import LinkSettings
from headwater.cluster.transport.listener import listens_here
from headwater.cluster.transport.security import Security
from headwater.cluster.transport.waiting import Patience, Waiter
from headwater.errors import DeadlineExceededError, UnavailableError
from headwater.keras.collectives.collective import Collective
from headwater.keras.collectives.pulse import HeartbeatReceiver, heartbeat_s

_log = logging.getLogger("headwater")
#: During the rendezvous, seconds between two checks for lost connections.
_CHECK_INTERVAL_S = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupMember:
    """One process of the job.

    Attributes:
      task: its task name.
      address: the address on which the process listens.
    """

    task: TaskName
    address: Address

    def __str__(self) -> str:
        return f"{self.task.job} {self.task.index} ({self.address})"


def members_of(config: TaskConfig | None) -> tuple[list[GroupMember], int]:
    """Returns all processes of the job by rank, and this process's rank; no members if the job has one process.

    Raises:
      ClusterConfigError: this task cannot be a member.
    """
    if config is None or not config.cluster or (config.task is not None and config.task.job == EVALUATOR):
        return [], 0
    members = [
        GroupMember(task=task, address=parse_address(address))
        for job in TRAINING
        for task, address in config.cluster.tasks()
        if task.job == job
    ]
    if not members:
        raise ClusterConfigError(
            "TF_CONFIG cluster", f"has no task that can hold a replica: no {' or '.join(TRAINING)}"
        )
    if config.task is None:
        raise ClusterConfigError(
            "TF_CONFIG task", "is missing: it must name the task of the cluster that this process is"
        )
    ranks = [rank for rank, member in enumerate(members) if member.task == config.task]
    if not ranks:
        raise ClusterConfigError("TF_CONFIG task.type", f"is {config.task.job!r}, which holds no replica")
    return (members, ranks[0]) if len(members) > 1 else ([], 0)


class Group:
    """The processes of a job, fully connected: each pair shares a channel.

    A process connects to all processes of lower rank, and accepts connections of higher ranks. The constructor returns
    when all processes have connected.

    Args:
      members: all processes, by rank.
      rank: the rank of this process.
      devices: returns the devices of this process.
      security: authenticates connections.
      patience: how long to wait for the other processes.
      silence_s: time without a heartbeat after which a process is lost, in seconds; ``HEADWATER_HEARTBEAT_S`` if None.

    Attributes:
      shell: this process as a task.

    Raises:
      UnavailableError, AlreadyExistsError, PermissionDeniedError: the other processes cannot be reached, or this task
        cannot listen on its address; the message says where to look.
      LostPeerError: a connected process was lost.
    """

    def __init__(
        self,
        members: list[GroupMember],
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
        # Channels on which this process has announced that it is connected to all processes, and channels on which the
        # peer has announced the same.
        self._notified: set[Channel] = set()
        self._ready: set[Channel] = set()

        def link_settings(me: PeerIdentity) -> LinkSettings:
            return LinkSettings(me=me, security=security or Security.from_environment(), waiter=Waiter(patience))

        cluster: dict[str, dict[int, str]] = {}
        for member in members:
            cluster.setdefault(member.task.job, {})[member.task.index] = str(member.address)
        self.shell: TaskShell = TaskShell(
            ClusterSpec(cluster), members[rank].task, devices=devices, elastic=False, link_settings=link_settings
        )
        self.shell.add_service(_GroupService(self))
        self._pulse = HeartbeatReceiver(
            silence_s, self._handle_silence, me=self.shell.identity, security=self.shell.link_settings.security
        )
        self.shell.start()
        try:
            self._connect_all()
        except BaseException:
            self.close()
            raise

    @property
    def collective(self) -> Collective:
        """The group's collective operations."""
        assert self._collective is not None
        return self._collective

    def _connect_all(self) -> None:
        """Waits until all processes are connected to each other; a process lost before that may reconnect."""
        began = reported = time.monotonic()
        patience = self.shell.link_settings.waiter.patience
        while True:
            for rank in range(self.rank):
                if rank not in self._channels:
                    # The deadline is common to all peers, so that a peer that gives up and restarts does not extend the
                    # wait.
                    remaining_s = patience.deadline_s - (time.monotonic() - began)
                    link = self.shell.link(self.members[rank].task)
                    channel = link.open_answered_channel(Frame(OPEN_COLLECTIVE), max(0.0, remaining_s))
                    with self._arrived:
                        self._channels[rank] = channel
            missing = self._wait_for_missing()
            if not missing and self._try_to_form():
                break
            waited = time.monotonic() - began
            what = f"{', '.join(missing)} to connect" if missing else "the other processes to connect to each other"
            if waited >= patience.deadline_s:
                raise DeadlineExceededError(f"{self.shell.me} gave up waiting for {what}: are they running?")
            if began + waited - reported >= patience.report_s:
                reported = began + waited
                _log.warning("%s waits for %s; gives up in %d s", self.shell.me, what, patience.deadline_s - waited)
        for rank, member in enumerate(self.members):
            if rank != self.rank and not listens_here(member.address):
                self._pulse.listen(rank, str(member.task), member.address)

    def _wait_for_missing(self) -> list[str]:
        """Waits for connections for up to a second and returns the processes that are not connected yet."""
        with self._arrived:
            self._arrived.wait_for(lambda: len(self._channels) == len(self.members) - 1, _CHECK_INTERVAL_S)
            for rank, channel in list(self._channels.items()):
                if channel not in self._ready and channel.peer_gone():
                    self._channels.pop(rank).close()
            return [
                str(member)
                for rank, member in enumerate(self.members)
                if rank != self.rank and rank not in self._channels
            ]

    def _try_to_form(self) -> bool:
        """Announces to all peers that this process is connected to all others, and creates the collective if all peers
        have announced the same.

        Operations may start only then: a peer that still waits for connections replaces the channel of a process that
        reconnects, and messages on the old channel would be lost.

        Returns:
          Whether the collective was created.
        """
        channels = list(self._channels.values())
        try:
            for channel in [channel for channel in channels if channel not in self._notified]:
                channel.send(Frame(OPEN_COLLECTIVE))
                self._notified.add(channel)
            for channel in [channel for channel in channels if channel not in self._ready]:
                channel.recv(_CHECK_INTERVAL_S)
                self._ready.add(channel)
        except (DeadlineExceededError, UnavailableError):
            return False
        with self._arrived:
            # A peer may have restarted and reconnected in the meantime.
            if not self._ready.issuperset(self._channels.values()):
                return False
            names = [str(member) for member in self.members]
            self._collective = Collective(self.rank, names, dict(self._channels))
            return True

    def accept(self, channel: Channel) -> None:
        """Accepts a channel of a process of higher rank, and keeps it until it is replaced or the group is closed.

        After the rendezvous, a restarted process is rejected, because the group still includes its previous
        incarnation. Its connection breaks off the previous incarnation's channel. So this process notices the loss of
        the peer, ends, and forms a new group after its own restart.
        """
        task = channel.peer.partition(" ")[0]
        ranks = [rank for rank, member in enumerate(self.members) if str(member.task) == task and rank > self.rank]
        if not ranks:
            _log.warning(
                "%s rejected %s, which is not a process of higher rank in this job", self.shell.me, channel.peer
            )
        elif self._install(ranks[0], channel):
            with self._arrived:
                self._arrived.wait_for(lambda: self._closed or self._channels.get(ranks[0]) is not channel)

    def add_to(self, snapshot: Snapshot) -> Snapshot:
        """Returns ``snapshot`` with the progress of the collective operations."""
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

    def _install(self, rank: int, channel: Channel) -> bool:
        """Breaks off a peer's earlier channel; during the rendezvous, also installs and answers the new one.

        Returns:
          Whether the channel was installed.
        """
        with self._arrived:
            earlier, meeting = self._channels.get(rank), self._collective is None
            if meeting:
                channel.send(Frame(OPEN_COLLECTIVE))  # the answer must precede all other frames on this channel
                self._channels[rank] = channel
                self._arrived.notify_all()
        if earlier is not None:
            earlier.break_off("it was restarted")
        return meeting

    def _handle_silence(self, rank: int, reason: str) -> None:
        with self._arrived:
            channel = self._channels.get(rank)
        if channel is not None:
            channel.break_off(reason)

    def close(self) -> None:
        """Closes all channels; peers that still wait for this process get an error that names it."""
        with self._arrived:
            self._closed = True
            self._arrived.notify_all()
        self._pulse.close()
        for channel in list(self._channels.values()):
            channel.close()
        self.shell.stop()


class _GroupService(Service):
    """Serves incoming collective channels of a group in its task's shell."""

    kinds: ClassVar[Collection[int]] = (OPEN_COLLECTIVE,)

    def __init__(self, group: Group) -> None:
        self._group = group

    def serve(self, channel: Channel, first: Frame) -> None:
        self._group.accept(channel)

    def add_to(self, snapshot: Snapshot) -> Snapshot:
        return self._group.add_to(snapshot)
