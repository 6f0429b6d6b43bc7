"""Each ``ps`` of graphs has a second copy: what is killed or stopped costs no acknowledged step."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from tests.support.processes import Process, Processes, processes

PROGRAM = Path(__file__).with_name("programs") / "two_copies.py"

pytestmark = pytest.mark.slow


def start(cluster: Processes, job: str, index: int, folder: Path) -> Process:
    arguments = [f"--folder={folder}"] if job == "worker" else []
    return cluster.start(job, index, PROGRAM, *arguments, HEADWATER_REPLICAS="2", HEADWATER_FIRST_PS="2")


def begin(cluster: Processes, folder: Path) -> tuple[list[Process], list[Process]]:
    ps = [start(cluster, "ps", index, folder) for index in range(2)]
    workers = [start(cluster, "worker", index, folder) for index in range(2)]
    for task, one in enumerate(ps):
        one.wait_for(f"has a copy of the state of /job:ps/task:{task} ")
    return ps, workers


def go_on(*workers: Process) -> None:
    for worker in workers:
        worker.wait_for("^step ", after=worker.line_count())


def end(folder: Path, ps: list[Process], workers: list[Process]) -> None:
    """Ends the program: each acknowledged step is in the values on both ``ps``, once, and no other one is."""
    (folder / "stop").touch()
    shown = [worker.succeeds() for worker in workers]
    found = [re.search(r"acknowledged (\d+)", text) for text in shown]
    steps = [int(one[1]) for one in found if one is not None]
    assert f"global step {sum(steps)}, counts {[steps, steps]}" in shown[0]
    for one in ps:
        one.succeeds()


def test_each_ps_is_killed_in_turn(tmp_path: Path) -> None:
    with processes(ps=2, worker=2) as cluster:
        ps, workers = begin(cluster, tmp_path)
        for index in (0, 1):
            other = ps[1 - index]
            go_on(*workers)
            ps[index].kill()
            other.wait_for(rf"/job:ps/task:{1 - index} serves the state of /job:ps/task:{index} now")
            go_on(*workers)
            before = other.line_count()
            ps[index] = start(cluster, "ps", index, tmp_path)
            for task in (0, 1):
                other.wait_for(f"has a copy of the state of /job:ps/task:{task} ", after=before)
        go_on(*workers)
        end(tmp_path, ps, workers)


def test_a_further_process_comes_and_goes(tmp_path: Path) -> None:
    """A graph's two tasks are on two processes, on three, on two again, on two others, and on one as one is killed."""
    with processes(ps=3, worker=2) as cluster:
        ps, workers = begin(cluster, tmp_path)
        go_on(*workers)
        before = ps[0].line_count()
        further = start(cluster, "ps", 2, tmp_path)
        ps[0].wait_for("/job:ps/task:2 has a copy of the state of /job:ps/task:0 now, in the place of", after=before)
        go_on(*workers)
        before = ps[0].line_count()
        further.terminate()
        further.succeeds()
        assert "ends with what" not in further.output
        ps[0].wait_for("/job:ps/task:1 has a copy of the state of /job:ps/task:0 now, in the place of", after=before)
        go_on(*workers)
        before = ps[0].line_count()
        further = start(cluster, "ps", 2, tmp_path)
        ps[0].wait_for("/job:ps/task:2 has a copy of the state of /job:ps/task:0 now, in the place of", after=before)
        ps[0].terminate()
        assert "/job:ps/task:0 has handed the state of /job:ps/task:0 over to /job:ps/task:2" in ps[0].succeeds()
        further.wait_for("/job:ps/task:1 has a copy of the state of /job:ps/task:0 now")
        go_on(*workers)
        ps[1].kill()
        further.wait_for("/job:ps/task:2 serves the state of /job:ps/task:1 now")
        go_on(*workers)
        end(tmp_path, [further], workers)


@pytest.mark.long
def test_a_ps_that_was_stopped_is_fenced_when_it_goes_on(tmp_path: Path) -> None:
    with processes(ps=2, worker=2) as cluster:
        ps, workers = begin(cluster, tmp_path)
        go_on(*workers)
        os.kill(ps[0].pid, signal.SIGSTOP)
        ps[1].wait_for("/job:ps/task:1 serves the state of /job:ps/task:0 now")
        go_on(*workers)
        before = ps[1].line_count()
        os.kill(ps[0].pid, signal.SIGCONT)
        ps[0].wait_for("drops its copy of the state of /job:ps/task:0")
        for task in (0, 1):
            ps[1].wait_for(f"has a copy of the state of /job:ps/task:{task} ", after=before)
        go_on(*workers)
        end(tmp_path, ps, workers)


def test_a_worker_is_killed_and_started_anew(tmp_path: Path) -> None:
    with processes(ps=2, worker=2) as cluster:
        ps, workers = begin(cluster, tmp_path)
        go_on(*workers)
        ps[0].kill()
        go_on(*workers)
        workers[0].kill()
        workers[0] = start(cluster, "worker", 0, tmp_path)  # the chief, and with it the witness
        go_on(*workers)
        before = ps[1].line_count()
        ps[0] = start(cluster, "ps", 0, tmp_path)
        for task in (0, 1):
            ps[1].wait_for(f"has a copy of the state of /job:ps/task:{task} ", after=before)
        (tmp_path / "stop").touch()
        for one in (*workers, *ps):
            one.succeeds()
        assert "still have the state of this training" in workers[0].output
