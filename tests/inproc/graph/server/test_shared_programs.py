"""A `ps` traces and compiles requests that workers have in common once, and no step waits meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from headwater import tf
from headwater.graph.ops.define import pure, same_as
from headwater.tf1.training.supervised_session import SupervisedSession
from tests.support.cluster import MemoryCluster, memory_cluster

VARIABLES = 200
WORKERS = 11
PS = "/job:ps/task:0"

traced: list[str] = []
"""Threads that have traced the operation below."""
free: list[bool] = []
"""Whether another step could use the variables meanwhile."""
watched: list[Any] = []


@pure("TestWatched", infer=same_as(), inputs="x:T")
def _watched(x: Any) -> Any:
    traced.append(threading.current_thread().name)
    for lock in watched:
        other = threading.Thread(target=_try, args=(lock,))
        other.start()
        other.join()
    return jnp.multiply(x, 2)


def _try(lock: Any) -> None:
    taken = lock.acquire(blocking=False)
    free.append(taken)
    if taken:
        lock.release()


@pytest.fixture
def cluster() -> Iterator[MemoryCluster]:
    traced.clear()
    free.clear()
    watched.clear()
    with memory_cluster(ps=1, worker=WORKERS) as found:
        yield found


class Worker:
    """A worker with its own graph, which differs from the others' only in the constant added to the variables."""

    def __init__(self, cluster: MemoryCluster, index: int, factor: float = 1.0) -> None:
        with tf.Graph().as_default():
            with tf.device(PS):
                variables = [tf.get_variable(f"v{n}", initializer=np.float32(n)) for n in range(VARIABLES)]
                count = tf.get_variable("count", initializer=np.int32(0))
            with tf.device(f"/job:worker/task:{index}"):
                change = tf.add_n(variables[:3]) * 0.0 + 1.0
            with tf.device(PS):
                graph = tf.get_default_graph()
                change = graph.create_op("TestWatched", [change], {}).outputs[0] * (factor / 2.0)
                self.step = tf.group(*(v.assign_add(change) for v in variables), count.assign_add(1))
            self.values = [variables[0], variables[-1], count]
            self.initialize = tf.global_variables_initializer()
            self.session = SupervisedSession(cluster.target("worker", index))


def on_ps() -> int:
    return sum(name.startswith(PS) for name in traced)


def test_ten_workers_join_without_recompilation(cluster: MemoryCluster) -> None:
    first = Worker(cluster, 0)
    first.session.run(first.initialize)
    first.session.run(first.step)
    assert on_ps() == 1
    others = [Worker(cluster, index) for index in range(1, WORKERS)]
    for other in others:
        other.session.run(other.step)
        first.session.run(first.step)
    assert on_ps() == 1
    steps = 2 * WORKERS - 1
    assert first.session.run(first.values) == [steps, VARIABLES - 1 + steps, steps]
    for worker in (first, *others):
        worker.session.close()


def test_no_step_waits_while_another_plan_is_traced_and_compiled(cluster: MemoryCluster) -> None:
    first = Worker(cluster, 0)
    first.session.run(first.initialize)
    watched.append(cluster.task("ps").runtime.resources.lock)
    first.session.run(first.step)
    other = Worker(cluster, 1, factor=3.0)
    other.session.run(other.step)
    assert on_ps() == 2
    assert free == [True] * len(traced)
    assert first.session.run(first.values) == [4.0, VARIABLES + 3.0, 2]
    for worker in (first, other):
        worker.session.close()
