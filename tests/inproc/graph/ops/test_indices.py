"""Indices out of range fail with TensorFlow's message; if they are fed to a step, before anything is computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headwater import tf
from headwater.errors import InvalidArgumentError

TABLE = np.arange(12, dtype=np.float32).reshape(6, 2)


@pytest.fixture
def session() -> Any:
    with tf.Graph().as_default(), tf.Session() as opened:
        yield opened


@pytest.mark.parametrize("index", [6, 7, -1])
def test_a_lookup_fails_and_changes_nothing(session: Any, index: int) -> None:
    table, ids = tf.Variable(TABLE), tf.placeholder(tf.int32, [None])
    rows = tf.nn.embedding_lookup(table, ids)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(rows * rows))
    session.run(tf.global_variables_initializer())
    for fetch in (rows, train):
        with pytest.raises(
            InvalidArgumentError, match=rf"indices\[1\] = {index} is not in \[0, 6\) .*embedding_lookup"
        ):
            session.run(fetch, {ids: [5, index]})
    np.testing.assert_array_equal(session.run(table), TABLE)
    np.testing.assert_array_equal(session.run(rows, {ids: [5, 0]}), TABLE[[5, 0]])
    assert session.run(rows, {ids: []}).shape == (0, 2)


def test_each_kind_of_index(session: Any) -> None:
    table = tf.Variable(TABLE)
    one, two = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int64, [None, 2])
    session.run(tf.global_variables_initializer())
    sparse = tf.SparseTensor([[0, 0], [0, 1]], tf.constant([1, 6], tf.int64), [1, 2])
    cases = [
        (tf.gather(table, [0, 9]), {}, r"indices\[1\] = 9 is not in \[0, 6\)"),
        (tf.gather(table, 6), {}, r"indices = 6 is not in \[0, 6\)"),
        (tf.gather(table, two), {two: [[0, 1], [2, 6]]}, r"indices\[1,1\] = 6 is not in \[0, 6\)"),
        (tf.gather(table, one, axis=1), {one: [2]}, r"indices\[0\] = 2 is not in \[0, 2\)"),
        (tf.gather([1, 2], one), {one: [-1]}, r"indices\[0\] = -1 is not in \[0, 2\)"),
        (tf.gather(["a"], one), {one: [-1]}, r"indices\[0\] = -1 is not in \[0, 1\)"),
        (tf.gather_nd(table, two), {two: [[0, 1], [2, 2]]}, r"indices\[1\] = \[2, 2\] does not index .* \[6,2\]"),
        (tf.gather_nd([b"a"], two[:, :1]), {two: [[1, 0]]}, r"indices\[0\] = \[1\] does not index .* \[1\]"),
        (tf.scatter_add(table, one, tf.ones([1, 2])), {one: [6]}, r"indices\[0\] = 6 is not in \[0, 6\)"),
        (tf.scatter_update(table, one, tf.ones([1, 2])), {one: [-1]}, r"indices\[0\] = -1 is not in \[0, 6\)"),
        (tf.nn.embedding_lookup_sparse(table, sparse, None), {}, r"= 6 is not in \[0, 6\)"),
    ]
    for fetch, feed, message in cases:
        with pytest.raises(InvalidArgumentError, match=message):
            session.run(fetch, feed)
    np.testing.assert_array_equal(session.run(table), TABLE)


def test_indices_that_the_step_computes(session: Any) -> None:
    table, ids = tf.Variable(TABLE), tf.placeholder(tf.int32, [None])
    session.run(tf.global_variables_initializer())
    rows = tf.gather(table, ids + 1, name="lookup")
    np.testing.assert_array_equal(session.run(rows, {ids: [4, 0]}), TABLE[[5, 1]])
    for _ in range(2):  # at the step that compiles, and later
        with pytest.raises(InvalidArgumentError, match=r"out of bounds .* 'lookup'"):
            session.run(rows, {ids: [5, 0]})
    np.testing.assert_array_equal(session.run(rows, {ids: [4, 0]}), TABLE[[5, 1]])


def test_computed_rows_that_are_not_there_are_an_error(session: Any) -> None:
    table, ids = tf.Variable(TABLE), tf.placeholder(tf.int32, [None])
    session.run(tf.global_variables_initializer())
    with pytest.raises(InvalidArgumentError, match="ScatterAdd"):
        session.run(tf.scatter_add(table, ids - 1, tf.ones([2, 2])), {ids: [0, 1]})


def test_padding_rows_are_excluded_from_updates(session: Any) -> None:
    parts = [tf.Variable(TABLE[:3]), tf.Variable(TABLE[3:])]
    rows = tf.nn.embedding_lookup(parts, tf.constant([0, 4, 4]), partition_strategy="div")
    grads: list[Any] = tf.gradients(tf.reduce_sum(rows), parts)
    updates = [tf.scatter_sub(part, grad.indices, grad.values) for part, grad in zip(parts, grads, strict=True)]
    session.run(tf.global_variables_initializer())
    session.run(updates)
    expected = np.array(TABLE)
    expected[0] -= 1
    expected[4] -= 2
    np.testing.assert_array_equal(np.concatenate(session.run(parts)), expected)


def test_slices_of_a_variable_on_another_task_are_assigned_to() -> None:
    workers, servers = tf.test.create_local_cluster(1, 1)
    try:
        with tf.Graph().as_default():
            with tf.device("/job:ps/task:0"):
                v = tf.Variable([1.0, 2.0, 3.0, 4.0])
            at = tf.placeholder(tf.int32, [])
            with tf.device("/job:worker/task:0"):
                doubled = v[1:3].assign(v[1:3] * 2.0)
                one, two = v[at].assign(-1.0), v[at : at + 2].assign([7.0, 8.0])
            assert doubled.op.device == v.device
            with tf.Session(workers[0].target) as opened:
                opened.run(tf.global_variables_initializer())
                assert opened.run(doubled).tolist() == [1.0, 4.0, 6.0, 4.0]
                assert opened.run(one, {at: 3}).tolist() == [1.0, 4.0, 6.0, -1.0]
                assert opened.run(two, {at: 0}).tolist() == [7.0, 8.0, 6.0, -1.0]
                assert opened.run(two, {at: 2}).tolist() == [7.0, 8.0, 7.0, 8.0]
                with pytest.raises(InvalidArgumentError, match="StridedSliceAssign"):
                    opened.run(one, {at: 4})
                assert opened.run(v).tolist() == [7.0, 8.0, 7.0, 8.0]
    finally:
        for server in (*workers, *servers):
            server.stop()


def test_an_operation_on_another_task_fails_there() -> None:
    workers, servers = tf.test.create_local_cluster(1, 1)
    try:
        with tf.Graph().as_default():
            with tf.device("/job:ps/task:0"):
                divisor = tf.Variable(0)
                result = 7 // (divisor + 0)
                update = tf.assign(divisor, 7 // (divisor - 1))
            with tf.Session(workers[0].target) as opened:
                opened.run(tf.global_variables_initializer())
                for _ in range(2):
                    with pytest.raises(InvalidArgumentError, match="division by zero"):
                        opened.run(result)
                assert opened.run(update) == -7
                for _ in range(2):
                    opened.run(divisor.assign(1))
                    with pytest.raises(InvalidArgumentError, match="division by zero"):
                        opened.run(update.op)
                opened.run(divisor.assign(2))
                assert opened.run(result) == 3
    finally:
        for server in (*workers, *servers):
            server.stop()


def test_a_gradient_through_a_loop_on_the_host_is_refused() -> None:
    with tf.Graph().as_default():
        x = tf.constant([[1.0, 2.0]])

        def body(i: Any, y: Any) -> Any:
            return i + 1, tf.reshape(tf.py_func(lambda value: value * 2, [y * x], tf.float32), [1, 2])

        y = tf.while_loop(lambda i, y: i < 3, body, [0, x])[1]
        with pytest.raises(LookupError, match="stop_gradient"):
            tf.gradients(y, x)
        assert tf.gradients(tf.stop_gradient(y) * tf.reduce_sum(x), x)[0] is not None
