"""What ``headwater status`` and Prometheus see of a cluster that trains."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest

from headwater.cli.status import status
from headwater.compat import tf
from headwater.errors import InvalidArgumentError, UnavailableError
from headwater.server.metrics import METRICS
from headwater.training.consistency import BoundedStaleness, ConsistentOptimizer
from tests.inproc.training.conftest import StartCluster
from tests.inproc.training.test_sync_replicas import Model, batches


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
    assert found["/job:worker/task:0"]["rates"]["steps"] == 0
    assert "consistent/bounded-staleness_1" in shown
    assert "weight/Momentum" in shown
    with urllib.request.urlopen(f"http://{servers[0]['metrics']}/metrics") as answer:
        metrics = answer.read().decode()
    assert 'headwater_sessions{task="/job:ps/task:0"} 0.0' in metrics
    assert 'group="consistent/bounded-staleness_1"' in metrics


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
