"""What a step of training on a parameter server costs, as counts: more of any than the table says is a regression.

``HEADWATER_TEST_BUDGETS=write`` writes the table anew, after a change that makes it smaller.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater.compat import tf
from tests.inproc.conftest import StartCluster
from tests.support.counting import Calls, counting

TABLE = Path(__file__).with_name("steps.json")
WARM_UP, STEPS = 60, 50
SLACK = 1.02
"""Counts are means over steps; of a hundred Python calls one or two are of what happens now and then."""
#: Functions in C that stand for a system call, or for bytes that are moved.
NATIVE = {
    "sends": ("socket.sendall", "socket.sendmsg", "socket.send"),
    "receives": ("socket.recv_into", "socket.recv", "socket.recvmsg_into"),
    "polls": ("poll.poll", "select", "epoll.poll"),
    "copies": ("copyto", "ndarray.copy", "array", "ascontiguousarray"),
}


def linear() -> tuple[Any, dict[Any, Any]]:
    """A line with two scalars."""
    step = tf.train.get_or_create_global_step()
    x, y = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    loss = tf.square(tf.get_variable("w", initializer=0.0) * x + tf.get_variable("b", initializer=0.0) - y)
    return [tf.train.GradientDescentOptimizer(0.01).minimize(loss, global_step=step), step], {x: 1.0, y: 2.0}


def mlp() -> tuple[Any, dict[Any, Any]]:
    """784-100-10 with Adam, batch 32."""
    step = tf.train.get_or_create_global_step()
    images, labels = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.int64, [None])
    logits = tf.layers.dense(tf.layers.dense(images, 100, tf.nn.relu), 10)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    feed = {images: np.zeros((32, 784), np.float32), labels: np.zeros(32, np.int64)}
    return [tf.train.AdamOptimizer(1e-3).minimize(loss, global_step=step), step], feed


def costs(calls: Calls) -> dict[str, int]:
    """What is compared: Python calls of the worker and of the ``ps``, and what they ask of the system."""

    def natives(counts: Counter[str]) -> dict[str, int]:
        return {what: sum(counts[name] for name in names) for what, names in NATIVE.items()}

    (worker, worker_native), (ps, ps_native) = calls.here, calls.elsewhere
    found = {"worker: Python calls": sum(worker.values()), "ps: Python calls": sum(ps.values())}
    for task, native in (("worker", worker_native), ("ps", ps_native)):
        found |= {f"{task}: {what}": count for what, count in natives(native).items()}
    return found


@pytest.mark.parametrize("program", [linear, mlp], ids=["linear", "mlp"])
def test_a_step_costs_no_more_than_before(
    program: Callable[[], tuple[Any, dict[Any, Any]]], start_cluster: StartCluster
) -> None:
    with counting() as counter:
        cluster = start_cluster(ps=1, worker=1)
        places = tf.train.replica_device_setter(ps_tasks=1, worker_device="/job:worker/task:0")
        with tf.Graph().as_default(), tf.device(places):
            fetches, feed = program()
            with tf.train.MonitoredTrainingSession(
                cluster.targets["worker:0"],
                save_summaries_steps=None,
                save_summaries_secs=None,
                log_step_count_steps=None,
            ) as monitored:
                session = monitored._tf_sess()
                for _ in range(WARM_UP):
                    session.run(fetches, feed)
                found = costs(counter.per_step(lambda: session.run(fetches, feed), STEPS))
    table = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    if os.environ.get("HEADWATER_TEST_BUDGETS") == "write":
        table[program.__name__] = found
        TABLE.write_text(json.dumps(table, indent=2) + "\n")
    budget = table[program.__name__]
    more = {what: f"{count}, not {budget[what]}" for what, count in found.items() if count > SLACK * budget[what]}
    assert not more, f"a step of {program.__name__} costs more than {TABLE.name} allows: {more}"
