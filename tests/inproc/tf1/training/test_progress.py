"""Training steps are reported to the launcher of the process."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from headwater.cluster.telemetry.progress import MAX_DATAGRAM, STATUS_VARIABLE, Progress
from headwater.tf1.compat import tf
from headwater.tf1.training import progress


@pytest.fixture
def launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[socket.socket]:
    """Yields a launcher's socket, which the environment names."""
    path = str(tmp_path / "status")
    config = {"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}}
    monkeypatch.setenv(STATUS_VARIABLE, path)
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    monkeypatch.setattr(progress, "_reporter", None)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver, tf.Graph().as_default():
        receiver.bind(path)
        receiver.settimeout(60)
        yield receiver
        progress.progress_reporter().close()


def next_report(receiver: socket.socket) -> Progress:
    found = Progress.decode(receiver.recv(MAX_DATAGRAM))
    assert found is not None
    return found


@pytest.mark.parametrize("monitored", [False, True])
def test_steps_and_loss_are_reported(launcher: socket.socket, monitored: bool) -> None:
    v = tf.Variable(1.0)
    step = tf.train.get_or_create_global_step()
    loss = v * v
    train = tf.train.GradientDescentOptimizer(0.25).minimize(loss, global_step=step)
    made: Any = tf.train.MonitoredTrainingSession() if monitored else tf.train.Supervisor().managed_session()
    with made as sess:
        steps: list[int] = []
        while True:
            sess.run([train, loss])
            sess.run(loss)
            steps.append(1)
            launcher.setblocking(len(steps) > 100_000)
            try:
                report = next_report(launcher)
            except BlockingIOError:
                continue
            if report.step and report.loss is not None and report.steps_per_s:
                break
        assert report.task == "/job:worker/task:1"
        assert report.step <= len(steps)
        sess.run(train)
    launcher.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            report = next_report(launcher)
    assert report.step == len(steps) + 1
