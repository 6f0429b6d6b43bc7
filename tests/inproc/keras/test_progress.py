"""Progress that `fit` reports to a launcher."""

from __future__ import annotations

import socket
from pathlib import Path

import keras
import numpy as np

from headwater.cluster.telemetry.progress import Progress, ProgressReporter
from headwater.keras.progress import ReportsProgress


def test_steps_and_losses_arrive(tmp_path: Path) -> None:
    address = str(tmp_path / "status")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(address)
        reporter = ProgressReporter(task="/job:worker/task:1", address=address, interval_s=0)
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        model.fit(
            np.ones((12, 3)),
            np.zeros((12, 1)),
            batch_size=4,
            epochs=2,
            verbose=0,
            callbacks=[ReportsProgress(reporter, shared=True)],
        )
        reporter.close()
        listening.setblocking(False)
        reports = [Progress.decode(listening.recv(1024)) for _ in range(6)]
    assert [report.step for report in reports if report] == [1, 2, 3, 4, 5, 6]
    losses = [report.loss for report in reports if report and report.loss is not None]
    assert len(losses) == 6
    assert losses == sorted(losses, reverse=True)
    assert losses[0] > 0
