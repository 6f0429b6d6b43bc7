"""Forward-mode derivatives and recomputed gradients. The expected results are those of TensorFlow 2.21."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headwater.tf2.namespace import tf


def test_a_derivative_in_a_direction() -> None:
    x = tf.constant([2.0, 3.0])
    with tf.autodiff.ForwardAccumulator(primals=x, tangents=tf.constant([1.0, 0.5])) as accumulator:
        y, z = tf.reduce_sum(x**2 * tf.sin(x)), x * 3
    np.testing.assert_allclose(accumulator.jvp(y), -2.0590038, rtol=1e-6)
    np.testing.assert_allclose(accumulator.jvp([z])[0], [3, 1.5])


def test_the_direction_of_a_variable() -> None:
    v = tf.Variable([1.0, 2.0])
    with tf.autodiff.ForwardAccumulator(v, tf.constant([1.0, 0.0])) as accumulator:
        y = tf.reduce_sum(v * v) * v
    np.testing.assert_allclose(accumulator.jvp(y), [7, 4])


def test_second_derivatives_by_a_tape_and_by_a_second_accumulator() -> None:
    x, one = tf.constant(2.0), tf.constant(1.0)
    with tf.autodiff.ForwardAccumulator(x, one) as accumulator:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x**3
        gradient = tape.gradient(y, x)
    assert (float(gradient), float(accumulator.jvp(gradient))) == (12, 12)
    with tf.autodiff.ForwardAccumulator(x, one) as outer:
        with tf.autodiff.ForwardAccumulator(x, one) as inner:
            y = x**3
        first = inner.jvp(y)
    assert [float(value) for value in (first, outer.jvp(y), outer.jvp(first))] == [12, 12, 12]


def test_a_tensor_that_does_not_depend_on_the_primals() -> None:
    with tf.autodiff.ForwardAccumulator(tf.constant(2.0), tf.constant(1.0)) as accumulator:
        other = tf.constant(4.0)
    assert accumulator.jvp(other) is None
    assert float(accumulator.jvp(other, unconnected_gradients=tf.UnconnectedGradients.ZERO)) == 0


def test_directions_of_another_structure_are_refused() -> None:
    with pytest.raises(ValueError, match="different structures"):
        tf.autodiff.ForwardAccumulator([tf.constant(1.0)], tf.constant(1.0))


def test_an_accumulator_in_a_function() -> None:
    @tf.function
    def derivative(x: Any, direction: Any) -> Any:
        with tf.autodiff.ForwardAccumulator(x, direction) as accumulator:
            y = tf.exp(x)
        return accumulator.jvp(y)

    found = derivative(tf.constant([1.0, 2.0]), tf.constant([1.0, 2.0]))
    np.testing.assert_allclose(found, [2.7182817, 14.778112], rtol=1e-6)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_recomputed_gradient_equals_the_gradient(compiled: bool) -> None:
    v = tf.Variable(3.0)
    product = tf.recompute_grad(lambda x: tf.sin(x * v))

    def gradients(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = product(x)
        return [y, *tape.gradient(y, [x, v])]

    found = (tf.function(gradients) if compiled else gradients)(tf.constant(2.0))
    np.testing.assert_allclose(found, [-0.27941549, 2.8805108, 1.9203405], rtol=1e-6)
