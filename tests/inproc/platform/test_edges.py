"""The server's interfaces to other programs: webhooks, archives, TLS, limits."""

from __future__ import annotations

import asyncio
import json
import logging
import queue
import socket
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme

from headwater.platform import policy
from headwater.platform.archives import unpack
from headwater.platform.client import ApiClient, ClientError, default_data_dir, find_token
from headwater.platform.limits import RateLimit
from headwater.platform.logfiles import Follower, read_part
from headwater.platform.logging_setup import JsonFormatter
from headwater.platform.packing import pack
from headwater.platform.records import JobRecord
from headwater.platform.server import ServerError, ServerSettings, serve_forever
from headwater.platform.spec import parse_job
from headwater.platform.states import Note
from headwater.platform.webhook import Notifier


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def http_server(statuses: list[int]) -> Iterator[tuple[str, queue.Queue[Any]]]:
    """Yields a server that answers with these statuses, one after the other, and the requests that it has received."""
    got: queue.Queue[Any] = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.put(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(statuses.pop(0))
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Logs nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook", got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def job(text: str = "") -> JobRecord:
    state = policy.initial_state(parse_job("name: a\nprogram: b\n" + text), 0.0)
    return JobRecord(id="a-1", owner="eve", submitted_at=0.0, backend="local", state=state)


def test_a_webhook_receives_the_events_it_selected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.platform.webhook._RETRY_DELAYS_S", (0.001,))
    with http_server([200, 503, 200]) as (url, got):
        notifier = Notifier()
        record = job(f"notify: {{webhook: '{url}', on: [failed, restarted]}}")
        notifier(record, Note("succeeded", "all workers are done"))
        notifier(record, Note("failed", "exit code 3", "worker-0"))
        notifier(record, Note("restarting", "restart 1 of 3", "worker-0"))
        first = got.get()
        assert (first["event"], first["reason"], first["job"]["id"]) == ("restarted", "restart 1 of 3", "a-1")
        # A refused notification is sent again.
        notifier(record, Note("failed", "worker-0 failed: exit code 3"))
        assert got.get() == got.get()
        notifier.close()
        assert got.empty()


def test_a_webhook_that_does_not_answer_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = taken.getsockname()
    notifier = Notifier()
    notifier(job(f"notify: {{webhook: 'http://127.0.0.1:{address[1]}'}}"), Note("failed", "x"))
    with caplog.at_level(logging.ERROR):
        notifier.close()
    assert "notification of a-1 failed and is not retried: failed" in caplog.text


def test_an_unpacked_folder_equals_the_packed_one(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "inner").mkdir(parents=True)
    (source / ".git").mkdir()
    (source / ".git" / "config").write_text("x")
    (source / "inner" / "train.py").write_text("print()")
    (source / "good").symlink_to("inner/train.py")
    (source / "bad").symlink_to("../../etc/passwd")
    (source / "absolute").symlink_to("/etc/passwd")
    pack(source, tmp_path / "files.tar.gz")
    unpack(tmp_path / "files.tar.gz", tmp_path / "target")
    names = sorted(str(path.relative_to(tmp_path / "target")) for path in (tmp_path / "target").rglob("*"))
    assert names == ["good", "inner", "inner/train.py"]
    with tarfile.open(tmp_path / "files.tar.gz") as archive:
        assert {member.uid for member in archive} == {0}


def test_a_folder_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.platform.packing.MAX_BYTES", 3)
    (tmp_path / "a").write_text("1234")
    with pytest.raises(ValueError, match="more than 3 bytes"):
        pack(tmp_path, tmp_path.parent / "x.tar.gz")


def test_rates() -> None:
    clock = Clock()
    limit = RateLimit(0.5, 2, clock=clock)
    assert [limit.acquire("a"), limit.acquire("a"), limit.acquire("b")] == [0.0, 0.0, 0.0]
    assert limit.acquire("a") == 2.0
    assert limit.acquire("a", cost=0) == 2.0
    clock.now = 2.0
    assert [limit.acquire("a"), limit.acquire("a")] == [0.0, 2.0]


def test_logs_as_they_grow(tmp_path: Path) -> None:
    path = tmp_path / "worker-0.log"
    follower = Follower(path)

    def new() -> list[str]:
        return [line.text for line in follower.lines()]

    assert new() == []
    path.write_bytes(b"one\ntw")
    assert new() == ["one"]
    with path.open("ab") as file:
        file.write(b"o\nthree")
    assert (new(), [line.text for line in follower.close()]) == (["two"], ["three"])
    path.write_bytes(b"new\n")
    assert new() == ["new"]
    assert read_part(path, tail=5).data == b"new\n"
    assert read_part(path, tail=0).data == b""
    assert read_part(path, offset=100).data == b""


def test_the_log_for_programs() -> None:
    record = logging.makeLogRecord(
        {"msg": "job %s", "args": ("a",), "levelname": "INFO", "name": "n", "job": "a", "created": 1.0}
    )
    assert json.loads(JsonFormatter().format(record)) == {
        "at": 1.0,
        "level": "info",
        "logger": "n",
        "message": "job a",
        "job": "a",
    }


def test_tokens_are_found(tmp_path: Path) -> None:
    environ = {"HEADWATER_SERVER_DIR": str(tmp_path)}
    assert (find_token(environ), default_data_dir(environ)) == (None, tmp_path)
    (tmp_path / "admin.token").write_text("hw_a\n")
    assert find_token(environ) == "hw_a"
    assert find_token({**environ, "HEADWATER_SERVER_TOKEN": "hw_b"}) == "hw_b"


@pytest.mark.parametrize(
    ("fields", "message"),
    [({"certificate": Path("c")}, "--key must be given"), ({"auth": False, "host": "0.0.0.0"}, "cannot be used with")],
)
def test_settings_that_cannot_be(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ServerSettings(data_dir=tmp_path, **fields)


def test_errors_at_the_start_of_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.platform.server.set_up_logging", lambda _format: None)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = ServerSettings(data_dir=tmp_path, port=taken.getsockname()[1])
        with pytest.raises(ServerError, match="cannot listen at 127"):
            serve_forever(settings, [_local(tmp_path)], announce=lambda _line: None)


def _local(tmp_path: Path) -> Any:
    from headwater.platform.backends.local import LocalBackend, LocalSettings

    return LocalBackend(LocalSettings(state_dir=tmp_path / "local"))


def test_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server with a certificate, and clients that trust its authority or do not."""
    import uvicorn

    monkeypatch.setattr("headwater.platform.server.set_up_logging", lambda _format: None)
    authority, announced = trustme.CA(), list[str]()
    issued = authority.issue_cert("127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "server.pem")
    issued.private_key_pem.write_to_path(tmp_path / "server.key")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    servers: list[uvicorn.Server] = []
    ready = threading.Event()

    async def startup(server: uvicorn.Server, sockets: Any = None) -> None:
        await original(server, sockets)
        servers.append(server)
        ready.set()

    original = uvicorn.Server.startup
    monkeypatch.setattr(uvicorn.Server, "startup", startup)
    monkeypatch.setattr("headwater.platform.server.handling", _no_signals)
    settings = ServerSettings(
        data_dir=tmp_path / "data", port=0, certificate=tmp_path / "server.pem", key=tmp_path / "server.key"
    )
    thread = threading.Thread(
        target=serve_forever, args=(settings, [_local(tmp_path)]), kwargs={"announce": announced.append}
    )
    thread.start()
    ready.wait()
    try:
        address = announced[0].removeprefix("Headwater serves at ")
        assert address.startswith("https://127.0.0.1:")
        distrusting = ApiClient(address, "")
        with pytest.raises(ClientError, match="certificate"):
            distrusting.get("/health")
        distrusting.close()
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        client = ApiClient(address, (tmp_path / "data" / "admin.token").read_text().strip())
        assert client.get("/me")["role"] == "admin"
        client.close()
        assert (tmp_path / "data" / "admin.token").stat().st_mode & 0o777 == 0o600
    finally:
        servers[0].should_exit = True
        thread.join()


@contextmanager
def _no_signals(_handlers: object) -> Iterator[None]:
    """Does nothing: only the main thread can handle signals."""
    yield


def test_coroutines_learn_of_changes(tmp_path: Path) -> None:
    from headwater.platform.feed import StoreChanges
    from headwater.platform.store import Store

    store = Store(f"sqlite:///{tmp_path}/jobs.db")
    store.open()

    async def watch() -> None:
        feed = StoreChanges(store)
        async with feed.run(), feed.listen() as changed:
            await feed.wait(changed, 60.0)  # the first turn of the thread
            await asyncio.to_thread(store.save, job(), now=1.0)
            await feed.wait(changed, 60.0)
            await feed.wait(changed, 0.001)
        assert feed.closing

    asyncio.run(watch())
    store.close()
