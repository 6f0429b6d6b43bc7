"""A ``ps`` of a graph saves its own state: one is killed, and the other keeps its updates. Tasks are processes."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from tests.support.processes import Process, processes

PROGRAM = Path(__file__).with_name("programs") / "goes_back.py"
READ = re.compile(r"^step (\d+) count (\d+) loss ([\d.]+)$", re.MULTILINE)

pytestmark = pytest.mark.slow


def read(worker: Process) -> list[tuple[int, int, float]]:
    return [(int(step), int(count), float(loss)) for step, count, loss in READ.findall(worker.output)]


def falls(numbers: list[int]) -> list[tuple[int, int]]:
    """Returns the values before and after each decrease."""
    return [(before, after) for before, after in itertools.pairwise(numbers) if after < before]


def test_the_other_ps_keeps_its_updates_and_the_loss_is_reported(tmp_path: Path) -> None:
    settings = {"HEADWATER_SAVES": str(tmp_path / "saves"), "HEADWATER_SAVE_EVERY_S": "0.5"}
    with processes(ps=2, worker=2) as cluster:
        ps = [cluster.start("ps", index, PROGRAM, **settings) for index in range(2)]
        workers = [cluster.start("worker", index, PROGRAM, f"--folder={tmp_path}") for index in range(2)]
        for worker in workers:
            worker.wait_for(r"^step \d{3}")
        folder = tmp_path / "saves" / "+graph" / "ps-00001-of-00002"
        while not list(folder.glob("*.full")):  # the first save is due within 0.5 s
            workers[0].wait_for("^step ", after=workers[0].line_count())
        ps[1].kill()
        before = max(count for worker in workers for _, count, _ in read(worker))
        ps[1] = cluster.start("ps", 1, PROGRAM, **settings)
        told = ps[1].wait_for(r"continues with its own state of \d+ variables, saved [\d.]+ s ago: (.*)")[1]
        for worker in workers:
            worker.wait_for("^step ", after=worker.line_count() + 10)
        # The initial value was the first update of count; the kill happened after the values that the workers have
        # read.
        lost = re.search(r"updates? (?:(\d+) to )?(\d+) of [^;]*\bcount\b", told)
        if lost is not None:
            assert int(lost[2]) - 1 >= before
        else:
            assert "no update is lost" in told
        (tmp_path / "stop").touch()
        for one in (*workers, *ps):
            one.succeeds()
    for worker in workers:
        found = read(worker)
        assert falls([step for step, _, _ in found]) == []
        assert len(falls([count for _, count, _ in found])) <= 1
        if lost is not None:
            assert all(after >= int(lost[1] or lost[2]) - 1 for _, after in falls([count for _, count, _ in found]))
        assert found[-1][2] < found[0][2]
    assert "Restored" not in workers[0].output
    assert "still have the state of this training" in workers[0].output
    assert not any(folder.iterdir())  # the job is over


@pytest.mark.long
def test_a_ps_that_gets_sigterm_loses_nothing(tmp_path: Path) -> None:
    settings = {"HEADWATER_SAVES": str(tmp_path / "saves"), "HEADWATER_SAVE_EVERY_S": "3600"}
    with processes(ps=2, worker=1) as cluster:
        ps = [cluster.start("ps", index, PROGRAM, **settings) for index in range(2)]
        worker = cluster.start("worker", 0, PROGRAM, f"--folder={tmp_path}")
        worker.wait_for(r"^step \d{3}")
        assert ps[1].terminate() == 0
        lines = worker.line_count()
        ps[1] = cluster.start("ps", 1, PROGRAM, **settings)
        ps[1].wait_for("continues with its own state of .*; no update is lost")
        worker.wait_for("^step ", after=lines + 10)
        (tmp_path / "stop").touch()
        for one in (worker, *ps):
            one.succeeds()
    found = read(worker)
    assert falls([count for _, count, _ in found]) == []
    # A step in progress may have been applied on one ps, and was repeated on both.
    assert abs(found[-1][0] - found[-1][1]) <= 1
