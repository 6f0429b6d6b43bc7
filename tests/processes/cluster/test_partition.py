"""The network is parted, another chief takes over, and the network is whole again: the former chief is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes.cluster.test_losses import newest_step, wait_for_step
from tests.support.processes import EXEC, processes
from tests.support.relay import relay

PROGRAMS = Path(__file__).with_name("programs")

pytestmark = pytest.mark.slow


def test_a_chief_that_was_replaced_is_refused(tmp_path: Path) -> None:
    with processes(ps=1, worker=2) as cluster, relay(cluster.address("ps")) as network:
        first, second = cluster.release("worker")
        task = ("--job_name=worker", "--task_index=0", f"--folder={tmp_path}")
        ps = cluster.start("ps", 0, PROGRAMS / "loop.py")
        former = cluster.run(
            *EXEC, str(PROGRAMS / "far.py"), f"--ps_hosts={network.address}", f"--worker_hosts={first}", *task
        )
        wait_for_step(former, 100)
        network.cut()
        former.wait_for(r"/job:ps/task:0 .*it answers no more")
        chief = cluster.run(
            *EXEC, str(PROGRAMS / "loop.py"), f"--ps_hosts={cluster.address('ps')}", f"--worker_hosts={second}", *task
        )
        wait_for_step(chief, 100)
        network.heal()
        assert former.ends() != 0
        assert "FailedPreconditionError" in former.output
        assert "/job:ps/replica:0/task:0 refuses generation" in former.output
        wait_for_step(chief, newest_step(chief) + 100)
        assert "Traceback" not in ps.output
