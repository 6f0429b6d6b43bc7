"""An estimator whose `model_fn` uses layers of ``tf.keras``, on a ps, a chief and a worker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.processes import EXEC, processes

PROGRAM = Path(__file__).with_name("programs") / "keras_layers.py"

pytestmark = pytest.mark.slow


def test_layers_of_keras_train_on_a_ps_and_are_exported(tmp_path: Path) -> None:
    with processes(ps=1, chief=1, worker=1) as cluster:
        tasks = {
            job: cluster.run(
                *EXEC,
                str(PROGRAM),
                str(tmp_path),
                TF_CONFIG=json.dumps({"cluster": cluster.hosts, "task": {"type": job, "index": 0}}),
            )
            for job in ("ps", "chief", "worker")
        }
        for job in ("chief", "worker"):
            assert "done" in tasks[job].succeeds()
            assert "devices ['/job:ps/task:0']" in tasks[job].output
            assert "'embedding/embeddings', 'interactions/scale', 'logits/bias', 'logits/kernel'" in tasks[job].output
        assert float(tasks["chief"].wait_for(r"loss ([\d.]+)").group(1)) < 0.45
        assert float(tasks["chief"].wait_for(r"same True right ([\d.]+)").group(1)) > 0.8
        tasks["ps"].succeeds()
