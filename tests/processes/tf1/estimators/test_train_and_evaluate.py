"""`train_and_evaluate` in a cluster: a chief, a worker, a ps and an evaluator, each configured by ``TF_CONFIG``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.processes import EXEC, Process, processes

PROGRAM = Path(__file__).with_name("programs") / "train_and_evaluate.py"

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("lead", "epochs"),
    [
        pytest.param("chief", "", id="until max_steps"),
        # No other task needs the evaluator, which is in the cluster spec, and only the chief can tell it of the end.
        pytest.param("master", "10", id="until the data end"),
    ],
)
def test_every_task_does_its_part(tmp_path: Path, lead: str, epochs: str) -> None:
    with processes(**{"ps": 1, lead: 1, "worker": 1, "evaluator": 1}) as cluster:
        named = {job: hosts for job, hosts in cluster.hosts.items() if job != "evaluator" or epochs}

        def told(job: str) -> str:
            return json.dumps({"cluster": named, "task": {"type": job, "index": 0}})

        def start(job: str) -> Process:
            return cluster.run(*EXEC, str(PROGRAM), str(tmp_path), TF_CONFIG=told(job), EPOCHS=epochs)

        tasks = {job: start(job) for job in ("ps", lead, "worker", "evaluator")}
        for job in (lead, "worker"):
            assert "done" in tasks[job].succeeds()
            assert f"task {job} 0 {job == lead}" in tasks[job].output
        assert "does not answer" not in tasks[lead].output
        tasks["evaluator"].succeeds()
        steps = int(tasks["evaluator"].wait_for(r"evaluated (\d+)").group(1))
        assert steps == int(tasks[lead].wait_for(r"evaluated (\d+)").group(1))
        assert steps >= (40 if epochs else 100)
        tasks["ps"].succeeds()
    assert (tmp_path / "eval").is_dir()
