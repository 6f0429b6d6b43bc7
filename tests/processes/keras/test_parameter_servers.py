"""Keras on parameter servers as processes: workers and a ps are killed and restarted."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.processes import EXEC, Process, Processes, processes

PROGRAM = Path(__file__).with_name("served.py")
PUSHES = Path(__file__).with_name("pushes.py")
CLIPPED = Path(__file__).with_name("clipped.py")
SEVERAL = Path(__file__).with_name("several_models.py")

pytestmark = pytest.mark.slow


def start(cluster: Processes, job: str, index: int, folder: Path, *options: str) -> Process:
    config = json.dumps({"cluster": cluster.hosts, "task": {"type": job, "index": index}})
    if job == "evaluator":  # an evaluator is not in the cluster spec
        return cluster.run(*EXEC, str(PROGRAM), str(folder), TF_CONFIG=config)
    return cluster.start(job, index, PROGRAM, *options, str(folder), TF_CONFIG=config)


def test_workers_and_a_ps_join_and_leave_while_the_others_train(tmp_path: Path) -> None:
    with processes(ps=2, worker=2) as cluster:
        ps = [start(cluster, "ps", index, tmp_path) for index in range(2)]
        chief, other = (start(cluster, "worker", index, tmp_path) for index in range(2))
        evaluator = start(cluster, "evaluator", 0, tmp_path)
        other.wait_for(r"epoch \d+ updates \d+ with \['loss'\]")
        other.kill()
        chief.wait_for("epoch", after=chief.line_count())

        other = start(cluster, "worker", 1, tmp_path)
        # The restarted worker continues in the chief's current epoch.
        assert int(other.wait_for(r"epoch (\d+)")[1]) > 0

        evaluator.wait_for(r"epoch \d+ updates \d+ with \['val_loss'\]")

        before = int(chief.wait_for(r"epoch \d+ updates (\d+)", after=chief.line_count() - 1)[1])
        ps[1].kill()
        ps[1] = start(cluster, "ps", 1, tmp_path)
        line = chief.line_count()
        brought = int(chief.wait_for(r"sends /job:ps/task:1 the values of version (\d+)")[1])
        assert brought > 0
        assert int(chief.wait_for(r"epoch \d+ updates (\d+)", after=line)[1]) > before

        (tmp_path / "stop").touch()
        for worker in (chief, other):
            assert "trained [0.0, 1.0, 2.0, 3.0] [1.0]" in worker.succeeds().replace("-0.0", "0.0")
        assert evaluator.ends() == 0
        for task in ps:  # the ps end without a request
            task.succeeds()


@pytest.mark.long
def test_an_evaluator_ends_after_a_restarted_ps_has_ended(tmp_path: Path) -> None:
    hold = tmp_path / "hold"
    os.mkfifo(hold)
    with processes(ps=2, worker=1) as cluster:
        first, second = (start(cluster, "ps", index, tmp_path) for index in range(2))
        chief = start(cluster, "worker", 0, tmp_path)
        evaluator = start(cluster, "evaluator", 0, tmp_path)
        evaluator.wait_for(r"epoch \d+ updates \d+ with \['val_loss'\]")
        second.kill()
        second = start(cluster, "ps", 1, tmp_path)
        chief.wait_for("sends /job:ps/task:1 the values of version")
        (tmp_path / "stop").touch()
        chief.succeeds()
        second.succeeds()  # the evaluator has not connected to it
        hold.write_bytes(b"")
        evaluator.wait_for("not validated: .* gave up waiting for /job:ps/task:1")
        assert evaluator.ends() == 0
        first.succeeds()


def test_a_ps_ends_when_the_chief_is_done_and_all_workers_have_connected() -> None:
    with processes(ps=1, worker=2) as cluster:

        def begin(job: str, index: int, what: str) -> Process:
            config = json.dumps({"cluster": cluster.hosts, "task": {"type": job, "index": index}})
            return cluster.start(job, index, PUSHES, what, TF_CONFIG=config)

        server = begin("ps", 0, "")
        assert begin("worker", 0, "raise").ends() == 1
        # The same ps, with its state, serves the next incarnation of the chief.
        assert "weights [-4.0, -4.0, -4.0]" in begin("worker", 0, "").succeeds()
        # The ps does not end before the remaining worker has connected and finished.
        assert "weights [-6.0, -6.0, -6.0]" in begin("worker", 1, "").succeeds()
        server.succeeds()


def test_ps_ends_on_request_while_workers_are_connected(tmp_path: Path) -> None:
    with processes(ps=1, worker=1) as cluster:
        server, worker = start(cluster, "ps", 0, tmp_path), start(cluster, "worker", 0, tmp_path)
        worker.wait_for("epoch")
        assert server.terminate() == 0
        worker.wait_for(r"lost /job:ps/task:0 and waits for it|waits for /job:ps/task:0")


def test_chief_saves_on_request_to_end_and_resumes(tmp_path: Path) -> None:
    def live(cluster: Processes, first: int) -> tuple[int, int]:
        """Runs a job whose tasks have lost all memory; returns the epochs and the updates at the request to end."""
        start(cluster, "ps", 0, tmp_path)
        chief = start(cluster, "worker", 0, tmp_path, "--backup")
        epoch, updates = map(int, chief.wait_for(r"epoch (\d+) updates (\d+)").groups())
        assert epoch >= first
        chief.wait_for("epoch", after=chief.line_count())
        assert chief.terminate() == 75
        return int(chief.wait_for(r"saved after epoch (\d+), because a task was asked to end")[1]), updates

    with processes(ps=1, worker=1) as cluster:
        saved, updates = live(cluster, 0)
    assert saved > 0
    with processes(ps=1, worker=1) as cluster:
        assert live(cluster, saved)[1] > updates


@pytest.mark.parametrize(
    ("consistency", "optimizer", "workers"),
    [pytest.param("async", "same", 1, marks=pytest.mark.long), ("async", "other", 1), ("sync", "same", 2)],
)
def test_norms_are_over_the_leaves_of_all_ps(consistency: str, optimizer: str, workers: int) -> None:
    with processes(ps=2, worker=workers) as cluster:
        for job, index in (("ps", 0), ("ps", 1), *(("worker", number) for number in range(workers))):
            config = json.dumps({"cluster": cluster.hosts, "task": {"type": job, "index": index}})
            started = cluster.start(job, index, CLIPPED, consistency, optimizer, TF_CONFIG=config)
        if optimizer == "same":  # three elements are 2, and two are 6: the norm is the square root of 84
            assert "clipped -0.021822 -0.021822 -0.021822 -0.065465 -0.065465" in started.succeeds()
        else:
            started.wait_for("worker/task:0 has other optimizer than /job:ps/task:0: digest of its update is")
            assert started.ends() == 1


def test_several_models_of_one_program_train_as_in_one_process() -> None:
    run = ["-m", "headwater", "run", "--ps", "2", "--workers", "2"]
    told: list[list[float]] = []
    for before, consistency in (([], "none"), (run, "sync")):
        command = [sys.executable, *before, str(SEVERAL), consistency]
        done = subprocess.run(command, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        told += [json.loads(found) for found in re.findall(r"result (\[.*\])", done.stdout)]
    alone, *workers = told
    assert len(workers) == 2
    for worker in workers:
        np.testing.assert_allclose(worker, alone, rtol=2e-3, atol=2e-4)
