"""`tf.function` in graphs, and reads of variables after changes: values of TensorFlow 1.15."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from headwater import tf


def values(fetches: Any, feeds: Any = None, times: int = 1) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [session.run(fetches, feeds) for _ in range(times)]


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default():
        yield


def reads(v: Any) -> list[Any]:
    return [v * 2.0, tf.gather(v, [0]), tf.identity(v), v.value(), v[0], v + v, tf.nn.embedding_lookup(v, [1])]


@pytest.mark.parametrize("resource", [True, False])
def test_a_read_after_a_change_returns_the_new_value(resource: bool) -> None:
    v = tf.Variable([3.0, 3.0], use_resource=resource)
    unordered = tf.identity(v)
    with tf.control_dependencies([v.assign_add([1.0, 1.0])]):
        ordered = reads(v)
        gradient = tf.gradients(ordered[0], v)[0]
    (found,) = values([unordered, *ordered, gradient])
    expected = [[4.0, 4.0], [8.0, 8.0], [4.0], [4.0, 4.0], [4.0, 4.0], 4.0, [8.0, 8.0], [4.0], [2.0, 2.0]]
    assert [value.tolist() for value in found] == expected


def test_a_read_after_an_unrelated_operation_is_the_shared_one() -> None:
    v, w = tf.Variable(1.0), tf.Variable(1.0)
    with tf.control_dependencies([w.assign_add(1.0), tf.no_op()]):
        assert v.value() is v.value()
        assert w.value() is not w.value()
    with tf.control_dependencies([v.initializer]):
        assert v.value() is v.value()


def test_an_average_takes_the_value_after_the_training_step() -> None:
    v = tf.Variable(10.0)
    average = tf.train.ExponentialMovingAverage(0.5)
    with tf.control_dependencies([v.assign(20.0)]):
        update = average.apply([v])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(update)
        assert session.run(average.average(v)) == 15.0


def test_effects_happen_in_the_order_of_statements() -> None:
    v = tf.Variable(3.0, use_resource=True)

    @tf.function
    def change(x: Any) -> Any:
        before = v.read_value()
        v.assign_add(x)
        between = v.read_value()
        v.assign(v * 2.0)
        return before, between, v.read_value()

    assert values(list(change(tf.constant(2.0))), times=2) == [[3.0, 5.0, 10.0], [10.0, 12.0, 24.0]]


def branch(v: Any) -> Callable[[Any], Any]:
    @tf.function
    def change(x: Any) -> Any:
        if x > 0:
            v.assign_add(x)
        else:
            v.assign(0.0)
        return v.read_value()

    return change


def turns(v: Any) -> Callable[[Any], Any]:
    @tf.function
    def change(x: Any) -> Any:
        numbers: Any = tf.range(tf.cast(x, tf.int32))
        for i in numbers:
            v.assign_add(tf.cast(i, tf.float32))
        return v.read_value()

    return change


@pytest.mark.parametrize(("make", "fed", "expected"), [(branch, (1, 5, -1), (4, 9, 0)), (turns, (4, 2), (9, 10))])
def test_effects_of_branches_and_turns(make: Any, fed: Any, expected: Any) -> None:
    x = tf.placeholder(tf.float32, [])
    result = make(tf.Variable(3.0, use_resource=True))(x)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert tuple(session.run(result, {x: each}) for each in fed) == expected


def test_results_keep_their_structure_and_wait_for_effects() -> None:
    v = tf.Variable(1.0, use_resource=True)

    @tf.function
    def inner(x: Any) -> Any:
        v.assign(v * x)
        return v.read_value()

    @tf.function
    def outer(x: Any) -> Any:
        return {"a": inner(x), "b": inner(x), "none": None, "numbers": [1, 2.5]}

    result = outer(tf.constant(3.0))
    assert result["none"] is None
    assert values([result["a"], result["b"], *result["numbers"]]) == [[3.0, 9.0, 1, 2.5]]


def test_a_step_of_training() -> None:
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    w = tf.Variable([1.0, 2.0], use_resource=True)

    @tf.function
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(w * w * x)
        optimizer.apply_gradients(zip(tape.gradient(loss, [w]), [w], strict=True))
        return loss

    found = values(step(tf.constant(1.0)), times=3)
    np.testing.assert_allclose(found, [5.0, 3.2, 2.048], rtol=1e-6)


def test_variables_are_made_by_the_first_call_only() -> None:
    class Module:
        v: Any = None

        @tf.function
        def __call__(self, x: Any) -> Any:
            if self.v is None:
                self.v = tf.Variable(5.0)
            return self.v * x

    module = Module()
    assert values([module(tf.constant(2.0)), module(tf.constant(3.0))]) == [[10.0, 15.0]]
    assert [v.name for v in tf.global_variables()] == ["Variable:0"]

    @tf.function
    def makes(x: Any) -> Any:
        return tf.Variable(5.0) * x

    makes(tf.constant(1.0))
    with pytest.raises(ValueError, match="tried to create variables on non-first call"):
        makes(tf.constant(1.0))


def test_arguments() -> None:
    seen: list[Any] = []

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def signed(x: Any) -> Any:
        return x + 1

    @tf.function
    def plain(x: Any, n: int, flag: bool = True) -> Any:
        seen.append((tf.is_tensor(x), n, flag))
        return x * n

    assert [each.tolist() for each in values([signed([1.0, 2.0]), plain(np.ones(2), 3)])[0]] == [[2, 3], [3, 3]]
    assert seen == [(True, 3, True)]
    with pytest.raises(ValueError, match="Python inputs incompatible with input_signature"):
        signed(tf.zeros([2, 2]))
    with pytest.raises(TypeError, match="takes 1 positional arguments but 2 were given"):
        signed(tf.zeros([2]), 3)
    with pytest.raises(TypeError, match="must return zero or more Tensors"):
        tf.function(lambda: tf.no_op())()
