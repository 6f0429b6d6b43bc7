"""Each ``ps`` of synchronous replicas has a second copy: a round counts once, though a ``ps`` is killed or stopped."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from tests.support.processes import Process, Processes, processes

PROGRAM = Path(__file__).with_name("programs") / "two_copies_rounds.py"

pytestmark = pytest.mark.slow


def start(cluster: Processes, job: str, index: int, folder: Path) -> Process:
    return cluster.start(job, index, PROGRAM, f"--folder={folder}", HEADWATER_REPLICAS="2")


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
    """Ends the program: each round is in the values on both ``ps`` once, with what both workers gave."""
    (folder / "stop").touch()
    shown = [worker.succeeds() for worker in workers]
    assert re.search(r"global step (\d+) of \1, counts are exact", shown[0])
    assert not any("Traceback" in text for text in shown)
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
