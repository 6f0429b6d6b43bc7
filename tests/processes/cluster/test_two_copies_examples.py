"""Each ``ps`` has a second copy, with the account of examples: each counts once, though each ``ps`` is killed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.processes.cluster.test_accounted import ONCE, audited, release, start
from tests.support.processes import processes

pytestmark = pytest.mark.slow

REPLICAS = {"HEADWATER_REPLICAS": "2"}


def test_each_ps_is_killed_in_turn(tmp_path: Path) -> None:
    for number in range(2):
        os.mkfifo(tmp_path / f"hold-{number}")
    with processes(ps=2, worker=2) as cluster:
        ps = [start(cluster, "ps", index, tmp_path, **REPLICAS) for index in range(2)]
        workers = [
            start(cluster, "worker", index, tmp_path, "--hold_at=15", "--hold_at=30", **REPLICAS) for index in range(2)
        ]
        for task, one in enumerate(ps):
            one.wait_for(f"has a copy of the state of /job:ps/task:{task} ")
        before = [0, 0]
        for index in (0, 1):
            other = ps[1 - index]
            for number, worker in enumerate(workers):
                worker.wait_for("holding", after=before[number])
            ps[index].kill()
            other.wait_for(rf"/job:ps/task:{1 - index} serves the state of /job:ps/task:{index} now")
            since = other.line_count()
            ps[index] = start(cluster, "ps", index, tmp_path, **REPLICAS)
            for task in (0, 1):
                other.wait_for(f"has a copy of the state of /job:ps/task:{task} ", after=since)
            before = [worker.line_count() for worker in workers]
            for number in range(2):
                release(tmp_path, number)
        for worker in workers:
            assert ONCE in worker.succeeds()
        for one in ps:
            one.succeeds()
        assert "epoch 2: 400 examples, each applied once: " in audited(cluster, tmp_path)
