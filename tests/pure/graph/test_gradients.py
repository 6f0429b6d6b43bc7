"""The operations that gradients are made of. Values: ``tests/conformance``, and the tests of each operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from headwater import tf
from headwater.graph.indexed_slices import IndexedSlices
from headwater.graph.registry import register_gradient
from tests.support import host_ops

del host_ops  # imported for what it does: it registers operation types


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default() as found:
        yield found


def _types(graph: Any, since: int) -> list[str]:
    return [op.type for op in graph.get_operations() if op.number >= since]


def test_each_forward_operation_has_one_backward_operation(graph: Any) -> None:
    with tf.device("/job:ps/task:0"):
        x = tf.constant(1.0)
    with tf.device("/job:worker/task:1"):
        y = tf.exp(x) * 2.0
    version = graph.version
    with tf.device("/job:worker/task:7/gpu:0"), tf.colocate_with(x):
        gradient: Any = tf.gradients(y, x)[0]
    assert _types(graph, version) == ["OnesLike", "Vjp", "Vjp"]
    assert {op.device for op in graph.get_operations() if op.number >= version} == {"/job:worker/task:1"}
    assert gradient.shape.as_list() == []


def test_the_device_of_a_forward_operation_that_asks_for_none(graph: Any) -> None:
    x = tf.constant(1.0)
    y = tf.exp(x)
    with tf.device("/gpu:0"):
        gradient = tf.gradients(y, x)[0]
    assert gradient is not None
    assert gradient.device == ""


def test_gradients_that_meet_are_added_once(graph: Any) -> None:
    x = tf.constant(1.0)
    y = tf.exp(x)
    z = y * 2.0 + y * 3.0 + tf.sin(y)
    version = graph.version
    tf.gradients(z, x)
    assert _types(graph, version).count("AddN") == 1


def test_gradients_add_only_operations_between_x_and_y(graph: Any) -> None:
    x = tf.constant(1.0)
    y = tf.exp(tf.sin(tf.constant(2.0))) * tf.cos(x)
    version = graph.version
    tf.gradients(y, x)
    assert _types(graph, version).count("Vjp") == 2


def test_gradients_have_the_shapes_of_their_tensors() -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    w = tf.Variable(tf.zeros([3, 2]))
    y = tf.reduce_sum(tf.reshape(tf.matmul(x, w), tf.placeholder(tf.int32)))
    found: list[Any] = tf.gradients(y, [x, w])
    assert [gradient.shape.as_list() for gradient in found] == [[None, 3], [3, 2]]


def test_rows_of_a_table_stay_rows() -> None:
    table = tf.Variable(tf.zeros([10, 3]))
    found = tf.gradients(tf.nn.embedding_lookup(table, [1, 1, 2]), table)[0]
    assert isinstance(found, IndexedSlices)
    assert found.values.shape.as_list() == [3, 3]
    assert found.dense_shape is not None
    np.testing.assert_array_equal(tf.get_static_value(found.dense_shape), [10, 3])
    assert tf.convert_to_tensor(found).shape.as_list() == [10, 3]
    mixed = tf.gradients([tf.gather(table, [1]), table.value() * 2.0], table)[0]
    assert isinstance(mixed, tf.Tensor)


def test_custom_gradient(graph: Any) -> None:
    @tf.RegisterGradient("TestTimesSeven")
    def times_seven(op: Any, gradient: Any) -> Any:
        assert op.type == "Identity"
        return gradient * 7.0

    assert times_seven is not None
    x = tf.constant(1.0)
    with graph.gradient_override_map({"Identity": "TestTimesSeven"}):
        y = tf.identity(x)
    z = tf.identity(x)
    version = graph.version
    tf.gradients(y, x)
    assert "Mul" in _types(graph, version)
    version = graph.version
    tf.gradients(z, x)
    assert "Mul" not in _types(graph, version)


def test_operations_without_a_gradient() -> None:
    host = tf.get_default_graph().create_op("TestHostNegate", [x := tf.constant(1.0)]).outputs[0]
    assert tf.gradients(host, x) == [None]
    assert tf.gradients(tf.sign(x) + tf.stop_gradient(x), tf.constant(1.0)) == [None]


def test_a_gradient_that_gives_the_wrong_number_of_values(graph: Any) -> None:
    def two(op: Any, gradient: Any) -> Sequence[Any]:
        return [gradient, gradient]

    register_gradient("TestTwo", two)
    with pytest.raises(KeyError, match="registered twice"):
        register_gradient("TestTwo", two)
    x = tf.constant(1.0)
    with graph.gradient_override_map({"Identity": "TestTwo"}):
        y = tf.identity(x)
    with pytest.raises(ValueError, match="gives 2 values for 1 inputs"):
        tf.gradients(y, x)


def test_a_long_chain_needs_no_deep_stack() -> None:
    x = y = tf.constant(1.0)
    for _ in range(2000):
        y = tf.identity(y)
    (gradient,) = tf.gradients(y, x)
    assert isinstance(gradient, tf.Tensor)
    assert (gradient.dtype, gradient.shape.as_list()) == (tf.float32, [])
