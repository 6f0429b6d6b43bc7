"""Embedding tables on two ps, used by two workers. Tasks are processes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.processes import Process, processes

PROGRAM = Path(__file__).with_name("trains.py")

pytestmark = pytest.mark.slow


def test_workers_train_a_table_and_a_killed_ps_resumes_from_the_last_save(tmp_path: Path) -> None:
    with processes(ps=2, worker=2) as cluster:

        def start(job: str, index: int) -> Process:
            config = json.dumps({"cluster": cluster.hosts, "task": {"type": job, "index": index}})
            return cluster.start(job, index, PROGRAM, str(tmp_path), TF_CONFIG=config)

        servers = [start("ps", index) for index in range(2)]
        chief, other = start("worker", 0), start("worker", 1)
        chief.wait_for(r"saved at step \d+ loss 0\.0\d+ rows 200")
        other.wait_for(r"step \d+ loss 0\.0\d+")
        servers[1].kill()
        servers[1] = start("ps", 1)
        # No step is possible without the ps. Without its saved rows, the loss would be the initial one.
        pattern = r"saved at step \d+ loss ([0-9.]+) rows 200"
        first = chief.next_line(pattern, after=chief.line_count())
        assert float(chief.wait_for(pattern, after=first + 1)[1]) < 0.5
        (tmp_path / "stop").touch()
        for worker in (chief, other):
            worker.succeeds()
        for server in servers:
            server.succeeds()
