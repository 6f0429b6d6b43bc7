"""The ssh backend with sshd processes, in network namespaces of their own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.cluster.names import TaskName
from headwater.platform.backends.base import BackendError, Lost, NotEnough, Resources, Running, TaskRequest, TaskState
from headwater.platform.backends.ssh import SshBackend, SshHost, SshSettings
from tests.support.sshd import SshHosts, require_sshd, ssh_hosts
from tests.support.tasks import WORKER, ValuePipe, ends, keeper_of, order, printed, wait_for_end

pytestmark = [pytest.mark.netadmin, pytest.mark.slow]

PS = TaskName("ps", 0)


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHosts]:
    require_sshd()
    with ssh_hosts(tmp_path_factory.mktemp("ssh"), 2) as hosts:
        yield hosts


def new_backend(hosts: SshHosts, tmp_path: Path, **settings: float) -> SshBackend:
    return SshBackend(
        SshSettings(
            hosts=tuple(
                SshHost(
                    host=address,
                    python=sys.executable,
                    state_dir=str(tmp_path / address),
                    options=hosts.options,
                    labels={"number": str(number)},
                )
                for number, address in enumerate(hosts.addresses)
            ),
            state_dir=tmp_path / "server",
            **settings,
        )
    )


@pytest.fixture
def backend(hosts: SshHosts, tmp_path: Path) -> Iterator[SshBackend]:
    backend = new_backend(hosts, tmp_path)
    yield backend
    for job_id in {folder.name for folder in tmp_path.glob("*/jobs/*")}:
        backend.release(job_id)
    backend.close()


@pytest.fixture
def told(tmp_path: Path) -> Iterator[ValuePipe]:
    told = ValuePipe(tmp_path)
    yield told
    told.close()


def test_tasks_on_two_hosts_reach_each_other(backend: SshBackend, tmp_path: Path, told: ValuePipe) -> None:
    requests = [TaskRequest(task=task, resources=Resources(cpus=1)) for task in (PS, WORKER)]
    places = backend.reserve("j1", requests)
    assert len({place.host for place in places}) == 2
    ps, worker = places
    env = {"PS": ps.address}
    serve = """
host, port = os.environ["PS"].split(":")
listening = socket.create_server((host, int(port)))
tell()
connection, peer = listening.accept()
connection.sendall(os.environ["HEADWATER_TOKEN"].encode())
print("served", peer[0])
"""
    dial = """
host, port = os.environ["PS"].split(":")
said = socket.create_connection((host, int(port))).makefile().read()
print("from", host, said == os.environ["HEADWATER_TOKEN"])
"""
    first = backend.start(order(backend, tmp_path, serve, task=PS, place=ps, env=env))
    told()
    second = backend.start(order(backend, tmp_path, dial, place=worker, env=env))
    assert ends(backend, second).last_lines == (f"from {ps.host} True",)
    assert ends(backend, first).last_lines == (f"served {worker.host}",)
    assert printed(tmp_path / "j1-worker-0.log") == f"from {ps.host} True\n"


def test_logs_and_programs_travel(backend: SshBackend, tmp_path: Path) -> None:
    # Each is transferred in several pieces: an incompressible archive, and a log that exceeds one answer.
    (tmp_path / "data").write_bytes(os.urandom(3 << 20))
    (tmp_path / "main.py").write_text("print(len(open('data', 'rb').read()))\nfor n in range(100_000): print(n)\n")
    archive = tmp_path / "program.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for name in ("data", "main.py"):
            tar.add(tmp_path / name, name)
    ordered = order(backend, tmp_path, [sys.executable, "main.py"], archive=archive)
    handle = backend.start(ordered)
    assert ends(backend, handle).code == 0
    expected = [str(3 << 20), *map(str, range(100_000))]
    assert printed(ordered.log_path).splitlines() == expected
    again = backend.start(order(backend, tmp_path, ["headwater", "version"], attempt=1, place=ordered.place))
    assert ends(backend, again).code == 0
    assert len(printed(ordered.log_path).splitlines()) == len(expected) + 1


def test_selectors_choose_hosts(backend: SshBackend, hosts: SshHosts) -> None:
    (place,) = backend.reserve("j1", [TaskRequest(task=WORKER, selector={"number": "1"})])
    assert place.host == hosts.addresses[1]
    assert place.address.split(":")[0] == hosts.addresses[1]


def test_tasks_outlive_server_and_connection(
    backend: SshBackend, hosts: SshHosts, tmp_path: Path, told: ValuePipe
) -> None:
    ordered = order(backend, tmp_path, "tell(os.getpid()); print('before'); signal.pause()")
    handle = backend.start(ordered)
    pid = told()
    backend.close()
    again = new_backend(hosts, tmp_path)
    assert again.adopt(handle)
    assert again.start(ordered) == handle
    os.kill(pid, signal.SIGUSR1)
    assert ends(again, handle).reason == "killed by SIGUSR1"
    again.close()


def test_stopping_reaches_the_host(backend: SshBackend, tmp_path: Path, told: ValuePipe) -> None:
    handle = backend.start(order(backend, tmp_path, "tell(); signal.pause()"))
    told()
    backend.stop(handle, grace_s=60)
    ended = ends(backend, handle)
    assert (ended.code, ended.stopped) == (-signal.SIGTERM, True)


def test_a_host_that_is_cut_off_is_lost_and_found(
    backend: SshBackend, hosts: SshHosts, tmp_path: Path, told: ValuePipe
) -> None:
    ordered = order(backend, tmp_path, "tell(os.getpid()); signal.pause()")
    handle = backend.start(ordered)
    told()
    impatient = new_backend(hosts, tmp_path, call_timeout_s=3.0, retry_s=0.0, lost_after_s=0.5)
    # The new server's agents may take longer to start than its timeout; agents that already run answer at once.
    while any(host.problem for host in impatient.capacity().hosts):
        pass
    number = hosts.addresses.index(ordered.place.host)
    hosts.cut(number)
    try:
        state: TaskState = impatient.poll(handle)
        while isinstance(state, Running):
            assert state.waiting
            state = impatient.poll(handle)
        assert isinstance(state, Lost)
        assert ordered.place.host in state.reason
        capacity = {host.host: host.problem for host in impatient.capacity().hosts}
        assert capacity[ordered.place.host]
        with pytest.raises(BackendError) as refused:
            impatient.start(ordered)
        assert refused.value.temporary
        # Tasks without a place on that host can be started without it.
        (elsewhere,) = impatient.reserve("j2", [TaskRequest(task=WORKER)])
        assert elsewhere.host != ordered.place.host
        impatient.release("j2")
        with pytest.raises(BackendError):
            impatient.release("j1")
    finally:
        hosts.reconnect(number)
        impatient.close()
    # A lost task is killed before its next attempt starts, as soon as the host can be reached.
    second = None
    while second is None:
        with contextlib.suppress(BackendError):
            second = backend.start(order(backend, tmp_path, "pass", attempt=1, place=ordered.place))
    wait_for_end(keeper_of(handle))
    assert ends(backend, second).code == 0


def test_a_host_that_refuses_says_why(hosts: SshHosts, tmp_path: Path) -> None:
    wrong = SshHost(host=hosts.addresses[0], python="/no/python", options=hosts.options)
    backend = SshBackend(SshSettings(hosts=(wrong,), state_dir=tmp_path))
    (host,) = backend.capacity().hosts
    assert "/no/python" in host.problem
    with pytest.raises(NotEnough, match="/no/python") as pending:
        backend.reserve("j1", [TaskRequest(task=WORKER)])
    assert pending.value.temporary
    with pytest.raises(BackendError, match="/no/python"):
        backend.stop(json.dumps({"host": wrong.host}), grace_s=1)
    backend.close()


@pytest.mark.parametrize("host", ["", "-oProxyCommand=true"])
def test_options_in_place_of_a_host_are_refused(host: str) -> None:
    with pytest.raises(ValueError, match="host must be the name"):
        SshHost(host=host)
