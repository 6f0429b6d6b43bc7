"""Small tables of a Keras model, stored by rows, on several ps and workers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.processes import processes

PROGRAM = Path(__file__).with_name("small_tables.py")

pytestmark = [pytest.mark.slow, pytest.mark.long]


def trained(*, servers: int, workers: int) -> list[tuple[float, int]]:
    """Returns, for each worker, the loss of the last epoch and the number of rows that it has read."""
    with processes(ps=servers, worker=workers) as cluster:
        tasks = [("ps", index) for index in range(servers)] + [("worker", index) for index in range(workers)]
        started = [
            cluster.start(
                job,
                index,
                PROGRAM,
                TF_CONFIG=json.dumps({"cluster": cluster.hosts, "task": {"type": job, "index": index}}),
            )
            for job, index in tasks
        ]
        told = [process.succeeds() for process in reversed(started)][:workers]
    found = [re.search(r"lost ([\d.]+), read (\d+) rows", text) for text in told]
    return [(float(match[1]), int(match[2])) for match in found if match]


def test_small_tables_in_rows_on_two_ps_and_two_workers_train_as_on_one() -> None:
    ((alone, rows),) = trained(servers=1, workers=1)
    both = trained(servers=2, workers=2)
    assert len(both) == 2
    for loss, read in both:
        assert loss == pytest.approx(alone, rel=1e-4)
        assert 0 < read < rows  # each has computed its share of every batch
