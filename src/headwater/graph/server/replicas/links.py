"""How masters reach a task of which there are two copies, whichever serves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from headwater.cluster.addresses import Address
from headwater.cluster.claims import Claim
from headwater.cluster.names import TaskName
from headwater.cluster.pauses import pause
from headwater.cluster.task.answers import bad_header, raise_error
from headwater.cluster.task.kinds import COPY_PLAN, COPY_RELEASE, COPY_RESET, DONE, ERROR, OPEN_COPY
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.cluster.transport.links import Link, Wiring
from headwater.cluster.transport.problems import ConnectFailure, Problem
from headwater.errors import AbortedError, DeadlineExceededError, UnavailableError
from headwater.graph.master.peers import PeerStatus
from headwater.graph.server.replicas.copy import claim_words

#: How long to try one copy before the other one, in seconds.
_TRY_S = 0.5
#: Between two attempts, in seconds.
_PAUSE_S = 0.1
#: How often both copies are tried before the wait is reported.
_ROUNDS = 4
#: How long a copy may take to say whether it serves, in seconds.
_ANSWER_S = 5.0


class OneCopy(Protocol):
    """The way to one copy of a task.

    Attributes:
      status: what the copy has said when a channel was opened last; None before.
    """

    status: PeerStatus | None

    def reach(self, deadline_s: float | None = None) -> object: ...

    def take(self) -> Channel: ...

    def give_back(self, channel: Channel, usable: bool) -> None: ...

    def is_lost(self) -> bool: ...


def ask_whether_it_serves(
    channel: Channel, task: TaskName, learn: Callable[[Sequence[Any]], None] = lambda _: None
) -> PeerStatus:
    """What the copy of ``task`` says that is at the other end of a new channel; closes it where it raises.

    Where it does not serve, ``learn`` is called with which processes it knows.

    Raises:
      UnavailableError: it does not serve, or says nothing.
    """
    try:
        channel.send(Frame(OPEN_COPY, (task.index,)))
        answer = channel.recv(_ANSWER_S)
        match answer.kind, answer.header:
            case int(kind), (bool(serves), int(generation), int(steps), [*devices]) if kind == DONE:
                pass
            case _:
                raise bad_header(answer, channel.peer)
        if not serves:
            learn(devices)
            raise UnavailableError(None, None, f"{channel.peer} does not serve {task} now")
    except DeadlineExceededError as error:
        channel.close()
        raise UnavailableError(None, None, f"{channel.peer} does not say whether it serves {task}") from error
    except BaseException:
        channel.close()
        raise
    channel.peer_generation = generation
    return PeerStatus(generation=generation, devices=tuple(map(str, devices)), steps=steps)


class CopyLink(Link):
    """A link to one copy of a task.

    Args:
      wiring: see `Wiring`.
      host: the task whose process has the copy.
      address: where that is.
      task: the task that there are two copies of.
      learn: see `ask_whether_it_serves`.

    Attributes:
      status: what the copy has said when a channel was opened last.
    """

    def __init__(
        self,
        wiring: Wiring,
        host: TaskName,
        address: Address,
        task: TaskName,
        learn: Callable[[Sequence[Any]], None] = lambda _: None,
    ) -> None:
        super().__init__(wiring, host, address)
        self._learn = learn
        self.status: PeerStatus | None = None
        self._task = task

    def _open(self) -> Channel:
        channel = super()._open()
        self.status = ask_whether_it_serves(channel, self._task, self._learn)
        return channel

    def is_lost(self) -> bool:
        """Whether the process was there, and is not any more, as far as is known."""
        return self.control.lost()


class CopiedTaskLink:
    """A link to a task of which there are two copies, for this task's master: a
    `headwater.graph.master.peers.PeerLink`.

    Args:
      wiring: see `Wiring`.
      task: the other task.
      address: where the cluster has it.
      links: gives those to the processes that may have copies of it, first to the one that serves at the beginning;
        there may be further ones later.
      owner: the claim of this task.
    """

    def __init__(
        self, wiring: Wiring, task: TaskName, address: Address, links: Callable[[], Sequence[OneCopy]], owner: Claim
    ) -> None:
        self._wiring = wiring
        self._task = task
        self._address = address
        self._links = links
        self._owner = owner
        self._at = 0
        self._from: dict[Channel, OneCopy] = {}

    def wait(self, deadline_s: float | None = None) -> PeerStatus:
        """Waits until a copy serves, saying so now and then; UnavailableError after the deadline."""
        channel = self._reach(lambda: None, deadline_s)
        status = self._from[channel].status
        self.give_back(channel, True)
        assert status is not None
        return status

    def take(self) -> Channel:
        """A channel to the copy that has served last; the other one is tried next where it does not."""
        links = self._links()
        link = links[self._at]
        try:
            self._require_life(link)
            channel = link.take()
        except UnavailableError:
            self._at = (links.index(link) + 1) % len(links)
            raise
        self._from[channel] = link
        return channel

    def _require_life(self, link: OneCopy) -> None:
        """Raises UnavailableError where the process of a copy is lost: to open a channel there would take seconds."""
        if link.is_lost():
            raise UnavailableError(None, None, f"the process of a copy of {self._task} shows no sign of life")

    def take_when_back(self, check: Callable[[], None]) -> Channel:
        """Waits until a channel can be had; what ``check`` raises, which is called now and then, ends the wait.

        Raises:
          DeadlineExceededError: no copy serves before this process's deadline.
        """
        try:
            return self._reach(check, None)
        except UnavailableError as error:
            raise DeadlineExceededError(None, None, error.message) from error

    def give_back(self, channel: Channel, usable: bool) -> None:
        """Ends a conversation; ``usable`` says that both ends expect a new one."""
        link = self._from.pop(channel, None)
        if link is not None:
            link.give_back(channel, usable)

    def _reach(self, check: Callable[[], None], deadline_s: float | None) -> Channel:
        waiter = self._wiring.waiter
        return waiter.connect(
            lambda: self._attempt(check),
            me=self._wiring.me.task,
            peer=f"{self._task}, or its second copy",
            address=self._address,
            deadline_s=None if deadline_s is None else min(deadline_s, waiter.patience.deadline_s),
            otherwise="gives up" if deadline_s is None else "tries without it",
            known=any(link.status is not None for link in self._links()),
        )

    def _attempt(self, check: Callable[[], None]) -> Channel:
        reasons: dict[OneCopy, str] = {}
        for _ in range(_ROUNDS * len(self._links())):
            check()
            links = self._links()
            link = links[self._at]
            try:
                self._require_life(link)
                link.reach(_TRY_S)  # the control plane, too: it is what notices the next loss
                return self.take()
            except UnavailableError as error:
                reasons[link] = error.message
                self._at = (links.index(link) + 1) % len(links)
            pause(_PAUSE_S)
        raise ConnectFailure(Problem.OTHER, "; ".join(reasons.values()))

    # The control plane ------------------------------------------------------------------------------------------------

    def add_plan(self, session: str, number: int, plan: bytes, generation: int) -> None:
        """Gives the task a plan.

        Raises:
          AbortedError: the task was started anew.
          OpError: what the task raises.
        """
        frame = Frame(COPY_PLAN, (session, number, claim_words(self._owner)), [np.frombuffer(plan, np.uint8)])
        while True:
            channel = self._reach(lambda: None, None)
            if channel.peer_generation != generation:
                self.give_back(channel, True)
                raise AbortedError(None, None, f"{self._task} was started anew: its state is gone")
            try:
                return self._ask(channel, frame)
            except UnavailableError:
                continue  # the other copy serves, or will; it takes the plan again

    def release(self, session: str) -> None:
        self._ask(self.take(), Frame(COPY_RELEASE, (session,)))

    def reset(self, containers: Sequence[str]) -> None:
        self._ask(self._reach(lambda: None, 0.0), Frame(COPY_RESET, (list(containers),)))

    def _ask(self, channel: Channel, frame: Frame) -> None:
        usable = False
        try:
            channel.send(frame)
            answer = channel.recv()
            usable = answer.kind in (DONE, ERROR)
        finally:
            self.give_back(channel, usable)
        if answer.kind == ERROR:
            raise_error(answer, str(self._task))
        if answer.kind != DONE:
            raise bad_header(answer, channel.peer)
