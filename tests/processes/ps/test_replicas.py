"""Each part of the parameters has a backup: no acknowledged update is lost when a task is killed or stopped."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.processes import Process, Processes, processes, terminate_all

PROGRAM = Path(__file__).with_name("survives.py")
ROUNDS = Path(__file__).with_name("rounds.py")
COUNTS = Path(__file__).with_name("counts.py")
OF_KERAS = Path(__file__).parents[1] / "keras" / "survives.py"

pytestmark = pytest.mark.slow


def start(cluster: Processes, job: str, index: int, folder: Path, program: Path = PROGRAM, *options: str) -> Process:
    config = json.dumps({"cluster": cluster.hosts, "task": {"type": job, "index": index}})
    logs = str(folder / "logs")
    return cluster.start(job, index, program, str(folder), *options, TF_CONFIG=config, HEADWATER_LOG_DIR=logs)


def begin(
    cluster: Processes, folder: Path, program: Path = PROGRAM, *options: str
) -> tuple[list[Process], list[Process]]:
    """Starts two ``ps``, each with a replica of both parts, and two workers."""
    ps = [start(cluster, "ps", index, folder, program, *options) for index in range(2)]
    workers = [start(cluster, "worker", index, folder, program, *options) for index in range(2)]
    for shard, one in enumerate(ps):
        one.wait_for(f"has a copy of shard {shard} ")
    return ps, workers


def has_copies(one: Process, after: int) -> None:
    """Waits until a ``ps`` has logged, in a line from ``after`` on, that the other one has replicas of both parts."""
    for shard in (0, 1):
        one.wait_for(f"has a copy of shard {shard} ", after=after)


def comes_back(
    cluster: Processes, other: Process, index: int, folder: Path, program: Path = PROGRAM, *options: str
) -> Process:
    """Restarts a ``ps``, and waits until it has a snapshot from the ``other`` one and serves its part again."""
    before = other.line_count()
    made = start(cluster, "ps", index, folder, program, *options)
    has_copies(other, before)
    gives_back(other, index, before)
    return made


def gives_back(other: Process, index: int, after: int) -> None:
    """Waits until a ``ps`` has logged the handoff of the other one's part back to that ``ps``."""
    other.wait_for(f"has handed off shard {index} of .* to /job:ps/task:{index} in ", after=after)


def wait_for_pushes(*workers: Process) -> None:
    for worker in workers:
        worker.wait_for("pushed", after=worker.line_count())


def ends(folder: Path, ps: list[Process], workers: list[Process]) -> None:
    """Ends the program, and checks that the values contain each applied push once and no other."""
    (folder / "end").touch()
    shown = [worker.succeeds() for worker in workers]
    taken = [re.search(r": (\d+) of (\d+) pushes were taken", text) for text in shown]
    assert all(found is not None and found[1] == found[2] for found in taken)
    assert f"values [{float(sum(int(found[1]) for found in taken if found))}]" in shown[0]
    for one in ps:
        one.succeeds()


@pytest.mark.parametrize("how", [Process.kill, pytest.param(Process.terminate, marks=pytest.mark.long)])
def test_each_ps_is_killed_or_shut_down_in_turn(how: Callable[[Process], object], tmp_path: Path) -> None:
    with processes(ps=2, worker=2) as cluster:
        ps, workers = begin(cluster, tmp_path)
        for index in (0, 1):
            other = ps[1 - index]
            wait_for_pushes(*workers)
            how(ps[index])
            other.wait_for(rf"/job:ps/task:{1 - index} serves shard {index} ")
            wait_for_pushes(*workers)
            ps[index] = comes_back(cluster, other, index, tmp_path)
        wait_for_pushes(*workers)
        ends(tmp_path, ps, workers)


@pytest.mark.long
def test_a_restarted_ps_does_not_wait_for_lost_workers(tmp_path: Path) -> None:
    with processes(ps=2, worker=2) as cluster:
        ps, workers = begin(cluster, tmp_path)
        wait_for_pushes(*workers)
        workers[1].kill()
        before = ps[1].line_count()
        ps[0].kill()
        ps[0] = start(cluster, "ps", 0, tmp_path)
        has_copies(ps[1], before)
        (tmp_path / "end").touch()
        for task in (workers[0], *ps):
            task.succeeds()


@pytest.mark.long
def test_a_draining_ps_waits_for_the_other_one_that_was_lost(tmp_path: Path) -> None:
    with processes(ps=2, worker=2) as cluster:
        ps, workers = begin(cluster, tmp_path)
        wait_for_pushes(*workers)
        ps[1].kill()
        ps[0].wait_for("/job:ps/task:0 serves shard 1 ")
        ps[0].send_sigterm()
        ps[0].wait_for("/job:ps/task:0 waits to shut down until another ps has taken over: ")
        wait_for_pushes(*workers)
        ps[1] = start(cluster, "ps", 1, tmp_path)
        ps[0].succeeds()
        wait_for_pushes(*workers)
        ends(tmp_path, ps[1:], workers)


@pytest.mark.long
def test_both_ps_shut_down_at_once(tmp_path: Path) -> None:
    """The chief keeps the state of the ``ps`` until the ``ps`` are restarted."""
    with processes(ps=2, worker=2) as cluster:
        ps, workers = begin(cluster, tmp_path)
        wait_for_pushes(*workers)
        terminate_all(ps)
        ps = [start(cluster, "ps", index, tmp_path) for index in range(2)]
        wait_for_pushes(*workers)
        ends(tmp_path, ps, workers)


@pytest.mark.long
def test_training_continues_after_both_ps_are_killed_together(tmp_path: Path) -> None:
    """Both replicas of each part are lost: the chief restores its own copy."""
    with processes(ps=2, worker=2) as cluster:
        ps, workers = begin(cluster, tmp_path)
        wait_for_pushes(*workers)
        for one in ps:
            one.kill()
        ps = [start(cluster, "ps", index, tmp_path) for index in range(2)]
        wait_for_pushes(*workers)
        (tmp_path / "end").touch()
        for task in (*workers, *ps):
            task.succeeds()


@pytest.mark.long
@pytest.mark.parametrize("index", [0, 1])
def test_a_ps_that_was_cut_off_is_fenced(index: int, tmp_path: Path) -> None:
    with processes(ps=2, worker=2) as cluster:
        ps, workers = begin(cluster, tmp_path)
        wait_for_pushes(*workers)
        stopped, other = ps[index], ps[1 - index]
        stopped.suspend()
        other.wait_for(f"serves shard {index} ")
        wait_for_pushes(*workers)
        before = other.line_count()
        stopped.resume()
        stopped.wait_for(f"drops its copy of shard {index} ")
        has_copies(other, before)
        gives_back(other, index, before)
        wait_for_pushes(*workers)
        ends(tmp_path, ps, workers)


@pytest.mark.long
def test_synchronous_rounds_are_whole_though_each_ps_is_killed_in_one(tmp_path: Path) -> None:
    """Each ``ps`` is killed while it has one worker's gradient and waits for the other worker, which computes for a
    long time.
    """
    holds = {20: 0, 60: 1}
    options = ("--hold", *map(str, holds))
    with processes(ps=2, worker=2) as cluster:
        for number in holds:
            os.mkfifo(tmp_path / f"hold-{number}")
        ps, workers = begin(cluster, tmp_path, ROUNDS, *options)
        for number, index in holds.items():
            for worker in workers:
                worker.wait_for(f"holding at {number}$")
            other = ps[1 - index]
            before = other.line_count()
            ps[index].kill()
            other.wait_for(rf"serves shard {index} ", after=before)
            before = other.line_count()
            ps[index] = comes_back(cluster, other, index, tmp_path, ROUNDS, *options)
            ps[index].wait_for("waits for /job:worker/task:1, which can be reached but has not connected")
            (tmp_path / f"hold-{number}").write_bytes(b"")
        shown = [worker.succeeds() for worker in workers]
        assert all("0 gradients were dropped" in text for text in shown)
        assert f"values [{1.5 * sum(range(1, 101))}]" in shown[0]
        for one in ps:
            one.succeeds()


def exact(cluster: Processes, folder: Path, workers: list[Process], counts: float = 3.0) -> None:
    """Checks that each example was applied once in each epoch, on either part, and that no gradient was dropped.

    ``counts`` is the resulting value of each parameter: 3, or half of that if updates are means of two gradients.
    """
    for worker in workers:
        shown = worker.succeeds()
        assert f"counts [{counts}]" in shown
        assert "dropped" not in shown
    shown = cluster.run(sys.executable, "-u", "-m", "headwater", "audit", str(folder / "logs")).succeeds()
    assert "exact: each example of every epoch that is over (3) was applied once" in shown


@pytest.mark.long
@pytest.mark.parametrize("consistency", ["async", "sync"])
def test_examples_stay_assigned_while_each_ps_is_killed(consistency: str, tmp_path: Path) -> None:
    """One worker connects to the new primary first and requests examples while the other worker still computes."""
    options = ("--replicas=2", f"--consistency={consistency}", "--hold_at=10", "--hold_at=30")
    with processes(ps=2, worker=2) as cluster:
        for worker in (0, 1):
            os.mkfifo(tmp_path / f"hold-{worker}")
        ps, workers = begin(cluster, tmp_path, COUNTS, *options)
        seen = [0, 0]
        for index in (0, 1):
            for number, worker in enumerate(workers):
                seen[number] = worker.next_line("holding as", after=seen[number]) + 1
            other = ps[1 - index]
            before = other.line_count()
            ps[index].kill()
            other.wait_for(rf"serves shard {index} ", after=before)
            ps[index] = comes_back(cluster, other, index, tmp_path, COUNTS, *options)
            (tmp_path / "hold-1").write_bytes(b"")
            if consistency == "async":  # otherwise it waits for the other worker's gradient
                workers[1].wait_for("^batch ", after=seen[1])
            (tmp_path / "hold-0").write_bytes(b"")
        exact(cluster, tmp_path, workers, 3.0 if consistency == "async" else 1.5)
        for one in ps:
            one.succeeds()


def listed(shown: str, name: str) -> list[float]:
    """Returns the numbers that a program has printed."""
    found = re.search(rf"^{name} (\[.*\])$", shown, re.MULTILINE)
    assert found is not None
    return json.loads(found[1])


@pytest.mark.long
@pytest.mark.parametrize("table", ["none", "rows", "grows"])
@pytest.mark.parametrize("consistency", ["async", "sync"])
def test_a_model_of_keras_loses_nothing(consistency: str, table: str, tmp_path: Path) -> None:
    """Each update of the epochs is applied once, although each ``ps`` is killed in turn."""
    options = ("--consistency", consistency, "--table", table)
    with processes(ps=2, worker=2) as cluster:
        for worker in (0, 1):
            for batch in (20, 30):
                os.mkfifo(tmp_path / f"hold-{worker}-{batch}")
        ps = [start(cluster, "ps", index, tmp_path, OF_KERAS, *options) for index in range(2)]
        workers = [start(cluster, "worker", index, tmp_path, OF_KERAS, *options) for index in range(2)]
        for index, batch in ((0, 20), (1, 30)):
            for worker in workers:
                worker.wait_for(f"holding at {batch}")
            other = ps[1 - index]
            if batch == 20:
                for number, one in enumerate(ps if table == "grows" else ()):
                    one.wait_for(f"has a copy of part {number} of the tables ")
            before = other.line_count()
            ps[index].kill()
            other.wait_for(rf"serves shard {index} ", after=before)
            before = other.line_count()
            ps[index] = comes_back(cluster, other, index, tmp_path, OF_KERAS, *options)
            for part in (0, 1) if table == "grows" else ():
                other.wait_for(f"has a copy of part {part} of the tables ", after=before)
            for worker in (0, 1):
                (tmp_path / f"hold-{worker}-{batch}").write_bytes(b"")
        weights = [-240.0, -30.0] if table == "rows" else [-240.0]
        shown = [worker.succeeds() for worker in workers]
        assert f"weights {weights} after 240 updates" in shown[0]
        if table == "grows":
            rows = listed(shown[0], "rows")
            assert rows == [-sum(both) for both in zip(*(listed(text, "pushed") for text in shown), strict=True)]
            assert max(rows) <= -30.0
        for one in ps:
            one.succeeds()
        shown = cluster.run(sys.executable, "-u", "-m", "headwater", "audit", str(tmp_path / "logs")).succeeds()
    assert "exact: each example of every epoch that is over (3) was applied once" in shown
