"""Each ``ps`` has a backup with the ledger of examples: each example counts once, although each ``ps`` is killed."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

from tests.processes.cluster.test_accounted import ONCE, audited, release, start
from tests.support.processes import Process, Processes, processes

pytestmark = pytest.mark.slow

REPLICAS = {"HEADWATER_REPLICAS": "2"}


def kill_each_ps(cluster: Processes, folder: Path, holding: Sequence[Collection[int]], *options: str) -> list[str]:
    """Kills each ``ps`` in turn while examples are assigned to some workers; returns the workers' output."""
    for number in range(2):
        os.mkfifo(folder / f"hold-{number}")
    ps = [start(cluster, "ps", index, folder, *options, **REPLICAS) for index in range(2)]
    workers: list[Process] = []
    for number in range(2):
        holds = [f"--hold_at={at}" for at, held in zip((15, 30), holding, strict=True) if number in held]
        workers.append(start(cluster, "worker", number, folder, *options, *holds, **REPLICAS))
    for task, one in enumerate(ps):
        one.wait_for(f"has a copy of the state of /job:ps/task:{task} ")
    before = [0, 0]
    for index, held in enumerate(holding):
        other = ps[1 - index]
        for number in held:
            workers[number].wait_for("holding", after=before[number])
        ps[index].kill()
        other.wait_for(rf"/job:ps/task:{1 - index} serves the state of /job:ps/task:{index} now")
        since = other.line_count()
        ps[index] = start(cluster, "ps", index, folder, *options, **REPLICAS)
        for task in (0, 1):
            other.wait_for(f"has a copy of the state of /job:ps/task:{task} ", after=since)
        before = [worker.line_count() for worker in workers]
        for number in held:
            release(folder, number)
    shown = [worker.succeeds() for worker in workers]
    for one in ps:
        one.succeeds()
    return shown


@pytest.mark.long
def test_each_ps_is_killed_in_turn(tmp_path: Path) -> None:
    with processes(ps=2, worker=2) as cluster:
        for shown in kill_each_ps(cluster, tmp_path, [(0, 1), (0, 1)]):
            assert ONCE in shown
        assert "epoch 2: 400 examples, each applied once: " in audited(cluster, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("mode", ["sync=2", "replicas 2"])
def test_each_ps_is_killed_in_the_midst_of_a_round(tmp_path: Path, mode: str) -> None:
    """One worker has examples but has not sent its gradient; the other one has sent its gradient."""
    with processes(ps=2, worker=2) as cluster:
        for shown in kill_each_ps(cluster, tmp_path, [(0,), (1,)], f"--mode={mode}"):
            assert ONCE in shown
        assert "epoch 2: 400 examples, each applied once: " in audited(cluster, tmp_path)
