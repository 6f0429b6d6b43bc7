"""The distributed optimizers of `tf.contrib.opt` on one parameter server and two workers, each a process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headwater.tf1.compat import tf
from tests.conformance.compare import same
from tests.processes.tf1.contrib.schedules import SCHEDULES
from tests.support.processes import processes

FOLDER = Path(__file__).resolve().parent
EXPECTED = json.loads((FOLDER / "expected.json").read_text())


@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_steps_in_this_order_as_in_tensorflow(name: str) -> None:
    with processes(ps=1, worker=2) as cluster:
        tasks = [
            cluster.start(job, index, FOLDER / "programs" / "task.py")
            for job, index in (("ps", 0), ("worker", 0), ("worker", 1))
        ]
        for task in tasks:
            task.wait_for("serves")
        targets = [f"grpc://{cluster.address('worker', index)}" for index in range(2)]
        found = SCHEDULES[name](tf, targets)
    same(json.loads(json.dumps(found)), EXPECTED[name], tolerance=1e-5)
