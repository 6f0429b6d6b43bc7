"""Transport tests that need processes: ports of other programs, tasks that are stopped or killed, shared memory."""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import psutil
import pytest

from headwater.cluster.addresses import Address
from headwater.cluster.names import TaskName
from headwater.cluster.transport.connect import connect, connect_lifeline
from headwater.cluster.transport.control_client import ControlClient
from headwater.cluster.transport.doctor import diagnose
from headwater.cluster.transport.frames import Frame
from headwater.cluster.transport.handshake import PeerIdentity
from headwater.cluster.transport.links import Link, LinkSettings
from headwater.cluster.transport.options import TransportOptions
from headwater.cluster.transport.ports import holders_of_port, listen
from headwater.cluster.transport.security import Security
from headwater.cluster.transport.shared import SharedMemoryChannel
from headwater.cluster.transport.waiting import Patience, Waiter
from headwater.cluster.transport.workplace import Workplace
from headwater.errors import AlreadyExistsError, UnavailableError

PS = PeerIdentity(task="/job:ps/task:0", generation=0)
WORKER = PeerIdentity(task="/job:worker/task:0", generation=7)
OURS = Security.from_environment()
TASK = Path(__file__).with_name("task.py")
#: The kind of a frame that keeps the task busy.
BUSY = 9

Linked = tuple[subprocess.Popen[str], Link]
Start = Callable[..., tuple[subprocess.Popen[str], Address]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a program that prints the port at which it listens."""
    with ExitStack() as stack:
        left_behind = stack.enter_context(TemporaryDirectory())

        def start(*command: str, **environ: str) -> tuple[subprocess.Popen[str], Address]:
            process = subprocess.Popen(
                [sys.executable, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=os.environ | {"TMPDIR": left_behind} | environ,
            )
            stack.callback(lambda: (process.kill(), process.communicate()))
            assert process.stdout is not None
            return process, Address("127.0.0.1", int(process.stdout.readline()))

        yield start


STRANGER = (
    "-c",
    "import socket, sys; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True)\n"
    "while True:\n"
    "    c, _ = s.accept(); c.recv(9); c.sendall(b'HTTP/1.1 400 Bad Request\\r\\n\\r\\n'); c.close()",
)
MUTE = (
    "-c",
    "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); input()",
)


def test_a_taken_port_names_its_holder(start: Start) -> None:
    process, address = start(*STRANGER)
    with pytest.raises(AlreadyExistsError) as caught:
        listen(address)
    assert f"cannot listen at {address}" in caught.value.message
    assert f"process {process.pid} (" in caught.value.message
    assert "socket.create_server" in caught.value.message
    assert "\n" not in caught.value.message
    (holder,) = holders_of_port(address.port)
    assert holder.pid == process.pid
    assert holder.user == psutil.Process(process.pid).username()


def test_a_free_port_has_no_holder() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert holders_of_port(bound.getsockname()[1]) == []


@pytest.mark.slow
def test_a_task_in_another_process(start: Start) -> None:
    _, address = start(str(TASK))
    channel = connect(address, me=WORKER, wanted=PS, security=OURS, options=TransportOptions())
    assert type(channel) is SharedMemoryChannel
    kept = []
    for number in range(12):
        channel.send(Frame(1, (number,), [np.full(100_000 + number, number), np.array([b"text"], object)]))
        received = channel.recv()
        assert received.header == (number,)
        kept.append(received.tensors[0])
    for number, tensor in enumerate(kept):
        assert tensor.shape == (100_000 + number,)
        assert (tensor == number).all()
    del kept, tensor, received
    # If no tensor is kept, the same memory is used again for each frame.
    before = len(list(Path("/proc/self/fd").iterdir()))
    for size in [1_000_000, 10, 50_000] * 20:
        channel.send(Frame(1, (), [np.zeros(size)]))
        channel.recv()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 8
    channel.close()


@pytest.mark.slow
def test_a_task_that_is_killed(start: Start) -> None:
    process, address = start(str(TASK))
    channel = connect(address, me=WORKER, wanted=PS, security=OURS, options=TransportOptions())
    assert not channel.peer_gone()
    process.kill()
    with pytest.raises(UnavailableError, match="/job:ps/task:0"):
        channel.recv()
    assert channel.peer_gone()


@pytest.fixture
def linked(start: Start) -> Iterator[Linked]:
    """Yields a task's process, and a link to it whose heartbeats are being received."""
    process, address = start(str(TASK))
    link = Link(LinkSettings(me=WORKER, waiter=Waiter(Patience())), TaskName("ps", 0), address)
    with contextlib.closing(link):
        link.reach()
        assert link.control.is_alive()
        # The helper process has taken over earlier connections, and has begun to send heartbeats.
        with connect_lifeline(address, me=WORKER, wanted=PS, security=OURS, timeout_s=60.0) as beats:
            beats.settimeout(None)
            assert beats.recv(1)
        yield process, link


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "amount", "loops_per_core"), [("hold", 20, 0), ("copy", 8, 0), ("compute", 3_000_000, 8)]
)
def test_a_task_that_is_busy_is_not_lost(linked: Linked, what: str, amount: int, loops_per_core: int) -> None:
    """The task holds the interpreter lock for longer than the silence deadline, copies 4 GiB, or waits for a core."""
    _, link = linked
    with ExitStack() as stack:
        for _ in range(loops_per_core * (os.cpu_count() or 1)):
            loop = subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"])
            stack.callback(loop.wait)
            stack.callback(loop.kill)
        first = link.open_channel()
        first.send(Frame(BUSY, (what, amount)))
        # Meanwhile, requests wait for the task, on a new channel and on the control plane.
        second = link.open_channel()
        second.send(Frame(1, ("hello",)))
        assert second.recv().header == ("hello",)
        assert link.control.list_devices() == []
        assert first.recv().header == (what, amount)
        assert not link.control.is_lost()
        assert link.control.is_alive()
        assert link.control.reason == ""


@pytest.mark.slow
def test_a_call_to_a_task_that_is_stopped_ends(linked: Linked) -> None:
    process, link = linked
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)
    # Without the lifeline, the call would wait for minutes, since the task had proved to be alive.
    with pytest.raises(UnavailableError, match="no longer answers: it is stopped"):
        link.control.list_devices()
    assert link.control.is_lost()
    process.send_signal(signal.SIGCONT)
    assert link.reach().task == PS.task
    assert not link.control.is_lost()
    assert link.control.list_devices() == []


@pytest.mark.slow
def test_the_helper_process_ends_with_its_task_and_is_replaced(
    linked: Linked,
) -> None:
    process, link = linked
    (helper,) = psutil.Process(process.pid).children()
    assert "heartbeat_process" in " ".join(helper.cmdline())
    helper.kill()
    # The link opens another lifeline, for which the task starts another helper process.
    while helper.is_running() or len(psutil.Process(process.pid).children()) != 1:
        assert not link.control.is_lost()
        link.control.status()
    (second,) = psutil.Process(process.pid).children()
    assert not link.control.is_lost()
    process.kill()
    psutil.wait_procs([second])
    assert not second.is_running()


@pytest.mark.slow
def test_a_task_that_is_stopped_is_noticed_each_time(start: Start) -> None:
    process, address = start(str(TASK))
    channel = connect(address, me=WORKER, wanted=PS, security=OURS, options=TransportOptions())
    losses: queue.SimpleQueue[None] = queue.SimpleQueue()

    def on_lost() -> None:
        channel.break_off("it no longer answers")
        losses.put(None)

    client = ControlClient(address, peer=PS.task, security=OURS, on_lost=on_lost)
    client.status()
    for _ in range(3):
        assert not client.is_lost()
        # Except for the first time, the task is stopped too soon after it has continued for any heartbeat to be sent.
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(UnavailableError, match=r"/job:ps/task:0 .* no longer answers"):
            channel.recv()
        losses.get()
        assert client.is_lost()
        process.send_signal(signal.SIGCONT)
        client.status(wait=True)
    client.close()


@pytest.mark.slow
def test_the_directory_of_a_killed_task_is_removed_by_the_next(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process, _ = start(str(TASK), TMPDIR=str(tmp_path))
    (left,) = tmp_path.glob("headwater-task-*")
    assert left.stat().st_mode & 0o777 == 0o700
    process.kill()
    process.wait()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    Workplace().close()
    assert left.exists()  # too new to distinguish from a directory that is being created
    os.utime(left, (1, 1))
    living = Workplace()
    os.utime(living.path, (1, 1))
    Workplace().close()
    assert list(tmp_path.iterdir()) == [living.path]
    living.close()


@pytest.mark.slow
def test_doctor_with_a_task(start: Start) -> None:
    _, address = start(str(TASK), HEADWATER_TOKEN="secret")
    right = Security(token="secret")
    found = diagnose(str(address), security=right)
    assert found.ok
    assert found.found == f"/job:ps/task:0 ({address})"
    assert diagnose(str(address), security=right, task="/job:ps/task:0").ok
    other = diagnose(str(address), security=right, task="/job:worker/task:1")
    assert not other.ok
    assert "it is /job:ps/task:0, not /job:worker/task:1" in other.problem
    wrong = diagnose(str(address), security=Security(token="wrong"))
    assert not wrong.ok
    assert "token" in wrong.problem
    assert "HEADWATER_TOKEN" in wrong.hint


def test_doctor_with_other_servers(start: Start) -> None:
    process, address = start(*STRANGER)
    taken = diagnose(str(address), timeout_s=20)
    assert not taken.ok
    assert "not Headwater" in taken.problem
    assert f"process {process.pid} (" in taken.problem
    process, address = start(*MUTE)
    mute = diagnose(str(address), timeout_s=0.2)
    assert "no answer" in mute.problem
    assert f"process {process.pid} (" in mute.problem


@pytest.fixture
def dropping() -> Iterator[Address]:
    """Yields a port that never answers: its queue is full, and the kernel drops connection attempts."""
    with ExitStack() as stack:
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(8):
            filling = stack.enter_context(socket.socket())
            filling.setblocking(False)
            filling.connect_ex(full.getsockname())
        yield Address(*full.getsockname())


def test_doctor_without_a_server(dropping: Address) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        refused = diagnose(f"127.0.0.1:{bound.getsockname()[1]}")
        assert not refused.ok
        assert "refused" in refused.problem
        assert "nothing listens" in refused.hint
    dropped = diagnose(str(dropping), timeout_s=0.2)
    assert dropped.problem == "no answer"
    assert "firewall" in dropped.hint
    unknown = diagnose("no-such-host.invalid:2222")
    assert "unknown host" in unknown.problem
    wrong = diagnose("no-port")
    assert not wrong.ok
    assert "no-port" in wrong.problem


@pytest.mark.slow
def test_waiting_for_a_port_that_answers_nothing(dropping: Address, caplog: pytest.LogCaptureFixture) -> None:
    waiter = Waiter(Patience(silence_deadline_s=2.0, report_s=0.1))

    def attempt() -> object:
        return connect(dropping, me=WORKER, wanted=PS, security=Security(), options=TransportOptions(), timeout_s=0.2)

    with pytest.raises(UnavailableError) as caught:
        waiter.connect(attempt, me=WORKER.task, peer=PS.task, address=dropping)
    for line in (*caplog.messages, caught.value.message):
        assert str(dropping) in line
        assert "firewall" in line
    assert len(caplog.messages) >= 2


@pytest.mark.slow
def test_a_parameter_server_does_not_grow_while_workers_join_and_leave(start: Start) -> None:
    process, address = start(str(TASK))
    task = psutil.Process(process.pid)

    def come_and_go(times: int) -> None:
        for _ in range(times):
            channel = connect(address, me=WORKER, wanted=PS, security=OURS, options=TransportOptions())
            channel.send(Frame(1, (), [np.zeros(300_000)]))
            channel.recv()
            channel.close()
            with ExitStack() as stack:
                client = ControlClient(address, peer=PS.task, security=OURS)
                stack.callback(client.close)
                client.status()

    come_and_go(5)
    files, memory = task.num_fds(), task.memory_info().rss
    come_and_go(15)
    # The task notices the last disconnections a moment later.
    again = threading.Event()
    while task.num_fds() > files + 8:
        again.wait(0.05)
    assert task.memory_info().rss - memory < 40 << 20


_DROPPING = """
ip link add here type veth peer name there &&
ip address add 192.0.2.1/24 dev here &&
ip link set here arp off up && ip link set there up && echo ready &&
exec "$0" -c 'from headwater.cluster.transport.doctor import diagnose; print(diagnose("192.0.2.2:2222", timeout_s=0.5))'
"""


@pytest.mark.netadmin
@pytest.mark.slow
def test_packets_that_a_network_drops() -> None:
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        pytest.skip("needs unshare and ip")
    found = subprocess.run(
        ["unshare", "--net", "sh", "-c", _DROPPING, sys.executable], capture_output=True, text=True, check=False
    )
    if "ready" not in found.stdout:
        pytest.skip(f"needs a network namespace with a pair of devices: {found.stderr}")
    assert "problem='no answer'" in found.stdout
    assert "firewall" in found.stdout
