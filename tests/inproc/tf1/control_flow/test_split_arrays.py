"""TensorArrays whose elements have different lengths, and elements that are written twice."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from headwater import tf


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


@pytest.mark.parametrize("known", [True, False])
def test_split_into_parts_of_different_lengths(session: tf.Session, known: bool) -> None:
    value = tf.constant([[1.0], [2.0], [3.0]])
    lengths = [1, 2] if known else tf.placeholder_with_default([1, 2], [None])
    parts = tf.TensorArray(tf.float32, 2, infer_shape=False).split(value, lengths)
    place = tf.placeholder_with_default(1, [])
    first, second, size, together = session.run([parts.read(0), parts.read(place), parts.size(), parts.concat()])
    assert first.tolist() == [[1.0]]
    assert second.tolist() == [[2.0], [3.0]]
    assert size == 2
    assert together.tolist() == [[1.0], [2.0], [3.0]]
    (gradient,) = tf.gradients(parts.read(1) * 2.0, value)
    assert session.run(gradient).tolist() == [[0.0], [2.0], [2.0]]


def test_a_loop_reads_parts_of_different_lengths(session: tf.Session) -> None:
    lengths = tf.placeholder(tf.int32, [None])
    parts = tf.TensorArray(tf.float32, 2, infer_shape=False).split(tf.range(6.0), lengths)

    def turn(i: object, found: object) -> object:
        return i + 1, found * 10.0 + tf.reduce_sum(parts.read(i))  # type: ignore[operator]

    _, found = tf.while_loop(lambda i, _: i < tf.size(lengths), turn, [0, 0.0])
    np.testing.assert_allclose(session.run(found, {lengths: [1, 5]}), 15.0)
    np.testing.assert_allclose(session.run(found, {lengths: [2, 3, 1]}), 195.0)


def test_parts_of_one_length_can_be_stacked(session: tf.Session) -> None:
    lengths = tf.placeholder(tf.int32, [None])
    parts = tf.TensorArray(tf.float32, 2, infer_shape=False).split(tf.range(4.0), lengths)
    stacked, last = session.run([parts.stack(), parts.gather([1])], {lengths: [2, 2]})
    assert (stacked.tolist(), last.tolist()) == ([[0.0, 1.0], [2.0, 3.0]], [[2.0, 3.0]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="written"):
        parts.write(0, [1.0])


def test_an_element_is_written_once() -> None:
    with tf.Graph().as_default():
        array = tf.TensorArray(tf.float32, 2).write(0, 1.0)
        array.write(1, 2.0)
        with pytest.raises(tf.errors.InvalidArgumentError, match="index 0 because it has already been written to"):
            array.write(0, 2.0)
