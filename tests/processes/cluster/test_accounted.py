"""Each example of a graph's dataset counts once while workers are killed, stopped and join, and `ps` are killed.

Tasks are processes, and the journals are audited.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from pathlib import Path

import pytest

from tests.support.processes import Process, Processes, processes

PROGRAM = Path(__file__).with_name("programs") / "accounted.py"
HEADWATER = (sys.executable, "-u", "-m", "headwater")
ONCE = "counts [3.0] [3.0] [3.0]"
ONCE_ON_THE_FIRST = re.compile(r"^counts \[.*\] \[3\.0\] \[.*\]$", re.MULTILINE)
"""The first `ps` has the second of the three counts."""

pytestmark = pytest.mark.slow


def start(cluster: Processes, job: str, index: int, folder: Path, *options: str, **environ: str) -> Process:
    logs = str(folder / "logs")
    return cluster.start(job, index, PROGRAM, f"--folder={folder}", *options, HEADWATER_LOG_DIR=logs, **environ)


def release(folder: Path, worker: int) -> None:
    (folder / f"hold-{worker}").write_bytes(b"")


def audited(cluster: Processes, folder: Path) -> str:
    shown = cluster.run(*HEADWATER, "audit", str(folder / "logs")).succeeds()
    assert "exact: each example of every epoch that is over (3) was applied once\n" in f"{shown}\n"
    return shown


def test_workers_are_killed_and_stopped_and_join(tmp_path: Path) -> None:
    for number in range(3):
        os.mkfifo(tmp_path / f"hold-{number}")
    with processes(ps=2, worker=3) as cluster:
        ps = [start(cluster, "ps", index, tmp_path) for index in range(2)]
        # The chief does not end before the others have returned.
        chief, killed, stopped = (
            start(cluster, "worker", index, tmp_path, "--hold_at=3", *(() if index else ("--hold_at=110",)))
            for index in range(3)
        )
        for one in (chief, killed, stopped):
            one.wait_for("holding")
        stopped.suspend()
        killed.kill()
        ps[0].wait_for("of epoch 0, held by /job:worker/task:1, is assigned again")
        release(tmp_path, 0)
        ps[0].wait_for("held by /job:worker/task:2, is assigned again: others have waited 2 s for it")
        chief.wait_for("holding", after=chief.next_line("step 3", after=0))
        again = start(cluster, "worker", 1, tmp_path)
        again.wait_for("step 1$")
        stopped.resume()
        release(tmp_path, 2)
        stopped.wait_for("A worker or parameter server was lost; the session is closed and a new one made")
        release(tmp_path, 0)
        for one in (chief, stopped, again):
            # The stopped worker's gradient arrived at the other ps too late as well, but that ps does not drop it.
            assert ONCE_ON_THE_FIRST.search(one.succeeds())
        for one in ps:
            one.succeeds()
        assert "epoch 0: 400 examples, each applied once: " in audited(cluster, tmp_path)


def test_rounds_continue_after_a_worker_is_killed(tmp_path: Path) -> None:
    for number in range(3):
        os.mkfifo(tmp_path / f"hold-{number}")
    of = "--mode=replicas 3"
    with processes(ps=2, worker=3) as cluster:
        ps = [start(cluster, "ps", index, tmp_path, of) for index in range(2)]
        chief, killed, other = (
            start(cluster, "worker", index, tmp_path, of, *(["--hold_at=3"] if index else [])) for index in range(3)
        )
        for one in (killed, other):
            one.wait_for("holding")
        killed.kill()
        ps[0].wait_for("of epoch 0, held by /job:worker/task:1, is assigned again")
        again = start(cluster, "worker", 1, tmp_path, of)
        release(tmp_path, 2)
        for one in (chief, other, again):
            assert ONCE in one.succeeds()
        for one in ps:
            one.succeeds()
        audited(cluster, tmp_path)


@pytest.mark.long
def test_the_first_ps_restores_its_own_state(tmp_path: Path) -> None:
    for number in range(2):
        os.mkfifo(tmp_path / f"hold-{number}")
    settings = {"HEADWATER_SAVES": str(tmp_path / "saves"), "HEADWATER_SAVE_EVERY_S": "0.2"}
    with processes(ps=2, worker=2) as cluster:
        ps = [start(cluster, "ps", index, tmp_path, **settings) for index in range(2)]
        chief, other = (start(cluster, "worker", index, tmp_path, "--hold_at=20") for index in range(2))
        for one in (chief, other):
            one.wait_for("holding")
        saves = tmp_path / "saves" / "+graph" / "ps-00000-of-00002"
        while not list(saves.glob("*.full")):  # the first save is due within 0.2 s
            threading.Event().wait(0.01)
        ps[0].kill()
        ps[0] = start(cluster, "ps", 0, tmp_path, **settings)
        ps[0].wait_for("continues with its own state")
        for number in range(2):
            release(tmp_path, number)
        for one in (chief, other):
            assert ONCE_ON_THE_FIRST.search(one.succeeds())  # the other ps applies repeated steps a second time
        for one in ps:
            one.succeeds()
        audited(cluster, tmp_path)


@pytest.mark.long
def test_all_go_back_to_a_checkpoint(tmp_path: Path) -> None:
    for number in range(2):
        os.mkfifo(tmp_path / f"hold-{number}")
    with processes(ps=2, worker=2) as cluster:
        ps = [start(cluster, "ps", index, tmp_path) for index in range(2)]
        chief, other = (
            start(cluster, "worker", index, tmp_path, "--hold_at=20", "--save_steps=7") for index in range(2)
        )
        for one in (chief, other):
            one.wait_for("holding")
        ps[0].kill()
        ps[0] = start(cluster, "ps", 0, tmp_path)
        for number in range(2):
            release(tmp_path, number)
        ps[0].wait_for("the account of 'examples/applied' continues as of update")
        for one in (chief, other):
            assert ONCE in one.succeeds()
        for one in ps:
            one.succeeds()
        audited(cluster, tmp_path)
