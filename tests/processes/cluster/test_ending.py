"""Jobs without a launcher end by themselves: the ps tasks hear that the chief is done, or count tokens.

That they end when all workers are done is in `test_training.py`, too.
"""

from __future__ import annotations

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


def test_a_task_answers_until_its_process_ends() -> None:
    with processes(worker=1) as cluster:
        output = cluster.start("worker", 0, PROGRAMS / "asked_at_the_end.py").succeeds()
    assert output.splitlines()[-2:] == ["the last line", "asked at the end: SERVING"]
