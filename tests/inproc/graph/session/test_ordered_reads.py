"""Reads that a program orders after updates return the new values, on each task and for each type."""

from __future__ import annotations

from typing import Any

import pytest

from headwater import tf
from tests.support.cluster import memory_cluster

PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("device", [PS, WORKER])
def test_another_task_reads_after_an_update(device: str, use_resource: bool) -> None:
    """TensorFlow 1.15 returns 6 for all of these reads, also for a sum of `read_value` on the worker."""
    with memory_cluster(ps=1, worker=1) as cluster, tf.Graph().as_default():
        with tf.device(PS):
            v = tf.get_variable("v", [], initializer=tf.zeros_initializer(), use_resource=use_resource)
        with tf.device(WORKER):
            six = tf.py_func(lambda: 6.0, [], tf.float64)
        with tf.device(PS):
            update = tf.assign(v, tf.cast(six, tf.float32))
        with tf.device(device), tf.control_dependencies([update]):
            reads = [v.read_value(), v.read_value() + 0.0, tf.identity(v), v + 0.0]
        with tf.Session(cluster.target("worker")) as session:
            for read in reads:
                session.run(tf.global_variables_initializer())
                assert session.run(read) == 6.0, read


def test_another_task_reads_after_an_operation_without_an_update() -> None:
    """Other tasks may change the variable while an operation waits, such as for an element of a queue."""
    with memory_cluster(ps=1, worker=1) as cluster, tf.Graph().as_default():
        with tf.device(PS):
            v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
        with tf.Session(cluster.target("worker")) as other, tf.Session(cluster.target("worker")) as session:
            update = tf.assign(v, 6.0)
            with tf.device(WORKER):
                wait = tf.py_func(lambda: other.run(update), [], tf.float32)
                with tf.control_dependencies([wait]):
                    read = v.read_value()
            session.run(tf.global_variables_initializer())
            assert session.run(read) == 6.0


@pytest.mark.parametrize("device", [PS, WORKER])
def test_conditions_and_loops_read_after_an_update(device: str) -> None:
    """TensorFlow 1.15 returns 7 for the conditions; such a loop waits forever there, on a worker."""
    with memory_cluster(ps=1, worker=1) as cluster, tf.Graph().as_default():
        with tf.device(PS):
            v = tf.get_variable("v", [], initializer=tf.ones_initializer())
            update = tf.assign_add(v, 6.0)
        yes = tf.placeholder_with_default(True, [])
        with tf.device(device), tf.control_dependencies([update]):
            condition = tf.cond(yes, lambda: v.read_value(), lambda: v * 2.0)
            other = tf.cond(yes, lambda: v + 0.0, lambda: 0.0)
            loop = tf.while_loop(lambda i, _: i < 2, lambda i, total: (i + 1, total + v.read_value()), [0, 0.0])[1]
        with tf.Session(cluster.target("worker")) as session:
            for read, expected in [(condition, 7.0), (other, 7.0), (loop, 14.0)]:
                session.run(tf.global_variables_initializer())
                assert session.run(read) == expected, read


@pytest.mark.parametrize(
    ("kind", "old", "new"), [(tf.string, b"old", b"new"), (tf.float32, 1.0, 2.0), (tf.bool, False, True)]
)
def test_reads_follow_updates_of_each_type(kind: Any, old: Any, new: Any) -> None:
    """Values of TensorFlow 1.15 in one process."""
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(old, dtype=kind)
        with tf.control_dependencies([tf.assign(v, new)]):
            reads = [v.read_value(), tf.identity(v), tf.stack([v])[0], tf.py_func(lambda value: value, [v], kind)]
        for read in reads:
            session.run(v.initializer)
            assert session.run(read) == new, read
