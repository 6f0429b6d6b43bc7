"""Links from masters to the primary of a replicated task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headwater.cluster.addresses import Address
from headwater.cluster.claims import Claim
from headwater.cluster.names import TaskName
from headwater.cluster.pauses import pause
from headwater.cluster.task.answers import bad_header, raise_error
from headwater.cluster.task.kinds import COPY_PLAN, COPY_RELEASE, COPY_RESET, DONE, ERROR, OPEN_COPY
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.cluster.transport.links import Link, LinkSettings
from headwater.cluster.transport.problems import ConnectFailure, Problem
from headwater.errors import AbortedError, DeadlineExceededError, UnavailableError
from headwater.graph.master.peers import PeerStatus
from headwater.graph.server.replicas.copy import claim_words

#: How long to try one replica before the next one, in seconds.
_ATTEMPT_S = 0.5
#: Pause between two attempts, in seconds.
_PAUSE_S = 0.1
#: Number of rounds over all replicas before the wait is logged.
_ROUNDS_BEFORE_LOG = 4
#: How long a replica may take to answer whether it is the primary, in seconds.
_ANSWER_TIMEOUT_S = 5.0


def status_of_primary(
    channel: Channel, task: TaskName, merge_records: Callable[[Sequence[object]], None] = lambda _: None
) -> PeerStatus:
    """Asks the replica of ``task`` at the other end of a new channel for its status; closes the channel on errors.

    If the replica is not the primary, ``merge_records`` is called with the processes that it knows.

    Raises:
      UnavailableError: the replica is not the primary, or does not answer.
    """
    try:
        channel.send(Frame(OPEN_COPY, (task.index,)))
        answer = channel.recv(_ANSWER_TIMEOUT_S)
        match answer.kind, answer.header:
            case int(kind), (bool(serves), int(generation), int(steps), [*devices]) if kind == DONE:
                pass
            case _:
                raise bad_header(answer, channel.peer)
        if not serves:
            merge_records(devices)
            raise UnavailableError(f"{channel.peer} does not serve {task} now")
    except DeadlineExceededError as error:
        channel.close()
        raise UnavailableError(f"{channel.peer} gave no valid answer about whether it serves {task}") from error
    except BaseException:
        channel.close()
        raise
    channel.peer_generation = generation
    return PeerStatus(generation=generation, devices=tuple(map(str, devices)), steps=steps)


class CopyLink(Link):
    """A link to one replica of a task.

    Args:
      link_settings: see `LinkSettings`.
      host: the task of the process that has the replica.
      address: the address of that process.
      task: the replicated task.
      merge_records: see `status_of_primary`.

    Attributes:
      status: the replica's answer when the most recent channel was opened.
    """

    def __init__(
        self,
        link_settings: LinkSettings,
        host: TaskName,
        address: Address,
        task: TaskName,
        merge_records: Callable[[Sequence[Any]], None] = lambda _: None,
    ) -> None:
        super().__init__(link_settings, host, address)
        self._merge_records = merge_records
        self.status: PeerStatus | None = None
        self._task = task

    def _open(self) -> Channel:
        channel = super()._open()
        self.status = status_of_primary(channel, self._task, self._merge_records)
        return channel

    def is_lost(self) -> bool:
        """Returns whether the process was connected and is lost, as far as is known."""
        return self.control.is_lost()


class CopiedTaskLink:
    """A link to a replicated task, for this task's master: a `headwater.graph.master.peers.PeerLink`.

    Args:
      link_settings: see `LinkSettings`.
      task: the other task.
      address: the address of ``task`` in the cluster spec.
      links: returns the links to the processes that may hold replicas of ``task``, the initial primary first. Later
        calls may return more links.
      owner: the claim of this task.
    """

    def __init__(
        self,
        link_settings: LinkSettings,
        task: TaskName,
        address: Address,
        links: Callable[[], Sequence[CopyLink]],
        owner: Claim,
    ) -> None:
        self._link_settings = link_settings
        self._task = task
        self._address = address
        self._links = links
        self._owner = owner
        self._at = 0
        self._from: dict[Channel, CopyLink] = {}

    def wait(self, deadline_s: float | None = None) -> PeerStatus:
        """Waits until a replica is the primary, logging the wait repeatedly; UnavailableError after the deadline."""
        channel = self._reach(lambda: None, deadline_s)
        status = self._from[channel].status
        self.release_channel(channel, True)
        assert status is not None
        return status

    def open_channel(self) -> Channel:
        """Opens a channel to the last known primary; if that replica is no longer the primary, the next call tries
        another replica."""
        links = self._links()
        link = links[self._at]
        try:
            self._require_heartbeat(link)
            channel = link.open_channel()
        except UnavailableError:
            self._at = (links.index(link) + 1) % len(links)
            raise
        self._from[channel] = link
        return channel

    def _require_heartbeat(self, link: CopyLink) -> None:
        """Raises UnavailableError if the process of a replica sends no heartbeats. Without this check, an attempt to
        open a channel to it would take seconds to fail."""
        if link.is_lost():
            raise UnavailableError(f"the process of a replica of {self._task} sends no heartbeats")

    def wait_for_channel(self, check: Callable[[], None]) -> Channel:
        """Waits until a channel can be opened; ``check`` is called repeatedly, and an exception that it raises ends
        the wait.

        Raises:
          DeadlineExceededError: no replica is the primary before this process's deadline.
        """
        try:
            return self._reach(check, None)
        except UnavailableError as error:
            raise DeadlineExceededError(error.message) from error

    def release_channel(self, channel: Channel, usable: bool) -> None:
        """Returns a channel to the pool after a conversation.

        If not ``usable``, because an end is not ready for another conversation on it, the channel is closed.
        """
        link = self._from.pop(channel, None)
        if link is not None:
            link.release_channel(channel, usable)

    def _reach(self, check: Callable[[], None], deadline_s: float | None) -> Channel:
        waiter = self._link_settings.waiter
        return waiter.connect(
            lambda: self._attempt(check),
            me=self._link_settings.me.task,
            peer=f"{self._task}, or its backup",
            address=self._address,
            deadline_s=None if deadline_s is None else min(deadline_s, waiter.patience.deadline_s),
            otherwise="gives up" if deadline_s is None else "tries without it",
            known=any(link.status is not None for link in self._links()),
        )

    def _attempt(self, check: Callable[[], None]) -> Channel:
        reasons: dict[CopyLink, str] = {}
        for _ in range(_ROUNDS_BEFORE_LOG * len(self._links())):
            check()
            links = self._links()
            link = links[self._at]
            try:
                self._require_heartbeat(link)
                link.reach(_ATTEMPT_S)  # also connects the control plane, whose heartbeats reveal a later loss
                return self.open_channel()
            except UnavailableError as error:
                reasons[link] = error.message
                self._at = (links.index(link) + 1) % len(links)
            pause(_PAUSE_S)
        raise ConnectFailure(Problem.OTHER, "; ".join(reasons.values()))

    # The control plane ------------------------------------------------------------------------------------------------

    def add_plan(self, session: str, number: int, plan: bytes, generation: int) -> None:
        """Sends a plan to the task.

        Raises:
          AbortedError: the task has restarted with another generation.
          OpError: the task answered with an error.
        """
        frame = Frame(COPY_PLAN, (session, number, claim_words(self._owner)), [np.frombuffer(plan, np.uint8)])
        while True:
            channel = self._reach(lambda: None, None)
            if channel.peer_generation != generation:
                self.release_channel(channel, True)
                raise AbortedError(f"{self._task} was restarted: its state is lost")
            try:
                return self._request(channel, frame)
            except UnavailableError:
                continue  # a failover: look for the new primary; adding a plan is idempotent

    def release(self, session: str) -> None:
        self._request(self.open_channel(), Frame(COPY_RELEASE, (session,)))

    def reset(self, containers: Sequence[str]) -> None:
        self._request(self._reach(lambda: None, 0.0), Frame(COPY_RESET, (list(containers),)))

    def _request(self, channel: Channel, frame: Frame) -> None:
        usable = False
        try:
            channel.send(frame)
            answer = channel.recv()
            usable = answer.kind in (DONE, ERROR)
        finally:
            self.release_channel(channel, usable)
        if answer.kind == ERROR:
            raise_error(answer, str(self._task))
        if answer.kind != DONE:
            raise bad_header(answer, channel.peer)
