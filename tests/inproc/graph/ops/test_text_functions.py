"""Text functions in a dataset's map: straight-line Python code, compared with the same operations in a graph."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from headwater import tf


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as graph:
        yield graph


def _decode(line: Any) -> tuple[Any, ...]:
    columns = tf.string_split([line], " ")
    label = tf.string_to_number(columns.values[0], tf.float32)
    pairs = tf.string_split(columns.values[1:], ":")
    ids, values = tf.split(tf.reshape(pairs.values, pairs.dense_shape), 2, axis=1)
    return tf.string_to_number(ids, tf.int32), tf.string_to_number(values, tf.float32), label


def _elements(lines: list[str], calls: int | None) -> list[Any]:
    dataset = tf.data.Dataset.from_tensor_slices(lines).map(_decode, num_parallel_calls=calls)
    element = dataset.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        return [session.run(element) for _ in lines]


@pytest.mark.parametrize("calls", [None, 4])
def test_lines_are_parsed(calls: int | None) -> None:
    first, second = _elements(["1 3:0.5 17:2", "0 4:1e3"], calls)
    np.testing.assert_array_equal(first[0], np.array([[3], [17]], np.int32))
    np.testing.assert_array_equal(first[1], np.array([[0.5], [2]], np.float32))
    assert (first[2], second[2]) == (1, 0)
    np.testing.assert_array_equal(second[0], [[4]])
    assert second[1].dtype == np.float32


def test_an_error_names_the_operation_and_the_element() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"convert string: x \[in StringToNumber operation 'map/"):
        _elements(["1 3:x"], None)


def test_functions_of_text_are_called_in_one_thread() -> None:
    seen: set[str] = set()

    def note(line: bytes) -> bytes:
        seen.add(threading.current_thread().name.rpartition("_")[0])
        return line

    def noted(line: Any) -> Any:
        return tf.py_func(note, [line], tf.string)

    dataset = tf.data.Dataset.from_tensor_slices(["1 2:3"] * 4)
    element = dataset.map(noted, 2).map(_decode, 2).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        session.run(element)
    assert seen == {"headwater-data-map"}  # operations that may wait still have threads


@pytest.mark.parametrize(
    ("texts", "delimiter", "skip_empty", "indices", "values", "shape"),
    [  # TensorFlow 1.15's result
        ([""], " ", True, [], [], [1, 0]),
        ([""], " ", False, [], [], [1, 0]),
        ([" "], " ", False, [[0, 0], [0, 1]], [b"", b""], [1, 2]),
        (["a  b", " c "], " ", True, [[0, 0], [0, 1], [1, 0]], [b"a", b"b", b"c"], [2, 2]),
        (["a:b;c", "d"], ":;", True, [[0, 0], [0, 1], [0, 2], [1, 0]], [b"a", b"b", b"c", b"d"], [2, 3]),
        (["a b", "", "c"], " ", True, [[0, 0], [0, 1], [2, 0]], [b"a", b"b", b"c"], [3, 2]),
        (["ab", ""], "", True, [[0, 0], [0, 1]], [b"a", b"b"], [2, 2]),
        ([], " ", True, [], [], [0, 0]),
    ],
)
def test_texts_are_split(
    texts: list[str], delimiter: str, skip_empty: bool, indices: Any, values: Any, shape: Any
) -> None:
    with tf.Session() as session:
        given = tf.constant(texts, tf.string, [len(texts)])
        found = session.run(tf.string_split(given, delimiter, skip_empty=skip_empty))
    assert found.indices.tolist() == indices
    assert found.values.tolist() == values
    assert found.dense_shape.tolist() == shape


@pytest.mark.parametrize(
    ("text", "dtype"),
    [("1_0", tf.float32), ("99999999999", tf.int32), ("+5", tf.int32), ("infinity", tf.float32), ("", tf.float32)],
)
def test_error_names_the_text_that_is_not_a_number(text: str, dtype: Any) -> None:
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="correctly convert string: "):
        session.run(tf.string_to_number(tf.constant(["7", text]), dtype))
