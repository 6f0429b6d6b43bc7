"""Links: how this task reaches the others, and a client a master that is elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater.cluster.addresses import Address
from headwater.cluster.names import TaskName
from headwater.errors import UnavailableError, make_error
from headwater.master.peers import PeerStatus
from headwater.transport.channel import Channel
from headwater.transport.connect import connect
from headwater.transport.frames import Frame
from headwater.transport.handshake import Identity
from headwater.transport.options import TransportOptions
from headwater.transport.pool import ChannelPool
from headwater.transport.problems import ConnectFailure
from headwater.transport.security import Security
from headwater.transport.waiting import Waiter

ADMIN = 100


class TaskLink:
    def __init__(self, me: Identity, peer: TaskName, address: Address, security: Security, options: TransportOptions, waiter: Waiter) -> None:
        self._me, self._peer, self._address, self._security, self._options, self._waiter = me, peer, address, security, options, waiter
        self._pool = ChannelPool(lambda name: self._open())

    def _attempt(self) -> Channel:
        return connect(self._address, me=self._me, wanted=Identity(task=str(self._peer), generation=0), security=self._security, options=self._options)

    def _open(self) -> Channel:
        try:
            return self._attempt()
        except ConnectFailure as failure:
            raise UnavailableError(None, None, f"{self._peer} at {self._address} cannot be reached: {failure}") from failure

    def wait(self, deadline_s: float | None = None) -> PeerStatus:
        channel = self._waiter.connect(self._attempt, me=self._me.task, peer=str(self._peer), address=self._address, deadline_s=deadline_s)
        channel.close()
        raw = self._ask("status")
        return PeerStatus(generation=raw[0], devices=tuple(raw[1]), steps=raw[2])

    def _ask(self, *what: Any) -> Any:
        ch = self._pool.take(self._peer)
        ch.send(Frame(ADMIN, what, ()))
        r = ch.recv()
        self._pool.give_back(ch)
        if r.header[0]:
            raise make_error(r.header[0], r.header[1])
        return r.header[1]

    def add_plan(self, session: str, number: int, plan: bytes, generation: int) -> None:
        self._ask("add_plan", session, number, plan)

    def release(self, session: str) -> None:
        self._ask("release", session)

    def reset(self, containers: Sequence[str]) -> None:
        self._ask("reset", list(containers))

    def take(self) -> Channel:
        return self._pool.take(self._peer)

    def give_back(self, channel: Channel, usable: bool) -> None:
        if usable:
            self._pool.give_back(channel)
        else:
            self._pool.discard(channel)
