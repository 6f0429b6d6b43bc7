"""Helpers of test programs: `main`, clusters within the process, comparison of graphs."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
from collections.abc import Generator, Sequence
from typing import Any

from absl.testing import absltest

from headwater.cluster.variables import LISTEN_FDS
from headwater.graph.server.server import Server
from headwater.tensorboard_protos import graph_pb2
from headwater.tf1.testing.benchmark import pop_pattern, run_benchmarks


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the tests of the program, with flags and choices of tests as on the command line of ``unittest``.

    With ``--benchmarks=PATTERN`` it runs benchmarks instead, see `headwater.tf1.testing.benchmark`.

    Raises:
      SystemExit: with code 0 when all tests passed; always after tests.
    """
    arguments = sys.argv if argv is None else list(argv)
    pattern = pop_pattern(arguments)
    if pattern is not None:
        run_benchmarks(pattern)
        return
    absltest.main(argv=arguments)


def test_src_dir_path(relative_path: str) -> str:
    """Returns the absolute path of a path relative to ``TEST_SRCDIR`` or, if unset, to the program's folder."""
    program = sys.modules["__main__"]
    here = os.path.dirname(os.path.abspath(getattr(program, "__file__", "") or ""))
    return os.path.join(os.environ.get("TEST_SRCDIR") or here, relative_path)


def create_local_cluster(
    num_workers: int, num_ps: int, protocol: str = "grpc", worker_config: object = None, ps_config: object = None
) -> tuple[list[Server], list[Server]]:
    """Starts a cluster of jobs ``worker`` and ``ps`` in this process, at ports that the system chooses.

    Args:
      num_workers: number of workers.
      num_ps: number of parameter servers.
      protocol: as for `Server`.
      worker_config: ``ConfigProto`` of the workers.
      ps_config: ``ConfigProto`` of the parameter servers.

    Returns:
      The workers' servers, and the parameter servers.
    """
    counts = {"worker": num_workers, "ps": num_ps}
    configs = {"worker": worker_config, "ps": ps_config}
    with _listening(sum(counts.values())) as addresses:
        left = iter(addresses)
        jobs = {job: [next(left) for _ in range(count)] for job, count in counts.items()}
        cluster = {job: tasks for job, tasks in jobs.items() if tasks}
        servers = {
            job: [Server(cluster, job, index, protocol, configs[job]) for index in range(len(tasks))]
            for job, tasks in jobs.items()
        }
    return servers["worker"], servers["ps"]


@contextlib.contextmanager
def _listening(count: int) -> Generator[list[str]]:
    """Yields addresses for servers that are started in the block. Sockets already listen there, so that no other
    process can take the ports."""
    before = os.environ.get(LISTEN_FDS)
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        addresses = {f"127.0.0.1:{each.getsockname()[1]}": os.dup(each.fileno()) for each in sockets}
        os.environ[LISTEN_FDS] = json.dumps(addresses)
        try:
            yield list(addresses)
        finally:
            for left in json.loads(os.environ.pop(LISTEN_FDS, "{}")).values():
                os.close(left)  # no server has taken it
            if before is not None:
                os.environ[LISTEN_FDS] = before


def assert_equal_graph_def(
    actual: Any, expected: Any, checkpoint_v2: bool = False, hash_table_shared_name: bool = False
) -> None:
    """Asserts that two ``GraphDef`` messages have the same operations, in any order.

    Args:
      actual, expected: the messages.
      checkpoint_v2, hash_table_shared_name: accepted without effect; nothing here is named at random.

    Raises:
      AssertionError: they differ; the message names the difference.
      TypeError: an argument is not a ``GraphDef``.
    """
    del checkpoint_v2, hash_table_shared_name
    for graph in (actual, expected):
        if not isinstance(graph, graph_pb2.GraphDef):
            raise TypeError(f"expected tf.GraphDef, got {type(graph).__name__}")
    ours, theirs = ({node.name: node for node in graph.node} for graph in (actual, expected))
    for what, names in (("is not expected", ours.keys() - theirs.keys()), ("is missing", theirs.keys() - ours.keys())):
        if names:
            raise AssertionError(f"operation {sorted(names)[0]!r} {what} ({len(names)} such)")
    for name, node in ours.items():
        if node != theirs[name]:
            raise AssertionError(f"operation {name!r} differs:\n{node}\nwas expected to be\n{theirs[name]}")
