"""Sessions of programs that are not tasks; workers and clients leave no resources behind when they disconnect."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from headwater import tf
from headwater.cluster.addresses import parse_address
from headwater.cluster.task.shell import CHANNELS_DETAIL
from headwater.cluster.transport.control_client import ControlClient
from headwater.cluster.transport.security import Security
from headwater.graph.master.links import SESSIONS_DETAIL
from tests.support.processes import EXEC, processes

PROGRAMS = Path(__file__).with_name("programs")

pytestmark = pytest.mark.slow


def wait_until(ready: Callable[[], bool]) -> None:
    """Polls until ``ready`` returns True, because the state of a task in another process can only be queried."""
    again = threading.Event()
    while not ready():
        again.wait(0.05)


class Asked:
    """Queries the status details of a task."""

    def __init__(self, address: str) -> None:
        self._client = ControlClient(
            parse_address(address), peer="/job:ps/task:0", security=Security.from_environment()
        )

    def __call__(self, detail: str) -> int:
        return int(self._client.status().details[detail])

    def close(self) -> None:
        self._client.close()


def test_clients_share_variables_and_leave_nothing_behind() -> None:
    with processes(ps=1) as cluster:
        cluster.start("ps", 0, PROGRAMS / "task_only.py").wait_for("serving")
        target = f"grpc://{cluster.address('ps')}"
        client = [*EXEC, str(PROGRAMS / "client.py"), target]
        asked = Asked(cluster.address("ps"))
        first = cluster.run(*client, "5", "stay")
        first.wait_for("shared 5")
        second = cluster.run(*client, "7", "leave")
        assert "shared 12" in second.succeeds()
        wait_until(lambda: asked(SESSIONS_DETAIL) == 1)
        first.kill()
        wait_until(lambda: asked(SESSIONS_DETAIL) == 0 and asked(CHANNELS_DETAIL) == 0)
        asked.close()


def test_a_ps_does_not_grow_while_workers_join_and_leave() -> None:
    with processes(ps=1, worker=2) as cluster:
        ps = cluster.start("ps", 0, PROGRAMS / "task_only.py")
        ps.wait_for("serving")
        asked = Asked(cluster.address("ps"))
        process = psutil.Process(ps.pid)
        graph = tf.Graph()
        with graph.as_default(), tf.device("/job:ps/task:0"):
            wide = tf.get_variable("wide", [50_000], initializer=tf.zeros_initializer())
            gradient = tf.placeholder(tf.float32, [50_000])
            update = tf.assign_add(wide, gradient)
            total = tf.reduce_sum(wide)
        value = [1.0] * 50_000
        spec = {job: list(hosts) for job, hosts in cluster.hosts.items()}
        spec["worker"] = cluster.release("worker")

        def live(task: int, *, orderly: bool) -> None:
            """Runs one incarnation of a worker: starts a server, opens a session, runs some steps, and ends."""
            server = tf.train.Server(spec, job_name="worker", task_index=task)
            filters = tf.ConfigProto(device_filters=["/job:ps"])
            session = tf.Session(server.target, graph, filters)
            if not incarnations:
                session.run(wide.initializer)
            for _ in range(3):
                session.run(update, {gradient: value})
            session.run(total)
            incarnations.append(task)
            if orderly:
                session.close()
            server.stop()
            if orderly:
                assert asked(SESSIONS_DETAIL) <= 1
            kept.append(session)

        incarnations: list[int] = []
        # keep sessions referenced: garbage collection would close them, which is not tested here
        kept: list[object] = []
        for _ in range(5):
            live(0, orderly=True)
            live(1, orderly=False)
        wait_until(lambda: asked(CHANNELS_DETAIL) == 0)
        sessions, threads, files = asked(SESSIONS_DETAIL), process.num_threads(), process.num_fds()
        memory = process.memory_info().rss
        for _ in range(25):
            live(0, orderly=True)
            live(1, orderly=False)
        wait_until(lambda: asked(CHANNELS_DETAIL) == 0)
        assert asked(SESSIONS_DETAIL) == sessions <= 1
        wait_until(lambda: process.num_threads() <= threads + 4)
        wait_until(lambda: process.num_fds() <= files + 4)
        assert process.memory_info().rss - memory < 64 << 20
        asked.close()
