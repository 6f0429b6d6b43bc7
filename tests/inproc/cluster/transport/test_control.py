"""The control plane, through the port that it shares with channels."""

from __future__ import annotations

import contextlib
import logging
import os
import random
import socket
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

import headwater
from headwater import errors
from headwater.cluster.addresses import Address
from headwater.cluster.claims import Claim
from headwater.cluster.telemetry.clocks import SteadyClock
from headwater.cluster.transport.certificates import make_certificates
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.connect import connect
from headwater.cluster.transport.control_client import ControlClient
from headwater.cluster.transport.control_server import ControlServer
from headwater.cluster.transport.frames import Frame
from headwater.cluster.transport.handlers import DeviceInfo
from headwater.cluster.transport.handshake import PeerIdentity
from headwater.cluster.transport.listener import Listener
from headwater.cluster.transport.options import TransportOptions
from headwater.cluster.transport.problems import ConnectFailure, Problem
from headwater.cluster.transport.security import Security
from headwater.cluster.transport.workplace import Workplace

PS = PeerIdentity(task="/job:ps/task:0", generation=0xFFFF_FFFF_FFFF)
WORKER = PeerIdentity(task="/job:worker/task:3", generation=7)
OPTIONS = TransportOptions()
CPU = DeviceInfo(name="/job:ps/replica:0/task:0/device:CPU:0", type="CPU", memory_limit=1 << 40, incarnation=1 << 62)


class Recorder:
    """Answers every request and records it."""

    def __init__(self) -> None:
        self.asked: list[tuple[object, ...]] = []
        self.error: Exception | None = None

    def _note(self, *asked: object) -> None:
        if self.error is not None:
            raise self.error
        self.asked.append(asked)

    def status_details(self) -> Mapping[str, bytes]:
        return {"steps": b"12"}

    def list_devices(self) -> Sequence[DeviceInfo]:
        return [CPU]

    def add_plan(self, session: str, number: int, plan: bytes, owner: Claim) -> None:
        self._note("add_plan", session, number, plan, owner)

    def release(self, session: str) -> None:
        self._note("release", session)

    def cancel_step(self, session: str, step: int, reason: str) -> None:
        self._note("cancel_step", session, step, reason)

    def reset(self, containers: Sequence[str]) -> None:
        self._note("reset", containers)

    def shutdown(self, reason: str, chief: Claim, gone: Collection[str]) -> None:
        self._note("shutdown", reason, chief)

    def join(self, job: str, address: str) -> tuple[int, dict[str, str]]:
        self._note("join", job, address)
        return 3, {"/job:worker/task:3": address}

    def create_session(self, config: bytes, graph_def: bytes) -> str:
        self._note("create_session", config, graph_def)
        return "session 1"

    def extend_session(self, session: str, graph_def: bytes) -> None:
        self._note("extend_session", session, graph_def)

    def make_callable(
        self, session: str, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str], options: bytes
    ) -> int:
        self._note("make_callable", session, feeds, fetches, targets, options)
        return 5

    def release_callable(self, session: str, number: int) -> None:
        self._note("release_callable", session, number)

    def close_session(self, session: str) -> None:
        self._note("close_session", session)

    def session_devices(self, session: str) -> Sequence[str]:
        self._note("session_devices", session)
        return [CPU.name]


def echo(channel: Channel) -> None:
    while True:
        channel.send(channel.recv())


class Server:
    """A task without a service."""

    def __init__(self, security: Security, stack: ExitStack) -> None:
        self.recorder = Recorder()
        workplace = Workplace()
        stack.callback(workplace.close)
        path = str(workplace.path / "control")
        self.listener = Listener(
            Address("127.0.0.1", 0),
            me=PS,
            security=security,
            on_channel=echo,
            options=OPTIONS,
            workplace=workplace,
            control_path=path,
        )
        self.control = ControlServer(
            path,
            me=PS,
            security=self.listener.security,
            task=self.recorder,
            master=self.recorder,
            on_channel=echo,
            options=OPTIONS,
            on_trusted=self.listener.trust,
        )
        self.address = self.listener.address
        stack.callback(self.stop)
        self.control.start()
        self.listener.start()

    def stop(self) -> None:
        self.control.stop(0)
        self.listener.stop()


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def tls(tmp_path: Path) -> Security:
    return Security.from_environment(make_certificates(tmp_path / "certificates", []).environment())


Both = tuple[Server, ControlClient]
Serve = Callable[..., Both]


@pytest.fixture
def serve(stack: ExitStack) -> Serve:
    def serve(security: Security | None = None, client_security: Security | None = None) -> Both:
        security = security or Security()
        server = Server(security, stack)
        client = ControlClient(server.address, peer=PS.task, security=client_security or security)
        stack.callback(client.close)
        return server, client

    return serve


def test_status(serve: Serve) -> None:
    _, client = serve()
    status = client.status()
    assert (status.task, status.generation, status.pid) == (PS.task, PS.generation, os.getpid())
    assert status.version == headwater.__version__
    assert abs(status.started - time.time()) < 3600
    assert status.details == {"steps": b"12"}
    assert client.list_devices() == [CPU]


def test_every_call_arrives(serve: Serve) -> None:
    server, client = serve()
    owner = Claim(task="/job:worker/task:0", generation=1 << 62, started=1.5e9, address="a:1")
    client.add_plan("s", 1 << 40, b"plan\0", generation=PS.generation, owner=owner)
    client.add_plan("s", 2, bytes(20 << 20))
    client.release("s")
    client.cancel_step("s", 1 << 50, "enough")
    client.reset_task(["a", "b"])
    client.shutdown("the job is over", owner)
    assert client.join("worker", "b:1") == (3, {"/job:worker/task:3": "b:1"})
    assert client.create_session(b"config", b"graph") == "session 1"
    client.extend_session("s", b"more")
    assert client.make_callable("s", ["a:0"], ["b:0", "c:0"], ["d"], b"options") == 5
    client.release_callable("s", 5)
    client.close_session("s")
    client.reset([])
    assert client.session_devices("s") == [CPU.name]
    assert server.recorder.asked == [
        ("add_plan", "s", 1 << 40, b"plan\0", owner),
        ("add_plan", "s", 2, bytes(20 << 20), Claim()),
        ("release", "s"),
        ("cancel_step", "s", 1 << 50, "enough"),
        ("reset", ["a", "b"]),
        ("shutdown", "the job is over", owner),
        ("join", "worker", "b:1"),
        ("create_session", b"config", b"graph"),
        ("extend_session", "s", b"more"),
        ("make_callable", "s", ["a:0"], ["b:0", "c:0"], ["d"], b"options"),
        ("release_callable", "s", 5),
        ("close_session", "s"),
        ("reset", []),
        ("session_devices", "s"),
    ]


def test_a_plan_for_another_generation(serve: Serve) -> None:
    server, client = serve()
    with pytest.raises(errors.AbortedError, match="/job:ps/task:0 is of generation ffffffffffff, not 3"):
        client.add_plan("s", 1, b"", generation=3)
    assert server.recorder.asked == []


@pytest.mark.parametrize("code", range(1, 17))
def test_errors_keep_their_type(serve: Serve, code: int) -> None:
    server, client = serve()
    server.recorder.error = errors.make_error(code, "weight ä is not there")
    with pytest.raises(errors.exception_type_from_error_code(code)) as caught:
        client.release("s")
    assert caught.value.message == "weight ä is not there"


def test_long_errors_are_cut(serve: Serve) -> None:
    server, client = serve()
    server.recorder.error = errors.NotFoundError(None, None, "ä" * 100_000)
    with pytest.raises(errors.NotFoundError, match=r"^ääää"):
        client.release("s")


def test_bugs_are_internal_errors(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    server, client = serve()
    server.recorder.error = ZeroDivisionError("of zero")
    with pytest.raises(errors.InternalError, match="/job:ps/task:0: ZeroDivisionError: of zero"):
        client.release("s")
    assert "Traceback" in caplog.text
    server.recorder.error = None
    client.release("s")


@pytest.mark.parametrize("token", [None, "secret"])
def test_over_tls(serve: Serve, tls: Security, token: str | None) -> None:
    _, client = serve(replace(tls, token=token))
    assert client.status().task == PS.task


@pytest.mark.parametrize(
    ("theirs", "ours", "why"),
    [("secret", None, "no proof"), ("secret", "wrong", "another token")],
)
def test_tokens_that_differ(
    serve: Serve, caplog: pytest.LogCaptureFixture, theirs: str, ours: str | None, why: str
) -> None:
    server, client = serve(Security(token=theirs), Security(token=ours))
    with caplog.at_level(logging.WARNING), pytest.raises(errors.UnauthenticatedError, match=why):
        client.add_plan("s", 1, bytes(1 << 20))
    assert server.recorder.asked == []
    assert "refused a call of /headwater.Task/RegisterPlan" in caplog.text
    assert "secret" not in caplog.text
    with pytest.raises(ConnectFailure, match=why) as caught:
        client.open_channel(me=WORKER, wanted=PS, options=OPTIONS)
    assert caught.value.problem is Problem.TOKEN


@pytest.mark.parametrize("ahead_s", [3600.0, -3600.0])
def test_a_caller_with_a_wrong_clock_is_authenticated(
    serve: Serve, caplog: pytest.LogCaptureFixture, ahead_s: float
) -> None:
    _, client = serve(Security(token="secret"))
    client._clock = SteadyClock(lambda: time.time() + ahead_s)
    with caplog.at_level(logging.WARNING):
        assert client.status().task == PS.task
        client.open_channel(me=WORKER, wanted=PS, options=OPTIONS).close()
    assert f"differs from ours by {-ahead_s:.0f} s" in caplog.text
    assert caplog.text.count("refused a call") == 1


def test_certificates_that_do_not_fit(serve: Serve, tls: Security, tmp_path: Path) -> None:
    other = Security.from_environment(make_certificates(tmp_path / "other", []).environment())
    no_certificate = Security(authority_file=tls.authority_file)
    for security in (Security(), other, no_certificate):
        server, client = serve(tls, security)
        with pytest.raises(errors.UnavailableError, match="cannot be reached"):
            client.status()
        assert server.recorder.asked == []


def test_health_and_reflection(serve: Serve) -> None:
    server, _ = serve(Security(token="secret"))
    with grpc.insecure_channel(str(server.address)) as channel:
        health: Any = health_pb2_grpc.HealthStub(channel)
        for service in ("", "headwater.Task", "headwater.Master"):
            reply = health.Check(health_pb2.HealthCheckRequest(service=service))
            assert reply.status == health_pb2.HealthCheckResponse.SERVING
    server, _ = serve()
    with grpc.insecure_channel(str(server.address)) as channel:
        services = ProtoReflectionDescriptorDatabase(channel).get_services()
        assert {"headwater.Task", "headwater.Master", "grpc.health.v1.Health"} <= set(services)


def test_health_watchers_that_join_and_leave_block_nothing(serve: Serve) -> None:
    server, client = serve()

    def watch_often(_: int) -> list[int]:
        with grpc.insecure_channel(str(server.address)) as channel:
            health: Any = health_pb2_grpc.HealthStub(channel)
            found: list[int] = []
            for service in ("headwater.Task", "none") * 50:
                watch = health.Watch(health_pb2.HealthCheckRequest(service=service))
                found.append(next(watch).status)
                watch.cancel()
            return found

    told = health_pb2.HealthCheckResponse
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(watch_often, range(4))) == [[told.SERVING, told.SERVICE_UNKNOWN] * 50] * 4
    assert client.status().task == PS.task


def test_no_server_at_the_address() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = Address(*unused.getsockname())
        client = ControlClient(address, peer=PS.task, security=Security())
        with pytest.raises(errors.UnavailableError, match=f"/job:ps/task:0 at {address} cannot be reached"):
            client.status()
        assert not client.is_lost()
        client.close()
        with pytest.raises(errors.CancelledError):
            client.status()


def test_a_task_that_asks_to_go_is_lost(serve: Serve) -> None:
    server, client = serve()
    client.status()
    assert not client.is_lost()
    server.stop()
    with pytest.raises(errors.UnavailableError):
        client.status()
    assert client.is_lost()


def test_both_planes_at_one_port(serve: Serve) -> None:
    security = Security(token="secret")
    server, client = serve(security)
    channel = connect(server.address, me=WORKER, wanted=PS, security=security, options=OPTIONS)
    channel.send(Frame(1, ("hello",)))
    assert client.status().task == PS.task
    assert channel.recv().header == ("hello",)
    channel.close()


def test_a_channel_inside_grpc(serve: Serve) -> None:
    _, client = serve(Security(token="secret"))
    channel = client.open_channel(me=WORKER, wanted=PS, options=OPTIONS)
    assert channel.peer.startswith("/job:ps/task:0 (127.0.0.1:")
    assert channel.peer_generation == PS.generation
    for size in (0, 10, 100_000, 3_000_000):
        tensor = np.arange(size)
        channel.send(Frame(3, (size,), [tensor]))
        received = channel.recv()
        np.testing.assert_array_equal(received.tensors[0], tensor)
    with pytest.raises(errors.DeadlineExceededError):
        channel.recv(timeout_s=0.001)
    assert not channel.peer_gone()
    channel.close()
    with pytest.raises(errors.CancelledError):
        channel.recv()


def test_a_channel_inside_grpc_ends_with_its_task(serve: Serve) -> None:
    server, client = serve()
    channel = client.open_channel(me=WORKER, wanted=PS, options=OPTIONS)
    channel.send(Frame(1))
    channel.recv()
    server.stop()
    with pytest.raises(errors.UnavailableError):
        channel.recv()
    assert channel.peer_gone()


def test_a_grpc_channel_to_another_task(serve: Serve) -> None:
    _, client = serve()
    with pytest.raises(ConnectFailure, match="it is /job:ps/task:0, not /job:ps/task:1") as caught:
        client.open_channel(me=WORKER, wanted=PeerIdentity(task="/job:ps/task:1", generation=0), options=OPTIONS)
    assert caught.value.problem is Problem.OTHER_TASK
    with pytest.raises(ConnectFailure, match="not 5") as caught:
        client.open_channel(me=WORKER, wanted=PeerIdentity(task="", generation=5), options=OPTIONS)
    assert caught.value.problem is Problem.GENERATION


def test_a_grpc_channel_to_a_closed_port(tls: Security, serve: Serve) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        client = ControlClient(Address(*unused.getsockname()), peer=PS.task, security=Security())
        with pytest.raises(ConnectFailure) as caught:
            client.open_channel(me=WORKER, wanted=PS, options=OPTIONS)
        assert caught.value.problem is Problem.REFUSED
        client.close()
        with pytest.raises(errors.CancelledError):
            client.open_channel(me=WORKER, wanted=PS, options=OPTIONS)
    for theirs, ours in ((tls, Security()), (Security(), tls)):
        _, client = serve(theirs, ours)
        with pytest.raises(ConnectFailure):
            client.open_channel(me=WORKER, wanted=PS, options=OPTIONS)


def test_the_control_plane_survives_arbitrary_input(serve: Serve) -> None:
    server, client = serve()
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    rng = random.Random(0)
    for size in (1, 20, 1000, 100_000):
        for start in (b"", preface, preface + b"\0\0\0\x04\0\0\0\0\0", preface + b"\xff\xff\xff\0\0\0\0\0\1"):
            with socket.create_connection(server.address) as sock, contextlib.suppress(OSError):
                sock.sendall(start + rng.randbytes(size))
                sock.shutdown(socket.SHUT_WR)
                while sock.recv(65536):
                    pass
    assert client.status().task == PS.task
    assert server.recorder.asked == []


def test_requests_that_are_no_messages(serve: Serve) -> None:
    server, client = serve()
    with grpc.insecure_channel(str(server.address)) as channel:
        for method in ("Task/RegisterPlan", "Task/GetStatus", "Master/CreateSession", "Master/Nothing"):
            call = channel.unary_unary(f"/headwater.{method}", lambda data: data, lambda data: data)
            with pytest.raises(grpc.RpcError):
                call(b"\xff" * 1000)
    assert client.status().task == PS.task
    assert server.recorder.asked == []
