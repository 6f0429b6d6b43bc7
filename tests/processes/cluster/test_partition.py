"""During a network partition another chief takes over; when the partition ends, the previous chief is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes.cluster.test_losses import newest_step, wait_for_step
from tests.support.processes import EXEC, Process, processes
from tests.support.relay import relay

PROGRAMS = Path(__file__).with_name("programs")

pytestmark = pytest.mark.slow


def test_a_chief_that_was_replaced_is_refused(tmp_path: Path) -> None:
    with processes(ps=1, worker=2) as cluster, relay(cluster.address("ps")) as network:
        first, second = cluster.release("worker")
        task = ("--job_name=worker", "--task_index=0", f"--folder={tmp_path}")
        (place,) = cluster.release("ps")
        # This ps has the cluster spec with the new chief.
        ps = cluster.run(
            *EXEC,
            str(PROGRAMS / "loop.py"),
            f"--ps_hosts={place}",
            f"--worker_hosts={second}",
            "--job_name=ps",
            "--task_index=0",
        )
        former = cluster.run(
            *EXEC, str(PROGRAMS / "far.py"), f"--ps_hosts={network.address}", f"--worker_hosts={first}", *task
        )
        wait_for_step(former, 100)
        network.cut()
        former.wait_for(r"/job:ps/task:0 .*it no longer answers")
        chief = cluster.run(
            *EXEC, str(PROGRAMS / "loop.py"), f"--ps_hosts={cluster.address('ps')}", f"--worker_hosts={second}", *task
        )
        wait_for_step(chief, 100)
        network.heal()
        assert former.ends() != 0
        assert "FailedPreconditionError" in former.output
        assert "/job:ps/replica:0/task:0 refuses generation" in former.output
        assert "belongs to another cluster: in this cluster, /job:worker/replica:0/task:0 is at" in former.output
        wait_for_step(chief, newest_step(chief) + 100)
        assert "Traceback" not in ps.output


def test_a_worker_of_an_earlier_cluster_does_not_disturb_the_one_in_its_place(tmp_path: Path) -> None:
    program = str(PROGRAMS / "loop.py")
    with processes(ps=1, worker=2) as cluster:
        (place,) = cluster.release("ps")
        earlier, present = cluster.release("worker")
        ps_task, worker_task = (("--job_name=ps", "--task_index=0"), ("--job_name=worker", "--task_index=0"))

        def start(task: tuple[str, str], host: str) -> Process:
            return cluster.run(*EXEC, program, f"--ps_hosts={place}", f"--worker_hosts={host}", *task)

        ps = start(ps_task, earlier)
        stale = start(worker_task, earlier)
        wait_for_step(stale, 100)
        ps.kill()
        start(ps_task, present)
        living = start(worker_task, present)
        assert stale.ends() != 0  # regardless of which of the two connected first
        assert "FailedPreconditionError" in stale.output
        assert "belongs to another cluster: in this cluster, /job:worker/replica:0/task:0 is at" in stale.output
        wait_for_step(living, newest_step(living) + 100)
        assert "refuses" not in living.output
