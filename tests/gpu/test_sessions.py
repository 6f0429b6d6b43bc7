"""Graphs in a session of this process, on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from headwater import tf
from headwater.errors import ResourceExhaustedError
from headwater.graph.session.local_devices import list_local_devices

GPU = "/job:localhost/replica:0/task:0/device:GPU:0"


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def trained(device: str, steps: int = 5) -> list[Any]:
    """The variables of a small convolutional network after some steps of Adam."""
    source = np.random.default_rng(0)
    images = source.random((16, 12, 12, 1)).astype(np.float32)
    labels = source.integers(0, 4, 16).astype(np.int32)
    with tf.Graph().as_default(), tf.device(device):
        tf.set_random_seed(1)
        net = tf.nn.relu(tf.layers.conv2d(tf.constant(images), 8, 3, kernel_initializer=_values(3, 3, 1, 8)))
        net = tf.layers.max_pooling2d(net, 2, 2)
        logits = tf.layers.dense(tf.layers.flatten(net), 4, kernel_initializer=_values(200, 4))
        loss = tf.losses.sparse_softmax_cross_entropy(tf.constant(labels), logits)
        train = tf.train.AdamOptimizer(0.01).minimize(loss)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(steps):
                session.run(train)
            return session.run(tf.trainable_variables())


def _values(*shape: int) -> Any:
    return tf.constant_initializer(np.random.default_rng(len(shape)).standard_normal(shape) / 10)


def test_a_gpu_is_listed_with_its_memory() -> None:
    (found,) = [device for device in list_local_devices() if device.name == "/device:GPU:0"]
    assert found.memory_limit > 1 << 30
    assert "compute capability" in found.physical_device_desc
    with tf.Session() as session:
        assert GPU in [device.name for device in session.list_devices()]


def test_operations_without_a_device_run_on_the_gpu() -> None:
    product = tf.matmul(tf.constant([[2.0, 1.0]]), tf.constant([[3.0], [4.0]]), name="product")
    metadata = tf.RunMetadata()
    with tf.Session() as session:
        full = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        assert session.run(product, options=full, run_metadata=metadata) == 10.0
    assert {device.device.removesuffix("/executables") for device in metadata.step_stats.dev_stats} == {GPU}


def test_training_agrees_with_the_cpu() -> None:
    tf.config.experimental.enable_tensor_float_32_execution(False)
    try:
        for found, expected in zip(trained("/gpu:0"), trained("/cpu:0"), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    finally:
        tf.config.experimental.enable_tensor_float_32_execution(True)


def test_variables_on_the_cpu_and_a_tower_on_the_gpu() -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    with tf.device("/cpu:0"):
        w = tf.get_variable("w", initializer=np.ones((3, 1), np.float32))
    with tf.device("/gpu:0"):
        (gradient,) = tf.gradients(tf.reduce_sum(tf.matmul(x, w)), [w])
        assert gradient is not None
    with tf.device("/cpu:0"):
        train = w.assign_sub(gradient)
    with tf.Session() as session:
        session.run(w.initializer)
        for _ in range(3):
            session.run(train, {x: np.ones((2, 3), np.float32)})
        assert session.run(w).tolist() == [[-5.0]] * 3


def test_rows_that_are_not_there_are_zeros() -> None:
    rows = tf.gather(tf.Variable([[1.0], [2.0]]), tf.placeholder_with_default([1, 7], [2]))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(rows).tolist() == [[2.0], [0.0]]


def test_without_memory_a_variable_keeps_its_value() -> None:
    many = 10**6
    w = tf.Variable(np.ones(3, np.float32), name="w")
    factor = tf.placeholder(tf.float32, [])
    huge = tf.ones([many, many]) * factor + tf.to_float(tf.range(many))
    update = w.assign_add(tf.reduce_sum(tf.nn.top_k(huge, many).values) * tf.ones(3)).op
    with tf.Session() as session:
        session.run(w.initializer)
        for _ in range(2):
            with pytest.raises(ResourceExhaustedError, match=r"on its GPU .* was to change 'w'.* are free"):
                session.run(update, {factor: 1.0})
            assert session.run(w).tolist() == [1.0, 1.0, 1.0]
        with pytest.raises(ResourceExhaustedError, match="on its GPU"):
            session.run(huge, {factor: 1.0})


def test_a_trace_has_the_operations_of_the_gpu() -> None:
    x = tf.placeholder(tf.float32, [300, 300])
    y = tf.reduce_sum(tf.tanh(tf.matmul(x, x, name="product")), name="total")
    metadata = tf.RunMetadata()
    with tf.Session() as session:
        full = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        for _ in range(2):
            session.run(y, {x: np.ones((300, 300), np.float32)}, options=full, run_metadata=metadata)
    found = {device.device: [node.node_name for node in device.node_stats] for device in metadata.step_stats.dev_stats}
    assert "product" in found[GPU]
    assert f"{GPU}/executables" in found
