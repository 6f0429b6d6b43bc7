"""A worker's conversation with several ``ps``, some of which are lost while the worker waits for one."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.cluster.task import kinds
from headwater.cluster.transport.channel import Channel, memory_pair
from headwater.cluster.transport.frames import Frame
from headwater.errors import DeadlineExceededError, UnavailableError
from headwater.ps.conversation import Conversation, ServerSession


class Link:
    """A link that closes channels, and cannot connect: `Servers` opens them."""

    def reach(self, deadline_s: float | None = None) -> None:
        del deadline_s

    def open_channel(self) -> Any:
        raise NotImplementedError

    def release_channel(self, channel: Channel, usable: bool) -> None:
        del usable
        channel.close()


class Servers:
    """Two ``ps``; the connection to the first is lost whenever the second connects again."""

    def __init__(self) -> None:
        self.ends: dict[int, Channel] = {}
        self.sessions = [
            ServerSession(task=f"ps{at}", link=Link(), optimized=[], added=[], tables=[]) for at in range(2)
        ]
        self.conversation = Conversation("a worker", self.sessions, self._greet, may_leave=lambda: False)
        self._greet(1)

    def _greet(self, index: int) -> None:
        self.conversation.drop(self.sessions[index])
        self.sessions[index].channel, self.ends[index] = memory_pair()
        if index:
            self._greet(0)


@pytest.mark.timeout(60)
def test_no_answer_is_awaited_on_a_channel_without_a_request() -> None:
    servers = Servers()
    servers.ends[0].send(Frame(kinds.WAIT, ("something",)))
    servers.ends[1].close()
    with pytest.raises(UnavailableError, match="ps0 was reconnected"):
        servers.conversation.request(servers.sessions[0], Frame(kinds.READY))

    servers.ends[0].send(Frame(kinds.DONE, (1,)))
    assert servers.conversation.request(servers.sessions[0], Frame(kinds.READY)).header == (1,)


class Lost(Servers):
    """Two ``ps`` that are lost at once: while the worker reconnects to the first, the second is lost, too."""

    def _greet(self, index: int) -> None:
        self.conversation.drop(self.sessions[index])
        self.sessions[index].channel, self.ends[index] = memory_pair()
        self.ends[index].send(Frame(kinds.DONE, (index,)))
        if not index:
            self.conversation.reconnect(1, UnavailableError(None, None, "it is gone"))


@pytest.mark.timeout(60)
def test_a_request_that_was_repeated_is_not_sent_twice() -> None:
    """Otherwise each later answer of that ``ps`` would be attributed to the request before."""
    servers = Lost()
    for session in servers.sessions:
        servers.conversation.drop(session)
    answers = servers.conversation.exchange([Frame(kinds.READY), Frame(kinds.READY)], again=True)
    assert [answer.header for answer in answers if answer is not None] == [(0,), (1,)]
    assert servers.ends[1].recv(0).kind == kinds.READY
    with pytest.raises(DeadlineExceededError):
        servers.ends[1].recv(0)
