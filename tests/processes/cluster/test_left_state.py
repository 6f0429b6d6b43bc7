"""A ``ps`` of a graph that gets SIGTERM deposits its state with the chief: every step counts once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes.cluster import test_two_copies, test_two_copies_rounds
from tests.support.processes import Process, Processes, processes

pytestmark = pytest.mark.slow


def tell_each_ps_to_end_twice(cluster: Processes, program: Path, folder: Path) -> tuple[list[Process], list[Process]]:
    """Trains with a program; each of two ``ps`` gets SIGTERM between steps and is restarted, twice.

    Returns:
      The workers, and the ``ps``.
    """
    ps = [cluster.start("ps", index, program, f"--folder={folder}") for index in range(2)]
    workers = [cluster.start("worker", index, program, f"--folder={folder}") for index in range(2)]
    for index in (1, 0, 1, 0):
        for worker in workers:
            worker.wait_for("^step ", after=worker.line_count())
        assert ps[index].terminate() == 0
        assert "has deposited its state of" in ps[index].output
        ps[index] = cluster.start("ps", index, program, f"--folder={folder}")
        ps[index].wait_for("continues with its state of .* variables, which was deposited with /job:worker/task:0")
    for worker in workers:
        worker.wait_for("^step ", after=worker.line_count())
    return workers, ps


def test_every_acknowledged_step_counts_once_though_each_ps_gets_sigterm_twice(tmp_path: Path) -> None:
    with processes(ps=2, worker=2) as cluster:
        workers, ps = tell_each_ps_to_end_twice(cluster, test_two_copies.PROGRAM, tmp_path)
        shown = test_two_copies.end(tmp_path, workers, ps)
    for text in shown:  # no session was created again
        assert text.count("continues with step") >= 4
        assert "was restarted" not in text


@pytest.mark.long
def test_every_round_counts_once_though_each_ps_gets_sigterm_twice(tmp_path: Path) -> None:
    with processes(ps=2, worker=2) as cluster:
        workers, ps = tell_each_ps_to_end_twice(cluster, test_two_copies_rounds.PROGRAM, tmp_path)
        test_two_copies_rounds.end(tmp_path, workers, ps)
    for worker in workers:
        assert "was restarted" not in worker.output
