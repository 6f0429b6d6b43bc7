"""A ps and workers as processes, on one GPU."""

from __future__ import annotations

from pathlib import Path

from tests.support.processes import processes

# Elsewhere the processes of tests stay off GPUs.
ANY = {"JAX_PLATFORMS": ""}
PROGRAM = Path(__file__).with_name("trains.py")


def test_workers_compute_on_the_gpu_and_a_ps_stays_off_it() -> None:
    with processes(ps=1, worker=2) as cluster:
        server = cluster.start("ps", 0, PROGRAM, **ANY)
        workers = [cluster.start("worker", index, PROGRAM, **ANY) for index in range(2)]
        for worker in workers:
            worker.succeeds()
            assert worker.wait_for(r"gradients on (.*)").group(1).endswith("/device:GPU:0")
            first, last = map(float, worker.wait_for(r"loss (\S+) to (\S+)").groups())
            assert last < first / 2
        assert server.ends() == 0
        assert "devices ['/device:CPU:0']" in server.output
