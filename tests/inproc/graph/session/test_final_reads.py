"""Fetched variables have their values at the end of the step, as reference variables in TensorFlow 1.15."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from headwater import tf

UPDATES: dict[str, Callable[[Any, Any], Any]] = {
    "assign": lambda v, x: v.assign(2 * x),
    "assign_add": lambda v, x: v.assign_add(x),
    "of an update": lambda v, x: tf.assign_add(tf.assign(v, x), x),
    "sgd": lambda v, x: tf.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_sum(v * x)),
    "adam": lambda v, x: tf.train.AdamOptimizer(0.5).minimize(tf.reduce_sum(v * x)),
    "rows": lambda v, x: tf.scatter_add(v, [0, 2], x[:2]),
}


@pytest.mark.parametrize("name", UPDATES)
def test_fetches_follow_all_updates(name: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v, x = tf.get_variable("v", [3], initializer=tf.ones_initializer()), tf.placeholder(tf.float32, [3])
        update = UPDATES[name](v, x)
        fetches = [v, v.read_value(), tf.identity(v), v.value(), v + 0.0]
        session.run(tf.global_variables_initializer())
        for number in (1.0, 2.0):
            before = session.run(v)
            *found, summed = session.run([*fetches, update], {x: number * np.arange(1, 4)})[:5]
            after = session.run(v)
            assert not np.array_equal(before, after)
            for value in found:
                np.testing.assert_array_equal(value, after)
            np.testing.assert_array_equal(summed, before)


def test_a_finalized_graph_stays_as_it_is() -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
        update = v.assign_add(1.0)
        session.run(tf.global_variables_initializer())
        graph.finalize()
        before = [op.name for op in graph.get_operations()]
        assert [session.run([v, update])[0] for _ in range(3)] == [1.0, 2.0, 3.0]
        assert [op.name for op in graph.get_operations()] == before


def test_a_read_for_which_an_operation_waits_is_before_its_updates() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
        old = v.read_value()
        with tf.control_dependencies([old]):
            update = v.assign_add(1.0)
        session.run(tf.global_variables_initializer())
        assert session.run([old, v, update])[:2] == [0.0, 1.0]
