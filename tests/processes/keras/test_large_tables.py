"""Fixed tables of a Keras model are on the ps only, as the memory of processes shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.processes import processes

PROGRAM = Path(__file__).with_name("large_tables.py")
ROWS = 2_000_000
TABLE = ROWS * 16 * 4

pytestmark = [pytest.mark.slow, pytest.mark.long]


def peaks(rows: int) -> list[int]:
    """How many bytes a ps and a worker take at most with a table of ``rows`` rows."""
    with processes(ps=1, worker=1) as cluster:
        started = [
            cluster.start(
                job,
                0,
                PROGRAM,
                "--rows",
                str(rows),
                TF_CONFIG=json.dumps({"cluster": cluster.hosts, "task": {"type": job, "index": 0}}),
            )
            for job in ("ps", "worker")
        ]
        return [int(process.succeeds().rpartition("at most ")[2].split()[0]) for process in reversed(started)][::-1]


def test_a_worker_takes_no_more_memory_with_a_larger_table_and_a_ps_its_rows_only() -> None:
    (small_ps, small_worker), (ps, worker) = peaks(1000), peaks(ROWS)
    assert worker - small_worker < TABLE / 4
    # Values, Adagrad's sums beside them, a tenth, and what does not grow with the table, such as executables.
    assert TABLE * 1.9 < ps - small_ps < TABLE * 2 * 1.1 + (32 << 20)
