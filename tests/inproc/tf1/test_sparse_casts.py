"""``tf.cast`` and its short forms accept sparse tensors; values recorded with TensorFlow 1.15."""

from __future__ import annotations

import numpy as np
import pytest

from headwater import tf


@pytest.mark.parametrize(
    ("name", "expected"), [("to_int32", np.array([1, -2], np.int32)), ("to_double", np.array([1.5, -2.5]))]
)
def test_casts_of_sparse_tensors_convert_the_values(name: str, expected: np.ndarray) -> None:
    sparse = tf.SparseTensor([[0, 1], [1, 0]], [1.5, -2.5], [2, 2])
    with tf.Session() as session:
        by_name, by_cast = session.run([getattr(tf, name)(sparse), tf.cast(sparse, expected.dtype)])
    for found in (by_name, by_cast):
        assert found.values.dtype == expected.dtype
        np.testing.assert_array_equal(found.values, expected)
        assert found.indices.tolist() == [[0, 1], [1, 0]]
        assert found.dense_shape.tolist() == [2, 2]
