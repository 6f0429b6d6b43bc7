"""A worker that joins after the end of the job learns that the job is over."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.cluster.names import TaskName
from headwater.cluster.task.shell import OVER_DETAIL
from headwater.errors import OutOfRangeError, UnavailableError
from headwater.platform.cli.worker import join
from headwater.ps.arrivals import Arrival
from tests.inproc.conftest import StartCluster

PS, CHIEF, ME = TaskName("ps", 0), TaskName("worker", 0), TaskName("worker", 1)


def arrival(shell: Any, *, met: bool = False) -> Arrival:
    return Arrival(ME, [(task, shell.link(task)) for task in (PS, CHIEF)], lambda: met)


def test_a_late_worker_waits_and_learns_that_the_job_is_over(start_cluster: StartCluster) -> None:
    cluster = start_cluster(ps=1, worker=2)
    chief, late = (cluster._servers[f"worker:{index}"]._running.shell for index in range(2))
    arrival(late).check()
    chief.announce_end()  # the ps waits until the second worker has joined and left
    with pytest.raises(SystemExit) as ended:
        arrival(late).check()
    assert ended.value.code == 0
    arrival(late, met=True).check()  # a worker that is lost later is waited for


def test_no_place_is_given_when_the_job_is_over(start_cluster: StartCluster) -> None:
    cluster = start_cluster(ps=1, worker=2)
    cluster._servers["worker:0"]._running.shell.announce_end()
    with pytest.raises(OutOfRangeError, match="the job is already over"):
        join(cluster.targets["ps:0"].removeprefix("grpc://"), "")


def test_a_joined_server_ends_when_no_task_is_left(start_cluster: StartCluster) -> None:
    cluster = start_cluster(ps=1, worker=2)
    shell = cluster._servers["worker:1"]._running.shell
    for name in ("ps:0", "worker:0"):
        cluster.stop_one(name)
    with pytest.raises(SystemExit):
        arrival(shell).check()


def test_arrivals_are_checked_once_a_second(start_cluster: StartCluster) -> None:
    cluster = start_cluster(ps=1, worker=2)
    chief, late = (cluster._servers[f"worker:{index}"]._running.shell for index in range(2))
    now = [10.0]
    others = [(PS, late.link(PS))]
    looks = Arrival(ME, others, lambda: False, clock=lambda: now[0])
    looks.check()
    chief.announce_end()
    now[0] += 0.5
    looks.check()
    now[0] += 0.6
    with pytest.raises(SystemExit):
        looks.check()


def test_a_ps_without_its_chief_does_not_wait_for_late_workers(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster(ps=1, worker=2)
    ps, chief = (cluster._servers[name]._running.shell for name in ("ps:0", "worker:0"))
    chief.announce_end()
    assert ps._ending._come.empty()  # the second worker has not joined yet
    cluster.stop_one("worker:0")
    with pytest.raises(UnavailableError, match="the program of /job:worker/task:0 has ended"):
        ps.link(CHIEF).open_channel()
    ps.wait_until_over()


def test_a_restarted_ps_learns_that_the_job_is_over(start_cluster: StartCluster) -> None:
    """gRPC must not rely for a second on the result of its last attempt, that nothing listens."""
    cluster = start_cluster(ps=1, worker=1)
    chief = cluster._servers["worker:0"]._running.shell
    control = chief.link(PS).control
    cluster.stop_one("ps:0")
    with pytest.raises(UnavailableError):
        control.status()
    cluster.restart("ps:0")
    chief.announce_end()
    assert chief.link(PS).reach(0.0).details.get(OVER_DETAIL) == b""
