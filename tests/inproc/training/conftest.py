"""A cluster within the test's process."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Generator
from contextlib import ExitStack
from typing import Any

import pytest

from headwater.cluster.variables import LISTEN_FDS
from headwater.compat import tf

StartCluster = Callable[..., tuple[Any, dict[str, Any]]]


@pytest.fixture
def start_cluster(monkeypatch: pytest.MonkeyPatch) -> Generator[StartCluster]:
    """Starts the tasks of a cluster: ``start_cluster(ps=1, worker=2)`` gives its spec and the targets by task name.

    The ports are taken before the servers get them, so that nobody else can.
    """
    with ExitStack() as ends:

        def start(**tasks: int) -> tuple[Any, dict[str, Any]]:
            jobs: dict[str, list[str]] = {}
            descriptors: dict[str, int] = {}
            for job, count in tasks.items():
                for _ in range(count):
                    listening = ends.enter_context(socket.create_server(("localhost", 0)))
                    address = f"localhost:{listening.getsockname()[1]}"
                    descriptors[address] = listening.fileno()
                    jobs.setdefault(job, []).append(address)
            monkeypatch.setenv(LISTEN_FDS, json.dumps(descriptors))
            spec = tf.train.ClusterSpec(jobs)
            servers = {
                f"{job}:{index}": tf.train.Server(spec, job_name=job, task_index=index)
                for job, addresses in jobs.items()
                for index in range(len(addresses))
            }
            for server in servers.values():
                ends.callback(server.stop)
            return spec, {name: server.target for name, server in servers.items()}

        yield start
