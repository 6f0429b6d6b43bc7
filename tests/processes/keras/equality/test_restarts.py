"""If a task or the whole job is killed at some step and restarted, the result equals an undisturbed job's."""

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
    (told,) = re.findall(r"result (\{.*\})", done.stdout)
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
    found = result(strategy, tmp_path, killed, random.Random(seed).choice(STEPS))
    assert found["updates"] == undisturbed["updates"]
    assert found["history"].keys() == undisturbed["history"].keys()
    for name, values in undisturbed["history"].items():
        np.testing.assert_allclose(found["history"][name], values, rtol=1e-3, err_msg=name)
    for name in ("rate", "best", "final"):
        np.testing.assert_allclose(found[name], undisturbed[name], rtol=1e-2, err_msg=name)
