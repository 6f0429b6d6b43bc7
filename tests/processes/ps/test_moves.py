"""Shards move between ``ps`` tasks while training continues: each update is in the values, once."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.processes.ps.test_replicas import COUNTS, exact, listed
from tests.support.processes import Process, Processes, processes, terminate_all

PROGRAM = Path(__file__).with_name("moves.py")
OF_KERAS = Path(__file__).parents[1] / "keras" / "scales.py"
WITH_COPIES = Path(__file__).parents[1] / "keras" / "survives.py"

pytestmark = pytest.mark.slow


def start(
    cluster: Processes,
    job: str,
    index: int,
    folder: Path,
    *arguments: str,
    known: int = 2,
    program: Path = PROGRAM,
) -> Process:
    """Starts a task that knows some of the ``ps``; the first two have the shards at the beginning."""
    hosts = {"ps": cluster.hosts["ps"][:known], "worker": cluster.hosts["worker"]}
    config = json.dumps({"cluster": hosts, "task": {"type": job, "index": index}})
    more = {"TF_CONFIG": config, "HEADWATER_FIRST_PS": "2", "HEADWATER_LOG_DIR": str(folder / "logs")}
    return cluster.start(job, index, program, *arguments, str(folder), **more)


def begin(
    cluster: Processes, folder: Path, *arguments: str, servers: int = 2, program: Path = PROGRAM
) -> tuple[list[Process], list[Process]]:
    """Starts some ``ps``, and two workers."""
    ps = [start(cluster, "ps", index, folder, *arguments, program=program) for index in range(servers)]
    workers = [start(cluster, "worker", index, folder, *arguments, program=program) for index in range(2)]
    return ps, workers


def go_on(*workers: Process) -> None:
    for worker in workers:
        worker.wait_for("pushed", after=worker.line_count())


def end(folder: Path, workers: list[Process], *, in_rounds: bool = False) -> int:
    """Ends the program, and checks that the values contain each applied push once and no other; returns the number of
    pushes.

    With ``in_rounds``, each update combines the gradients of all workers; the worker that notices the end last may push
    once more.
    """
    (folder / "end").touch()
    shown = [worker.succeeds() for worker in workers]
    taken = [re.search(r": (\d+) of (\d+) pushes were taken", text) for text in shown]
    assert all(found is not None and found[1] == found[2] for found in taken)
    value = momentum = np.float32(0)
    counts = [int(found[1]) for found in taken if found]
    for _ in range(max(counts) if in_rounds else sum(counts)):
        momentum = np.float32(0.5) * momentum + np.float32(1)
        value += momentum
    assert f"values [{float(value)}]" in shown[0]
    return sum(counts)


@pytest.mark.long
@pytest.mark.parametrize("consistency", ["async", "sync"])
def test_two_ps_become_three_then_two_then_one(tmp_path: Path, consistency: str) -> None:
    has_table = consistency == "async"
    chosen = "--consistency", consistency, *(["--table"] if has_table else [])
    with processes(ps=3, worker=2) as cluster:
        ps, workers = begin(cluster, tmp_path, *chosen)
        go_on(*workers)
        ps.append(start(cluster, "ps", 2, tmp_path, *chosen, known=3))
        for name in ("params", *(["[+]tables"] if has_table else [])):
            ps[2].wait_for(f"has joined: 2 shards of '{name}'")
        go_on(*workers)
        assert ps[1].terminate() == 0
        assert ps[1].output.count("has handed off its copies") == 1 + has_table
        go_on(*workers)
        # The chief requests the move; in rounds, the other worker waits for the chief's gradient meanwhile.
        (tmp_path / "scale-1").touch()
        workers[0].wait_for(f"scaled: {6 if has_table else 3} moves")
        go_on(*workers)
        pushed = end(tmp_path, workers, in_rounds=not has_table)
        ps[0].succeeds()
        ps[2].succeeds()
        assert not has_table or f"rows [{float(pushed)}]" in workers[0].output


def test_the_chief_keeps_shards_of_a_draining_ps_that_no_other_ps_accepts(tmp_path: Path) -> None:
    with processes(ps=1, worker=2) as cluster:
        ps, workers = begin(cluster, tmp_path, servers=1)
        go_on(*workers)
        assert ps[0].terminate() == 0
        assert ps[0].output.count("has deposited its replica of shard") == 6
        ps[0] = start(cluster, "ps", 0, tmp_path)
        ps[0].wait_for("continues with the copy of shard .* of term 1, which was deposited with /job:worker/task:0")
        go_on(*workers)
        end(tmp_path, workers)
        for one in ps:
            one.succeeds()


@pytest.mark.long
def test_a_hot_shard_gets_a_ps_of_its_own(tmp_path: Path) -> None:
    arguments = ("--shards", "4", "--size", "1000", "--hot", "100")
    with processes(ps=2, worker=2) as cluster:
        ps, workers = begin(cluster, tmp_path, *arguments)
        go_on(*workers)
        rebalance = [sys.executable, "-m", "headwater", "rebalance", cluster.address("ps")]
        shown = cluster.run(*rebalance).succeeds()
        assert re.findall(r"shard (\d+) from (\S+) to (\S+),", shown) == [("3", "/job:ps/task:1", "/job:ps/task:0")], (
            shown
        )
        go_on(*workers)
        shown = cluster.run(*rebalance, "--ps", "1", "--json").succeeds()
        moved = json.loads(shown.splitlines()[-1])["params"]
        assert [(one["shard"], one["target"]) for one in moved] == [(1, "/job:ps/task:0")]
        go_on(*workers)
        end(tmp_path, workers)
        for one in ps:
            one.succeeds()


def test_a_hot_shard_moves_by_itself_where_that_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_REBALANCE_S", "1")
    arguments = ("--shards", "4", "--size", "1000", "--hot", "100")
    with processes(ps=2, worker=2) as cluster:
        ps, workers = begin(cluster, tmp_path, *arguments)
        # Shard 1 is hot. Which other shard moves depends on the traffic before the first check.
        workers[0].wait_for(r"automatic rebalancing has moved shard [023] from /job:ps/task:\d to /job:ps/task:\d: ")
        go_on(*workers)
        end(tmp_path, workers)
        for one in ps:
            one.succeeds()


@pytest.mark.long
def test_variables_of_keras_move(tmp_path: Path) -> None:
    """Each update of the epochs is applied once on each variable, on whichever ``ps`` it is."""
    with processes(ps=2, worker=2) as cluster:

        def run(job: str, index: int) -> Process:
            config = json.dumps({"cluster": cluster.hosts, "task": {"type": job, "index": index}})
            return cluster.start(job, index, OF_KERAS, TF_CONFIG=config, HEADWATER_LOG_DIR=str(tmp_path))

        ps = [run("ps", index) for index in range(2)]
        workers = [run("worker", index) for index in range(2)]
        shown = workers[0].succeeds()
        assert "weights [-240.0] after 240 updates" in shown
        assert {"moved 1", "moved 2"} & set(shown.splitlines())
        workers[1].succeeds()
        for one in ps:
            one.succeeds()
        shown = cluster.run(sys.executable, "-u", "-m", "headwater", "audit", str(tmp_path)).succeeds()
    assert "exact: each example of every epoch that is over (3) was applied once" in shown


def test_two_ps_with_copies_become_three_then_two_and_one_is_killed(tmp_path: Path) -> None:
    """Each update is in the values and in the rows of a dynamic table, once."""
    chosen = "--replicas", "2", "--shards", "4", "--table"
    with processes(ps=3, worker=2) as cluster:
        ps, workers = begin(cluster, tmp_path, *chosen)
        go_on(*workers)
        ps.append(start(cluster, "ps", 2, tmp_path, *chosen, known=3))
        for name in ("params", "[+]tables"):
            ps[2].wait_for(f"has joined: . shards of '{name}'")
        go_on(*workers)
        assert ps[1].terminate() == 0
        assert ps[1].output.count("has handed off its copies") == 2
        go_on(*workers)
        ps[0].kill()
        go_on(*workers)
        pushed = end(tmp_path, workers)
        ps[2].succeeds()
        assert f"rows [{float(pushed)}]" in workers[0].output


@pytest.mark.long
def test_a_draining_ps_gives_its_copies_to_one_that_was_lost_and_is_back(tmp_path: Path) -> None:
    chosen = "--replicas", "2", "--shards", "4", "--table"
    with processes(ps=2, worker=2) as cluster:
        ps, workers = begin(cluster, tmp_path, *chosen)
        go_on(*workers)
        ps[1].kill()
        go_on(*workers)
        ps[0].send_sigterm()
        ps[0].wait_for("/job:ps/task:0 waits to end until /job:ps/task:1 takes its copies of shards 0, 1, 2, 3 of ")
        go_on(*workers)
        ps[1] = start(cluster, "ps", 1, tmp_path, *chosen)
        assert ps[0].succeeds().count("has handed off its copies") == 2
        go_on(*workers)
        pushed = end(tmp_path, workers)
        ps[1].succeeds()
        assert f"rows [{float(pushed)}]" in workers[0].output


@pytest.mark.long
def test_all_ps_with_copies_shut_down_at_once(tmp_path: Path) -> None:
    """No ``ps`` waits for another one, and the chief keeps the state of the ``ps`` until the ``ps`` are restarted."""
    chosen = "--replicas", "2", "--shards", "4", "--table"
    with processes(ps=2, worker=2) as cluster:
        ps, workers = begin(cluster, tmp_path, *chosen)
        go_on(*workers)
        terminate_all(ps)
        assert "waits to end" not in ps[0].output + ps[1].output
        ps = [start(cluster, "ps", index, tmp_path, *chosen) for index in range(2)]
        go_on(*workers)
        pushed = end(tmp_path, workers)
        assert f"rows [{float(pushed)}]" in workers[0].output
        for one in ps:
            one.succeeds()


@pytest.mark.long
def test_examples_stay_assigned_when_the_first_shard_moves(tmp_path: Path) -> None:
    chosen = "--replicas=2", "--shards=2", "--hold_at=10"
    with processes(ps=3, worker=2) as cluster:
        for worker in (0, 1):
            os.mkfifo(tmp_path / f"hold-{worker}")
        ps, workers = begin(cluster, tmp_path, *chosen, program=COUNTS)
        for worker in workers:
            worker.wait_for("holding as")
        ps.append(start(cluster, "ps", 2, tmp_path, *chosen, known=3, program=COUNTS))
        ps[2].wait_for("has joined: . shards")
        assert ps[0].terminate() == 0
        assert "has handed off its copies" in ps[0].output
        before = workers[1].line_count()
        (tmp_path / "hold-1").write_bytes(b"")
        workers[1].wait_for("^batch ", after=before)
        (tmp_path / "hold-0").write_bytes(b"")
        exact(cluster, tmp_path, workers)
        for one in ps[1:]:
            one.succeeds()


@pytest.mark.long
@pytest.mark.parametrize("table", ["rows", "grows"])
def test_a_model_of_keras_with_a_table_moves_and_a_ps_is_killed(table: str, tmp_path: Path) -> None:
    """Each update of the epochs is applied once, and each example counts once."""
    chosen = "--shards", "4", "--table", table
    with processes(ps=3, worker=2) as cluster:

        def run(job: str, index: int, known: int = 2) -> Process:
            return start(cluster, job, index, tmp_path, *chosen, known=known, program=WITH_COPIES)

        def hold(batch: int) -> None:
            for worker in workers:
                worker.wait_for(f"holding at {batch}$")

        def let_go(batch: int) -> None:
            for worker in range(2):
                (tmp_path / f"hold-{worker}-{batch}").write_bytes(b"")

        for worker in (0, 1):
            for batch in (20, 30):
                os.mkfifo(tmp_path / f"hold-{worker}-{batch}")
        ps = [run("ps", index) for index in range(2)]
        workers = [run("worker", index) for index in range(2)]
        hold(20)
        ps.append(run("ps", 2, 3))
        for _ in range(2 if table == "grows" else 1):
            ps[2].wait_for("has joined: . shards")
        assert ps[1].terminate() == 0
        assert "has handed off its copies" in ps[1].output
        let_go(20)
        hold(30)
        ps[0].kill()
        let_go(30)
        shown = [worker.succeeds() for worker in workers]
        ps[2].succeeds()
        weights = [-240.0, -30.0] if table == "rows" else [-240.0]
        assert f"weights {weights} after 240 updates" in shown[0]
        if table == "grows":
            rows = listed(shown[0], "rows")
            assert rows == [-sum(both) for both in zip(*(listed(text, "pushed") for text in shown), strict=True)]
        shown = cluster.run(sys.executable, "-u", "-m", "headwater", "audit", str(tmp_path / "logs")).succeeds()
    assert "exact: each example of every epoch that is over (3) was applied once" in shown
