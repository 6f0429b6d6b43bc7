"""Links: how a task reaches another one, and how a client reaches a master."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from headwater.cluster.addresses import Address
from headwater.cluster.names import TaskName
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.connect import connect
from headwater.cluster.transport.control_client import ControlClient
from headwater.cluster.transport.handlers import TaskStatus
from headwater.cluster.transport.handshake import Identity
from headwater.cluster.transport.options import TransportOptions
from headwater.cluster.transport.pool import ChannelPool
from headwater.cluster.transport.problems import ConnectFailure, Problem
from headwater.cluster.transport.security import Security
from headwater.cluster.transport.waiting import Waiter
from headwater.errors import CancelledError, DeadlineExceededError, OpError, UnavailableError

T = TypeVar("T")

_log = logging.getLogger("headwater")
#: How long one attempt to connect may take, in seconds.
_ATTEMPT_S = 5.0
#: How long a task that did not answer a call is waited for before it is asked once more, in seconds.
_BACK_S = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Wiring:
    """What all links of a process have in common.

    Attributes:
      me: this task, or client.
      security: what it shows and asks for.
      options: limits of channels.
      waiter: how long it waits for others.
      inside_grpc: keep tensors inside gRPC.
    """

    me: Identity
    security: Security = field(default_factory=Security.from_environment)
    options: TransportOptions = field(default_factory=TransportOptions)
    waiter: Waiter = field(default_factory=Waiter)
    inside_grpc: bool = False


def client_wiring() -> Wiring:
    """For a client that is no task of the cluster."""
    return Wiring(me=Identity(task=f"client {os.getpid()} on {socket.gethostname()}", generation=0))


class Link:
    """A way to one task: its control plane, made when first needed, and channels.

    Args:
      wiring: see `Wiring`.
      peer: the task, or None for whichever has the address.
      address: where it is.
    """

    def __init__(self, wiring: Wiring, peer: TaskName | None, address: Address) -> None:
        self._wiring = wiring
        self._peer = peer or TaskName("master", 0)
        self._wanted = Identity(task=str(peer) if peer else "", generation=0)
        self._called = str(peer) if peer else "the master"
        self._address = address
        self._control: ControlClient | None = None
        self._lock = threading.Lock()
        self._closed = False
        self._has_answered = False
        self._pool = ChannelPool(lambda _: self._open())

    @property
    def control(self) -> ControlClient:
        """The task's control plane."""
        with self._lock:
            if self._closed:
                raise CancelledError(None, None, f"the connection to {self._called} was closed at this end")
            if self._control is None:
                self._control = ControlClient(
                    self._address,
                    peer=self._called,
                    security=self._wiring.security,
                    on_lost=self._lost,
                    inside_grpc=self._wiring.inside_grpc,
                )
            return self._control

    def _lost(self) -> None:
        # A task that was stopped, or whose machine is gone, closes no channel; steps would wait for it for ever.
        with self._lock:
            why = self._control.reason if self._control is not None else ""
        reason = "it answers no more; it has ended, was stopped, or its machine is gone"
        self._pool.break_off(self._peer, f"{reason}: {why}" if why else reason)

    def _attempt(self, limit_s: float | None = None) -> Channel:
        wiring = self._wiring
        if wiring.inside_grpc:
            return self.control.open_channel(me=wiring.me, wanted=self._wanted, options=wiring.options)
        return connect(
            self._address,
            me=wiring.me,
            wanted=self._wanted,
            security=wiring.security,
            options=wiring.options,
            timeout_s=_ATTEMPT_S if limit_s is None else min(_ATTEMPT_S, limit_s),
        )

    def _open(self) -> Channel:
        while True:
            try:
                return self._attempt()
            except ConnectFailure as failure:
                what = f"{self._wiring.me.task} cannot reach {self._called} at {self._address}"
                if failure.problem is not Problem.SILENT or not self.control.lives():
                    raise failure.as_error(what) from failure
                # It computes, or its machine is loaded.
                _log.warning("%s yet: %s; but it shows signs of life, and is asked again", what, failure)

    def _meet(self, limit_s: float | None = None) -> TaskStatus:
        self._attempt(limit_s).close()
        status = self._answer(lambda: self.control.status(wait=True))
        self._has_answered = True
        return status

    def _answer(self, call: Callable[[], T]) -> T:
        """What a call gives that is part of meeting the task.

        Raises:
          ConnectFailure: there was no answer; the task has to be met anew.
        """
        try:
            return call()
        except (DeadlineExceededError, UnavailableError) as error:
            # It took the connection, and then it ended: another one may come in its place.
            raise ConnectFailure(Problem.CLOSED, error.message) from error

    def _wait_for(self, attempt: Callable[[], T], deadline_s: float | None) -> T:
        waiter = self._wiring.waiter
        otherwise = "gives up" if deadline_s is None else "tries without it"
        if deadline_s is not None:
            deadline_s = min(deadline_s, waiter.patience.deadline_s)
        return waiter.connect(
            attempt,
            me=self._wiring.me.task,
            peer=self._called,
            address=self._address,
            deadline_s=deadline_s,
            otherwise=otherwise,
            known=self._has_answered,
        )

    def reach(self, deadline_s: float | None = None) -> TaskStatus:
        """Waits until the task can be reached, saying so now and then; see `Waiter.connect` for what it raises.

        Args:
          deadline_s: for a task that is not needed: go on without it after this long, in seconds, if that is sooner
            than the process's own deadline. 0: one attempt.

        Returns:
          What the task says of itself.
        """
        return self._wait_for(lambda: self._meet(deadline_s or None), deadline_s)

    def call(self, asks: Callable[[ControlClient], T], *, may_return: bool = True) -> T:
        """Returns what ``asks`` gets from the control plane of a task that may have come back a moment ago.

        After an attempt to connect that failed, gRPC lets each call fail at once until its next attempt, for up to two
        seconds. So where a call fails, this connects to the task itself, and calls once more.

        Args:
          asks: makes the call.
          may_return: the task may be starting again just now, so that a refused connection is worth another attempt.

        Raises:
          OpError: it cannot be reached, or does not answer.
        """
        try:
            return asks(self.control)
        except UnavailableError:
            self._wait_for(lambda: self._meet(_BACK_S), _BACK_S if may_return else 0.0)
            return asks(self.control)

    def channels(self) -> list[Channel]:
        """All open channels."""
        return self._pool.channels()

    def take(self) -> Channel:
        """A channel for one conversation; end it with `give_back`."""
        return self._pool.take(self._peer)

    def take_when_back(self, check: Callable[[], None]) -> Channel:
        """Waits for a task that was lost, saying so now and then, and gives a channel to it.

        Args:
          check: called before every attempt; what it raises ends the wait.

        Raises:
          DeadlineExceededError: the task did not come back before this process's deadline.
        """

        def attempt() -> Channel:
            check()
            self._meet()  # the control plane, too: it is what notices the next loss
            try:
                return self.take()
            except OpError as error:
                if isinstance(error.__cause__, ConnectFailure):
                    raise error.__cause__ from None
                raise

        wiring = self._wiring
        try:
            return wiring.waiter.connect(
                attempt, me=wiring.me.task, peer=self._called, address=self._address, known=True
            )
        except UnavailableError as error:
            raise DeadlineExceededError(None, None, error.message) from error

    def give_back(self, channel: Channel, usable: bool) -> None:
        """Ends a conversation; ``usable`` says that both ends expect a new one."""
        if usable:
            self._pool.give_back(channel)
        else:
            self._pool.discard(channel)

    def close(self) -> None:
        """Closes everything."""
        self._pool.close()
        with self._lock:
            self._closed, control = True, self._control
        if control is not None:
            control.close()
