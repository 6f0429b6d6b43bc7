"""Jobs without a launcher end by themselves: the ps tasks learn that the chief has finished, or count tokens.

`test_training.py` also tests that the ps tasks end when all workers have finished.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.processes import Process, Processes, processes

PROGRAMS = Path(__file__).with_name("programs")

pytestmark = pytest.mark.slow


def test_a_ps_does_not_end_when_the_chief_fails() -> None:
    with processes(ps=1, worker=1) as cluster:
        program = PROGRAMS / "chief_fails.py"
        server = cluster.start("ps", 0, program)
        for how, code in (("raise", 1), ("exit", 3)):
            assert cluster.start("worker", 0, program, f"--folder={how}").ends() == code
        # The same ps, with its state, serves the next incarnation of the chief.
        assert "step 3" in cluster.start("worker", 0, program).succeeds()
        server.succeeds()


def test_done_queues() -> None:
    with processes(ps=2, worker=2) as cluster:
        program = PROGRAMS / "done_queue.py"
        tasks = [cluster.start(job, index, program) for job in ("ps", "worker") for index in range(2)]
        outputs = [task.succeeds() for task in tasks]
        assert all("all are done" in output for output in outputs[:2])


def wait_for_the_last_tokens(cluster: Processes, folder: Path) -> tuple[list[Process], list[Process]]:
    """Starts the ps and the workers; the workers wait before they enqueue the last tokens."""
    program, flag = PROGRAMS / "done_queue.py", f"--folder={folder}"
    for index in range(2):
        os.mkfifo(folder / str(index))
    servers = [cluster.start("ps", index, program) for index in range(len(cluster.hosts["ps"]))]
    workers = [cluster.start("worker", index, program, flag) for index in range(2)]
    for worker in workers:
        worker.wait_for("waits for the second token")
    return servers, workers


def go_on(folder: Path) -> None:
    """Lets the workers enqueue the last tokens."""
    for index in range(2):
        (folder / str(index)).write_text("continue\n")


@contextmanager
def a_stopped_ps_when_the_last_tokens_come(folder: Path, ps: int) -> Iterator[tuple[Process, list[Process]]]:
    """Yields the first ps, which is stopped, and the workers, which wait for it. All other ps have received all tokens
    and have ended.
    """
    with processes(ps=ps, worker=2) as cluster:
        (stopped, *others), workers = wait_for_the_last_tokens(cluster, folder)
        stopped.suspend()
        go_on(folder)
        for server in others:
            assert "all are done" in server.succeeds()
        for worker in workers:
            worker.wait_for("lost /job:ps/replica:0/task:0 and waits for it")
        yield stopped, workers


@pytest.mark.long
@pytest.mark.parametrize("ps", [1, 2, 3])
def test_done_queues_of_a_ps_stopped_during_the_last_tokens(tmp_path: Path, ps: int) -> None:
    with a_stopped_ps_when_the_last_tokens_come(tmp_path, ps) as (server, workers):
        server.resume()
        assert "all are done" in server.succeeds()
        for worker in workers:
            _, _, told = worker.succeeds().partition("waits for the second token")
            assert not re.search("/job:ps/.*task:[12]", told)  # these have answered


@pytest.mark.long
def test_done_queues_of_a_worker_that_is_stopped_in_its_last_step(tmp_path: Path) -> None:
    with a_stopped_ps_when_the_last_tokens_come(tmp_path, 2) as (server, (chief, worker)):
        worker.suspend()
        server.resume()
        server.wait_for("all are done")
        worker.resume()
        for task in (server, chief, worker):
            task.succeeds()


@pytest.mark.long
def test_done_queues_of_a_ps_restarted_during_the_last_tokens(tmp_path: Path) -> None:
    with processes(ps=2, worker=2) as cluster:
        servers, workers = wait_for_the_last_tokens(cluster, tmp_path)
        servers[0].kill()
        # the tokens were lost in the restart: the ps waits until it is killed
        cluster.start("ps", 0, PROGRAMS / "done_queue.py")
        go_on(tmp_path)
        for task in (servers[1], *workers):
            task.succeeds()


def test_a_task_answers_until_its_process_ends() -> None:
    with processes(worker=1) as cluster:
        output = cluster.start("worker", 0, PROGRAMS / "asked_at_the_end.py").succeeds()
    assert output.splitlines()[-2:] == ["the last line", "asked at the end: SERVING"]
