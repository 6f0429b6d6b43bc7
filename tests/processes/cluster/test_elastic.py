"""Workers that join, leave, are killed, or stop making steps while others train."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import psutil
import pytest

from tests.processes.cluster.test_losses import newest_step, wait_for_step
from tests.support.processes import Process, Processes, processes

PROGRAMS = Path(__file__).with_name("programs")
HEADWATER = (sys.executable, "-u", "-m", "headwater")

pytestmark = pytest.mark.slow


def joins(cluster: Processes, *arguments: str) -> Process:
    """Starts another worker, which is not in the cluster's spec."""
    return cluster.run(
        *HEADWATER,
        "worker",
        "--flags",
        "--join",
        cluster.address("worker"),
        str(PROGRAMS / "consistent.py"),
        *arguments,
    )


def losses(worker: Process) -> list[float]:
    return [float(text) for text in re.findall(r"^step \d+ loss (\S+)", worker.output, re.MULTILINE)]


@pytest.mark.parametrize(
    "consistency",
    [
        pytest.param("asynchronous", marks=pytest.mark.long),  # the launcher's workers train like this
        pytest.param("k-of-n 2 1", marks=pytest.mark.long),
        pytest.param("bounded-staleness 3", marks=pytest.mark.long),
        pytest.param("synchronous 1", marks=pytest.mark.long),
    ],
)
def test_two_workers_join_and_one_leaves(consistency: str) -> None:
    program, choice = PROGRAMS / "consistent.py", f"--consistency={consistency}"
    with processes(ps=1, worker=1) as cluster:
        ps = cluster.start("ps", 0, program)
        chief = cluster.start("worker", 0, program, choice, "--steps=20")
        wait_for_step(chief, 20)
        others = [joins(cluster, choice, "--steps=20") for _ in range(2)]
        for other in others:
            other.wait_for("^step ")
        assert {ps.wait_for(f"/job:worker/task:{index} joins the cluster at").group() for index in (1, 2)}
        first = losses(chief)[0]
        lines = ps.line_count()
        others[0].kill()
        left = ps.wait_for(r"(/job:worker/task:[12]) has left the cluster", after=lines).group(1)
        if consistency != "asynchronous":
            ps.wait_for(rf"{left} left \(its last connection has ended\): continuing with 2 workers")
        joined = losses(chief)[-1]
        assert joined < first
        wait_for_step(chief, newest_step(chief) + 80)
        wait_for_step(others[1], newest_step(others[1]) + 80)
        assert losses(chief)[-1] < joined
        # The task index of the killed worker is free again.
        third = joins(cluster, choice, "--steps=20")
        ps.wait_for(f"{left} joins the cluster", after=lines)
        third.wait_for("^step ")
        for worker in (chief, others[1], third):
            assert "Traceback" not in worker.output


def test_a_stalled_worker_is_named() -> None:
    program, choice = PROGRAMS / "consistent.py", "--consistency=bounded-staleness 3"
    with processes(ps=1, worker=2) as cluster:
        ps = cluster.start("ps", 0, program)
        chief = cluster.start("worker", 0, program, choice, "--steps=1")
        still = cluster.start("worker", 1, program, choice, "--pause_at=5")
        still.wait_for("standing still")
        ps.wait_for(r"waiting: /job:worker/task:0 \(at most 3 steps ahead\) for /job:worker/task:1, \d+ s so far")
        lines = chief.line_count()
        still.kill()
        chief.wait_for("^step ", after=lines + 5)


@pytest.mark.parametrize(
    ("where", "said"), [pytest.param("pause", "between two steps", marks=pytest.mark.long), ("stuck", "in a step")]
)
def test_a_worker_without_steps_is_named(where: str, said: str) -> None:
    program = PROGRAMS / "consistent.py"
    with processes(ps=1, worker=2) as cluster:
        ps = cluster.start("ps", 0, program, HEADWATER_BEHIND_AFTER_S="1")
        chief = cluster.start("worker", 0, program, "--steps=1")
        still = cluster.start("worker", 1, program, f"--{where}_at=40")
        still.wait_for("standing still")
        ps.wait_for(rf"/job:worker/task:1 is behind: it has been {said} for \d+ s, after \d+ steps")
        shown = cluster.run(*HEADWATER, "status", cluster.address("ps"), "--json").succeeds()
        snapshots = {report["task"]: report["snapshot"] for report in json.loads(shown.splitlines()[-1])}
        workers = {worker["worker"]: worker for worker in snapshots["/job:ps/task:0"]["workers"]}
        assert [workers[f"/job:worker/task:{index}"]["behind"] for index in range(2)] == [False, True]
        lines = chief.line_count()
        still.kill()
        chief.wait_for("^step ", after=lines + 5)


def test_a_replica_that_is_killed(tmp_path: Path) -> None:
    program = PROGRAMS / "sync.py"
    with processes(ps=1, worker=2) as cluster:
        ps = cluster.start("ps", 0, program)
        chief = cluster.start("worker", 0, program, "--steps=20", f"--folder={tmp_path}")
        worker = cluster.start("worker", 1, program, "--steps=20")
        wait_for_step(worker, 40)
        worker.kill()
        ps.wait_for("/job:ps/task:0 has lost /job:worker/task:1: its last connection has ended")
        before = newest_step(chief)
        worker = cluster.start("worker", 1, program, "--steps=20")
        wait_for_step(worker, before + 40)
        wait_for_step(chief, before + 40)


@pytest.mark.long
def test_an_unneeded_replica_is_killed() -> None:
    program, aggregate = PROGRAMS / "sync.py", "--aggregate=1"
    with processes(ps=1, worker=2) as cluster:
        cluster.start("ps", 0, program)
        chief = cluster.start("worker", 0, program, "--steps=20", aggregate)
        worker = cluster.start("worker", 1, program, "--steps=20", aggregate)
        worker.wait_for("^step ")
        worker.kill()
        wait_for_step(chief, newest_step(chief) + 200)


def test_a_ps_that_is_stopped(tmp_path: Path) -> None:
    program = PROGRAMS / "loop.py"
    with processes(ps=1, worker=1) as cluster:
        ps = cluster.start("ps", 0, program)
        worker = cluster.start("worker", 0, program, f"--folder={tmp_path}")
        wait_for_step(worker, 100)
        ps.suspend()
        worker.wait_for(r"/job:ps/task:0 .*it no longer answers; it has ended, was stopped, or its machine has failed")
        lines = worker.line_count()
        ps.resume()
        worker.wait_for("^step ", after=lines)


@pytest.mark.parametrize("stopped", ["ps 0", pytest.param("ps 1", marks=pytest.mark.long), "worker 0"])
def test_each_acknowledged_step_was_done_once(stopped: str) -> None:
    """Tasks are stopped in the middle of steps for long enough to be noticed, and continue."""
    program, steps = PROGRAMS / "counted.py", 3000
    with processes(ps=2, worker=1) as cluster:
        tasks = {f"ps {index}": cluster.start("ps", index, program) for index in range(2)}
        worker = tasks["worker 0"] = cluster.start("worker", 0, program, f"--steps={steps}")
        for step in (200, 700):
            wait_for_step(worker, step)
            lines = worker.line_count()
            tasks[stopped].suspend()
            if stopped != "worker 0":
                worker.wait_for("it no longer answers.*|.*waits for it, to continue with step", after=lines)
            tasks[stopped].resume()
        assert f"acknowledged {steps} done {steps} {steps}" in worker.succeeds()


def test_the_launcher_lets_workers_join_and_leave() -> None:
    program = str(PROGRAMS / "consistent.py")
    with processes() as cluster:
        job = cluster.run(*HEADWATER, "run", "--ps", "1", "--workers", "2:3", "--flags", program, "--steps=20")
        address = job.wait_for(r"workers may join: headwater worker --join (\S+)").group(1)
        job.wait_for(r"\[worker 1\] step")
        (second,) = [child for child in psutil.Process(job.pid).children() if "--task_index=1" in child.cmdline()]
        second.kill()
        job.wait_for("worker 1 is lost .*another worker takes its place")
        # All output of the lost worker has been shown before.
        job.wait_for(r"\[worker 1\] step", after=job.line_count())
        third = cluster.run(*HEADWATER, "worker", "--flags", "--join", address, program, "--steps=20")
        third.wait_for("^step ")
        fourth = cluster.run(*HEADWATER, "worker", "--flags", "--join", address, program)
        assert fourth.ends() == 1
        assert "no more than 3 tasks of job worker may be in the cluster" in fourth.output
        job.wait_for(r"\[worker 0\] step", after=job.line_count())
        third.kill()
        assert job.terminate() == 143
