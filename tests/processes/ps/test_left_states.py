"""Parameter servers that get SIGTERM deposit their state with the chief, and continue with this state after a
restart."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from tests.processes.ps.test_own_state import OF_KERAS, counts, falls, start
from tests.support.processes import Process, processes

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("consistency", ["async", pytest.param("sync", marks=pytest.mark.long)])
def test_nothing_is_lost_though_each_ps_gets_sigterm(consistency: str, tmp_path: Path) -> None:
    options = ("--recovery=copy", f"--consistency={consistency}", "--table")
    with processes(ps=2, worker=2) as cluster:
        ps = [start(cluster, "ps", index, tmp_path, *options) for index in range(2)]
        workers = [start(cluster, "worker", index, tmp_path, *options) for index in range(2)]
        for index in (1, 0):
            for worker in workers:
                worker.wait_for("^read ", after=worker.line_count() + 20)
            assert ps[index].terminate() == 0
            ps[index] = start(cluster, "ps", index, tmp_path, *options)
            ps[index].wait_for("continues with its state of version .*, which was deposited with /job:worker/task:0")
            ps[index].wait_for("continues with its table 'rows', which was deposited with /job:worker/task:0")
        for worker in workers:
            worker.wait_for("^read ", after=worker.line_count())
        (tmp_path / "stop").touch()
        for one in (*workers, *ps):
            one.succeeds()
    for worker in workers:
        assert falls(counts(worker, 0)) == falls(counts(worker, 1)) == []
    # The last update that a worker has read is the same on both, and each update was applied once.
    made = [max(counts(worker, at)[-1] for worker in workers) for at in range(2)]
    read = sum(len(counts(worker, 0)) for worker in workers)
    assert made == ([read] * 2 if consistency == "async" else [max(len(counts(worker, 0)) for worker in workers)] * 2)
    # The worker that reads last sees all pushes.
    rows = [int(row) for worker in workers for row in re.findall(r"^rows \[(\d+)\]$", worker.output, re.MULTILINE)]
    assert len(rows) == 2
    assert max(rows) == read


@pytest.mark.long
def test_rows_of_an_embedding_are_left_too(tmp_path: Path) -> None:
    with processes(ps=2, worker=1) as cluster:

        def begin(job: str, index: int) -> Process:
            return start(cluster, job, index, tmp_path, "--recovery=copy", program=OF_KERAS)

        ps, worker = [begin("ps", index) for index in range(2)], begin("worker", 0)
        for index in (1, 0):
            worker.wait_for("^read ", after=worker.line_count() + 20)
            assert ps[index].terminate() == 0
            ps[index] = begin("ps", index)
            ps[index].wait_for("continues with its state of version .*, which was deposited with /job:worker/task:0")
        worker.wait_for("^read ", after=worker.line_count())
        (tmp_path / "stop").touch()
        for one in (worker, *ps):
            one.succeeds()
    first, second = (counts(worker, at) for at in range(2))
    assert first == second
    # A gradient may be computed again if the first ps had assigned its examples before the ps ended.
    assert {after - before for before, after in itertools.pairwise(first)} <= {0, 1}
    assert first[-1] >= len(first) - 2
