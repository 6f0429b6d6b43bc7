"""``headwater run`` with processes: how a job ends, and that it leaves no process or file behind in any case."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.platform.host.guard import processes_of_job

HEADWATER = str(Path(sys.executable).with_name("headwater"))

# A task that takes over the socket of its address, as a server does, and prints its settings.
PREAMBLE = """
import json, os, signal, socket, subprocess, sys, threading
config = json.loads(os.environ["TF_CONFIG"])
job, index = config["task"]["type"], config["task"]["index"]
address = config["cluster"][job][index]
listening = socket.socket(fileno=json.loads(os.environ["HEADWATER_LISTEN_FDS"])[address])
"""

# A ps that answers every connection with its address until it is asked to end; workers ask it.
ECHO = (
    PREAMBLE
    + """
if job == "ps":
    signal.signal(signal.SIGTERM, lambda *_: (print("asked to end"), sys.exit(0)))
    while True:
        connection, _ = listening.accept()
        with connection:
            connection.sendall(address.encode())
else:
    for ps in config["cluster"]["ps"]:
        host, _, port = ps.rpartition(":")
        with socket.create_connection((host, int(port))) as connection:
            answer = connection.makefile().read()
        assert answer == ps, (answer, ps)
        print("answered by", answer)
"""
)

# Tasks that never end by themselves, each with a child in its own session that does not end either.
STAY = (
    PREAMBLE
    + """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
stay = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); signal.pause()"
child = subprocess.Popen([sys.executable, "-c", stay], start_new_session=True, stdout=subprocess.PIPE)
child.stdout.readline()
print("at", address, "processes", os.getpid(), child.pid, "job", os.environ["HEADWATER_JOB"])
while True:
    signal.pause()
"""
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "echo.py").write_text(ECHO)
    (tmp_path / "stay.py").write_text(STAY)
    return tmp_path


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [HEADWATER, "run", *arguments], cwd=cwd, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


class Staying:
    """A job of tasks that do not end, with their reported processes and addresses, and the job's mark."""

    def __init__(self, lines: list[str]) -> None:
        found = [re.search(r"at (\S+) processes (\d+) (\d+) job (\w+)", line) for line in lines]
        self.addresses = [match[1] for match in found if match]
        self.processes = [os.pidfd_open(int(pid)) for match in found if match for pid in (match[2], match[3])]
        self.job = next(match[4] for match in found if match)

    def wait_until_gone(self) -> None:
        """Returns when every process has ended, and checks that the ports are free."""
        for process in self.processes:
            select.select([process], [], [])
        assert processes_of_job(self.job) == []
        for address in self.addresses:
            host, _, port = address.rpartition(":")
            with socket.socket() as free:
                free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                free.bind((host, int(port)))

    def close(self) -> None:
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(process, signal.SIGKILL)
            os.close(process)


def staying_job(launcher: subprocess.Popen[str]) -> Staying:
    """Reads the launcher's output until all three tasks have reported; returns the job."""
    assert launcher.stdout is not None
    lines: list[str] = []
    while sum(" processes " in line for line in lines) < 3:
        line = launcher.stdout.readline()
        assert line, lines
        lines.append(line)
    return Staying(lines)


@pytest.fixture
def staying(folder: Path) -> Iterator[tuple[subprocess.Popen[str], Staying]]:
    launcher = subprocess.Popen(
        [HEADWATER, "run", "--ps", "1", "--workers", "2", "--grace", "0.1", "stay.py"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    with launcher:
        job = staying_job(launcher)
        yield launcher, job
        launcher.kill()
        job.close()


def test_the_ps_ends_when_the_workers_are_done(folder: Path) -> None:
    result = run("--ps", "2", "--workers", "2", "echo.py", cwd=folder)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert sum("answered by" in line for line in lines) == 4
    assert {line for line in lines if "asked to end" in line} == {"[ps 0] asked to end", "[ps 1] asked to end"}
    assert result.stderr == "headwater run: all workers are done\n"


def test_the_first_failure_is_shown_last_and_gives_the_exit_code(folder: Path) -> None:
    # The worker fails once the ps has printed its line.
    (folder / "fail.py").write_text(
        PREAMBLE
        + "print('begins')\n"
        + "if job == 'ps':\n    listening.accept()[0].close()\n"
        + "if (job, index) == ('worker', 1):\n"
        + "    host, _, port = config['cluster']['ps'][0].rpartition(':')\n"
        + "    socket.create_connection((host, int(port))).recv(1)\n"
        + "    raise RuntimeError('no data')\n"
        + "signal.pause()\n"
    )
    result = run("--ps", "1", "--workers", "2", "--log-dir", "logs", "fail.py", cwd=folder)
    assert result.returncode == 1
    last = result.stderr.splitlines()
    header = next(place for place, line in enumerate(last) if "its last lines" in line)
    assert (
        last[header]
        == "headwater run: worker 1 failed: exit code 1; its last lines (all of them in logs/worker-1.log):"
    )
    assert last[header + 1] == "[worker 1] begins"
    assert last[-1] == "[worker 1] RuntimeError: no data"
    assert (folder / "logs/worker-1.log").read_text().endswith("RuntimeError: no data\n")
    assert (folder / "logs/ps-0.log").read_text() == "begins\n"


@pytest.mark.parametrize(
    ("statement", "exit_code", "reason"),
    [
        ("sys.exit(42)", 42, "exit code 42"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", 139, "killed by SIGSEGV"),
        ("os.kill(os.getpid(), signal.SIGKILL)", 137, "killed by SIGKILL"),
    ],
)
@pytest.mark.parametrize("failing", ["ps", "worker"])
def test_exit_codes(folder: Path, failing: str, statement: str, exit_code: int, reason: str) -> None:
    (folder / "fail.py").write_text(PREAMBLE + f"if job == {failing!r}:\n    {statement}\nsignal.pause()\n")
    result = run("--ps", "1", "--workers", "1", "fail.py", cwd=folder)
    assert result.returncode == exit_code
    assert f"{failing} 0 failed: {reason}" in result.stderr


def test_modules_flags_and_variables(folder: Path) -> None:
    (folder / "tell.py").write_text("import os, sys\nprint(os.environ['A'], sys.argv[1:], sys.flags.optimize)\n")
    result = run("--workers", "1", "--flags", "--env", "A=b=c", "-O", "-m", "tell", "--ps", "9", cwd=folder)
    assert result.returncode == 0, result.stderr
    assert re.fullmatch(
        r"\[worker 0\] b=c \['--ps', '9', '--ps_hosts=', '--worker_hosts=127\.0\.0\.1:\d+', '--job_name=worker', "
        r"'--task_index=0'\] 1\n",
        result.stdout,
    )


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--ps", "1", "echo.py"], "--workers"),
        (["--workers", "-2", "echo.py"], "--workers"),
        (["--workers", "1", "absent.py"], "absent.py"),
        (["--workers", "1", "--wrokers", "2", "echo.py"], "--wrokers"),
        (["--workers", "1", "--env", "A", "echo.py"], "--env"),
        (["--workers", "1", "-"], "standard input"),
    ],
)
def test_a_wrong_argument_is_one_line(folder: Path, arguments: list[str], named: str) -> None:
    result = run(*arguments, cwd=folder)
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    assert named in result.stderr


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_launcher_leaves_nothing(
    staying: tuple[subprocess.Popen[str], Staying], signum: signal.Signals
) -> None:
    launcher, job = staying
    launcher.send_signal(signum)
    assert launcher.stdout is not None
    output = launcher.stdout.read()
    assert launcher.wait() == 128 + signum
    assert f"interrupted by {signum.name}" in output
    job.wait_until_gone()


def test_a_killed_launcher_leaves_nothing(staying: tuple[subprocess.Popen[str], Staying]) -> None:
    launcher, job = staying
    launcher.kill()
    assert launcher.wait() == -signal.SIGKILL
    job.wait_until_gone()


def test_a_closed_terminal_leaves_nothing(folder: Path) -> None:
    terminal, inside = pty.openpty()
    take_terminal = (
        "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
    )
    command = [HEADWATER, "run", "--ps", "1", "--workers", "2", "--log-dir", "logs", "--grace", "0.1", "stay.py"]
    with subprocess.Popen(
        [sys.executable, "-c", take_terminal, *command],
        cwd=folder,
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
    ) as launcher:
        os.close(inside)
        shown = b""
        while shown.count(b" processes ") < 3:
            shown += os.read(terminal, 4096)
        job = Staying([path.read_text() for path in (folder / "logs").iterdir()])
        os.close(terminal)
        assert launcher.wait() == 128 + signal.SIGHUP
    job.wait_until_gone()
    job.close()


TALK = PREAMBLE + "print('processes', os.getpid())\nwhile True:\n    print('x' * 1000)\n"


def test_a_closed_output_pipe_ends_the_job(folder: Path) -> None:
    (folder / "talk.py").write_text(TALK)
    with subprocess.Popen(
        [HEADWATER, "run", "--workers", "2", "talk.py"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as launcher:
        assert launcher.stdout is not None
        launcher.stdout.readline()
        launcher.stdout.close()
        assert launcher.wait() == 128 + signal.SIGPIPE
        assert launcher.stderr is not None
        assert launcher.stderr.read() == b""


def test_a_reader_that_stops_reading_does_not_keep_the_job_from_ending(folder: Path) -> None:
    (folder / "talk.py").write_text(TALK)
    with subprocess.Popen(
        [HEADWATER, "run", "--workers", "2", "talk.py"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as launcher:
        assert launcher.stdout is not None
        reading = launcher.stdout.fileno()
        shown = b""
        while len(told := re.findall(rb"processes (\d+)\n", shown)) < 2:
            shown += os.read(reading, 65536)
        launcher.send_signal(signal.SIGTERM)
        assert launcher.wait() == 143
    for pid in told:
        assert not Path(f"/proc/{int(pid)}").exists()


def test_a_final_partial_line_does_not_prevent_the_end(folder: Path) -> None:
    # A line without a line break is shown once no process can complete the line. The child can do so until it ends.
    (folder / "begin.py").write_text(
        PREAMBLE
        + "subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'], start_new_session=True)\n"
        + "print('a line', end='', flush=True)\nopen('ready', 'w').close()\nsignal.pause()\n"
    )
    os.mkfifo(folder / "ready")
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writing, bytes(1 << 16))
    os.set_blocking(writing, True)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(
        [HEADWATER, "run", "--workers", "1", "begin.py"],
        cwd=folder,
        env=env,
        stdout=writing,
        stderr=subprocess.DEVNULL,
    ) as launcher:
        (folder / "ready").read_bytes()
        launcher.send_signal(signal.SIGTERM)
        assert launcher.wait() == 143
    os.close(reading)
    os.close(writing)


def test_a_task_that_talks_all_the_time_does_not_drown_the_others(folder: Path) -> None:
    (folder / "talk.py").write_text(
        PREAMBLE + "print('here', index)\nif index == 1:\n    sys.exit(9)\nwhile True:\n    print('x' * 1000)\n"
    )
    result = run("--workers", "2", "talk.py", cwd=folder)
    assert result.returncode == 9
    assert "[worker 1] here 1" in result.stdout


def test_a_full_disk_ends_the_log_and_not_the_job(folder: Path) -> None:
    (folder / "logs").mkdir()
    (folder / "logs/worker-0.log").symlink_to("/dev/full")
    result = run("--workers", "1", "--log-dir", "logs", "-c", "print(1)\nprint(2)", cwd=folder)
    assert result.returncode == 0
    assert result.stdout == "[worker 0] 1\n[worker 0] 2\n"
    assert result.stderr.splitlines()[0].endswith(
        "the output of worker 0 is not written to logs/worker-0.log: No space left on device"
    )


@pytest.mark.slow
@pytest.mark.parametrize("count", [12, pytest.param(50, marks=pytest.mark.long)])
def test_launches_at_once_do_not_clash(folder: Path, count: int) -> None:
    # No task ends before all have received an answer, so each keeps its address until then.
    (folder / "gated.py").write_text(
        f"{ECHO}\n    import fcntl\n    fcntl.flock(os.open('gate', os.O_RDONLY), fcntl.LOCK_SH)\n"
    )
    with (folder / "gate").open("w") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        launches = [
            subprocess.Popen(
                [HEADWATER, "run", "--ps", "1", "--workers", "1", "gated.py"],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(count)
        ]
        answers = [launch.stdout.readline() for launch in launches if launch.stdout is not None]
    results = [(launch.communicate()[1], launch.returncode) for launch in launches]
    assert [(errors, returncode) for errors, returncode in results if returncode != 0] == []
    addresses = {address for answer in answers for address in re.findall(r"answered by (\S+)", answer)}
    assert len(addresses) == count


def test_on_a_terminal_there_are_colours_and_a_status_line(folder: Path) -> None:
    (folder / "report.py").write_text(
        PREAMBLE
        + "import headwater.cluster.telemetry.progress as p\n"
        + "reporter = p.ProgressReporter.from_environment(f'/job:{job}/task:{index}')\n"
        + "reporter.step(1234, loss=0.5)\nreporter.close()\nprint('reported')\nsys.stdin.read()\nsignal.pause()\n"
    )
    terminal, inside = pty.openpty()
    env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    with subprocess.Popen(
        [HEADWATER, "run", "--workers", "1", "--grace", "0.1", "report.py"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=inside,
        stderr=inside,
        env=env | {"TERM": "xterm-256color", "COLUMNS": "100"},
    ) as launcher:
        os.close(inside)
        shown = b""
        while b"step 1,234" not in shown or b"reported" not in shown:
            shown += os.read(terminal, 4096)
        launcher.send_signal(signal.SIGINT)
        while True:
            try:
                data = os.read(terminal, 4096)
            except OSError:  # no process has the terminal any more
                break
            shown += data
        assert launcher.wait() == 130
    os.close(terminal)
    text = shown.decode()
    assert re.search(r"\x1b\[36mworker 0 │ \x1b\[0mreported", text)
    assert "loss 0.5" in text


def test_a_task_that_reports_is_not_held_up_by_its_environment(folder: Path) -> None:
    (folder / "tell.py").write_text(
        "import json, os, sys\n"
        "names = ('TF_CONFIG', 'HEADWATER_STATUS', 'HEADWATER_LISTEN_FDS', 'HEADWATER_JOB', 'HEADWATER_PARENT')\n"
        "print(json.dumps([name for name in names if name in os.environ]))\n"
    )
    result = run("--workers", "1", "tell.py", cwd=folder)
    told = json.loads(result.stdout.removeprefix("[worker 0] "))
    assert told == ["TF_CONFIG", "HEADWATER_STATUS", "HEADWATER_LISTEN_FDS", "HEADWATER_JOB"]
