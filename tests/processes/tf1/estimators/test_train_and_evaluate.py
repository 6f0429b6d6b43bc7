"""`train_and_evaluate` in a cluster: a chief, a worker, a ps and an evaluator, each told by ``TF_CONFIG``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.processes import EXEC, processes

PROGRAM = Path(__file__).with_name("programs") / "train_and_evaluate.py"

pytestmark = pytest.mark.slow


def test_every_task_does_its_part(tmp_path: Path) -> None:
    with processes(ps=1, chief=1, worker=1) as cluster:

        def told(job: str) -> str:
            return json.dumps({"cluster": cluster.hosts, "task": {"type": job, "index": 0}})

        tasks = {
            job: cluster.start(job, 0, PROGRAM, str(tmp_path), TF_CONFIG=told(job)) for job in ("ps", "chief", "worker")
        }
        evaluator = cluster.run(*EXEC, str(PROGRAM), str(tmp_path), TF_CONFIG=told("evaluator"))
        for job in ("chief", "worker"):
            assert "done" in tasks[job].succeeds()
            assert f"task {job} 0 {job == 'chief'}" in tasks[job].output
        evaluator.succeeds()
        assert int(evaluator.wait_for(r"evaluated (\d+)").group(1)) >= 100
        assert tasks["ps"].terminate() == 0
    assert (tmp_path / "eval").is_dir()
