"""Gradients of the graph compared with finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headwater import tf
from headwater.graph import context


@pytest.fixture(autouse=True)
def session() -> Any:
    with tf.Graph().as_default(), tf.Session() as found:
        yield found


def test_jacobians_of_a_product() -> None:
    x = tf.placeholder(tf.float64, [2])
    y = tf.concat([x * x, [x[0] * x[1]]], 0)
    found: Any = tf.test.compute_gradient(x, [2], y, [3], x_init_value=np.array([2.0, 3.0]))
    graph, differences = found
    assert graph.tolist() == [[4.0, 0.0, 3.0], [0.0, 6.0, 2.0]]
    np.testing.assert_allclose(differences, graph, atol=1e-8)
    assert tf.test.compute_gradient_error(x, [2], y, [3]) < 1e-8


def test_a_wrong_gradient_is_found() -> None:
    @tf.custom_gradient
    def wrong(x: Any) -> Any:
        return x * x, lambda dy: dy * x  # half of the correct value

    x = tf.constant([2.0, 3.0], tf.float64)
    assert tf.test.compute_gradient_error(x, [2], wrong(x), [2], x_init_value=np.array([2.0, 3.0])) == pytest.approx(3)


def test_several_inputs_and_other_feeds() -> None:
    a, b = tf.placeholder(tf.float64, [1, 2]), tf.placeholder(tf.float64, [2, 1])
    scale = tf.placeholder(tf.float64, [])
    y = tf.matmul(a, b) * scale
    values = [np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]])]
    feeds = {scale: 10.0, a: values[0], b: values[1]}
    found = tf.test.compute_gradient([a, b], [[1, 2], [2, 1]], y, [1, 1], values, extra_feed_dict=feeds)
    assert found[0][0].tolist() == [[30.0], [40.0]]
    assert found[1][0].tolist() == [[10.0], [20.0]]
    np.testing.assert_allclose(found[0][1], found[0][0])


def test_complex_numbers_count_twice() -> None:
    z = tf.placeholder(tf.complex128, [2])
    found: Any = tf.test.compute_gradient(z, [2], z * (1 + 2j), [2])
    graph, differences = found
    assert graph.shape == (4, 4)
    np.testing.assert_allclose(graph, differences, atol=1e-8)
    assert graph[:2, :2].tolist() == [[1.0, 2.0], [-2.0, 1.0]]


def test_gradients_of_rows() -> None:
    table = tf.Variable(np.arange(6.0).reshape(3, 2))
    y = tf.gather(table, [2, 0, 2])
    error = tf.test.compute_gradient_error(
        table, [3, 2], y, [3, 2], x_init_value=np.ones([3, 2]), init_targets=table.initializer
    )
    assert error < 1e-8


def test_scalars() -> None:
    x = tf.placeholder(tf.float64, [])
    found: Any = tf.test.compute_gradient(x, [], x * x, [], x_init_value=np.array(3.0))
    graph, _ = found
    assert graph.tolist() == [[6.0]]


def test_refusals() -> None:
    x = tf.placeholder(tf.float64, [2])
    with pytest.raises(ValueError, match="does not influence"):
        tf.test.compute_gradient(x, [2], tf.constant([1.0]), [1])
    with pytest.raises(ValueError, match=r"x_init_value has the shape \(3,\)"):
        tf.test.compute_gradient(x, [2], x * x, [2], x_init_value=np.zeros(3))


def test_a_session_is_needed(session: Any) -> None:
    x = tf.placeholder(tf.float64, [2])
    y = x * x
    context.exit_session(session)
    try:
        with pytest.raises(ValueError, match="needs a default session"):
            tf.test.compute_gradient(x, [2], y, [2])
    finally:
        context.enter_session(session)
