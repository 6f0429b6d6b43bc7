"""Two ps and two workers: everything is counted once, saved in shards, and restored by another process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.processes import EXEC, processes

PROGRAMS = Path(__file__).with_name("programs")

pytestmark = pytest.mark.slow


def test_training_over_two_ps(tmp_path: Path) -> None:
    with processes(ps=2, worker=2) as cluster:
        program = PROGRAMS / "train.py"
        servers = [cluster.start("ps", index, program) for index in range(2)]
        workers = [cluster.start("worker", index, program, f"--folder={tmp_path}") for index in range(2)]
        results = [worker.succeeds() for worker in workers]
        sums = [worker.wait_for(r"step 200 sum (.*)").group(1) for worker in workers]
        assert sums[0] == sums[1] != "0.0"
        for worker in workers:
            assert worker.wait_for(r"devices (.*)").group(1) == "['/job:ps/task:0', '/job:ps/task:1']"
        assert f"saved {tmp_path}/model-200" in results[0]
        shards = sorted(path.name for path in tmp_path.glob("model-200.data-*"))
        assert shards == [f"model-200.data-0000{index}-of-00002" for index in range(2)]
        # Their work is complete, so they end; other processes can continue from the checkpoint.
        assert [server.ends() for server in servers] == [0, 0]
        servers = [cluster.start("ps", index, program) for index in range(2)]
        client = cluster.run(*EXEC, str(PROGRAMS / "restore.py"), f"grpc://{cluster.address('ps')}", str(tmp_path))
        client.succeeds()
        assert float(client.wait_for(r"step 200 sum (.*)").group(1)) == pytest.approx(float(sums[0]), rel=1e-5)
        assert [server.terminate() for server in servers] == [0, 0]


def test_tasks_with_the_usual_optimizers_load_no_jax() -> None:
    with processes(ps=1, worker=1) as cluster:
        program = PROGRAMS / "without_jax.py"
        server, worker = (cluster.start(job, 0, program) for job in ("ps", "worker"))
        assert "all lower: True" in worker.succeeds()
        assert all("JAX loaded: False" in task.succeeds() for task in (worker, server))
