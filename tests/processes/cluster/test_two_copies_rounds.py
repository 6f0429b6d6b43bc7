"""Each ``ps`` of synchronous replicas has a backup: a round counts once, although a ``ps`` is killed or stopped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.copied_processes import CopiedTasks
from tests.support.processes import Process, processes

PROGRAM = Path(__file__).with_name("programs") / "two_copies_rounds.py"

pytestmark = pytest.mark.slow


def end(folder: Path, workers: Sequence[Process], ps: Sequence[Process]) -> None:
    """Ends the program, and checks that both ``ps`` have each round once, with the gradients of both workers."""
    (folder / "stop").touch()
    shown = [worker.succeeds() for worker in workers]
    assert re.search(r"global step (\d+) of \1, counts are exact", shown[0])
    assert not any("Traceback" in text for text in shown)
    for one in ps:
        one.succeeds()


def test_each_ps_is_killed_in_turn(tmp_path: Path) -> None:
    with processes(ps=2, worker=2) as cluster:
        tasks = CopiedTasks(cluster, tmp_path, PROGRAM)
        tasks.kill_each_ps_in_turn()
        end(tmp_path, tasks.workers, tasks.ps)


@pytest.mark.long
def test_a_stopped_ps_is_fenced_when_it_continues(tmp_path: Path) -> None:
    with processes(ps=2, worker=2) as cluster:
        tasks = CopiedTasks(cluster, tmp_path, PROGRAM)
        tasks.stop_a_ps()
        end(tmp_path, tasks.workers, tasks.ps)
