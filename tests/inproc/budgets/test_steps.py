"""The cost of a training step on a parameter server, as counts: any count above the table's is a regression.

After a change that lowers the counts, ``HEADWATER_TEST_BUDGETS=write`` rewrites the table.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
import pytest

from headwater.ps.consistency import Asynchronous
from headwater.ps.layout import make_layout
from headwater.ps.local_servers import LocalServers
from headwater.ps.optax_updates import OptaxUpdater, leaf_specs
from headwater.tf1.compat import tf
from tests.inproc.conftest import StartCluster
from tests.support.compilations import compilations
from tests.support.counting import Calls, counting

TABLE = Path(__file__).with_name("steps.json")
WARM_UP, STEPS = 60, 50
SLACK = 1.02
"""Counts are means over steps; of a hundred Python calls, one or two belong to occasional events."""
#: C functions that represent a system call, or a copy of bytes.
NATIVE = {
    "sends": ("socket.sendall", "socket.sendmsg", "socket.send"),
    "receives": ("socket.recv_into", "socket.recv", "socket.recvmsg_into"),
    "polls": ("poll.poll", "select", "epoll.poll"),
    "copies": ("copyto", "ndarray.copy", "array", "ascontiguousarray"),
}


Program = tuple[Any, dict[Any, Any], list[Any]]
"""The fetches of a step, its feeds, and the hooks of its session."""


def linear() -> Program:
    """Builds a linear model with two scalars."""
    step = tf.train.get_or_create_global_step()
    x, y = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    loss = tf.square(tf.get_variable("w", initializer=0.0) * x + tf.get_variable("b", initializer=0.0) - y)
    return [tf.train.GradientDescentOptimizer(0.01).minimize(loss, global_step=step), step], {x: 1.0, y: 2.0}, []


def mlp() -> Program:
    """Builds a 784-100-10 network with Adam, batch 32."""
    return _mlp(tf.train.AdamOptimizer(1e-3))


def mlp_sync() -> Program:
    """Builds the same network, synchronous, with one replica."""
    optimizer = tf.train.SyncReplicasOptimizer(tf.train.AdamOptimizer(1e-3), 1, total_num_replicas=1)
    fetches, feed, _ = _mlp(optimizer)
    return fetches, feed, [optimizer.make_session_run_hook(True)]


def _mlp(optimizer: Any) -> Program:
    step = tf.train.get_or_create_global_step()
    images, labels = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.int64, [None])
    logits = tf.layers.dense(tf.layers.dense(images, 100, tf.nn.relu), 10)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    feed = {images: np.zeros((32, 784), np.float32), labels: np.zeros(32, np.int64)}
    return [optimizer.minimize(loss, global_step=step), step], feed, []


def costs(calls: Calls) -> dict[str, int]:
    """Returns the counts: Python calls of the worker and of the ``ps``, and their system calls, waits and copies."""

    def natives(counts: Counter[str]) -> dict[str, int]:
        return {what: sum(counts[name] for name in names) for what, names in NATIVE.items()}

    (worker, worker_native), (ps, ps_native) = calls.here, calls.elsewhere
    found = {"worker: Python calls": sum(worker.values()), "ps: Python calls": sum(ps.values())}
    for task, native in (("worker", worker_native), ("ps", ps_native)):
        found |= {f"{task}: {what}": count for what, count in natives(native).items()}
    return found


@pytest.mark.parametrize("program", [linear, mlp, mlp_sync], ids=lambda program: program.__name__)
def test_a_step_costs_no_more_than_before(program: Callable[[], Program], start_cluster: StartCluster) -> None:
    with counting() as counter:
        cluster = start_cluster(ps=1, worker=1)
        places = tf.train.replica_device_setter(ps_tasks=1, worker_device="/job:worker/task:0")
        with tf.Graph().as_default(), tf.device(places):
            fetches, feed, hooks = program()
            with tf.train.MonitoredTrainingSession(
                cluster.targets["worker:0"],
                hooks=hooks,
                save_summaries_steps=None,
                save_summaries_secs=None,
                log_step_count_steps=None,
            ) as monitored:
                session = monitored._tf_sess()
                for _ in range(WARM_UP):
                    session.run(fetches, feed)
                with compilations() as compiled:
                    found = costs(counter.per_step(lambda: session.run(fetches, feed), STEPS))
                found["executables compiled"] = len(compiled)
    compare(program.__name__, found)


def test_a_push_of_a_jax_program_costs_no_more_than_before() -> None:
    params = {f"w{number}": np.zeros((8, 8), np.float32) for number in range(4)}
    structure, layout = jax.tree.structure(params), make_layout(leaf_specs(params), 1)
    with counting() as counter:
        local = LocalServers(
            "params", layout, lambda at: OptaxUpdater(layout, at, structure, optax.adam(1e-3)), Asynchronous()
        )
        client = local.client(jax.tree.leaves(params))
        client.connect()
        client.pull()
        gradients = [np.ones((8, 8), np.float32) for _ in params]
        for _ in range(WARM_UP):
            client.push(gradients)
        with compilations() as compiled:
            calls = counter.per_step(lambda: client.push(gradients), STEPS)
        client.close()
        local.stop()
    (worker, _), (ps, _) = calls.here, calls.elsewhere
    compare(
        "push",
        {
            "worker: Python calls": sum(worker.values()),
            "ps: Python calls": sum(ps.values()),
            "executables compiled": len(compiled),
        },
    )


def compare(name: str, found: dict[str, int]) -> None:
    """Fails if a count is above the table's."""
    table = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    if os.environ.get("HEADWATER_TEST_BUDGETS") == "write":
        table[name] = found
        TABLE.write_text(json.dumps(table, indent=2) + "\n")
    budget = table[name]
    more = {what: f"{count}, not {budget[what]}" for what, count in found.items() if count > SLACK * budget[what]}
    assert not more, f"a step of {name} costs more than {TABLE.name} allows: {more}"
