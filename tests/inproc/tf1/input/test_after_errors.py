"""Elements after one that fails: an iterator raises the error, and continues with the next call.

The expected results are those of TensorFlow 1.15 and 2.21, which agree, except where noted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater import errors, tf
from headwater.tf2.namespace import tf as tf2

D: Any = tf.data.Dataset
X: Any = tf.data.experimental
E = "InvalidArgumentError"


def failing(*numbers: int) -> Callable[[Any], Any]:
    """Returns a function that fails for ``numbers``."""

    def function(x: Any) -> Any:
        valid = tf.reduce_all(tf.not_equal(x, tf.constant(list(numbers), tf.int64)))
        with tf.control_dependencies([tf.Assert(valid, [x])]):
            return tf.identity(x)

    return function


def failing_python(*numbers: int) -> Callable[[Any], Any]:
    """Returns a function that calls Python, and fails for ``numbers``."""

    def check(x: int) -> int:
        if x in numbers:
            raise ValueError(x)
        return x

    def function(x: Any) -> Any:
        found = tf.py_func(check, [x], tf.int64)
        found.set_shape([])
        return found

    return function


def source(count: int = 10, *numbers: int) -> Any:
    return D.range(count).map(failing(*(numbers or (3, 4))))


def tens(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns a function that returns four elements from ten times its argument on, which pass through ``function``."""
    return lambda number: D.range(4).map(function).map(lambda x: x + 10 * number)


def odd(x: Any) -> Any:
    return tf.equal(failing(5)(x) % 2, 1)


def sums(state: Any, x: Any) -> Any:
    return state + x, state + x


def failing_sums(state: Any, x: Any) -> Any:
    return sums(state, failing(3)(x))


def generated() -> Iterator[int]:
    yield from range(3)
    raise ValueError("generator")


ZERO = np.int64(0)

PIPELINES: dict[str, tuple[Callable[[], Any], list[Any]]] = {
    "map": (source, [0, 1, 2, E, E, 5, 6, 7, 8, 9]),
    "first_and_last": (lambda: source(4, 0, 3), [E, 1, 2, E]),
    "python": (lambda: D.range(6).map(failing_python(2, 3)), [0, 1, E, E, 4, 5]),
    "parallel": (lambda: D.range(6).map(failing(2, 3), 3), [0, 1, E, E, 4, 5]),
    "parallel_python": (lambda: D.range(6).map(failing_python(2, 3), 3), [0, 1, E, E, 4, 5]),
    "two_maps": (lambda: source().map(failing(7)), [0, 1, 2, E, E, 5, 6, E, 8, 9]),
    # TensorFlow joins map and batch, so that a failure counts as an element of its batch.
    "batch": (lambda: source().batch(4), [E, E, [8, 9]]),
    "batch_without_remainder": (lambda: source().batch(4, drop_remainder=True), [E, E]),
    "batch_that_ends_with_a_failure": (lambda: source(6, 5).batch(4), [[0, 1, 2, 3], E]),
    "map_and_batch": (lambda: D.range(10).apply(X.map_and_batch(failing(3, 4), 4)), [E, E, [8, 9]]),
    "batches_ahead": (lambda: source().batch(3).prefetch(1), [[0, 1, 2], E, [6, 7, 8], [9]]),
    "padded_batch": (lambda: source().padded_batch(4, []), [E, E, [5, 6, 7, 8], [9]]),
    "shapes_in_batch": (
        lambda: D.range(8).map(lambda x: tf.fill([1 + tf.cast(tf.equal(x, 3), tf.int32)], x)).batch(2),
        [[[0], [1]], E, [[4], [5]], [[6], [7]]],
    ),
    "filter": (lambda: D.range(10).filter(odd), [1, 3, E, 7, 9]),
    "filter_above": (lambda: source().filter(lambda x: tf.equal(x % 2, 0)), [0, 2, E, E, 6, 8]),
    "take": (lambda: source().take(5), [0, 1, 2, E, E, 5, 6]),
    "take_before": (lambda: source().take(3), [0, 1, 2]),
    "skip": (lambda: source().skip(2), [2, E, E, 5, 6, 7, 8, 9]),
    "skip_beyond": (lambda: source().skip(4), [E, E, 6, 7, 8, 9]),  # 2.21 counts from 0 again
    "shard": (lambda: source().shard(2, 0), [0, 2, E, E, 6, 8]),
    "repeat": (lambda: source(5).repeat(2), [0, 1, 2, E, E] * 2),
    "repeated_failures": (lambda: source(2, 0, 1).repeat(2), [E] * 4),
    "only_failures": (lambda: source(2, 0, 1).repeat().take(2), [E, E]),  # 1.15 never ends
    "shuffle_all": (lambda: source(4, 1, 2, 3).shuffle(4), [E, E, E, 0]),
    "cache": (lambda: source(6).cache().repeat(2), [0, 1, 2, E, E, 5, 0, 1, 2, 5]),
    "concatenate": (lambda: source(5).concatenate(source(3, 0)), [0, 1, 2, E, E, E, 1, 2]),
    "zip": (lambda: D.zip((D.range(10, 14), source(4, 2))), [[10, 0], [11, 1], E, [13, 3]]),
    "zip_first": (lambda: D.zip((source(4, 2), D.range(10, 14))), [[0, 10], [1, 11], E, [3, 12]]),
    "prefetch": (lambda: source().prefetch(2), [0, 1, 2, E, E, 5, 6, 7, 8, 9]),
    "flat_map": (lambda: D.range(2).flat_map(tens(failing(2))), [0, 1, E, 3, 10, 11, E, 13]),
    "failing_flat_map": (
        lambda: D.range(4).flat_map(lambda x: D.from_tensors(failing(1, 2)(x)).repeat(2)),
        [0, 0, E, E, 3, 3],
    ),
    "interleave": (
        lambda: D.range(2).interleave(tens(failing(1)), cycle_length=2, block_length=2),
        [0, E, 2, 10, E, 12, 3, 13],
    ),
    "parallel_interleave": (
        lambda: D.range(2).interleave(tens(failing(1)), cycle_length=2, block_length=2, num_parallel_calls=2),
        [0, E, 10, E, 2, 3, 12, 13],
    ),
    "failing_interleave": (  # 1.15 ends after three errors
        lambda: D.range(4).interleave(lambda x: D.from_tensors(failing(1, 2)(x)).repeat(2), cycle_length=2),
        [0, E, E, 3, 0, 3],
    ),
    "window": (lambda: source().window(3).flat_map(lambda x: x.batch(3)), [[0, 1, 2], E, [6, 7, 8], [9]]),
    "overlapping_windows": (
        lambda: source(7).window(3, shift=1).flat_map(lambda x: x.batch(3)),
        [[0, 1, 2], E, E, E, E, [5, 6], [6]],
    ),
    "unbatch": (
        lambda: D.range(8).batch(2).map(lambda x: failing(2)(x[0]) * 0 + x).apply(X.unbatch()),
        [0, 1, E, 4, 5, 6, 7],
    ),
    "unbatch_of_different_sizes": (
        lambda: D.range(3).map(lambda x: (tf.fill([x], x), tf.fill([2], x))).apply(X.unbatch()),
        [E, E, [2, 2], [2, 2]],
    ),
    "scan": (lambda: source(7).apply(X.scan(ZERO, sums)), [0, 1, 3, E, E, 8, 14]),
    "failing_scan": (lambda: D.range(6).apply(X.scan(ZERO, failing_sums)), [0, 1, 3, E, 7, 12]),
    "take_while": (lambda: source().apply(X.take_while(lambda x: x < 7)), [0, 1, 2, E, E, 5, 6]),
    "failing_take_while": (lambda: D.range(7).apply(X.take_while(lambda x: odd(x) | True)), [0, 1, 2, 3, 4, E, 6]),
    "enumerate": (lambda: source(6).apply(X.enumerate_dataset()), [[0, 0], [1, 1], [2, 2], E, E, [5, 5]]),
    "unique": (lambda: source().map(lambda x: x // 2).apply(X.unique()), [0, 1, E, E, 2, 3, 4]),
    "generator": (lambda: D.from_generator(generated, tf.int64, []), [0, 1, 2, E]),
    "groups": (
        lambda: source().apply(X.group_by_window(lambda x: x % 2, lambda key, x: x.batch(2), 2)),
        [[0, 2], E, E, [1, 5], [6, 8], [7, 9]],
    ),
    "choose": (
        lambda: X.choose_from_datasets([source(4, 1), D.range(10, 14)], D.range(2).repeat(4)),
        [0, 10, E, 11, 2, 12, 3, 13],
    ),
    "ignore": (lambda: source().apply(X.ignore_errors()), [0, 1, 2, 5, 6, 7, 8, 9]),
    "ignored_batches": (lambda: source().batch(3).apply(X.ignore_errors()), [[0, 1, 2], [6, 7, 8], [9]]),
    "numbers": (lambda: D.from_tensor_slices(["1", "x", "3"]).map(tf.string_to_number), [1, E, 3]),
    "batches_of_numbers": (
        lambda: D.from_tensor_slices(["1", "x", "3", "4"]).batch(2).map(tf.string_to_number),
        [E, [3, 4]],
    ),
}


def results(dataset: Any) -> list[Any]:
    """Returns the elements of a dataset, with the names of errors in their places, up to the end."""
    element = tf.data.make_one_shot_iterator(dataset).get_next()
    found: list[Any] = []
    with tf.Session() as session:
        while True:
            try:
                value = session.run(element)
                found.append(np.array(value).tolist())
            except errors.OutOfRangeError:
                return found
            except errors.OpError as error:
                found.append(type(error).__name__)


@pytest.mark.parametrize("name", PIPELINES)
def test_an_iterator_continues_after_an_error(name: str) -> None:
    make, expected = PIPELINES[name]
    assert results(make()) == expected


def test_all_elements_fail() -> None:
    element = tf.data.make_one_shot_iterator(D.range(1).repeat().map(failing(0))).get_next()
    with tf.Session() as session:
        for _ in range(3):
            with pytest.raises(errors.InvalidArgumentError):
                session.run(element)


def test_files_after_an_unreadable_one(tmp_path: Path) -> None:
    """TensorFlow raises the error of a missing file again and again; here, the next file follows."""
    paths = [str(tmp_path / name) for name in ("bad", "good")]
    for path in paths:
        with tf.python_io.TFRecordWriter(path) as writer:
            for number in range(4):
                writer.write(b"%d" % number)
    damaged = bytearray(Path(paths[0]).read_bytes())
    damaged[17 * 2 + 12] ^= 255
    Path(paths[0]).write_bytes(damaged)
    records = tf.data.TFRecordDataset(paths)
    whole = [b"0", b"1", b"2", b"3"]
    assert results(records) == [b"0", b"1", "DataLossError", *whole]
    assert results(records.batch(2)) == [[b"0", b"1"], "DataLossError", [b"0", b"1"], [b"2", b"3"]]
    together = D.from_tensor_slices(paths).interleave(tf.data.TFRecordDataset, cycle_length=2)
    assert results(together) == [b"0", b"0", b"1", b"1", "DataLossError", b"2", b"3"]
    (tmp_path / "lines").write_text("1\n2\nx\n4\n")
    (tmp_path / "more").write_text("5\n")
    names = [str(tmp_path / name) for name in ("lines", "more")]
    assert results(X.CsvDataset(names, [tf.float32])) == [[1], [2], E, [4], [5]]
    assert results(tf.data.TextLineDataset([str(tmp_path / "missing"), names[1]])) == ["NotFoundError", b"5"]


def following(iterator: Iterator[Any]) -> list[Any]:
    """Returns the rest of an iterator of TensorFlow 2, with the names of errors in their places."""
    found: list[Any] = []
    while True:
        try:
            found.append(np.array(next(iterator)).tolist())
        except (StopIteration, errors.OutOfRangeError):
            return found
        except errors.OpError as error:
            found.append(type(error).__name__)


def test_iterators_of_tensorflow_2() -> None:
    def checked(x: Any) -> Any:
        tf2.debugging.assert_none_equal(x, tf2.constant(1, tf2.int64))
        return x

    def python(x: Any) -> Any:
        return tf2.py_function(lambda value: 1 // (1 - int(value) % 2), [x], tf2.int64)

    numbers: Any = tf2.data.Dataset.range(4)
    assert following(iter(numbers.map(checked))) == [0, E, 2, 3]
    assert following(numbers.map(checked).as_numpy_iterator()) == [0, E, 2, 3]
    assert following(iter(numbers.map(checked).batch(2))) == [E, [2, 3]]
    assert following(iter(numbers.map(python))) == [1, "UnknownError", 1, "UnknownError"]
    assert following(iter(tf2.data.Dataset.zip((numbers.map(checked), numbers)))) == [[0, 0], E, [2, 2], [3, 3]]
    iterator = iter(numbers.map(checked))
    doubled = tf2.function(lambda: next(iterator) * 2)
    assert following(iter(doubled, None)) == [0, E, 4, 6]
