"""The output of ``headwater status``, and Prometheus metrics, of a cluster that trains."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest
from rich.console import Console

from headwater.cluster.task.metrics import METRICS, metrics_of
from headwater.cluster.task.progress_watch import BEHIND_AFTER, behind_after_s
from headwater.cluster.telemetry.snapshot import GroupProgress, Snapshot
from headwater.cluster.telemetry.watchdog import WorkerProgress
from headwater.errors import InvalidArgumentError, UnavailableError
from headwater.platform.cli.status import TaskReport, render, status
from headwater.tf1.compat import tf
from headwater.tf1.training.consistency import BoundedStaleness, ConsistentOptimizer
from tests.inproc.conftest import StartCluster
from tests.inproc.tf1.training.test_sync_replicas import Model, batches


def test_status_and_metrics(
    start_cluster: StartCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(METRICS, "127.0.0.1:0")
    monkeypatch.setenv("COLUMNS", "200")
    cluster = start_cluster(ps=2, worker=1)
    address = cluster.targets["ps:0"].removeprefix("grpc://")
    with tf.Graph().as_default():
        model = Model(0, lambda opt: ConsistentOptimizer(opt, BoundedStaleness(steps=1)))
        with tf.train.MonitoredTrainingSession(cluster.targets["worker:0"]) as sess:
            for batch in batches(0):
                sess.run(model.train, model.feed(batch))
            assert status(address, watch=False, as_json=True, interval_s=0.1) == 0
            found: dict[str, Any] = {report["task"]: report for report in json.loads(capsys.readouterr().out)}
            assert status(address, watch=False, as_json=False, interval_s=0.1) == 0
            shown = capsys.readouterr().out
    assert sorted(found) == ["/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:0"]
    servers = [found[f"/job:ps/task:{index}"]["snapshot"] for index in range(2)]
    assert [snapshot["global_step"] for snapshot in servers].count(5) == 1
    names = {variable["name"] for snapshot in servers for variable in snapshot["variables"]}
    assert {"weight", "table", "weight/Momentum", "global_step"} <= names
    (group,) = [group for snapshot in servers for group in snapshot["groups"] if group["workers"]]
    assert group["updates"] == 5
    assert group["workers"] == ["/job:worker/task:0"]
    assert group["staleness_max"] == 0
    assert any(peer["peer"] == "/job:worker/task:0" and peer["received"] > 0 for peer in servers[0]["peers"])
    for snapshot in servers:
        (worker,) = snapshot["workers"]
        assert worker["worker"] == "/job:worker/task:0"
        assert worker["steps"] >= 5
        assert not worker["behind"]
    assert found["/job:worker/task:0"]["rates"]["steps"] == 0
    assert "consistent/bounded-staleness_1" in shown
    assert "weight/Momentum" in shown
    with urllib.request.urlopen(f"http://{servers[0]['metrics']}/metrics") as answer:
        metrics = answer.read().decode()
    assert 'headwater_sessions{task="/job:ps/task:0"} 0.0' in metrics
    assert 'group="consistent/bounded-staleness_1"' in metrics
    assert 'headwater_worker_steps{task="/job:ps/task:0",worker="/job:worker/task:0"}' not in metrics  # it has ended


def test_lagging_worker_with_tables_and_metrics() -> None:
    behind = WorkerProgress(worker="/job:worker/task:1", steps=7, idle_s=12.3, in_step=True, behind=True)
    waits = WorkerProgress(worker="/job:worker/task:0", steps=9, idle_s=1.0, in_step=True, waiting="others")
    snapshot = Snapshot(at=1.0, workers=(waits, behind))
    console = Console(width=200)
    with console.capture() as shown:
        console.print(render([TaskReport(task="/job:ps/task:0", address="127.0.0.1:1", snapshot=snapshot)]))
    rows = [" ".join(line.split()) for line in shown.get().splitlines()]
    assert "/job:worker/task:1 /job:ps/task:0 7 12 s ago in a step behind" in rows
    assert "/job:worker/task:0 /job:ps/task:0 9 1 s ago waits for others" in rows
    samples = {
        (sample.name, sample.labels["worker"]): sample.value
        for metric in metrics_of("/job:ps/task:0", snapshot)
        for sample in metric.samples
        if "worker" in sample.labels
    }
    assert samples["headwater_worker_steps", "/job:worker/task:1"] == 7
    assert samples["headwater_worker_idle_seconds", "/job:worker/task:1"] == 12.3
    assert samples["headwater_worker_behind", "/job:worker/task:1"] == 1
    assert samples["headwater_worker_behind", "/job:worker/task:0"] == 0


def test_a_part_without_a_backup_is_shown() -> None:
    group = GroupProgress(name="params/0", updates=7, copies="primary, NO BACKUP", lacks_backup=True, backup_lag=3)
    snapshot = Snapshot(at=1.0, groups=(group,))
    console = Console(width=200)
    with console.capture() as shown:
        console.print(render([TaskReport(task="/job:ps/task:0", address="127.0.0.1:1", snapshot=snapshot)]))
    rows = [" ".join(line.split()) for line in shown.get().splitlines()]
    assert "params/0 /job:ps/task:0 7 primary, NO BACKUP" in rows
    samples = {s.name: s.value for metric in metrics_of("/job:ps/task:0", snapshot) for s in metric.samples}
    assert samples["headwater_lacks_backup"] == 1
    assert samples["headwater_backup_lag"] == 3


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan"])
def test_no_time_to_be_behind_after(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="HEADWATER_BEHIND_AFTER_S is"):
        behind_after_s({BEHIND_AFTER: text})
    assert behind_after_s({BEHIND_AFTER: "2.5"}) == 2.5


def test_tasks_that_cannot_be_asked(start_cluster: StartCluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster = start_cluster(ps=1, worker=1)
    with tf.Graph().as_default():
        address = cluster.targets["ps:0"].removeprefix("grpc://")
        cluster.stop_one("worker:0")
        assert status(address, watch=False, as_json=True, interval_s=0.1) == 1
    reports = {report["task"]: report for report in json.loads(capsys.readouterr().out)}
    assert reports["/job:worker/task:0"]["snapshot"] is None
    assert "/job:worker/task:0" in reports["/job:worker/task:0"]["problem"]
    with pytest.raises(UnavailableError):
        status("127.0.0.1:1", watch=False, as_json=False, interval_s=0.1)


def test_metrics_that_cannot_be(start_cluster: StartCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(METRICS, "nowhere")
    with pytest.raises(InvalidArgumentError, match="HEADWATER_METRICS is 'nowhere'"):
        start_cluster(ps=1)
