"""Many connections that do not authenticate: clients with the token are served as before."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from headwater.cluster.addresses import Address
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.connect import connect
from headwater.cluster.transport.control_client import ControlClient
from headwater.cluster.transport.control_server import ControlServer
from headwater.cluster.transport.frames import Frame
from headwater.cluster.transport.handshake import PREAMBLE, PeerIdentity
from headwater.cluster.transport.listener import Listener
from headwater.cluster.transport.options import TransportOptions
from headwater.cluster.transport.security import Security
from headwater.cluster.transport.workplace import Workplace
from tests.inproc.cluster.transport.test_control import Recorder, echo

PS = PeerIdentity(task="/job:ps/task:0", generation=11)
WORKER = PeerIdentity(task="/job:worker/task:3", generation=7)
TOKEN = Security(token="secret")
# Connections are not closed by the authentication deadline here: it is longer than any client waits.
OPTIONS = TransportOptions(handshake_s=600.0, max_unauthenticated=64)
HALF_OPEN, SLOW, GREETING, CALLING = 500, 200, 100, 100
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


@pytest.fixture
def listener() -> Iterator[Listener]:
    with ExitStack() as stack:
        workplace = Workplace()
        stack.callback(workplace.close)
        path = str(workplace.path / "control")
        listener = Listener(
            Address("127.0.0.1", 0),
            me=PS,
            security=TOKEN,
            on_channel=echo,
            options=OPTIONS,
            workplace=workplace,
            control_path=path,
        )
        control = ControlServer(
            path,
            me=PS,
            security=listener.security,
            task=Recorder(),
            master=None,
            on_channel=echo,
            options=OPTIONS,
            on_trusted=listener.trust,
        )
        stack.callback(listener.stop)
        stack.callback(control.stop, 0)
        control.start()
        listener.start()
        yield listener


def dial(listener: Listener) -> Channel:
    return connect(listener.address, me=WORKER, wanted=PS, security=TOKEN, options=OPTIONS)


def crowd(listener: Listener, stack: ExitStack, count: int, said: bytes) -> list[socket.socket]:
    """Opens connections that send only ``said``."""
    found: list[socket.socket] = []
    for _ in range(count):
        sock = stack.enter_context(socket.create_connection(listener.address))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if said:
            sock.sendall(said)
        found.append(sock)
    return found


def trickle(slow: list[socket.socket], text: bytes) -> None:
    """Sends one more byte on each connection that was not refused."""
    for sock in slow:
        try:
            sock.sendall(text)
        except OSError:
            slow.remove(sock)


def test_authenticated_peers_are_served_during_a_flood(listener: Listener) -> None:
    with ExitStack() as stack:
        before = dial(listener)
        stack.callback(before.close)
        client = ControlClient(listener.address, peer=PS.task, security=TOKEN)
        stack.callback(client.close)
        client.status()
        threads = threading.active_count()

        crowd(listener, stack, HALF_OPEN, b"")
        slow = crowd(listener, stack, SLOW, PREAMBLE[:1])
        crowd(listener, stack, GREETING, PREAMBLE + b"\0")
        crowd(listener, stack, CALLING, PREFACE)
        for step in range(1, len(PREAMBLE)):
            trickle(slow, PREAMBLE[step : step + 1])
            # Existing connections, and new ones.
            before.send(Frame(1, (step,)))
            assert before.recv().header == (step,)
            channel = dial(listener)
            channel.send(Frame(1, ("new", step)))
            assert channel.recv().header == ("new", step)
            channel.close()
            assert client.status().task == PS.task
            newcomer = ControlClient(listener.address, peer=PS.task, security=TOKEN)
            assert newcomer.status(wait=True).generation == PS.generation
            newcomer.close()
            assert listener.statistics().unauthenticated <= OPTIONS.max_unauthenticated
            assert threading.active_count() <= threads + OPTIONS.max_unauthenticated + 40
        statistics = listener.statistics()
        # All of them were accepted, and all in excess of the limit were closed.
        assert statistics.refused >= HALF_OPEN + SLOW + GREETING + CALLING - OPTIONS.max_unauthenticated - len(slow)
        assert not before.closed
        assert not client.is_lost()


def test_a_connection_to_the_control_plane_must_bring_a_call_that_is_let_in(listener: Listener) -> None:
    """A connection whose calls are refused stays unauthenticated, and is closed when others need its place."""
    with ExitStack() as stack:
        candidate = ControlClient(listener.address, peer=PS.task, security=Security(token="another"))
        stack.callback(candidate.close)
        with pytest.raises(Exception, match="another token"):
            candidate.status()
        friend = ControlClient(listener.address, peer=PS.task, security=TOKEN)
        stack.callback(friend.close)
        friend.status()
        friend.wait_lost(0)
        statistics = listener.statistics()
        while (statistics.unauthenticated, statistics.control) != (1, 2):
            statistics = listener.statistics()
        crowd(listener, stack, OPTIONS.max_unauthenticated + 1, b"")
        statistics = listener.statistics()
        while statistics.control != 1:
            statistics = listener.statistics()
        assert not friend.is_lost()
        assert friend.status().task == PS.task
