"""A chief within this process, with which ``ps`` deposit their state."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Final

from headwater.cluster.task.deposited_states import DepositedStates
from headwater.cluster.transport.channel import Channel, memory_pair
from headwater.cluster.transport.problems import ConnectFailure, Problem
from headwater.errors import CancelledError, UnavailableError
from headwater.state.replica_deposits import ReplicaDeposits

CHIEF: Final = "/job:worker/task:0"


class Link:
    """A link to the chief. Some of its channels are lost before the answer.

    Args:
      service: the chief's service.
      lost: numbers of the channels that are lost before the answer, in the order of opening, from 0.
      incarnation: the generation of the task at this end.

    Attributes:
      opened: the number of opened channels.
      tried: the number of attempts to open a channel.
      refuses: returns the problem with which the next attempt fails; None if it succeeds.
    """

    def __init__(self, service: DepositedStates, *lost: int, incarnation: int = 0) -> None:
        self._service = service
        self._lost = set(lost)
        self._incarnation = incarnation
        self.opened = self.tried = 0
        self.refuses: Callable[[], Problem | None] = lambda: None

    def open_channel_now(self) -> Channel:
        self.tried += 1
        problem = self.refuses()
        if problem is not None:
            raise UnavailableError(None, None, "cannot reach it") from ConnectFailure(problem, problem.value)
        mine, theirs = memory_pair(generations=(0, self._incarnation))
        number = self.opened
        self.opened += 1

        def serve() -> None:
            with contextlib.suppress(CancelledError, UnavailableError):
                frame = theirs.recv()
                if number in self._lost:
                    theirs.close()
                self._service.serve(theirs, frame)

        threading.Thread(target=serve).start()
        return mine

    def release_channel(self, channel: Channel, usable: bool) -> None:
        assert not usable
        channel.close()


def replica_deposits(service: DepositedStates, ps: int) -> ReplicaDeposits:
    """Returns the object with which a ``ps`` deposits replicas with the chief."""
    return ReplicaDeposits(CHIEF, Link(service, incarnation=ps + 1))
