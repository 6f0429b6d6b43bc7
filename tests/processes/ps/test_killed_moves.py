"""A shard's ``ps`` or the one that gets it is killed in the midst of the move: each update is in the values, once.

A ``ps`` stops where it logs how far the move is, so that the moment is the same each time.
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

#: What the ``ps`` that gives a shard logs when nothing changes there any more, and nothing has been sent.
GIVES = "gives shard [1-9]"
#: What the one that gets it logs when it serves it, and has not said so.
HAS = "has shard [1-9] .* now"

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
    """Shards go from the second ``ps`` to the first. There is one worker: what a lost ``ps`` had it has read."""
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
    # Not taken everywhere: what was under way, and the next push, which finds that a channel has ended.
    assert pushed - taken <= 2
    assert all(taken <= value <= pushed for value in ast.literal_eval(values[1]))


def start(cluster: Processes, job: str, index: int, folder: Path, *arguments: str) -> Process:
    """Starts a task of a program whose values count the pushes."""
    config = json.dumps({"cluster": cluster.hosts, "task": {"type": job, "index": index}})
    return cluster.start(job, index, PROGRAM, "--momentum", "0", *arguments, str(folder), TF_CONFIG=config)
