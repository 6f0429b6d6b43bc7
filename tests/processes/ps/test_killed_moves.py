"""The sender or the receiver of a shard is killed during the move: each update is in the values, once.

A ``ps`` stops at a log message about the progress of the move, so that the moment is the same each time.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from pathlib import Path

import pytest

from tests.support.processes import Process, Processes, processes

PROGRAM = Path(__file__).with_name("moves.py")

#: The sender's log message once the receiver is the backup, before the sender hands off to it.
GIVES = "/job:ps/task:0 has a copy of shard"
#: The receiver's log message once it has become the primary, before it serves the shard.
HAS = "serves shard .* now"

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("stopped", "at", "killed"),
    [
        (1, GIVES, 1),
        pytest.param(1, GIVES, 0, marks=pytest.mark.long),
        pytest.param(0, HAS, 0, marks=pytest.mark.long),
        pytest.param(0, HAS, 1, marks=pytest.mark.long),
    ],
    ids=["giver-that-holds-it", "taker-before-it-comes", "taker-that-has-it", "giver-that-was-not-told"],
)
def test_a_ps_is_killed_while_a_shard_moves(tmp_path: Path, stopped: int, at: str, killed: int) -> None:
    """Shards move from the second ``ps`` to the first. There is only one worker, so it has read all values of a lost
    ``ps``.
    """
    with processes(ps=2, worker=1) as cluster:

        def run(job: str, index: int, *arguments: str) -> Process:
            return start(cluster, job, index, tmp_path, *arguments)

        ps = [run("ps", index, *(("--stop-at", at) if index == stopped else ())) for index in range(2)]
        worker = run("worker", 0)
        worker.wait_for("pushed")
        command = cluster.run(sys.executable, "-m", "headwater", "rebalance", cluster.address("ps"), "--ps", "1")
        ps[stopped].wait_for("^stops$")
        ps[killed].kill()
        (tmp_path / "go").touch()
        ps[killed] = run("ps", killed)
        command.ends()
        worker.wait_for("pushed", after=worker.line_count())
        (tmp_path / "end").touch()
        shown = worker.succeeds()
        for one in ps:
            one.succeeds()
    said = re.search(r": (\d+) of (\d+) pushes were taken", shown)
    values = re.search(r"^values (.*)$", shown, re.MULTILINE)
    assert said is not None
    assert values is not None
    taken, pushed = int(said[1]), int(said[2])
    # Some pushes were not applied everywhere: the push in progress, and the next one, which finds its channel closed.
    assert pushed - taken <= 2
    assert all(taken <= value <= pushed for value in ast.literal_eval(values[1]))


def start(cluster: Processes, job: str, index: int, folder: Path, *arguments: str) -> Process:
    """Starts a task of a program whose values count the pushes."""
    config = json.dumps({"cluster": cluster.hosts, "task": {"type": job, "index": index}})
    return cluster.start(job, index, PROGRAM, "--momentum", "0", *arguments, str(folder), TF_CONFIG=config)
