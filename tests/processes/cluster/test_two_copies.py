"""Each ``ps`` of a graph has a backup: no acknowledged step is lost when a task is killed or stopped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.copied_processes import CopiedTasks
from tests.support.processes import Process, processes, terminate_all

PROGRAM = Path(__file__).with_name("programs") / "two_copies.py"

pytestmark = pytest.mark.slow


def end(folder: Path, workers: Sequence[Process], ps: Sequence[Process]) -> list[str]:
    """Ends the program, and checks that both ``ps`` have the effects of each acknowledged step once, and of no other
    step.

    Returns:
      The workers' output.
    """
    (folder / "stop").touch()
    shown = [worker.succeeds() for worker in workers]
    found = [re.search(r"acknowledged (\d+)", text) for text in shown]
    steps = [int(one[1]) for one in found if one is not None]
    assert f"global step {sum(steps)}, counts {[steps, steps]}" in shown[0]
    for one in ps:
        one.succeeds()
    return shown


@pytest.mark.long
def test_each_ps_is_killed_in_turn(tmp_path: Path) -> None:
    with processes(ps=2, worker=2) as cluster:
        tasks = CopiedTasks(cluster, tmp_path, PROGRAM)
        tasks.kill_each_ps_in_turn()
        end(tmp_path, tasks.workers, tasks.ps)


@pytest.mark.long
def test_a_further_process_joins_and_leaves(tmp_path: Path) -> None:
    """The two tasks of a graph run on two processes, on three, on two again, on two others, and on one after one is
    killed.
    """
    with processes(ps=3, worker=2) as cluster:
        tasks = CopiedTasks(cluster, tmp_path, PROGRAM)
        ps = tasks.ps
        tasks.go_on()
        before = ps[0].line_count()
        further = tasks.start("ps", 2)
        ps[0].wait_for("/job:ps/task:2 has a copy of the state of /job:ps/task:0 now, in the place of", after=before)
        tasks.go_on()
        before = ps[0].line_count()
        further.terminate()
        further.succeeds()
        assert "no other ps has taken over" not in further.output
        ps[0].wait_for("/job:ps/task:1 has a copy of the state of /job:ps/task:0 now, in the place of", after=before)
        tasks.go_on()
        before = ps[0].line_count()
        further = tasks.start("ps", 2)
        ps[0].wait_for("/job:ps/task:2 has a copy of the state of /job:ps/task:0 now, in the place of", after=before)
        ps[0].terminate()
        assert "/job:ps/task:0 has handed off the state of /job:ps/task:0 to /job:ps/task:2" in ps[0].succeeds()
        further.wait_for("/job:ps/task:1 has a copy of the state of /job:ps/task:0 now")
        tasks.go_on()
        ps[1].kill()
        further.wait_for("/job:ps/task:2 serves the state of /job:ps/task:1 now")
        tasks.go_on()
        tasks.ps = [further]
        end(tmp_path, tasks.workers, tasks.ps)


def test_a_draining_ps_waits_for_the_other_one_that_was_lost(tmp_path: Path) -> None:
    with processes(ps=2, worker=2) as cluster:
        tasks = CopiedTasks(cluster, tmp_path, PROGRAM)
        ps = tasks.ps
        tasks.go_on()
        ps[1].kill()
        ps[0].wait_for("/job:ps/task:0 serves the state of /job:ps/task:1 now")
        ps[0].send_sigterm()
        ps[0].wait_for("/job:ps/task:0 waits to shut down until another ps has taken over: ")
        tasks.go_on()
        ps[1] = tasks.start("ps", 1)
        ps[0].succeeds()
        tasks.go_on()
        end(tmp_path, tasks.workers, ps[1:])


@pytest.mark.long
def test_all_ps_shut_down_at_once(tmp_path: Path) -> None:
    """The chief keeps the state of the ``ps`` until the ``ps`` are restarted."""
    with processes(ps=2, worker=2) as cluster:
        tasks = CopiedTasks(cluster, tmp_path, PROGRAM)
        tasks.go_on()
        terminate_all(tasks.ps)
        tasks.ps = [tasks.start("ps", index) for index in range(2)]
        tasks.go_on()
        end(tmp_path, tasks.workers, tasks.ps)
        assert sum(one.output.count("continues with the copy of") for one in tasks.ps) == 2


@pytest.mark.long
def test_a_stopped_ps_is_fenced_when_it_continues(tmp_path: Path) -> None:
    with processes(ps=2, worker=2) as cluster:
        tasks = CopiedTasks(cluster, tmp_path, PROGRAM)
        tasks.stop_a_ps()
        end(tmp_path, tasks.workers, tasks.ps)


def test_a_worker_is_killed_and_restarted(tmp_path: Path) -> None:
    with processes(ps=2, worker=2) as cluster:
        tasks = CopiedTasks(cluster, tmp_path, PROGRAM)
        ps = tasks.ps
        tasks.go_on()
        ps[0].kill()
        tasks.go_on()
        tasks.workers[0].kill()
        tasks.workers[0] = tasks.start("worker", 0)  # the chief, and with it the witness
        tasks.go_on()
        before = ps[1].line_count()
        ps[0] = tasks.start("ps", 0)
        for task in (0, 1):
            ps[1].wait_for(f"has a copy of the state of /job:ps/task:{task} ", after=before)
        (tmp_path / "stop").touch()
        for one in (*tasks.workers, *ps):
            one.succeeds()
        assert "still have the state of this training" in tasks.workers[0].output
