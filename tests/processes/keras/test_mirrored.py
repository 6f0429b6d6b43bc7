"""Mirrored workers as processes: reactions to the loss of a worker."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import EXEC, Processes

PROGRAM = Path(__file__).with_name("interrupted.py")
RUN = [sys.executable, "-m", "headwater", "run", "--workers", "2", "--grace", "30"]

pytestmark = pytest.mark.slow


def launch(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*RUN, *map(str, arguments)], text=True, capture_output=True, check=False)


def results(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert done.returncode == 0, done.stderr
    return re.findall(r"result .*", done.stdout)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Returns the result of an undisturbed run."""
    first, second = results(launch(PROGRAM, tmp_path_factory.mktemp("undisturbed"), 0, 0))
    assert first == second
    return first


@pytest.mark.parametrize("signum", [pytest.param(signal.SIGKILL, marks=pytest.mark.long), signal.SIGTERM])
def test_a_run_that_loses_a_worker_ends_like_an_undisturbed_one(
    tmp_path: Path, undisturbed: str, signum: signal.Signals
) -> None:
    done = launch(PROGRAM, tmp_path, 7, signum.value)  # in the second epoch, between two saves
    assert results(done) == [undisturbed] * 2
    assert "all tasks restart from the last save" in done.stderr
    if signum is signal.SIGTERM:
        # Nothing was lost: each worker saved at the step after which all learnt of the request to end.
        assert len(re.findall(r"saved after epoch 1, step [23], because", done.stderr)) == 2
    assert not (tmp_path / "backup").exists()  # not needed any more


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGSTOP])
def test_without_a_launcher_processes_name_the_lost_one_and_request_a_restart(
    tmp_path: Path, signum: signal.Signals
) -> None:
    processes = Processes({"worker": 2})
    try:
        addresses = processes.release("worker")
        first, _ = (
            processes.run(
                *EXEC,
                *(str(PROGRAM), str(tmp_path), "7", str(signum.value)),
                PYTHONWARNINGS="ignore",  # with the newest JAX, Keras requests 64-bit shapes
                TF_CONFIG=json.dumps({"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}),
            )
            for index in range(2)
        )
        assert first.ends() == 75
    finally:
        processes.stop()
    # Earlier lines may report that the worker waits for the other one.
    *others, line = first.output.splitlines()
    assert all(" waits for " in other for other in others), first.output
    assert line.startswith(f"headwater: worker 1 ({addresses[1]}) is lost: ")
    assert ("it is stopped" in line) == (signum is signal.SIGSTOP)
    assert line.endswith("ending with exit code 75 to request a restart")


def test_document_004(tmp_path: Path, shared: Path) -> None:
    program = shared / "programs" / "keras_multi_worker.py"
    arguments = ("--batch_size", 100, "--epochs", 1, "--logdir", tmp_path)
    environment = ("--env", f"HEADWATER_DATA_DIR={shared / 'data'}")
    first = launch(*environment, program, *arguments)
    assert first.returncode == 0, first.stderr
    assert first.stdout.count("Creating a new model") == 2
    assert [path.name for path in (tmp_path / "ckpt").iterdir()] == ["ckpt-1"]
    assert list((tmp_path / "tb" / "train").glob("events.out.tfevents.*"))
    again = launch(*environment, program, *arguments)
    assert again.returncode == 0, again.stderr
    assert again.stdout.count(f"Restoring from {tmp_path}/ckpt/ckpt-1") == 2
