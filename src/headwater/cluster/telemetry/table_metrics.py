"""Metrics of a task's dynamic embedding tables for its launcher and the platform's page: a few numbers per table."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.cluster.telemetry.progress import MAX_METRICS
from headwater.cluster.telemetry.snapshot import Snapshot, TableLoad

_EACH = 5
_NAME = 12


def table_metrics(before: Snapshot | None, now: Snapshot) -> dict[str, float]:
    """Returns the metrics of each table, by description; of all tables together if there are too many for a report.

    Args:
      before: a snapshot of the same task from some seconds ago, for rates; None for no rates.
      now: the current snapshot of the task.
    """
    loads = now.tables
    if not loads:
        return {}
    if len(loads) * _EACH > MAX_METRICS:
        groups = {"all tables": loads}
    else:
        groups = {f"table {_short(load.name)}": [load] for load in loads}
    seconds = now.at - before.at if before is not None else 0.0
    known = {load.name: load for load in before.tables} if before is not None else {}
    metrics: dict[str, float] = {}
    for name, group in groups.items():
        metrics |= {f"{name}: {what}": value for what, value in _numbers(group).items()}
        if seconds > 0:
            earlier = [known.get(load.name, TableLoad(name=load.name)) for load in group]
            metrics[f"{name}: rows looked up/s"] = (_lookups(group) - _lookups(earlier)) / seconds
    return metrics


def _short(name: str) -> str:
    return name if len(name) <= _NAME else f"…{name[1 - _NAME :]}"


def _lookups(loads: Sequence[TableLoad]) -> int:
    return sum(load.hits + load.misses for load in loads)


def _numbers(loads: Sequence[TableLoad]) -> dict[str, float]:
    hits, lookups = sum(load.hits for load in loads), _lookups(loads)
    return {
        "rows": sum(load.rows for load in loads),
        "memory, MiB": sum(load.nbytes for load in loads) / 2**20,
        "found in memory": hits / lookups if lookups else 1.0,
        "rows evicted": sum(load.evicted for load in loads),
    }
