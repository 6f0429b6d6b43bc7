"""Keras models with dynamic embeddings on the ps, as processes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.processes import EXEC, Process, Processes, processes

PROGRAM = Path(__file__).with_name("recommends.py")

pytestmark = pytest.mark.slow


def start(cluster: Processes, job: str, index: int, folder: Path, *options: str) -> Process:
    config = json.dumps({"cluster": cluster.hosts, "task": {"type": job, "index": index}})
    return cluster.start(job, index, PROGRAM, *options, str(folder), TF_CONFIG=config)


@pytest.mark.parametrize(
    ("ps", "options"),
    [
        pytest.param(1, ["--sync"], id="one ps"),
        pytest.param(2, ["--general"], id="two ps", marks=pytest.mark.long),
    ],
)
def test_two_workers_train_rows_that_grow_and_the_model_is_saved_with_them(
    tmp_path: Path, ps: int, options: list[str]
) -> None:
    with processes(ps=ps, worker=2) as cluster:
        servers = [start(cluster, "ps", index, tmp_path, *options) for index in range(ps)]
        workers = [start(cluster, "worker", index, tmp_path, *options) for index in range(2)]
        chief, other = workers
        chief.wait_for(r"loss 0\.[01]\d+ rows")
        other.wait_for(r"loss 0\.[01]\d+ rows")
        if ps == 2:
            servers[1].kill()
            servers[1] = start(cluster, "ps", 1, tmp_path, *options)
            # either the model's or the tables' connection notices first
            chief.wait_for(r"(lost|continues with) /job:ps/task:1")
            # Without the saved rows, the loss would be the initial one, 0.69.
            assert float(chief.wait_for(r"loss (\d\.\d+) rows", after=chief.line_count())[1]) < 0.5
        rows = json.loads(chief.wait_for(r"rows (\[.*\])", after=chief.line_count())[1])
        assert len(rows) == ps
        assert sum(rows) == 60
        assert all(rows)
        (tmp_path / "stop").touch()
        for worker in workers:
            assert float(worker.succeeds().rpartition("accuracy ")[2]) > 0.95
        for server in servers:
            server.succeeds()
        # Another process, without a cluster, loads the rows from the file.
        assert cluster.run(*EXEC, str(PROGRAM), "--load", str(tmp_path)).succeeds().endswith("predicts the same")
