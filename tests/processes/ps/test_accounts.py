"""Each example counts once while workers are killed, stopped and join. Tasks are processes, and the journals are
audited.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.support.processes import Process, Processes, processes

COUNTS = Path(__file__).with_name("counts.py")
OF_KERAS = Path(__file__).parents[1] / "keras" / "counts.py"
HEADWATER = (sys.executable, "-u", "-m", "headwater")

pytestmark = pytest.mark.slow


def start(cluster: Processes, job: str, index: int, folder: Path, *options: str, program: Path = COUNTS) -> Process:
    config = json.dumps({"cluster": cluster.hosts, "task": {"type": job, "index": index}})
    logs = str(folder / "logs")
    return cluster.start(job, index, program, *options, str(folder), TF_CONFIG=config, HEADWATER_LOG_DIR=logs)


@pytest.mark.parametrize(
    ("program", "consistency", "data", "whole"),
    [
        (COUNTS, "async", "arrays", "400 examples"),
        pytest.param(COUNTS, "sync", "arrays", "400 examples", marks=pytest.mark.long),
        pytest.param(COUNTS, "async", "dataset", "400 examples", marks=pytest.mark.long),
        pytest.param(OF_KERAS, "async", "arrays", "400 examples", marks=pytest.mark.long),
        pytest.param(OF_KERAS, "sync", "arrays", "400 examples", marks=pytest.mark.long),
        pytest.param(OF_KERAS, "sync", "PyDataset", "400 parts", marks=pytest.mark.long),
        pytest.param(OF_KERAS, "async", "dataset", "50 batches", marks=pytest.mark.long),
        pytest.param(OF_KERAS, "sync", "dataset", "400 parts", marks=pytest.mark.long),
        pytest.param(OF_KERAS, "async", "file", "50 batches", marks=pytest.mark.long),
    ],
    ids=lambda value: value.parent.name if isinstance(value, Path) else value.replace(" ", "-"),
)
def test_workers_are_killed_and_stopped_and_join(
    program: Path, consistency: str, data: str, whole: str, tmp_path: Path
) -> None:
    choice = f"--consistency={consistency} patience=2"
    of = f"--data={data}"
    for number in range(5):
        os.mkfifo(tmp_path / f"hold-{number}")
    (tmp_path / "numbers").write_text("".join(f"{number}\n" for number in range(400)))
    with processes(ps=2, worker=3) as cluster:
        ps = [start(cluster, "ps", index, tmp_path, choice, of, program=program) for index in range(2)]
        # The chief does not end the job before the stopped worker has reconnected.
        holds = ["--hold_at=3", "--hold_at=6"] if program == COUNTS else ["--hold_at=3"]
        chief, killed, stopped = (
            start(cluster, "worker", index, tmp_path, choice, of, *holds[: 1 if index else 2], program=program)
            for index in range(3)
        )
        for one in (chief, killed, stopped):
            one.wait_for("holding")
        stopped.suspend()
        killed.kill()
        ps[0].wait_for("of epoch 0, held by /job:worker/task:1, is assigned again")
        join = (*HEADWATER, "worker", "--join", cluster.hosts["ps"][0])
        joins = cluster.run(*join, str(program), choice, of, "--hold_at=1", str(tmp_path))
        joined = joins.wait_for(r"holding as (\d)")[1]
        for released in ("0", joined):
            (tmp_path / f"hold-{released}").write_bytes(b"")
        ps[0].wait_for("of epoch 0, held by /job:worker/task:2, is assigned again")
        # otherwise the stopped worker may reconnect before another one has received its batch
        if consistency == "async":
            joins.wait_for("^batch ", after=joins.line_count())
        chief.wait_for("batch 4 ")
        stopped.resume()
        (tmp_path / "hold-2").write_bytes(b"")
        ps[0].wait_for("drops a late gradient of /job:worker/task:2: .* of epoch 0 were assigned again")
        if program == COUNTS:
            (tmp_path / "hold-0").write_bytes(b"")
        for one in (chief, stopped, joins):
            shown = one.succeeds()
            assert program == OF_KERAS or "counts [3.0]" in shown or consistency == "sync"
        for one in ps:
            one.succeeds()
        shown = cluster.run(*HEADWATER, "audit", str(tmp_path / "logs")).succeeds()
    assert "exact: each example of every epoch that is over (3) was applied once\n" in f"{shown}\n"
    assert f"epoch 0: {whole}, each applied once: " in shown


def test_the_first_ps_is_killed_and_restores_its_ledger(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "hold-0")
    with processes(ps=2, worker=1) as cluster:
        ps = [start(cluster, "ps", index, tmp_path) for index in range(2)]
        chief = start(cluster, "worker", 0, tmp_path, "--hold_at=60")
        chief.wait_for("holding")
        ps[0].kill()
        ps[0] = start(cluster, "ps", 0, tmp_path)
        (tmp_path / "hold-0").write_bytes(b"")
        chief.wait_for("sends /job:ps/task:0 the values of version 59|batch 60 of epoch 1 dropped")
        chief.succeeds()
        for one in ps:
            one.succeeds()
        shown = cluster.run(*HEADWATER, "audit", str(tmp_path / "logs")).succeeds()
    assert "/job:ps/task:0 was restarted with the parameters of update 59: 0 updates, of 0 examples" in shown
    assert "exact: each example of every epoch that is over (3) was applied once" in shown
