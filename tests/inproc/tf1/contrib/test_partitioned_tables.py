"""Optimizers that gather rows by the indices of a gradient, on a partitioned table; values of TensorFlow 1.15."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from headwater import tf


class RowsOptimizer(tf.train.Optimizer):
    """A program's own optimizer: each row decreases by a tenth of its product with its gradient."""

    def __init__(self) -> None:
        super().__init__(False, "Rows")

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        change = 0.1 * tf.gather(var, grad.indices) * grad.values
        return tf.scatter_sub(var, grad.indices, change)


OPTIMIZERS: dict[str, tuple[Callable[[list[Any]], Any], list[float]]] = {
    "lazy Adam": (lambda _: tf.contrib.opt.LazyAdamOptimizer(0.05), [0.1129, 0.2181, 0.1024, 0.2128, 0.1024]),
    "AdaMax": (lambda _: tf.contrib.opt.AdaMaxOptimizer(0.05), [0.1380, 0.2315, 0.1155, 0.2237, 0.1155]),
    "Nadam": (lambda _: tf.contrib.opt.NadamOptimizer(0.05), [0.0639, 0.1893, 0.0420, 0.1793, 0.0420]),
    "AddSign": (lambda _: tf.contrib.opt.AddSignOptimizer(0.05), [0.0960, 0.2000, 0.0540, 0.2000, 0.0160]),
    "own": (lambda _: RowsOptimizer(), [0.2056, 0.2375, 0.1880, 0.2375, 0.1648]),
    "clipped": (
        lambda parts: tf.contrib.opt.VariableClippingOptimizer(
            tf.train.GradientDescentOptimizer(0.5), {part: [1] for part in parts}, 0.1
        ),
        [0.0, 0.0, -0.0577, 0.0, -0.0577],
    ),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_rows_of_parts_are_updated(name: str) -> None:
    make, expected = OPTIMIZERS[name]
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.variable_scope("", partitioner=tf.fixed_size_partitioner(2)):
            table = tf.get_variable("table", [7, 3], initializer=tf.constant_initializer(0.25))
        ids = tf.placeholder(tf.int64, [None])
        loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, ids)) * [[1.0], [2.0], [3.0], [1.0]])
        train = make(tf.trainable_variables()).minimize(loss)
        rows = tf.convert_to_tensor(table)[:, 0]
        session.run(tf.global_variables_initializer())
        for number in range(3):
            session.run(train, {ids: [0, 6, 3, number]})
        values = session.run(rows)
        np.testing.assert_allclose(values[[0, 1, 3, 4, 5]], expected, atol=1e-4)
        np.testing.assert_allclose(values[[2, 6]], 0.25)
