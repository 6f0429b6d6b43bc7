"""The first process of a pod, which runs a task."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.cluster.telemetry.progress import Progress
from headwater.platform.host.pod_task import PROGRESS_PREFIX
from tests.support.tasks import PREAMBLE, ValuePipe, wait_for_end

FIRST = (sys.executable, "-P", "-m", "headwater.platform.host.pod_task")


@pytest.fixture
def told(tmp_path: Path) -> ValuePipe:
    return ValuePipe(tmp_path)


def start(program: str, tmp_path: Path) -> subprocess.Popen[str]:
    environment = os.environ | {"TELL": str(tmp_path / "tell")}
    command = [*FIRST, sys.executable, "-u", "-c", PREAMBLE + program]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def test_output_progress_and_exit_code_are_forwarded(tmp_path: Path) -> None:
    program = """
from headwater.cluster.telemetry.progress import Progress, report
print("begins")
print("complains", file=sys.stderr)
report(Progress(task="/job:worker/task:0", step=7, loss=0.5))
print("ends", end="")
sys.exit(3)
"""
    with start(program, tmp_path) as pod:
        printed, _ = pod.communicate()
    assert pod.returncode == 3
    told = [line for line in printed.splitlines() if line.startswith(PROGRESS_PREFIX)]
    assert [Progress.decode(line.removeprefix(PROGRESS_PREFIX).encode()) for line in told] == [
        Progress(task="/job:worker/task:0", step=7, loss=0.5)
    ]
    assert [line for line in printed.splitlines() if line not in told] == ["begins", "complains", "ends"]


def test_a_request_to_end_the_pod_reaches_the_task(tmp_path: Path, told: ValuePipe) -> None:
    program = """
def end(*_):
    print("saved")
    sys.exit(5)
signal.signal(signal.SIGTERM, end)
tell()
while True: signal.pause()
"""
    with start(program, tmp_path) as pod:
        told()
        pod.send_signal(signal.SIGTERM)
        assert pod.communicate() == ("saved\n", None)
    assert pod.returncode == 5
    told.close()


def test_a_program_behind_a_shell_and_a_pipeline_saves_too(tmp_path: Path, told: ValuePipe) -> None:
    program = """
def end(*_):
    print("saved")
    sys.exit(5)
signal.signal(signal.SIGTERM, end)
tell()
while True: signal.pause()
"""
    (tmp_path / "program.py").write_text(PREAMBLE + program)
    shell = ["/bin/sh", "-c", f"{sys.executable} -u {tmp_path}/program.py | cat; echo after"]
    environment = os.environ | {"TELL": str(tmp_path / "tell")}
    with subprocess.Popen([*FIRST, *shell], env=environment, stdout=subprocess.PIPE, text=True) as pod:
        told()
        pod.send_signal(signal.SIGTERM)
        assert pod.communicate() == ("saved\n", None)
    assert pod.returncode == 128 + signal.SIGTERM
    told.close()


def test_processes_left_by_the_task_are_not_awaited(tmp_path: Path, told: ValuePipe) -> None:
    program = """
child = subprocess.Popen([sys.executable, "-c", "import signal\\nwhile True: signal.pause()"])
tell(child.pid)
os.kill(os.getpid(), signal.SIGKILL)
"""
    with start(program, tmp_path) as pod:
        left = told()
        assert pod.wait() == 128 + signal.SIGKILL
        os.kill(left, signal.SIGKILL)
        wait_for_end(left)
    told.close()


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    done = subprocess.run([*FIRST, str(tmp_path / "missing")], capture_output=True, text=True)
    assert done.returncode == 127
    assert f"{tmp_path / 'missing'} could not be started: " in done.stdout
