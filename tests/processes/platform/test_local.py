"""The local backend with processes: ends of tasks, tasks that outlive the server, and no process that outlives its
task.
"""

from __future__ import annotations

import itertools
import os
import signal
import socket
import sys
import tarfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from headwater.cluster.addresses import parse_address
from headwater.cluster.names import TaskName
from headwater.cluster.telemetry.progress import Progress
from headwater.platform.backends.base import (
    BackendError,
    Exited,
    Lost,
    NotEnough,
    Resources,
    Running,
    TaskBackend,
    TaskRequest,
)
from headwater.platform.backends.local import LocalBackend, LocalSettings
from headwater.platform.host.processes import identity
from tests.support.processes import Process
from tests.support.tasks import PREAMBLE, WORKER, ValuePipe, ends, keeper_of, order, printed, wait_for_end

PAUSE = "tell(os.getpid()); signal.pause()"
STUBBORN = "signal.signal(signal.SIGTERM, signal.SIG_IGN); tell(os.getpid())\nwhile True: signal.pause()"


def new_backend(tmp_path: Path, **settings: Any) -> LocalBackend:
    return LocalBackend(LocalSettings(state_dir=tmp_path / "state", **settings))


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[LocalBackend]:
    backend = new_backend(tmp_path)
    yield backend
    for job_id in [folder.name for folder in (tmp_path / "state" / "jobs").glob("*")]:
        backend.release(job_id)


@pytest.fixture
def told(tmp_path: Path) -> Iterator[ValuePipe]:
    told = ValuePipe(tmp_path)
    yield told
    told.close()


def test_a_task_runs_and_its_end_is_reported(backend: TaskBackend, tmp_path: Path) -> None:
    program = "print('out'); print('err', file=sys.stderr); print(os.environ['MINE'], os.getcwd()); sys.exit(3)"
    ordered = order(backend, tmp_path, program, env={"MINE": "yes"}, cwd=str(tmp_path))
    ended = ends(backend, backend.start(ordered))
    assert (ended.code, ended.reason, ended.stopped, ended.preempted) == (3, "exit code 3", False, False)
    assert ended.last_lines == ("out", "err", f"yes {tmp_path}")
    assert printed(ordered.log_path).splitlines() == list(ended.last_lines)


def test_a_report_just_before_the_end_of_a_task_is_kept(backend: TaskBackend, tmp_path: Path) -> None:
    program = """
from headwater.cluster.telemetry.progress import Progress, report
for step in range(50):
    report(Progress(task="/job:worker/task:0", step=step))
"""
    ended = ends(backend, backend.start(order(backend, tmp_path, program)))
    assert ended.progress == Progress(task="/job:worker/task:0", step=49)


def test_a_program_that_cannot_be_run_fails_the_task(backend: TaskBackend, tmp_path: Path) -> None:
    missing = ends(backend, backend.start(order(backend, tmp_path, ["/no/such/program"])))
    assert missing.code == 127
    assert "/no/such/program" in missing.reason
    nowhere = ends(backend, backend.start(order(backend, tmp_path, "", job_id="j2", cwd="/no/such/folder")))
    assert nowhere.code == 127
    assert "/no/such/folder" in nowhere.reason


def test_a_task_killed_by_a_signal_says_so(backend: TaskBackend, tmp_path: Path) -> None:
    ended = ends(backend, backend.start(order(backend, tmp_path, "os.kill(os.getpid(), signal.SIGSEGV)")))
    assert (ended.code, ended.reason) == (-signal.SIGSEGV, "killed by SIGSEGV")


def start_server(tmp_path: Path, program: str) -> Process:
    """Starts a process that runs ``program`` with a ``folder``, and then waits."""
    preamble = """
import signal, sys
from pathlib import Path
from tests.processes.platform.test_local import new_backend
from tests.support.tasks import order
from headwater.cluster.names import TaskName
folder = Path(sys.argv[1])
"""
    script = tmp_path / "server.py"
    script.write_text(f"{preamble}{program}\nsignal.pause()\n")
    path = str(Path(__file__).parents[3])
    return Process([sys.executable, str(script), str(tmp_path)], os.environ | {"PYTHONPATH": path})


def test_the_server_may_be_killed_and_restarted(backend: TaskBackend, tmp_path: Path, told: ValuePipe) -> None:
    server = start_server(
        tmp_path,
        "backend = new_backend(folder)\n"
        f"print(backend.start(order(backend, folder, {PAUSE!r})), flush=True)\n"
        "ended = order(backend, folder, 'tell(os.getpid()); sys.exit(5)', task=TaskName('worker', 1))\n"
        "print(backend.start(ended), flush=True)\n",
    )
    pid = told()
    running = server.wait_for(r"^\{.*").group()
    told()
    ended = server.wait_for(r"^\{.*", after=1).group()
    server.kill()
    assert backend.adopt(running)
    assert isinstance(backend.poll(running), Running)
    assert ends(backend, ended).code == 5
    os.kill(pid, signal.SIGUSR1)
    assert ends(backend, running).reason == "killed by SIGUSR1"
    assert not backend.adopt(running)


def test_tasks_may_end_with_the_process_that_started_them(
    backend: TaskBackend, tmp_path: Path, told: ValuePipe
) -> None:
    server = start_server(
        tmp_path,
        "backend = new_backend(folder, outlive=False)\n"
        f"print(backend.start(order(backend, folder, {STUBBORN!r})), flush=True)\n",
    )
    pid = told()
    handle = server.wait_for(r"^\{.*").group()
    server.kill()
    wait_for_end(pid)
    assert ends(backend, handle).reason == "killed, because the process that had started it ended"


def test_stop_asks_first_and_kills_later(backend: TaskBackend, tmp_path: Path, told: ValuePipe) -> None:
    polite = backend.start(order(backend, tmp_path, PAUSE))
    told()
    backend.stop(polite, grace_s=60)
    ended = ends(backend, polite)
    assert (ended.code, ended.stopped) == (-signal.SIGTERM, True)
    stubborn = backend.start(order(backend, tmp_path, STUBBORN, job_id="j2"))
    told()
    backend.stop(stubborn, grace_s=60)
    assert isinstance(backend.poll(stubborn), Running)
    backend.stop(stubborn, grace_s=0.01)
    ended = ends(backend, stubborn)
    assert (ended.code, ended.stopped) == (-signal.SIGKILL, True)
    assert "did not end when it was asked to" in ended.reason
    backend.stop(stubborn, grace_s=1)


#: Programs that are asked to end at a moment, and the lines that they print.
MOMENTS = {
    "before the first step": ("pass", "pass", []),
    "in a save": ("signal.signal(signal.SIGTERM, save)", "pass", ["saves", "saved"]),
    "after the last step": (
        "signal.signal(signal.SIGTERM, lambda *_: tell('asked'))",
        "await_gate(); print('result', flush=True); sys.exit(0)",
        ["result"],
    ),
}
PROGRAM = (
    PREAMBLE
    + """
def await_gate():
    with open(os.environ["GATE"]) as gate:
        gate.read()
def save(*_):
    print("saves", flush=True)
    tell("asked")
    await_gate()
    print("saved", flush=True)
    sys.exit(0)
HANDLER
tell("runs")
FINISH
while True: signal.pause()
"""
)
#: Command lines around a program, as in job files; ``$P`` is the program.
COMMANDS = {
    "program": [sys.executable, "{program}"],
    "shell": ["/bin/sh", "-c", "$P; echo after"],
    "pipeline": ["/bin/sh", "-c", "$P 2>&1 | cat"],
    "script": ["/bin/sh", "-c", "/bin/sh -c '$P; echo inner'; echo outer"],
    "trap in front": ["/bin/bash", "-c", "trap 'echo trapped' TERM; $P; exit 0"],
    "trap behind": ["/bin/bash", "-c", "trap 'kill $!' TERM; $P & wait $!; wait $!"],
    "own group": ["/bin/sh", "-c", "timeout 600 $P; echo after"],
    "launcher": [sys.executable, "-c", "LAUNCH", "{program}"],
    "grandchildren": ["/bin/sh", "-c", f"{sys.executable} -c 'LAUNCH' {{program}} | sed -u s/x/x/ | cat; echo after"],
    "module": [sys.executable, "-m", "program"],
}
LAUNCH = "import subprocess, sys; subprocess.run([sys.executable, sys.argv[1]])"
#: Ways to ask a task to end. Scaling down stops a task, and draining a host preempts it.
REQUESTS = ("stopped", "preempted", "stopped after the server was killed")
#: Each option with some others; the other combinations are `long`.
SHORT = {
    *(("pipeline", request, "in a save") for request in REQUESTS),
    ("program", "stopped", "in a save"),
    ("trap behind", "stopped", "in a save"),
    ("grandchildren", "preempted", "in a save"),
    ("grandchildren", "stopped", "before the first step"),
    ("pipeline", "preempted", "after the last step"),
}


@pytest.mark.parametrize(
    ("command", "request_", "moment"),
    [
        pytest.param(*cell, marks=() if cell in SHORT else pytest.mark.long)
        for cell in itertools.product(COMMANDS, REQUESTS, MOMENTS)
    ],
)
def test_the_program_behind_any_command_saves_at_the_end(
    backend: TaskBackend, tmp_path: Path, told: ValuePipe, command: str, request_: str, moment: str
) -> None:
    handler, finish, expected = MOMENTS[moment]
    program, gate = tmp_path / "program.py", tmp_path / "gate"
    program.write_text(PROGRAM.replace("HANDLER", handler).replace("FINISH", finish))
    os.mkfifo(gate)
    argv = [
        word.replace("LAUNCH", LAUNCH).replace("$P", f"{sys.executable} {{program}}").replace("{program}", str(program))
        for word in COMMANDS[command]
    ]
    settings: Any = {"env": {"GATE": str(gate), "PYTHONPATH": str(tmp_path)}}
    if request_ == "stopped after the server was killed":
        server = start_server(
            tmp_path,
            "backend = new_backend(folder)\n"
            f"print(backend.start(order(backend, folder, {argv!r}, **{settings!r})), flush=True)\n",
        )
        handle = server.wait_for(r"^\{.*").group()
        server.kill()
        assert backend.adopt(handle)
    else:
        handle = backend.start(order(backend, tmp_path, argv, **settings))
    assert told() == "runs"
    if request_ == "preempted":
        os.kill(keeper_of(handle), signal.SIGTERM)
    else:
        backend.stop(handle, grace_s=60)
    if expected:
        assert told() == "asked"
        # While the task saves, the request is repeated, as by a restarted server.
        backend.stop(handle, grace_s=60)
        assert isinstance(backend.poll(handle), Running)
        gate.write_text("continue")
    ended = ends(backend, handle)
    lines = printed(tmp_path / "j1-worker-0.log").splitlines()
    assert [line for line in lines if line not in ("trapped", "Terminated")] == expected
    assert (ended.stopped, ended.preempted) == (
        (False, True) if request_ == "preempted" and not expected else (True, False)
    )


def test_a_task_that_others_ask_to_end_was_preempted(backend: TaskBackend, tmp_path: Path, told: ValuePipe) -> None:
    handle = backend.start(order(backend, tmp_path, PAUSE))
    told()
    os.kill(keeper_of(handle), signal.SIGTERM)
    ended = ends(backend, handle)
    assert (ended.code, ended.stopped, ended.preempted) == (-signal.SIGTERM, False, True)


def test_nothing_outlives_a_task(backend: TaskBackend, tmp_path: Path, told: ValuePipe) -> None:
    child = PREAMBLE + STUBBORN
    program = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
    program += f"subprocess.Popen([sys.executable, '-c', {child!r}], start_new_session=True); signal.pause()"
    handle = backend.start(order(backend, tmp_path, program))
    pid = told()
    backend.stop(handle, grace_s=60)
    assert ends(backend, handle).code == 0
    wait_for_end(pid)


def test_the_same_attempt_again_is_the_same_task(backend: TaskBackend, tmp_path: Path, told: ValuePipe) -> None:
    ordered = order(backend, tmp_path, PAUSE)
    handle = backend.start(ordered)
    told()
    assert backend.start(ordered) == handle
    assert isinstance(backend.poll(handle), Running)


def test_an_attempt_starts_when_nothing_of_the_last_is_left(
    backend: TaskBackend, tmp_path: Path, told: ValuePipe
) -> None:
    child = PREAMBLE + STUBBORN
    program = f"subprocess.Popen([sys.executable, '-c', {child!r}], start_new_session=True); signal.pause()"
    ordered = order(backend, tmp_path, program)
    first = backend.start(ordered)
    left = told()
    # Without its keeper, the kernel kills the task, but not the processes that the task has started.
    os.kill(keeper_of(first), signal.SIGKILL)
    wait_for_end(keeper_of(first))
    state = backend.poll(first)
    assert isinstance(state, Lost)
    assert "was killed" in state.reason
    assert identity(left).is_alive()
    second = backend.start(order(backend, tmp_path, "pass", attempt=1, place=ordered.place))
    wait_for_end(left)
    assert ends(backend, second).code == 0
    with pytest.raises(BackendError, match="was followed by attempt 1"):
        backend.start(ordered)


def test_a_task_that_takes_too_much_memory_is_killed(backend: TaskBackend, tmp_path: Path) -> None:
    resources = Resources(memory_bytes=200 << 20)
    program = "held = bytearray(400 << 20)\nwhile True: signal.pause()"
    ended = ends(backend, backend.start(order(backend, tmp_path, program, resources=resources)))
    assert ended.code == -signal.SIGKILL
    assert ended.reason.startswith("used ")
    assert ended.reason.endswith("of 200.0 MiB of memory")


def test_the_port_of_a_task_is_its_own(backend: TaskBackend, tmp_path: Path, told: ValuePipe) -> None:
    program = """
host, port = os.environ["ADDRESS"].split(":")
tell()
listening = socket.create_server((host, int(port)))
tell()
signal.pause()
"""
    (place,) = backend.reserve("j1", [TaskRequest(task=WORKER)])
    address = parse_address(place.address)
    backend.start(order(backend, tmp_path, program, place=place, env={"ADDRESS": place.address}))
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(address)
    told()
    told()
    socket.create_connection(address).close()


def test_a_port_that_is_taken_is_named(backend: TaskBackend, tmp_path: Path) -> None:
    (place,) = backend.reserve("j1", [TaskRequest(task=WORKER)])
    with socket.socket() as other:
        other.bind(parse_address(place.address))
        other.listen()
        ended = ends(backend, backend.start(order(backend, tmp_path, "pass", place=place)))
    assert ended.code == 75
    assert place.address.split(":")[1] in ended.reason


def test_progress_and_use_are_reported(backend: TaskBackend, tmp_path: Path, told: ValuePipe) -> None:
    program = """
from headwater.cluster.telemetry.progress import ProgressReporter
reporter = ProgressReporter.from_environment("/job:worker/task:0")
reporter.step(7, loss=0.5)
reporter.close()
tell()
signal.pause()
"""
    handle = backend.start(order(backend, tmp_path, program))
    told()
    backend.stop(handle, grace_s=60)
    ended = ends(backend, handle)
    assert ended.progress is not None
    assert (ended.progress.step, ended.progress.loss) == (7, 0.5)
    other = backend.start(order(backend, tmp_path, "held = bytearray(100 << 20); " + PAUSE, job_id="j2"))
    told()
    state = backend.poll(other)
    assert isinstance(state, Running)
    assert state.usage is not None
    assert state.usage.memory_bytes > 100 << 20
    assert state.usage.cpu_s > 0


def test_resources_are_accounted_for(tmp_path: Path, told: ValuePipe) -> None:
    cores = len(os.sched_getaffinity(0))
    backend = new_backend(tmp_path, memory_bytes=4 << 30)
    program = "tell(sorted(os.sched_getaffinity(0))); signal.pause()"
    ordered = order(backend, tmp_path, program, resources=Resources(cpus=1, memory_bytes=1 << 30))
    backend.start(ordered)
    assert told() == list(ordered.place.cores)
    assert len(ordered.place.cores) == 1
    two = [TaskRequest(task=TaskName("worker", index), resources=Resources(cpus=cores - 0.25)) for index in (1, 2)]
    with pytest.raises(NotEnough, match="CPUs") as refused:
        backend.reserve("j2", two[:1])
    assert refused.value.temporary
    with pytest.raises(NotEnough) as refused:
        backend.reserve("j2", two)
    assert not refused.value.temporary
    # A restarted server knows which ports are in use.
    again = new_backend(tmp_path, memory_bytes=4 << 30)
    again.restore("j1", [ordered.place])
    assert again.capacity().hosts[0].free.memory_bytes == 3 << 30
    again.release("j1")
    assert again.capacity().hosts[0].free == Resources(cpus=cores, memory_bytes=4 << 30)


def test_many_jobs_at_once_get_different_ports(backend: TaskBackend, tmp_path: Path) -> None:
    others = new_backend(tmp_path / "other")
    places = [
        place
        for number in range(25)
        for some in (backend, others)
        for place in some.reserve(f"j{number}", [TaskRequest(task=TaskName("worker", index)) for index in range(3)])
    ]
    assert len({place.address for place in places}) == 150
    for number in range(25):
        others.release(f"j{number}")
        backend.release(f"j{number}")


def test_many_jobs_at_once_run(backend: TaskBackend, tmp_path: Path) -> None:
    def run(number: int) -> tuple[int, str]:
        ordered = order(backend, tmp_path, ["/bin/sh", "-c", f"echo {number}; exit {number}"], job_id=f"j{number}")
        ended = ends(backend, backend.start(ordered))
        backend.release(f"j{number}")
        return ended.code, printed(ordered.log_path).strip()

    with ThreadPoolExecutor(20) as pool:
        assert list(pool.map(run, range(20))) == [(number, str(number)) for number in range(20)]


def test_an_archive_is_unpacked_for_the_job(backend: TaskBackend, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("open('made', 'x').close(); print('from the archive')")
    archive = tmp_path / "program.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(tmp_path / "main.py", "main.py")
    ordered = order(backend, tmp_path, [sys.executable, "main.py"], archive=archive)
    ended = ends(backend, backend.start(ordered))
    assert (ended.code, ended.last_lines) == (0, ("from the archive",))
    made = list((tmp_path / "state").rglob("made"))
    assert len(made) == 1
    backend.forget("j1")
    assert not made[0].exists()


def test_a_log_has_a_bound(backend: TaskBackend, tmp_path: Path) -> None:
    ordered = order(backend, tmp_path, "print('x' * 100_000); print('last')", max_log_bytes=1000)
    ended = ends(backend, backend.start(ordered))
    assert isinstance(ended, Exited)
    assert ended.last_lines[-1] == "last"
    assert "the log is full" in ordered.log_path.read_text()
    assert ordered.log_path.stat().st_size < 2000
