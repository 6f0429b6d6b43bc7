"""A table that is divided between two ps and used by two workers: every id returns its row; an error names any other
id.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.processes import processes

pytestmark = pytest.mark.slow


def test_rows_of_a_divided_table() -> None:
    program = Path(__file__).with_name("programs") / "divided.py"
    with processes(ps=2, worker=2) as cluster:
        for index in range(2):
            cluster.start("ps", index, program)
        workers = [cluster.start("worker", index, program) for index in range(2)]
        for worker in workers:
            worker.wait_for("devices .*/job:ps/task:0.*/job:ps/task:1")
            worker.wait_for("trained")
        for worker in workers:
            worker.wait_for("every row is as it should be")
