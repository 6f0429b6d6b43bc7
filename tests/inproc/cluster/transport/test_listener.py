"""A task's port: handshakes, refusals, limits."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwater.cluster.addresses import Address
from headwater.cluster.transport import dialling, handshake
from headwater.cluster.transport.certificates import CertificateFiles, make_certificates
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.connect import connect
from headwater.cluster.transport.frames import Frame
from headwater.cluster.transport.handshake import PREAMBLE, PeerIdentity, new_generation
from headwater.cluster.transport.listener import Listener
from headwater.cluster.transport.options import TransportOptions
from headwater.cluster.transport.ports import BIND_HOST, LISTEN_FDS
from headwater.cluster.transport.problems import ConnectFailure, Problem
from headwater.cluster.transport.security import Security
from headwater.cluster.transport.shared import SharedMemoryChannel
from headwater.cluster.transport.sockets import SocketChannel, TlsChannel
from headwater.cluster.transport.workplace import Workplace
from headwater.errors import PermissionDeniedError, UnavailableError

PS = PeerIdentity(task="/job:ps/task:0", generation=11)
WORKER = PeerIdentity(task="/job:worker/task:3", generation=7)
ANYBODY = PeerIdentity(task="", generation=0)
LOOPBACK = Address("127.0.0.1", 0)
OPEN = Security()
TCP_ONLY = TransportOptions(local_sockets=False)


def echo(channel: Channel) -> None:
    while True:
        channel.send(channel.recv())


Start = Callable[..., Listener]


@pytest.fixture
def start() -> Iterator[Start]:
    with ExitStack() as stack:

        def start(
            *,
            security: Security = OPEN,
            options: TransportOptions = TCP_ONLY,
            on_channel: Callable[[Channel], None] = echo,
            address: Address = LOOPBACK,
            control_path: str | None = None,
            environ: dict[str, str] | None = None,
        ) -> Listener:
            workplace = Workplace()
            stack.callback(workplace.close)
            listener = Listener(
                address,
                me=PS,
                security=security,
                options=options,
                on_channel=on_channel,
                workplace=workplace,
                control_path=control_path,
                environ=environ or {},
            )
            stack.callback(listener.stop)
            listener.start()
            return listener

        yield start


def dial(
    listener: Listener,
    *,
    wanted: PeerIdentity = PS,
    security: Security = OPEN,
    options: TransportOptions = TCP_ONLY,
    address: Address | None = None,
) -> Channel:
    return connect(address or listener.address, me=WORKER, wanted=wanted, security=security, options=options)


def assert_echoes(channel: Channel) -> None:
    for size in (0, 10, 100_000, 1_000_000):
        tensor = np.arange(size)
        channel.send(Frame(3, ("hello",), [tensor]))
        received = channel.recv(timeout_s=60)
        assert received.header == ("hello",)
        np.testing.assert_array_equal(received.tensors[0], tensor)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> CertificateFiles:
    return make_certificates(tmp_path_factory.mktemp("certificates"), ["ps0.example"])


@pytest.fixture(scope="module")
def tls(certificates: CertificateFiles) -> Security:
    return Security.from_environment(certificates.environment())


def test_both_ends_learn_the_identity_of_the_other(start: Start) -> None:
    met: queue.SimpleQueue[Channel] = queue.SimpleQueue()
    done = threading.Event()

    def on_channel(channel: Channel) -> None:
        met.put(channel)
        done.wait()

    listener = start(on_channel=on_channel)
    channel = dial(listener)
    accepted = met.get()
    assert channel.peer == f"/job:ps/task:0 ({listener.address})"
    assert channel.peer_generation == PS.generation
    assert accepted.peer.startswith("/job:worker/task:3 (127.0.0.1:")
    assert accepted.peer_generation == WORKER.generation
    assert listener.statistics().channels == 1
    done.set()
    with pytest.raises(UnavailableError):
        channel.recv()


@pytest.mark.parametrize("token", [None, "secret"])
def test_over_tcp(start: Start, token: str | None) -> None:
    security = Security(token=token)
    channel = dial(start(security=security), security=security)
    assert type(channel) is SocketChannel
    assert_echoes(channel)
    channel.close()


@pytest.mark.parametrize("token", [None, "secret"])
def test_over_shared_memory(start: Start, token: str | None) -> None:
    security, options = Security(token=token), TransportOptions()
    channel = dial(start(security=security, options=options), security=security, options=options)
    assert type(channel) is SharedMemoryChannel
    assert channel.peer == "/job:ps/task:0 (this machine)"
    assert channel.peer_generation == PS.generation
    assert_echoes(channel)
    channel.close()


@pytest.mark.parametrize("token", [None, "secret"])
def test_over_tls(start: Start, tls: Security, token: str | None) -> None:
    security = replace(tls, token=token)
    listener = start(security=security)
    for host in ("127.0.0.1", "localhost"):
        channel = dial(listener, security=security, address=Address(host, listener.address.port))
        assert type(channel) is TlsChannel
        assert_echoes(channel)
        channel.close()


def test_tls_leads_to_shared_memory_too(start: Start, tls: Security) -> None:
    options = TransportOptions()
    channel = dial(start(security=tls, options=options), security=tls, options=options)
    assert type(channel) is SharedMemoryChannel
    assert_echoes(channel)
    channel.close()


def test_tls_in_both_directions_at_once(start: Start, tls: Security) -> None:
    channel = dial(start(security=tls), security=tls)
    tensor = np.arange(3_000_000)
    sender = threading.Thread(target=lambda: [channel.send(Frame(1, (), [tensor])) for _ in range(4)])
    sender.start()
    for _ in range(4):
        np.testing.assert_array_equal(channel.recv().tensors[0], tensor)
    sender.join()
    channel.close()


def test_shared_memory_needs_the_consent_of_both_ends(start: Start) -> None:
    listener = start(options=TransportOptions())
    channel = dial(listener, options=TCP_ONLY)
    assert type(channel) is SocketChannel
    assert_echoes(channel)
    channel.close()


def test_an_offer_that_leads_nowhere(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    listener = start(options=TransportOptions())
    os.unlink(listener._local_path)
    channel = dial(listener, options=TransportOptions())
    assert type(channel) is SocketChannel
    assert_echoes(channel)
    channel.close()


def test_a_ticket_is_good_once(start: Start) -> None:
    listener = start(options=TransportOptions())
    offer = listener._make_offer(WORKER)
    assert offer is not None
    for number in range(2):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(offer.path)
            if number == 0:
                met = dialling.show_ticket(sock, offer.ticket, PS, timeout_s=10)
                assert met.lane is not None
                met.lane.close()
            else:
                with pytest.raises(ConnectFailure, match="ticket"):
                    dialling.show_ticket(sock, offer.ticket, PS, timeout_s=10)


def refused(
    listener: Listener, caplog: pytest.LogCaptureFixture, problem: Problem, **how: Any
) -> tuple[ConnectFailure, str]:
    """Connects, is refused, and returns the reason that the connecting end received and the accepting end's log."""
    before = listener.statistics().refused
    with caplog.at_level(logging.WARNING), pytest.raises(ConnectFailure) as caught:
        dial(listener, **how)
    assert caught.value.problem is problem, caught.value
    statistics = listener.statistics()
    while statistics.unauthenticated:  # the accepting thread may not have finished yet
        statistics = listener.statistics()
    assert statistics.channels == 0
    assert statistics.refused == before + 1
    return caught.value, caplog.messages[-1]


@pytest.mark.parametrize(
    ("ours", "theirs", "told", "logged"),
    [
        (None, "secret", "no token", "no token"),
        ("wrong", "secret", "another token", "another token"),
        ("secret", None, "not set there", "this task has none"),
    ],
)
def test_tokens_that_differ(
    start: Start, caplog: pytest.LogCaptureFixture, ours: str | None, theirs: str | None, told: str, logged: str
) -> None:
    listener = start(security=Security(token=theirs))
    failure, message = refused(listener, caplog, Problem.TOKEN, security=Security(token=ours))
    assert told in failure.detail
    assert logged in message
    assert "HEADWATER_TOKEN" in failure.hint
    assert "secret" not in str(failure) + message + repr(listener.security)


def test_only_one_of_two_has_a_token(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    by_hand, launched = Security.from_environment({}), Security.from_environment({"HEADWATER_LAUNCH_TOKEN": "launched"})
    for ours in (by_hand, launched):
        failure, message = refused(start(security=Security(token="secret")), caplog, Problem.TOKEN, security=ours)
        assert "it requires a token, and this task has no token" in failure.detail
        assert "it has no token" in message
        assert "set HEADWATER_TOKEN to the same value for all tasks, or for none" in failure.hint
        failure, message = refused(start(security=ours), caplog, Problem.TOKEN, security=Security(token="secret"))
        assert f"it has no HEADWATER_TOKEN, and so accepts only programs of user {os.geteuid()}" in failure.detail
        assert "it has a HEADWATER_TOKEN, this task none" in message
        dial(start(security=by_hand), security=launched).close()
        dial(start(security=launched), security=by_hand).close()


def test_certificates_that_do_not_fit(
    start: Start, caplog: pytest.LogCaptureFixture, tls: Security, tmp_path: Path
) -> None:
    other = Security.from_environment(make_certificates(tmp_path / "other", []).environment())
    no_certificate = Security(authority_file=tls.authority_file)
    listener = start(security=tls)
    for security in (OPEN, other, no_certificate):
        failure, message = refused(listener, caplog, Problem.CERTIFICATE, security=security)
        assert "HEADWATER_TLS_CA" in failure.hint
        assert "refused" in message
    failure, _ = refused(start(), caplog, Problem.CERTIFICATE, security=tls)
    assert "does not speak TLS" in failure.detail


def test_a_certificate_for_another_host(start: Start, tls: Security, caplog: pytest.LogCaptureFixture) -> None:
    listener = start(security=tls)
    elsewhere = Address("127.0.0.2", listener.address.port)
    with pytest.raises(ConnectFailure, match="refused"):  # bound to its own address, not to all of them
        dial(listener, security=tls, address=elsewhere)
    listener = start(security=tls, address=Address("127.0.0.2", 0))
    failure, _ = refused(listener, caplog, Problem.CERTIFICATE, security=tls)
    assert "127.0.0.2" in failure.detail


def test_another_task_and_another_generation(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    listener = start()
    other = PeerIdentity(task="/job:ps/task:1", generation=0)
    failure, _ = refused(listener, caplog, Problem.OTHER_TASK, wanted=other)
    assert "/job:ps/task:0, not /job:ps/task:1" in failure.detail
    failure, _ = refused(listener, caplog, Problem.GENERATION, wanted=PeerIdentity(task=PS.task, generation=0xAB))
    assert "/job:ps/task:0" in failure.detail
    assert "generation b, not ab" in failure.detail
    dial(listener, wanted=ANYBODY).close()


def test_another_version(start: Start, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    listener = start()
    with socket.create_connection(("127.0.0.1", listener.address.port)) as sock:
        sock.sendall(PREAMBLE + b"\0")
        length = struct.unpack("<I", sock.recv(len(PREAMBLE) + 1 + 4, socket.MSG_WAITALL)[-4:])[0]
        assert msgpack.unpackb(sock.recv(length, socket.MSG_WAITALL))[0] == handshake.VERSION
        message = msgpack.packb([handshake.VERSION + 1, "whatever comes then"])
        sock.sendall(struct.pack("<I", len(message)) + message)
        length = struct.unpack("<I", sock.recv(4, socket.MSG_WAITALL))[0]
        assert msgpack.unpackb(sock.recv(length, socket.MSG_WAITALL))[0] == Problem.VERSION.value


def test_a_server_that_others_reach_wants_a_guard(start: Start, tls: Security, tmp_path: Path) -> None:
    everywhere = Address("0.0.0.0", 0)
    half = replace(tls, authority_file=None)
    for security in (OPEN, half):
        with pytest.raises(PermissionDeniedError, match=r"HEADWATER_TOKEN.*HEADWATER_INSECURE"):
            start(security=security, address=everywhere)
    for security in (Security(token="x"), tls, Security(insecure=True)):
        start(security=security, address=everywhere)


def test_another_host_to_bind(start: Start) -> None:
    listener = start(address=Address("ps0.example", 0), environ={BIND_HOST: "127.0.0.1"})
    assert listener.address.host == "ps0.example"
    channel = dial(listener, address=Address("127.0.0.1", listener.address.port))
    assert_echoes(channel)
    channel.close()
    with pytest.raises(PermissionDeniedError):
        start(environ={BIND_HOST: "0.0.0.0"})


def test_other_connections_are_passed_to_the_control_plane(start: Start, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "control"))
        server.listen()
        listener = start(control_path=str(tmp_path / "control"))
        with socket.create_connection(("127.0.0.1", listener.address.port)) as client:
            client.sendall(b"PRI * HTTP/2.0\r\n")
            control, _ = server.accept()
            with control:
                assert control.recv(16, socket.MSG_WAITALL) == b"PRI * HTTP/2.0\r\n"
                large = os.urandom(3_000_000)
                sender = threading.Thread(target=control.sendall, args=(large,))
                sender.start()
                assert client.recv(len(large), socket.MSG_WAITALL) == large
                sender.join()
                client.shutdown(socket.SHUT_WR)
                assert control.recv(1) == b""
                control.sendall(b"goodbye")
            assert client.recv(7, socket.MSG_WAITALL) == b"goodbye"
            assert client.recv(1) == b""


def test_no_control_plane(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    listener = start()
    with socket.create_connection(("127.0.0.1", listener.address.port)) as client:
        client.sendall(b"PRI")
        assert client.recv(1) == b""
    listener = start(control_path="/nowhere/control")
    with socket.create_connection(("127.0.0.1", listener.address.port)) as client:
        client.sendall(b"PRI")
        assert client.recv(1) == b""
    assert "does not answer" in caplog.messages[-1]


def test_the_silent_are_sent_away_and_the_others_wait(start: Start) -> None:
    listener = start(options=TransportOptions(local_sockets=False, handshake_s=1.0, max_unauthenticated=2))
    silent = [socket.create_connection(("127.0.0.1", listener.address.port)) for _ in range(5)]
    silent[1].sendall(PREAMBLE[:3])
    silent[2].sendall(PREAMBLE + b"\0")
    channel = dial(listener)
    assert_echoes(channel)
    channel.close()
    for sock in silent:
        with sock:
            received = sock.recv(4096)
            while received:
                received = sock.recv(4096)


def test_a_conversation_that_fails_is_only_that(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    def on_channel(channel: Channel) -> None:
        if channel.recv().kind == 1:
            raise RuntimeError("a bug")
        echo(channel)

    listener = start(on_channel=on_channel)
    failing, other = dial(listener), dial(listener)
    other.send(Frame(2))
    failing.send(Frame(1))
    with pytest.raises(UnavailableError):
        failing.recv()
    assert_echoes(other)
    assert "a bug" in caplog.text
    other.close()


def test_stopping_closes_everything(start: Start) -> None:
    listener = start()
    channel = dial(listener)
    with socket.create_connection(("127.0.0.1", listener.address.port)) as silent:
        listener.stop()
        listener.stop()
        with pytest.raises(UnavailableError):
            channel.recv()
        with contextlib.suppress(ConnectionResetError):  # the system resets a connection that was not accepted yet
            assert silent.recv(1) == b""
    with pytest.raises(ConnectFailure) as caught:
        dial(listener)
    assert caught.value.problem is Problem.REFUSED


def test_a_socket_from_the_launcher(start: Start) -> None:
    inherited = socket.create_server(("127.0.0.1", 0))
    address = Address("127.0.0.1", inherited.getsockname()[1])
    environ = {LISTEN_FDS: f'{{"127.0.0.1:{address.port}": {inherited.detach()}}}'}
    listener = start(address=address, environ=environ)
    assert listener.address == address
    channel = dial(listener)
    assert_echoes(channel)
    channel.close()


def test_generations_are_random() -> None:
    numbers = {new_generation() for _ in range(100)}
    assert len(numbers) == 100
    assert all(0 < number < 1 << 63 for number in numbers)


messages = st.recursive(
    st.none() | st.integers(-(2**63), 2**63) | st.binary(max_size=40) | st.text(max_size=10) | st.just(b"n" * 32),
    lambda inner: st.lists(inner, max_size=8),
).map(msgpack.packb)
said = st.one_of(
    st.binary(max_size=200),
    messages.map(lambda packed: struct.pack("<I", len(packed)) + packed),
    st.lists(messages, max_size=3).map(lambda all_: b"".join(struct.pack("<I", len(p)) + p for p in all_)),
    st.integers(0, 2**32 - 1).map(lambda length: struct.pack("<I", length)),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(
    st.sampled_from([b"", PREAMBLE[:5], PREAMBLE + b"\0", PREAMBLE + b"\1", PREAMBLE + b"\2", PREAMBLE + b"\xff"]), said
)
def test_a_listener_survives_arbitrary_input(listening: Listener, first: bytes, rest: bytes) -> None:
    with socket.create_connection(("127.0.0.1", listening.address.port)) as sock:
        received = b""
        with contextlib.suppress(OSError):  # refused before all data was sent
            sock.sendall(first + rest)
            sock.shutdown(socket.SHUT_WR)
            while more := sock.recv(4096):
                received += more
    assert len(received) < 1000
    assert listening.statistics().channels == 0


@pytest.fixture
def listening(start: Start) -> Listener:
    listener = start(security=Security(token="secret"))
    return listener


def test_after_all_that_a_listener_still_works(listening: Listener) -> None:
    for rubbish in (b"\0" * 100, PREAMBLE * 3, PREAMBLE + b"\0" + b"\xff" * 100, ssl.OPENSSL_VERSION.encode()):
        with socket.create_connection(("127.0.0.1", listening.address.port)) as sock:
            sock.sendall(rubbish)
    channel = dial(listening, security=Security(token="secret"))
    assert_echoes(channel)
    channel.close()
