"""Jobs without a launcher end by themselves: the ps tasks hear that the chief is done, or count tokens.

That they end when all workers are done is in `test_training.py`, too.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.support.processes import processes

PROGRAMS = Path(__file__).with_name("programs")

pytestmark = pytest.mark.slow


def test_a_ps_does_not_end_when_the_chief_fails() -> None:
    with processes(ps=1, worker=1) as cluster:
        program = PROGRAMS / "chief_fails.py"
        server = cluster.start("ps", 0, program)
        for how, code in (("raise", 1), ("exit", 3)):
            assert cluster.start("worker", 0, program, f"--folder={how}").ends() == code
        # The same ps, with what it holds, serves the next life of the chief.
        assert "step 3" in cluster.start("worker", 0, program).succeeds()
        server.succeeds()


def test_done_queues() -> None:
    with processes(ps=2, worker=2) as cluster:
        program = PROGRAMS / "done_queue.py"
        tasks = [cluster.start(job, index, program) for job in ("ps", "worker") for index in range(2)]
        outputs = [task.succeeds() for task in tasks]
        assert all("all are done" in output for output in outputs[:2])


@pytest.mark.long
def test_done_queues_of_a_ps_that_was_stopped_when_the_last_tokens_came(tmp_path: Path) -> None:
    with processes(ps=2, worker=2) as cluster:
        program, flag = PROGRAMS / "done_queue.py", f"--folder={tmp_path}"
        for index in range(2):
            os.mkfifo(tmp_path / str(index))
        servers = [cluster.start("ps", index, program) for index in range(2)]
        workers = [cluster.start("worker", index, program, flag) for index in range(2)]
        for worker in workers:
            worker.wait_for("waits for the second token")
        os.kill(servers[0].pid, signal.SIGSTOP)
        for index in range(2):
            (tmp_path / str(index)).write_text("go on\n")
        for worker in workers:
            worker.wait_for("lost /job:ps/replica:0/task:0 and waits for it")
        os.kill(servers[0].pid, signal.SIGCONT)
        for task in (*servers, *workers):
            task.succeeds()


def test_a_task_answers_until_its_process_ends() -> None:
    with processes(worker=1) as cluster:
        output = cluster.start("worker", 0, PROGRAMS / "asked_at_the_end.py").succeeds()
    assert output.splitlines()[-2:] == ["the last line", "asked at the end: SERVING"]
