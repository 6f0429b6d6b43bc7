"""If a task or the whole job is killed at some step and restarted, the result equals the result of an undisturbed
job."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.processes import Process, processes

PROGRAM = Path(__file__).with_name("restarts.py")
pytestmark = pytest.mark.slow

#: Steps of the program's first four epochs, at which a task may be killed.
STEPS = range(1, 21)


def launch(strategy: str, folder: Path, killed: str, step: int) -> subprocess.CompletedProcess[str]:
    # The launcher restarts a mirrored job as a whole, and single workers if their number is a range.
    tasks = ["--workers", "2"] if strategy == "mirrored" else ["--ps", "1", "--workers", "2:2"]
    command = [sys.executable, "-m", "headwater", "run", *tasks, str(PROGRAM)]
    arguments = [strategy, str(folder), killed, str(step)]
    return subprocess.run([*command, *arguments], text=True, capture_output=True, check=False)


def result(strategy: str, folder: Path, killed: str = "none", step: int = 0) -> dict[str, Any]:
    """Returns the result of a job, which is launched again if its launcher does not restart it."""
    done = launch(strategy, folder, killed, step)
    if killed in ("all", "chief", "ps") and done.returncode:
        done = launch(strategy, folder, killed, step)
    assert done.returncode == 0, done.stderr
    if killed != "none":
        assert (folder / "killed").exists()
    return told_by(done.stdout)


def told_by(output: str) -> dict[str, Any]:
    """Returns the result that a job has printed."""
    (told,) = re.findall(r"result (\{.*\})", output)
    return json.loads(told)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Returns the result of an undisturbed mirrored job."""
    return result("mirrored", tmp_path_factory.mktemp("undisturbed"))


@pytest.mark.parametrize(
    ("strategy", "killed", "seed"),
    [
        ("mirrored", "worker", 0),
        ("sync", "worker", 1),
        pytest.param("mirrored", "chief", 2, marks=pytest.mark.long),
        pytest.param("mirrored", "all", 3, marks=pytest.mark.long),
        pytest.param("sync", "worker", 4, marks=pytest.mark.long),
        pytest.param("sync", "chief", 6, marks=pytest.mark.long),
        pytest.param("sync", "ps", 7, marks=pytest.mark.long),
        pytest.param("sync", "all", 5, marks=pytest.mark.long),
    ],
)
def test_a_job_that_is_killed_equals_an_undisturbed_one(
    strategy: str, killed: str, seed: int, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    require_equal(result(strategy, tmp_path, killed, random.Random(seed).choice(STEPS)), undisturbed)


@pytest.mark.long
@pytest.mark.parametrize(("killed", "seed"), [("worker", 8), ("chief", 9), ("ps", 10)])
def test_a_task_that_is_restarted_alone_changes_nothing(
    killed: str, seed: int, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    arguments = ("sync", str(tmp_path), killed, str(random.Random(seed).choice(STEPS)))
    with processes(ps=1, worker=2) as tasks:
        names = [("ps", 0), ("worker", 0), ("worker", 1)]

        def start(job: str, index: int) -> Process:
            config = {"cluster": tasks.hosts, "task": {"type": job, "index": index}}
            return tasks.start(job, index, PROGRAM, *arguments, TF_CONFIG=json.dumps(config))

        started = {name: start(*name) for name in names}
        name = {"ps": ("ps", 0), "chief": ("worker", 0), "worker": ("worker", 1)}[killed]
        started[name].ends()
        started[name] = start(*name)
        told = started["worker", 0].succeeds()
    require_equal(told_by(told), undisturbed)


def require_equal(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found["updates"] == expected["updates"]
    assert found["history"].keys() == expected["history"].keys()
    for name, values in expected["history"].items():
        np.testing.assert_allclose(found["history"][name], values, rtol=1e-3, err_msg=name)
    for name in ("rate", "best", "final"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-2, err_msg=name)
