"""Fixed tables of a Keras model are stored only on the ps, as the processes' memory shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.processes import processes

PROGRAM = Path(__file__).with_name("large_tables.py")
ROWS = 2_000_000
TABLE = ROWS * 16 * 4

pytestmark = [pytest.mark.slow, pytest.mark.long]


def peaks(rows: int, *, tables: int = 1, servers: int = 1) -> list[int]:
    """Returns the peak memory of a ps and a worker, in bytes, with tables of ``rows`` rows; the largest of all ps."""
    with processes(ps=servers, worker=1) as cluster:
        started = [
            cluster.start(
                job,
                index,
                PROGRAM,
                "--rows",
                str(rows),
                "--tables",
                str(tables),
                TF_CONFIG=json.dumps({"cluster": cluster.hosts, "task": {"type": job, "index": index}}),
            )
            for job, index in [*(("ps", index) for index in range(servers)), ("worker", 0)]
        ]
        told = [int(process.succeeds().rpartition("at most ")[2].split()[0]) for process in reversed(started)]
        return [max(told[1:]), told[0]]


def test_larger_table_needs_memory_for_its_rows_on_the_ps_only() -> None:
    (small_ps, small_worker), (ps, worker) = peaks(1000), peaks(ROWS)
    assert worker - small_worker < TABLE / 4
    # Values, Adagrad's accumulators, a tenth more, and memory that does not depend on the table's size, such as
    # executables.
    assert TABLE * 1.9 < ps - small_ps < TABLE * 2 * 1.1 + (32 << 20)


@pytest.mark.timeout(900)
def test_sixteen_tables_on_two_ps() -> None:
    (small_ps, small_worker), (ps, worker) = (peaks(rows, tables=16, servers=2) for rows in (1000, 1_000_000))
    held = 16 * 1_000_000 * 16 * 4 * 2 // 2  # with accumulators, on each ps
    assert worker - small_worker < 64 << 20
    assert held * 0.95 < ps - small_ps < held * 1.1
