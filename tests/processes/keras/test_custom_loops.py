"""Custom training loops on several processes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PROGRAM = Path(__file__).parents[3] / "examples" / "custom_loop.py"
COORDINATED = Path(__file__).parents[3] / "examples" / "coordinator_loop.py"

FOLDER = Path(__file__).parent

pytestmark = pytest.mark.slow


def printed(*command: str) -> str:
    """Returns the output of a run on several processes."""
    run = [sys.executable, "-m", "headwater", "run", *command]
    done = subprocess.run(run, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def figures(*command: str) -> list[float]:
    """Returns the losses and accuracies that a run prints."""
    done = subprocess.run([sys.executable, "-m", "headwater", *command], text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return [float(number) for number in re.findall(r"(?:loss|accuracy) (\d+\.\d+)", done.stdout)]


def test_two_mirrored_workers_train_like_one_and_resume_from_the_checkpoint(tmp_path: Path) -> None:
    alone = figures("exec", str(PROGRAM), "--steps", "10", "--epochs", "2")
    assert len(alone) == 4
    two = ("run", "--workers", "2", str(PROGRAM), "--steps", "10", "--folder", str(tmp_path))
    together = figures(*two, "--epochs", "2")
    assert together == pytest.approx(alone, abs=1e-5)
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".index") == [
        "ckpt-1.index",
        "ckpt-2.index",
    ]
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]
    # The epoch has the same examples as the first one.
    onward = figures("exec", str(PROGRAM), "--steps", "10", "--folder", str(tmp_path), "--epochs", "3")
    assert len(onward) == 2
    assert onward[0] < together[0]


def test_workers_run_scheduled_functions_on_variables_of_two_ps() -> None:
    command = ("run", "--chief", "--ps", "2", "--workers", "2", str(COORDINATED), "--epochs", "2", "--steps", "20")
    done = subprocess.run([sys.executable, "-m", "headwater", *command], text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    epochs = re.findall(r"accuracy (\S+) of (\d+) examples", done.stdout)
    assert [int(count) for _, count in epochs] == [640, 640]  # each step once, on any worker
    assert float(epochs[0][0]) < float(epochs[1][0])
    assert float(epochs[1][0]) > 0.99
    assert "done True" in done.stdout
    assert "was lost" not in done.stderr


@pytest.mark.long
def test_two_models_with_moving_averages_in_one_loop_on_two_ps() -> None:
    found = printed("--chief", "--ps", "2", "--workers", "2", str(FOLDER / "adversaries.py"))
    (made,) = re.findall(r"from (-?[.\d]+) to (-?[.\d]+)", found)
    assert float(made[0]) + 0.3 < float(made[1])  # the generator's outputs move towards the real data
    (moved,) = re.findall(r"moved ([.\d]+)", found)
    assert float(moved) > 0.1  # both workers have changed the moving variances from their initial values


def test_replicas_gather_within_compiled_functions() -> None:
    found = printed("--workers", "2", str(FOLDER / "gathers.py"))
    rows = "[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [10.0, 11.0, 12.0], [13.0, 14.0, 15.0]]"
    assert found.count(f"rows {rows} large [[False, True], [True, True]]") == 2
    assert found.count("options True") == 2


def test_uneven_data_stop_no_worker_and_every_example_counts() -> None:
    found = printed("--workers", "2", str(FOLDER / "uneven.py"))
    for line in ("known 8 45.0", "filtered 8 45.0", "none 1 4.0", "divided 6 45.0"):
        assert found.count(line) == 2, found


def test_variables_of_no_model_are_the_same_for_all_that_a_coordinator_schedules() -> None:
    found = printed("--chief", "--ps", "1", "--workers", "2", str(FOLDER / "coordinated.py"))
    weights, velocity, losses = np.array([1.0, 2.0]), np.zeros(2), []
    for _ in range(3):
        losses.append(float((weights**2).sum()))
        velocity = 0.5 * velocity - 0.1 * 2 * weights
        weights = weights + velocity
    for line in (
        "added [2.0, 4.0, 6.0, 8.0, 10.0] 10.0",
        "added [13.0, 16.0] 16.0",
        "put [7.0, 7.0, 7.0, 7.0] 7.0",
        f"trained {[round(loss, 4) for loss in losses]} {[round(weight, 4) for weight in weights.tolist()]}",
        "iterations 3",
        "measured [3.0, 3.0, 3.0, 3.0] 3.0",
    ):
        assert line in found, found


def test_two_devices_of_a_process_make_the_steps_of_one() -> None:
    """The values equal the single-device program's, except for the mean of two losses in each step."""
    run = [sys.executable, "-m", "headwater", "exec", str(FOLDER / "two_devices.py")]
    environ = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    done = subprocess.run(run, text=True, capture_output=True, check=False, env=environ)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "loss 96.0",
        "loss 650.921",
        "weights [0.8175, 0.8168, -0.1913]",
        "average 186.73 steps 2",
    ]
