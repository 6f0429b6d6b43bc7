"""Names of the operations that input queues add, as TensorFlow 1.15 names them."""

from __future__ import annotations

from headwater.tf1.compat import tf


def test_products_of_fill_rates_are_named_as_by_the_operator() -> None:
    with tf.Graph().as_default() as graph:
        tf.train.batch([tf.train.string_input_producer(["a"]).dequeue()], 2)
        names = [operation.name for operation in graph.get_operations() if operation.type == "Mul"]
    assert names == ["input_producer/mul", "batch/mul"]
