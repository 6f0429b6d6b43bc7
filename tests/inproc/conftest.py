"""A cluster within the test's process."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import ExitStack
from typing import Any

import pytest

from headwater.tf1.compat import tf
from tests.support.processes import bound


class Cluster:
    """The tasks of a cluster, each a server of this process.

    Args:
      spec: the cluster.

    Attributes:
      targets: the targets of sessions, by names such as ``"worker:0"``.
    """

    def __init__(self, spec: Any) -> None:
        self._spec = spec
        self._servers: dict[str, Any] = {}
        for job in spec.jobs:
            for index in spec.task_indices(job):
                self._start(f"{job}:{index}")
        self.targets = {name: server.target for name, server in self._servers.items()}

    def _start(self, name: str) -> None:
        job, _, index = name.partition(":")
        self._servers[name] = tf.train.Server(self._spec, job_name=job, task_index=int(index))

    def restart(self, name: str) -> None:
        """Ends a task, with all of its state, and restarts it."""
        self._servers[name].stop()
        self._start(name)

    def stop_one(self, name: str) -> None:
        """Ends a task permanently."""
        self._servers[name].stop()

    def stop(self) -> None:
        """Ends all tasks."""
        for server in self._servers.values():
            server.stop()


StartCluster = Callable[..., Cluster]


@pytest.fixture
def start_cluster() -> Generator[StartCluster]:
    """Starts a cluster: ``start_cluster(ps=1, worker=2)``.

    The ports are bound before the servers take them over, so that no other process can take them meanwhile.
    """
    with ExitStack() as ends:

        def start(**tasks: int) -> Cluster:
            jobs: dict[str, list[str]] = {}
            for job, count in tasks.items():
                for _ in range(count):
                    kept = ends.enter_context(bound())
                    jobs.setdefault(job, []).append(f"localhost:{kept.getsockname()[1]}")
            cluster = Cluster(tf.train.ClusterSpec(jobs))
            ends.callback(cluster.stop)
            return cluster

        yield start
