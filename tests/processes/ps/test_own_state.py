"""Parameter servers save their own states: one is lost, and the other keeps its updates. Tasks are processes."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.processes import Process, Processes, processes

PROGRAM = Path(__file__).with_name("goes_back.py")
OF_KERAS = Path(__file__).parents[1] / "keras" / "goes_back.py"
HEADWATER = (sys.executable, "-u", "-m", "headwater")
READ = re.compile(r"^read (\d+) and (\d+)$", re.MULTILINE)

pytestmark = [pytest.mark.slow, pytest.mark.long]


def start(cluster: Processes, job: str, index: int, folder: Path, *options: str, program: Path = PROGRAM) -> Process:
    config = json.dumps({"cluster": cluster.hosts, "task": {"type": job, "index": index}})
    return cluster.start(job, index, program, *options, str(folder), TF_CONFIG=config)


def counts(worker: Process, of: int) -> list[int]:
    """Returns the number of updates of a ``ps``, each time that a worker has read it."""
    return [int(found[of]) for found in map(list, READ.findall(worker.output))]


def falls(counts: list[int]) -> list[tuple[int, int]]:
    """Returns the counts before and after each decrease."""
    return [(before, after) for before, after in itertools.pairwise(counts) if after < before]


@pytest.mark.parametrize(
    ("program", "lost", "names"),
    [(PROGRAM, 0, r"\['first'\]"), (PROGRAM, 1, r"\['second'\]"), (OF_KERAS, 0, ".*rows/embeddings")],
    ids=["jax-first", "jax-second", "keras-first"],
)
def test_the_other_ps_keeps_its_updates_and_the_loss_is_reported(
    program: Path, lost: int, names: str, tmp_path: Path
) -> None:
    with processes(ps=2, worker=2) as cluster:
        ps = [start(cluster, "ps", index, tmp_path, program=program) for index in range(2)]
        workers = [start(cluster, "worker", index, tmp_path, program=program) for index in range(2)]
        for worker in workers:
            worker.wait_for(r"^read \d{3}")
        (states,) = (tmp_path / "states").iterdir()
        folder = states / f"ps-{lost:05d}-of-00002"
        # The restarted ps will not find later saves, so some updates are certainly lost.
        aside = folder.rename(tmp_path / "aside")
        for worker in workers:
            last = worker.line_count() + 10
            worker.wait_for("^read ", after=last)
        ps[lost].kill()
        shutil.rmtree(folder, ignore_errors=True)
        aside.rename(folder)
        ps[lost] = start(cluster, "ps", lost, tmp_path, program=program)
        saved = int(ps[lost].wait_for(r"continues with its own state of version (\d+), saved")[1])
        ps[lost].wait_for(
            rf"updates {saved + 1} to \d+ of \d+ variables \({names}.*\) are lost; they were applied after"
        )
        for worker in workers:
            worker.wait_for("^read ", after=worker.line_count())
        shown = cluster.run(*HEADWATER, "status", cluster.hosts["ps"][lost]).succeeds()
        assert "are lost; they were applied after the save of" in shown, shown
        (tmp_path / "stop").touch()
        for one in (*workers, *ps):
            one.succeeds()
    for worker in workers:
        assert falls(counts(worker, 1 - lost)) == []
        assert len(falls(counts(worker, lost))) <= 1
    # The first answer contains the saved state, possibly with this worker's own gradient that had not been
    # acknowledged.
    assert min(after for worker in workers for _, after in falls(counts(worker, lost))) in (saved, saved + 1)
    assert not any(folder.iterdir())  # the job is over


def test_a_ps_that_gets_sigterm_loses_nothing(tmp_path: Path) -> None:
    with processes(ps=2, worker=1) as cluster:
        ps = [start(cluster, "ps", index, tmp_path, "--save_every_s=3600") for index in range(2)]
        worker = start(cluster, "worker", 0, tmp_path, "--table")
        worker.wait_for(r"^read \d{2}")
        assert ps[1].terminate() == 0
        ps[1] = start(cluster, "ps", 1, tmp_path)
        ps[1].wait_for("continues with its own state")
        ps[1].wait_for("continues with its own rows of table 'rows'")
        worker.wait_for("^read ", after=worker.line_count())
        (tmp_path / "stop").touch()
        for one in (worker, *ps):
            one.succeeds()
    assert falls(counts(worker, 1)) == []
    first, second = (counts(worker, at)[-1] for at in range(2))
    assert first == second == len(counts(worker, 0))
    assert f"rows [{first}]" in worker.output.splitlines()
