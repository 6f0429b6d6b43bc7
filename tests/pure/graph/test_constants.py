"""Static values: folding agrees with execution, and partial values are never wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater import tf
from headwater.graph.constants import constant_value, partial_value


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def test_constants_are_folded() -> None:
    x = tf.constant([[1, 2], [3, 4]])
    for tensor, value in [
        (x, [[1, 2], [3, 4]]),
        (x + 1, [[2, 3], [4, 5]]),
        (tf.shape(x), [2, 2]),
        (tf.size(x), 4),
        (tf.rank(x), 2),
        (tf.reduce_sum(x), 10),
        (tf.cast(x, tf.float32) / 2.0, [[0.5, 1.0], [1.5, 2.0]]),
        (tf.concat([x, x], 0)[1:3], [[3, 4], [1, 2]]),
        (tf.split(x, 2, axis=1)[1], [[2], [4]]),
        (tf.identity(tf.constant("a")), None),
        (tf.constant("a"), b"a"),
    ]:
        found = constant_value(tensor)
        if value is None:
            assert found is None
        else:
            assert found is not None
            assert found.tolist() == value
            assert found.dtype == tensor.dtype.numpy_dtype


def test_values_that_are_not_constant() -> None:
    p, v = tf.placeholder(tf.int32, [2]), tf.Variable([1, 2])
    for tensor in [p, p + 1, v.value(), v._ref(), tf.random_uniform([2]), tf.zeros([100, 100])]:
        assert constant_value(tensor) is None
    assert constant_value(tf.constant(np.zeros([100, 100]))) is not None, "a constant itself is never too large"


def test_shapes_that_are_known_in_part() -> None:
    x, y = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32)
    n = tf.placeholder(tf.int32, [])
    for tensor, dims in [
        (tf.shape(x), (None, 3)),
        (tf.shape(y), None),
        (tf.shape(x)[1:], (3,)),
        (tf.shape(x)[:1], (None,)),
        (tf.shape(x)[-1:], (3,)),
        (tf.shape(x)[::-1], (3, None)),
        (tf.stack([tf.shape(x)[0], 7]), (None, 7)),
        (tf.stack([n, tf.shape(x)[1]]), (None, 3)),
        (tf.concat([tf.shape(x), [5, 6]], 0), (None, 3, 5, 6)),
        (tf.concat([tf.shape(y), [5, 6]], 0), None),
        (tf.cast(tf.shape(x), tf.int64), (None, 3)),
        (tf.identity(tf.shape(x)), (None, 3)),
        (tf.placeholder(tf.int32, [2]), (None, None)),
        (tf.placeholder(tf.int32, [None]), None),
        (tf.constant([2, -1]), (2, -1)),
        (tf.constant([], tf.int32), ()),
    ]:
        assert partial_value(tensor) == dims, tensor


def test_static_shapes_of_reshape() -> None:
    x = tf.placeholder(tf.float32, [None, 4, 3])
    n = tf.placeholder(tf.int32, [])
    for shape, dims in [
        ([-1, 12], [None, 12]),
        ([tf.shape(x)[0], -1], [None, None]),
        ([tf.shape(x)[0], 12], [None, 12]),
        ([n, 6], [None, 6]),
        (tf.shape(x)[:2], [None, 4]),
        (tf.concat([tf.shape(x)[:1], [2, 6]], 0), [None, 2, 6]),
        (tf.placeholder(tf.int32, [2]), [None, None]),
    ]:
        assert tf.reshape(x, shape).shape.as_list() == dims
    assert tf.reshape(x, tf.placeholder(tf.int32)).shape.ndims is None


def test_a_long_chain_needs_no_deep_stack() -> None:
    x = tf.constant([1, 2])
    for _ in range(2000):
        x = x + 1
    found = constant_value(x)
    assert found is None or found.tolist() == [2001, 2002]


_numbers = st.integers(-3, 6)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.none() | st.integers(0, 4), min_size=1, max_size=4), st.data())
def test_partial_values_agree_with_slices(dims: list[int | None], data: st.DataObject) -> None:
    with tf.Graph().as_default():
        shape = tf.shape(tf.placeholder(tf.float32, dims))
        start, stop = data.draw(st.none() | _numbers), data.draw(st.none() | _numbers)
        step = data.draw(st.sampled_from([None, 1, 2, -1]))
        assert partial_value(shape[start:stop:step]) == tuple(dims[start:stop:step])
        index = data.draw(st.integers(-len(dims), len(dims) - 1))
        assert partial_value(tf.stack([shape[index], 9])) == (dims[index], 9)
