"""Links: connections of a task to another task, and of a client to a master."""

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
from headwater.cluster.transport.handshake import PeerIdentity
from headwater.cluster.transport.options import TransportOptions
from headwater.cluster.transport.pool import ChannelPool
from headwater.cluster.transport.problems import ConnectFailure, Problem
from headwater.cluster.transport.security import Security
from headwater.cluster.transport.waiting import Waiter
from headwater.errors import CancelledError, DeadlineExceededError, OpError, UnavailableError

T = TypeVar("T")

_log = logging.getLogger("headwater")
#: Timeout of one attempt to connect, in seconds.
_ATTEMPT_S = 5.0
#: Maximum wait for a task that did not answer a call before the call is repeated, in seconds.
_MAX_RETRY_WAIT_S = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkSettings:
    """Settings that all links of a process share.

    Attributes:
      me: this task, or client.
      security: the security settings of this task or client.
      options: limits of channels.
      waiter: waits for other tasks.
      inside_grpc: whether tensors are sent inside gRPC.
    """

    me: PeerIdentity
    security: Security = field(default_factory=Security.from_environment)
    options: TransportOptions = field(default_factory=TransportOptions)
    waiter: Waiter = field(default_factory=Waiter)
    inside_grpc: bool = False


def client_link_settings() -> LinkSettings:
    """Returns the settings for a client that is not a task of the cluster."""
    return LinkSettings(me=PeerIdentity(task=f"client {os.getpid()} on {socket.gethostname()}", generation=0))


class Link:
    """A link to one task: a client of its control plane, which is created when first needed, and a pool of channels.

    Args:
      link_settings: see `LinkSettings`.
      peer: the task; None for any task at the address.
      address: the task's address.
    """

    def __init__(self, link_settings: LinkSettings, peer: TaskName | None, address: Address) -> None:
        self._link_settings = link_settings
        self._peer = peer or TaskName("master", 0)
        self._wanted = PeerIdentity(task=str(peer) if peer else "", generation=0)
        self._called = str(peer) if peer else "the master"
        self._address = address
        self._control: ControlClient | None = None
        self._lock = threading.Lock()
        self._closed = False
        self._has_answered = False
        self._pool = ChannelPool(lambda _: self._open())

    @property
    def control(self) -> ControlClient:
        """The client of the task's control plane."""
        with self._lock:
            if self._closed:
                raise CancelledError(f"the connection to {self._called} was closed at this end")
            if self._control is None:
                self._control = ControlClient(
                    self._address,
                    peer=self._called,
                    security=self._link_settings.security,
                    on_lost=self._break_channels,
                    inside_grpc=self._link_settings.inside_grpc,
                )
            return self._control

    def _break_channels(self) -> None:
        # A stopped task, or a task on an unreachable machine, closes no channel: break its channels, or steps would
        # wait forever.
        with self._lock:
            why = self._control.reason if self._control is not None else ""
        reason = "it no longer answers; it has ended, was stopped, or its machine has failed"
        self._pool.break_off(self._peer, f"{reason}: {why}" if why else reason)

    def _attempt(self, limit_s: float | None = None) -> Channel:
        link_settings = self._link_settings
        if link_settings.inside_grpc:
            return self.control.open_channel(me=link_settings.me, wanted=self._wanted, options=link_settings.options)
        return connect(
            self._address,
            me=link_settings.me,
            wanted=self._wanted,
            security=link_settings.security,
            options=link_settings.options,
            timeout_s=_ATTEMPT_S if limit_s is None else min(_ATTEMPT_S, limit_s),
        )

    def _open(self) -> Channel:
        while True:
            try:
                return self._attempt()
            except ConnectFailure as failure:
                what = f"{self._link_settings.me.task} cannot reach {self._called} at {self._address}"
                if failure.problem is not Problem.SILENT or not self.control.is_alive():
                    raise failure.as_error(what) from failure
                # Heartbeats arrive: the task holds the GIL, or its machine is loaded. Try again without a pause, as a
                # silent attempt takes until its timeout.
                _log.warning("%s yet: %s; but its heartbeats arrive, so the call is retried", what, failure)

    def _meet(self, limit_s: float | None = None) -> TaskStatus:
        self._attempt(limit_s).close()
        status = self._answer(lambda: self.control.status(wait=True))
        self._has_answered = True
        return status

    def _answer(self, call: Callable[[], T]) -> T:
        """Performs a call that is part of the attempt to reach the task, and returns its result.

        Raises:
          ConnectFailure: there was no answer; the whole attempt has to be repeated.
        """
        try:
            return call()
        except (DeadlineExceededError, UnavailableError) as error:
            # The task exited after it accepted the connection: it may be restarted.
            raise ConnectFailure(Problem.CLOSED, error.message) from error

    def _wait_for(self, attempt: Callable[[], T], deadline_s: float | None) -> T:
        waiter = self._link_settings.waiter
        otherwise = "gives up" if deadline_s is None else "tries without it"
        if deadline_s is not None:
            deadline_s = min(deadline_s, waiter.patience.deadline_s)
        return waiter.connect(
            attempt,
            me=self._link_settings.me.task,
            peer=self._called,
            address=self._address,
            deadline_s=deadline_s,
            otherwise=otherwise,
            known=self._has_answered,
        )

    def reach(self, deadline_s: float | None = None) -> TaskStatus:
        """Waits until the task can be reached, and logs that it waits; see `Waiter.connect` for errors.

        Args:
          deadline_s: the time limit of the wait, in seconds; 0 for one attempt. The deadline of this process
            (`Patience.deadline_s`) limits the wait in any case; that deadline applies alone if ``deadline_s`` is None.

        Returns:
          The status of the task.
        """
        return self._wait_for(lambda: self._meet(deadline_s or None), deadline_s)

    def call(self, asks: Callable[[ControlClient], T], *, may_restart: bool = True) -> T:
        """Calls the control plane of a task that may have restarted a moment ago; returns the result.

        After a failed attempt to connect, gRPC lets each call fail immediately until its next attempt, for up to 2 s.
        So if the call fails, this method waits until the task can be reached, and repeats the call once.

        Args:
          asks: makes the call.
          may_restart: whether the task may be restarting, so that a refused connection is worth another attempt.

        Raises:
          OpError: the task cannot be reached, or does not answer.
        """
        try:
            return asks(self.control)
        except UnavailableError:
            self._wait_for(lambda: self._meet(_MAX_RETRY_WAIT_S), _MAX_RETRY_WAIT_S if may_restart else 0.0)
            return asks(self.control)

    def channels(self) -> list[Channel]:
        """Returns all open channels."""
        return self._pool.channels()

    def open_channel(self) -> Channel:
        """Returns a channel for one conversation; end it with `release_channel`."""
        return self._pool.acquire(self._peer)

    def wait_for_channel(self, check: Callable[[], None]) -> Channel:
        """Waits for a lost task, logs that it waits, and returns a channel to it.

        Args:
          check: called before every attempt; its exceptions end the wait.

        Raises:
          DeadlineExceededError: the task did not return before this process's deadline.
        """

        def attempt() -> Channel:
            check()
            self._meet()  # connects the control plane, too, which detects the next loss
            try:
                return self.open_channel()
            except OpError as error:
                if isinstance(error.__cause__, ConnectFailure):
                    raise error.__cause__ from None
                raise

        link_settings = self._link_settings
        try:
            return link_settings.waiter.connect(
                attempt, me=link_settings.me.task, peer=self._called, address=self._address, known=True
            )
        except UnavailableError as error:
            raise DeadlineExceededError(error.message) from error

    def release_channel(self, channel: Channel, usable: bool) -> None:
        """Returns a channel after use.

        Args:
          channel: a channel from `open_channel`.
          usable: whether the conversation is complete, so that the channel can be reused; otherwise it is closed.
        """
        if usable:
            self._pool.release(channel)
        else:
            self._pool.discard(channel)

    def close(self) -> None:
        """Closes all channels and the control plane."""
        self._pool.close()
        with self._lock:
            self._closed, control = True, self._control
        if control is not None:
            control.close()
