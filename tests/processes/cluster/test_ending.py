"""Jobs without a launcher end by themselves: the ps tasks hear that the chief is done, or count tokens."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.processes import processes

PROGRAMS = Path(__file__).with_name("programs")

pytestmark = pytest.mark.slow


def test_a_ps_ends_when_all_workers_are_done(tmp_path: Path) -> None:
    with processes(ps=2, worker=2) as cluster:
        program = PROGRAMS / "train.py"
        servers = [cluster.start("ps", index, program) for index in range(2)]
        chief = cluster.start("worker", 0, program, f"--folder={tmp_path}")
        worker = cluster.start("worker", 1, program, f"--folder={tmp_path}")
        chief.succeeds()
        worker.succeeds()
        for server in servers:
            server.succeeds()


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
