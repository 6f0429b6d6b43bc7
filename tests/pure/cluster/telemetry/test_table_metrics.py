"""Metrics of growing embedding tables on the platform's page."""

from __future__ import annotations

from headwater.cluster.telemetry.progress import MAX_METRICS, Progress
from headwater.cluster.telemetry.snapshot import Snapshot, TableLoad
from headwater.cluster.telemetry.table_metrics import table_metrics


def test_each_table_has_its_numbers() -> None:
    before = Snapshot(at=10.0, tables=(TableLoad(name="users", rows=5, hits=10, misses=0),))
    users = TableLoad(name="users", rows=8, nbytes=2 << 20, hits=25, misses=5, evicted=3)
    found = table_metrics(before, Snapshot(at=12.0, tables=(users,)))
    assert found == {
        "table users: rows": 8,
        "table users: memory, MiB": 2.0,
        "table users: found in memory": 25 / 30,
        "table users: rows evicted": 3,
        "table users: rows looked up/s": 10.0,
    }


def test_there_is_no_rate_at_first_and_nothing_without_tables() -> None:
    found = table_metrics(None, Snapshot(at=1.0, tables=(TableLoad(name="users"),)))
    assert "table users: rows looked up/s" not in found
    assert found["table users: found in memory"] == 1  # nothing was missed
    assert table_metrics(None, Snapshot(at=1.0)) == {}


def test_many_tables_are_reported_together_and_names_fit_into_a_report() -> None:
    few = tuple(TableLoad(name=f"a model/an embedding {n}", rows=n) for n in range(3))
    many = tuple(TableLoad(name=f"t{n}", rows=n, hits=n) for n in range(30))
    for tables in (few, many):
        found = table_metrics(Snapshot(at=0.0), Snapshot(at=1.0, tables=tables))
        report = Progress.decode(Progress(task="/job:ps/task:0", metrics=found).encode())
        assert report is not None
        assert len(found) <= MAX_METRICS
        assert dict(report.metrics) == found
    assert table_metrics(None, Snapshot(at=1.0, tables=many))["all tables: rows"] == sum(range(30))
