"""A ``ps`` of graphs that gets SIGTERM leaves what it has with the chief, as real processes: every step counts once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes.cluster.test_two_copies import PROGRAM, end
from tests.support.processes import processes

pytestmark = pytest.mark.slow


def test_every_acknowledged_step_counts_once_though_each_ps_gets_sigterm_twice(tmp_path: Path) -> None:
    with processes(ps=2, worker=2) as cluster:
        ps = [cluster.start("ps", index, PROGRAM) for index in range(2)]
        workers = [cluster.start("worker", index, PROGRAM, f"--folder={tmp_path}") for index in range(2)]
        for index in (1, 0, 1, 0):
            for worker in workers:
                worker.wait_for("^step ", after=worker.line_count())
            assert ps[index].terminate() == 0
            assert "has left its state of" in ps[index].output
            ps[index] = cluster.start("ps", index, PROGRAM)
            ps[index].wait_for("goes on with its state of .* variables, which /job:worker/task:0 has kept")
        for worker in workers:
            worker.wait_for("^step ", after=worker.line_count())
        shown = end(tmp_path, workers, ps)
    for text in shown:  # no session was made anew
        assert text.count("goes on with step") >= 4
        assert "was started anew" not in text
