"""Elements grouped by a key; the batches equal TensorFlow 1.15's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headwater import tf

LENGTHS = [[1], [1, 2, 3], [1, 2], [4] * 5, [3, 3], [7] * 9]


def in_graph(dataset: Any) -> list[Any]:
    following = dataset.make_one_shot_iterator().get_next()
    found: list[Any] = []
    with tf.Session() as session:
        while True:
            try:
                found.append(session.run(following))
            except tf.errors.OutOfRangeError:
                return found


def lists(batches: Any) -> list[Any]:
    return [batch.tolist() for batch in batches]


def sequences() -> Any:
    return tf.data.Dataset.from_generator(lambda: iter(LENGTHS), tf.int32, [None])


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def test_windows_of_one_size_and_of_a_size_for_each_key() -> None:
    group = tf.data.experimental.group_by_window
    by_three = tf.data.Dataset.range(10).apply(group(lambda x: x % 3, lambda key, window: window.batch(2), 3))
    assert lists(in_graph(by_three)) == lists(by_three) == [[0, 3], [6], [1, 4], [7], [2, 5], [8], [9]]
    by_two = tf.data.Dataset.range(10).apply(
        group(lambda x: x % 2, lambda key, window: window.batch(10), window_size_func=lambda key: key + 1)
    )
    assert lists(in_graph(by_two)) == [[0], [2], [1, 3], [4], [6], [5, 7], [8], [9]]


def test_elements_of_several_parts() -> None:
    dataset = tf.data.Dataset.range(4).map(lambda x: (x, {"square": x * x, "half": x / 2}))
    grouped = dataset.apply(
        tf.data.experimental.group_by_window(
            lambda x, parts: x % 2,
            lambda key, window: window.map(lambda x, parts: (key, x, parts["half"])).batch(2),
            window_size=2,
        )
    )
    found = [[part.tolist() for part in batch] for batch in in_graph(grouped)]
    assert found == [[[0, 0], [0, 2], [0.0, 1.0]], [[1, 1], [1, 3], [0.5, 1.5]]]


def test_group_by_window_refuses_wrong_arguments() -> None:
    group = tf.data.experimental.group_by_window
    cases: list[dict[str, Any]] = [{}, {"window_size": 1, "window_size_func": lambda key: key}]
    for sizes in cases:
        with pytest.raises(ValueError, match="either window_size or window_size_func"):
            group(lambda x: x, lambda key, window: window, **sizes)
    empty = tf.data.Dataset.range(2).apply(group(lambda x: x, lambda key, window: window.batch(1), window_size=0))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Window size must be greater than zero, but got 0"):
        in_graph(empty)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [[[1, 0], [1, 2]], [[1, 2, 3, 0, 0], [4] * 5], [[3, 3]], [[7] * 9]]),
        ({"drop_remainder": True}, [[[1, 0], [1, 2]], [[1, 2, 3, 0, 0], [4] * 5]]),
        ({"padding_values": np.int32(-1)}, [[[1, -1], [1, 2]], [[1, 2, 3, -1, -1], [4] * 5], [[3, 3]], [[7] * 9]]),
    ],
)
def test_batches_of_similar_lengths(options: Any, expected: Any) -> None:
    bucketed = sequences().apply(
        tf.data.experimental.bucket_by_sequence_length(lambda x: tf.shape(x)[0], [3, 6], [2, 2, 2], **options)
    )
    assert lists(in_graph(bucketed)) == expected


def test_padding_to_the_end_of_a_bucket() -> None:
    bucket = tf.data.experimental.bucket_by_sequence_length
    short = sequences().take(5).apply(bucket(lambda x: tf.shape(x)[0], [4, 8], [2, 2, 1], pad_to_bucket_boundary=True))
    assert lists(in_graph(short)) == [[[1, 0, 0], [1, 2, 3]], [[1, 2, 0], [3, 3, 0]], [[4] * 5 + [0, 0]]]
    long = sequences().apply(bucket(lambda x: tf.shape(x)[0], [3, 6], [2, 2, 2], pad_to_bucket_boundary=True))
    with pytest.raises(tf.errors.InvalidArgumentError, match="elements must have length"):
        in_graph(long)
    with pytest.raises(ValueError, match="must equal len"):
        bucket(lambda x: x, [3], [2])


def test_elements_of_one_shape_are_not_padded() -> None:
    dataset = tf.data.Dataset.from_tensor_slices(np.arange(8).reshape(4, 2))
    bucketed = dataset.apply(
        tf.data.experimental.bucket_by_sequence_length(lambda x: tf.size(x), [5], [3, 1], no_padding=True)
    )
    assert lists(in_graph(bucketed)) == [[[0, 1], [2, 3], [4, 5]], [[6, 7]]]
