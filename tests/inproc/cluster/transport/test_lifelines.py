"""Lifelines to a listener of this process: over TCP, over TLS, and over a network that is cut."""

from __future__ import annotations

import queue
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from headwater.cluster.addresses import Address, parse_address
from headwater.cluster.transport.certificates import make_certificates
from headwater.cluster.transport.connect import connect_lifeline
from headwater.cluster.transport.handshake import PeerIdentity
from headwater.cluster.transport.heartbeat_process import ALIVE
from headwater.cluster.transport.lifeline import Lifeline
from headwater.cluster.transport.listener import Listener, listens_here
from headwater.cluster.transport.options import TransportOptions
from headwater.cluster.transport.problems import ConnectFailure, Problem
from headwater.cluster.transport.security import Security
from headwater.cluster.transport.workplace import Workplace
from tests.support.relay import relay

PS = PeerIdentity(task="/job:ps/task:0", generation=11)
WORKER = PeerIdentity(task="/job:worker/task:3", generation=7)
Start = Callable[[Security], Listener]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def start(stack: ExitStack) -> Start:
    def start(security: Security) -> Listener:
        workplace = Workplace()
        stack.callback(workplace.close)
        listener = Listener(
            Address("127.0.0.1", 0),
            me=PS,
            security=security,
            on_channel=lambda _: None,
            options=TransportOptions(),
            workplace=workplace,
        )
        stack.callback(listener.stop)
        listener.start()
        return listener

    return start


@pytest.mark.parametrize("tls", [False, True])
def test_the_helper_process_beats_on_the_connection(stack: ExitStack, start: Start, tmp_path: Path, tls: bool) -> None:
    environ = make_certificates(tmp_path / "certificates", []).environment() if tls else {}
    security = Security.from_environment(environ)
    listener = start(security)
    connection = connect_lifeline(listener.address, me=WORKER, wanted=PS, security=security, timeout_s=10)
    with connection:
        # The data after the handshake is plain.
        plain = stack.enter_context(socket.socket(fileno=connection.detach()))
        plain.settimeout(None)
        assert plain.recv(1) == ALIVE
    assert listener.statistics().channels == 0
    assert listens_here(listener.address)
    listener.stop()
    assert not listens_here(listener.address)


def test_unauthenticated_peers_get_no_lifeline(start: Start) -> None:
    listener = start(Security(token="secret"))
    with pytest.raises(ConnectFailure) as caught:
        connect_lifeline(listener.address, me=WORKER, wanted=PS, security=Security(token="other"), timeout_s=10)
    assert caught.value.problem is Problem.TOKEN


@pytest.mark.slow
@pytest.mark.parametrize("tls", [False, True])
def test_a_network_that_is_cut_and_whole_again(stack: ExitStack, start: Start, tmp_path: Path, tls: bool) -> None:
    environ = make_certificates(tmp_path / "certificates", []).environment() if tls else {}
    security = Security.from_environment(environ)
    network = stack.enter_context(relay(str(start(security).address)))
    said: queue.SimpleQueue[str] = queue.SimpleQueue()
    lifeline = Lifeline(
        parse_address(network.address), me=WORKER, wanted=PS, security=security, on_change=said.put, silence_s=4
    )
    stack.callback(lifeline.close)
    lifeline.start()
    lifeline.wait_tried()
    assert lifeline.is_alive()
    network.cut()
    assert said.get().startswith("no heartbeat or other message for 4 s")
    assert not lifeline.is_alive()
    network.heal()
    assert said.get() == ""
    assert lifeline.is_alive()
    assert said.empty()
