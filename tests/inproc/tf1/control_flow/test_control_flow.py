"""Conditions, loops and functions that are built from them, with their gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from headwater.tf1.compat import tf


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def started() -> Any:
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    return session


def test_condition_and_its_gradient() -> None:
    x, p = tf.placeholder(tf.float32, []), tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: x * 2.0, lambda: x + 10.0)
    wanted = [y, tf.gradients(y, x)[0]]
    assert y.name == "cond/Merge:0"
    with tf.Session() as session:
        assert session.run(wanted, {x: 3.0, p: True}) == [6, 2]
        assert session.run(wanted, {x: 3.0, p: False}) == [13, 1]


def test_only_the_chosen_branch_changes_a_variable() -> None:
    v, p = tf.Variable(1.0), tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: v.assign_add(5.0), lambda: v.assign_sub(1.0))
    session = started()
    assert [session.run(y, {p: True}), session.run(y, {p: False}), session.run(v)] == [6, 5, 5]


def test_branches_that_are_operations() -> None:
    v, p = tf.Variable(1.0), tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: tf.group(v.assign_add(5.0)), tf.no_op)
    session = started()
    session.run(y, {p: False})
    assert session.run(v) == 1
    session.run(y, {p: True})
    assert session.run(v) == 6


def test_branches_of_different_shapes() -> None:
    p, x = tf.placeholder(tf.bool, []), tf.Variable([1.0, 2.0, 3.0])
    y = tf.cond(p, lambda: x * x, lambda: x[:1])
    grad = tf.gradients(y, x)[0]
    session = started()
    assert y.shape.as_list() == [None]
    assert session.run(grad, {p: True}).tolist() == [2, 4, 6]
    assert session.run(grad, {p: False}).tolist() == [1, 0, 0]


def test_random_numbers_are_the_same_forward_and_back() -> None:
    p, w = tf.placeholder(tf.bool, []), tf.Variable(tf.ones([64]))
    y = tf.cond(p, lambda: tf.nn.dropout(w + 0.0, 0.5), lambda: w * 1.0)
    grad = tf.gradients(y, w)[0]
    session = started()
    first, second = (session.run([y, grad], {p: True}) for _ in range(2))
    assert first[0].tolist() == first[1].tolist()
    assert first[0].tolist() != second[0].tolist()


def test_variable_made_in_a_branch() -> None:
    p = tf.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: tf.get_variable("v", [2], initializer=tf.ones_initializer()) * 3.0, lambda: tf.zeros([2]))
    grad = tf.gradients(y, tf.trainable_variables())[0]
    session = started()
    assert [value.tolist() for value in session.run([y, grad], {p: True})] == [[3, 3], [3, 3]]


def test_branches_must_agree() -> None:
    p = tf.placeholder(tf.bool, [])
    with pytest.raises(ValueError, match="same type"):
        tf.cond(p, lambda: tf.constant(1), lambda: tf.constant(1.0))
    with pytest.raises(ValueError, match="structure"):
        tf.cond(p, lambda: [tf.constant(1), tf.constant(1)], lambda: tf.constant(1))
    with pytest.raises(TypeError, match="Python bool"):
        tf.cond(True, lambda: tf.constant(1), lambda: tf.constant(1))


def test_case() -> None:
    x = tf.placeholder(tf.int32, [])
    y = tf.case(
        [(tf.less(x, 0), lambda: tf.constant(-1)), (tf.equal(x, 0), lambda: tf.constant(0))],
        default=lambda: tf.constant(1),
    )
    with tf.Session() as session:
        assert [session.run(y, {x: value}) for value in (-3, 0, 5)] == [-1, 0, 1]


def test_loop_with_a_counter_that_a_run_knows() -> None:
    n, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [])
    i, y = tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a * x), [0, 1.0])
    grad = tf.gradients(y, x)[0]
    with tf.Session() as session:
        assert session.run([i, y, grad], {n: 5, x: 2.0}) == [5, 32, 80]
        assert session.run([i, y, grad], {n: 0, x: 2.0}) == [0, 1, 0]


def test_loop_that_ends_by_its_values() -> None:
    x = tf.placeholder(tf.float32, [])
    y = tf.while_loop(lambda a: a < 100.0, lambda a: a * x, [x])
    grad = tf.gradients(y, x)[0]
    assert y.name == "while/Exit:0"
    with tf.Session() as session:
        assert session.run([y, grad], {x: 2.0}) == [128, 448]


def test_loop_with_a_largest_number_of_turns() -> None:
    w = tf.Variable(2.0)
    y = tf.while_loop(lambda a: a < 1000.0, lambda a: a * w, [1.0], maximum_iterations=5)
    assert started().run([y, tf.gradients(y, w)[0]]) == [32, 80]


def test_loop_in_a_condition_in_a_loop() -> None:
    x = tf.placeholder(tf.float32, [])

    def turn(i: Any, a: Any) -> Any:
        def inner() -> Any:
            return tf.while_loop(lambda j, c: j < i + 1, lambda j, c: (j + 1, c + x), [0, a])[1]

        return i + 1, tf.cond(i > 1, lambda: a * x, inner)

    y = tf.while_loop(lambda i, a: i < 4, turn, [0, 1.0])[1]
    with tf.Session() as session:
        # x^2 (1 + 3 x)
        assert session.run([y, tf.gradients(y, x)[0]], {x: 2.0}) == [28, 40]


def test_loop_that_changes_a_variable() -> None:
    v = tf.Variable(0)

    def turn(i: Any) -> Any:
        with tf.control_dependencies([v.assign_add(2)]):
            return i + 1

    session = started()
    assert session.run(tf.while_loop(lambda i: i < 3, turn, [0])) == 3
    assert session.run(v) == 6


def test_loop_with_a_growing_value() -> None:
    start = [0, tf.constant([7])]

    def build(**more: Any) -> Any:
        return tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.concat([a, [i]], 0)), start, **more)[1]

    with pytest.raises(ValueError, match="shape_invariants"):
        build()
    grown = build(shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])])
    with tf.Session() as session:
        assert session.run(grown).tolist() == [7, 0, 1, 2]


def test_map_over_slices_of_unknown_number() -> None:
    x = tf.placeholder(tf.float32, [None, 2])
    y = tf.map_fn(lambda row: row * row, x)
    assert y.shape.as_list() == [None, 2]
    with tf.Session() as session:
        values = session.run([y, tf.gradients(y, x)[0]], {x: [[1, 2], [3, 4]]})
    assert [value.tolist() for value in values] == [[[1, 4], [9, 16]], [[2, 4], [6, 8]]]


def test_scan_and_folds() -> None:
    x = tf.constant([1.0, 2.0, 3.0])
    y = tf.scan(lambda a, b: a * b, x)
    back = tf.scan(lambda a, b: a + b, x, initializer=10.0, reverse=True)
    folds = [tf.foldl(lambda a, b: a - b, x), tf.foldr(lambda a, b: a - b, x)]
    with tf.Session() as session:
        values = session.run([y, tf.gradients(y, x)[0], back])
        assert [value.tolist() for value in values] == [[1, 2, 6], [9, 4, 2], [16, 15, 13]]
        assert session.run(folds) == [-4, 0]


def test_tensor_array() -> None:
    array = tf.TensorArray(tf.float32, 3).write(0, [1.0, 2.0]).write(2, [3.0, 4.0])
    with tf.Session() as session:
        stacked, last, size = session.run([array.stack(), array.read(2), array.size()])
    assert stacked.tolist() == [[1, 2], [0, 0], [3, 4]]
    assert last.tolist() == [3, 4]
    assert size == 3


def test_graph_def_of_a_loop() -> None:
    n = tf.placeholder(tf.int32, [], name="n")
    tf.identity(tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a * 2.0), [0, 1.0])[1], name="y")
    message = tf.get_default_graph().as_graph_def()
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(tf.GraphDef.FromString(message.SerializeToString()), name="")
        assert session.run("y:0", {"n:0": 6}) == np.float32(64)
