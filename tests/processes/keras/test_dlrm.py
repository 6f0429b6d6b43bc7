"""The recommender of the examples, with a ps that is killed during training."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests.support.processes import Process, processes

PROGRAM = Path(__file__).parents[3] / "examples" / "dlrm.py"

pytestmark = [pytest.mark.slow, pytest.mark.long]


def test_dlrm_learns_a_planted_rule_and_uses_saved_rows_after_a_ps_is_killed(tmp_path: Path) -> None:
    with processes(ps=2, worker=2) as cluster:
        hosts = {job: cluster.release(job) for job in ("ps", "worker")}
        settings = ["--examples", "20000", "--scale", "0.001", "--batch", "256", "--epochs", "12", "--dim", "8"]

        def start(job: str, index: int) -> Process:
            config = json.dumps({"cluster": hosts, "task": {"type": job, "index": index}})
            return cluster.run(
                sys.executable,
                str(PROGRAM),
                "--folder",
                str(tmp_path),
                *settings,
                TF_CONFIG=config,
                PYTHONUNBUFFERED="1",
                PYTHONPATH="",  # with matplotlib
            )

        servers = [start("ps", index) for index in range(2)]
        chief, other = start("worker", 0), start("worker", 1)
        bound = float(chief.wait_for(r"more than AUC (0\.\d+)")[1])
        before = float(chief.wait_for(r"epoch 6: AUC (0\.\d+)")[1])
        at = chief.line_count()
        servers[1].kill()
        servers[1] = start("ps", 1)
        # If the rows of one ps had been initialised again, the result would be far worse.
        chief.wait_for(r"sends /job:ps/task:1 the values", after=at)
        after = float(chief.wait_for(r"AUC (0\.\d+)", after=chief.line_count())[1])
        assert after > before - 0.01
        output = chief.succeeds()
        other.succeeds()
        for server in servers:
            server.succeeds()
    assert before < float(output.rpartition("AUC ")[2].split(",")[0]) < bound
    assert re.search(
        r"samples/s on \d+ cores are [\d,]+ a core: \d\.\d\d of the 8,654 of TensorFlow's DLRM \(34,618", output
    )
    assert (tmp_path / "dlrm.png").stat().st_size > 1000
    assert (tmp_path / "dlrm.keras").stat().st_size > 1000
