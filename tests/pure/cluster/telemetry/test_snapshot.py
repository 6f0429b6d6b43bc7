"""A task's status: as JSON and back, and the rates between two reports."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from headwater.cluster.task.metrics import metrics_of
from headwater.cluster.telemetry.snapshot import (
    GroupProgress,
    PeerTraffic,
    Snapshot,
    TableLoad,
    VariableSize,
    Wait,
    rates,
    total_traffic,
)
from headwater.platform.cli.status import TaskReport, render

FULL = Snapshot(
    at=10.0,
    steps=100,
    sessions=2,
    global_step=50,
    peers=(PeerTraffic(peer="/job:worker/task:0", channels=2, sent=1000, received=3000),),
    variables=(VariableSize(name="w", nbytes=40, dtype="float32", shape=(2, 5), updates=3),),
    variables_count=1,
    variables_bytes=40,
    waits=(Wait(what="gradients", seconds=1.5),),
    groups=(
        GroupProgress(
            name="g", updates=3, staleness=0.5, staleness_max=2, dropped=1, workers=("a",), waiting="a for b"
        ),
    ),
    tables=(TableLoad(name="users", rows=7, nbytes=700, hits=30, misses=10, made=9, evicted=2, hot=((5, 20), (6, 3))),),
    cluster={"/job:ps/task:0": "127.0.0.1:1"},
    metrics="127.0.0.1:2",
)


def test_as_json_and_back() -> None:
    assert Snapshot.decode(FULL.encode()) == FULL
    assert Snapshot.decode(b'{"at": 1.0, "of a later version": [1]}') == Snapshot(at=1.0)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"at": 1, "peers": [3]}', b'{"at": 1, "waits": [{}]}', b"\xff"])
def test_a_malformed_snapshot_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        Snapshot.decode(data)


def test_rates() -> None:
    later = Snapshot(
        at=12.0,
        steps=150,
        global_step=60,
        peers=total_traffic([("/job:worker/task:0", 3000, 2000), ("b", 10, 20), ("b", 30, 40)]),
    )
    found = rates(FULL, later)
    assert found.steps == 25
    assert found.global_step == 5
    # Of the first one a channel was closed meanwhile: what it received went with it.
    assert found.bytes == {"/job:worker/task:0": (1000, 0), "b": (20, 30)}
    assert rates(FULL, Snapshot(at=12.0)).global_step is None


def test_rows_that_were_looked_up_and_how_many_of_them_were_in_memory() -> None:
    later = Snapshot(at=14.0, tables=(TableLoad(name="users", hits=90, misses=30), TableLoad(name="new", hits=4)))
    assert rates(FULL, later).rows == {"users": 20, "new": 1}
    assert FULL.tables[0].hit_rate == 0.75
    assert TableLoad(name="unused").hit_rate == 1.0


def test_tables_in_the_status_and_in_metrics() -> None:
    def report(task: str, hits: int) -> TaskReport:
        snapshot = replace(FULL, tables=(replace(FULL.tables[0], hits=hits),))
        speeds = rates(replace(FULL, at=9.0, tables=()), snapshot)
        return TaskReport(task=task, address="127.0.0.1:1", snapshot=snapshot, rates=speeds)

    console = Console(width=250, record=True, file=io.StringIO())
    console.print(render([report("/job:ps/task:0", 65), report("/job:ps/task:1", 15)]))
    told = console.export_text()
    # The first one does three of four lookups.
    assert re.search(r"users +/job:ps/task:0 +7 +700 B +86.7% +9 +0 +2 +75 +75% +5 \(20\), 6 \(3\)", told), told
    assert re.search(r"users +/job:ps/task:1 .* 25 +25% ", told), told
    samples = {
        (sample.name, sample.labels.get("table"), sample.labels.get("key")): sample.value
        for metric in metrics_of("/job:ps/task:0", FULL)
        for sample in metric.samples
    }
    assert samples["headwater_table_rows", "users", None] == 7
    assert samples["headwater_table_evictions_total", "users", None] == 2
    assert samples["headwater_table_key_uses", "users", "5"] == 20
