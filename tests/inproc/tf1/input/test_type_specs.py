"""Specifications of composite values: their parts, as functions that handle any type of value use them.

Values of TensorFlow 1.15.
"""

from __future__ import annotations

import numpy as np
import pytest

from headwater import tf

# pyright: reportPrivateUsage=false


def test_parts_of_sparse_tensors() -> None:
    spec = tf.SparseTensorSpec([5, None, None])
    assert repr(spec._serialize()) == "(TensorShape([Dimension(5), Dimension(None), Dimension(None)]), tf.float32)"
    assert spec._component_specs == [
        tf.TensorSpec([None, 3], tf.int64),
        tf.TensorSpec([None], tf.float32),
        tf.TensorSpec([3], tf.int64),
    ]
    assert spec._batch(32) == tf.SparseTensorSpec([32, 5, None, None])
    assert spec._unbatch() == tf.SparseTensorSpec([None, None])
    arrays = [np.array([[0, 1, 2]]), np.array([1.0]), np.array([5, 5, 5])]
    assert isinstance(spec._from_components(arrays), tf.SparseTensorValue)
    tensor = tf.SparseTensor(*arrays)
    assert spec._from_components(spec._to_components(tensor)).values is tensor.values


@pytest.mark.parametrize("shape", [None, [100]])
def test_parts_of_indexed_slices(shape: list[int] | None) -> None:
    kind = None if shape is None else tf.int32
    spec = tf.IndexedSlicesSpec([100, 10], dense_shape_dtype=kind, indices_shape=[20])
    rows, indices, *rest = spec._component_specs
    assert (rows, indices) == (tf.TensorSpec([20, 10], tf.float32), tf.TensorSpec([20], tf.int64))
    assert rest == ([] if shape is None else [tf.TensorSpec([2], tf.int32)])
    size = None if shape is None else tf.constant(shape)
    slices = tf.IndexedSlices(tf.constant([3.0, 5.0]), tf.constant([5, 10]), size)
    again = spec._from_components(spec._to_components(slices))
    assert (again.values, again.indices, again.dense_shape) == (slices.values, slices.indices, slices.dense_shape)
    found = spec._from_components([np.ones(2), np.array([3, 8])])
    assert type(found).__name__ == "IndexedSlicesValue"
    assert found.dense_shape is None
