"""Errors of datasets: invalid sizes, and exceptions of Python functions. All results are TensorFlow 1.15's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater.tf1.compat import tf

D: Any = tf.data.Dataset
X: Any = tf.data.experimental
E = tf.errors


def _results(make: Callable[[], Any], count: int = 3) -> list[Any]:
    """Returns the values of ``count`` elements, or the names of the errors that they raise."""
    with tf.Graph().as_default(), tf.Session() as session:
        iterator = tf.data.make_initializable_iterator(make())
        following = iterator.get_next()
        try:
            session.run(iterator.initializer)
        except E.OpError as error:
            return ["start", type(error).__name__]
        found: list[Any] = []
        for _ in range(count):
            try:
                found.append(np.asarray(session.run(following)).tolist())
            except E.OpError as error:
                found.append(type(error).__name__)
        return found


def _one(x: Any) -> Any:
    return D.from_tensors(x)


@pytest.mark.parametrize("size", [0, -2])
@pytest.mark.parametrize(
    "make",
    [
        lambda d, n: d.shuffle(n),
        lambda d, n: d.apply(X.shuffle_and_repeat(n, 2)),
        lambda d, n: d.batch(n),
        lambda d, n: d.padded_batch(n, []),
        lambda d, n: d.window(n).flat_map(lambda x: x),
        lambda d, n: d.window(2, n).flat_map(lambda x: x),
        lambda d, n: d.window(2, 1, n).flat_map(lambda x: x),
        lambda d, n: d.map(lambda x: x, n),
        lambda d, n: d.interleave(_one, n),
        lambda d, n: d.interleave(_one, 1, n),
        lambda d, n: d.interleave(_one, 1, 1, n),
        lambda d, n: d.apply(X.parallel_interleave(_one, n)),
        lambda d, n: d.apply(X.parallel_interleave(_one, 1, n)),
        lambda d, n: d.apply(X.map_and_batch(lambda x: x, n)),
        lambda d, n: d.apply(X.map_and_batch(lambda x: x, 2, num_parallel_calls=n)),
        lambda d, n: d.map(lambda x: tf.fill([x], x)).apply(X.dense_to_sparse_batch(n, [5])),
        lambda d, n: X.CsvDataset("no file", [tf.int32], buffer_size=n),
        lambda d, n: d.prefetch(n - 2),
        lambda d, n: D.range(0, 3, n + 2 if n else 0),
    ],
)
def test_an_iterator_does_not_start_with_an_invalid_size(make: Callable[..., Any], size: int) -> None:
    assert _results(lambda: make(D.range(3), size)) == ["start", "InvalidArgumentError"]


@pytest.mark.parametrize("kind", ["TFRecordDataset", "TextLineDataset", "FixedLengthRecordDataset"])
def test_sizes_of_file_datasets(kind: str, tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    with tf.python_io.TFRecordWriter(path) as writer:
        writer.write(b"\n\n\n\n")
    length = (tmp_path / "file").stat().st_size
    make = getattr(tf.data, kind)
    more = (length,) if kind.startswith("Fixed") else ()
    assert _results(lambda: make(path, *more, buffer_size=-1), 1) == ["InvalidArgumentError"]
    assert type(_results(lambda: make(path, *more, buffer_size=0), 1)[0]) is bytes
    if more:
        for sizes in ({"header_bytes": -1}, {"footer_bytes": -1}):
            assert _results(lambda given=sizes: make(path, length, **given), 1) == ["InvalidArgumentError"]
        assert _results(lambda: make(path, 0), 1) == ["InvalidArgumentError"]


def _stop_at_one(x: int) -> Any:
    if x == 1:
        raise StopIteration("mine")
    return np.int64(x)


def _called(x: Any) -> Any:
    found = tf.py_func(_stop_at_one, [x], tf.int64)
    found.set_shape([])
    return found


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda d: d.map(_called), [0, "OutOfRangeError"]),
        (lambda d: d.map(_called, 2), [0, "OutOfRangeError"]),
        (lambda d: d.map(_called).prefetch(1), [0, "OutOfRangeError"]),
        (lambda d: d.map(_called).batch(2), [[0]]),
        (lambda d: d.map(_called).concatenate(D.range(5, 6)), [0, 5, "OutOfRangeError"]),
        (lambda d: d.map(_called).apply(X.ignore_errors()), [0, "OutOfRangeError", "OutOfRangeError"]),
        (lambda d: d.apply(X.map_and_batch(_called, 2)), ["InvalidArgumentError"]),
        (lambda d: d.apply(X.map_and_batch(_called, 1)), [[0], "InvalidArgumentError"]),
        (lambda d: d.filter(lambda x: _called(x) >= 0), [0, "InternalError"]),
        (lambda d: d.flat_map(lambda x: D.from_tensors(_called(x))), [0, "InternalError"]),
        (lambda d: d.interleave(lambda x: D.from_tensors(_called(x)), 2), [0, "InternalError"]),
        (lambda d: d.apply(X.take_while(lambda x: _called(x) >= 0)), [0, "InternalError"]),
        (lambda d: d.apply(X.scan(np.int64(0), lambda s, x: (s, _called(x)))), [0, "InvalidArgumentError"]),
    ],
)
def test_stop_iteration_in_a_function(make: Callable[[Any], Any], expected: list[Any]) -> None:
    assert _results(lambda: make(D.range(3)), len(expected)) == expected


def test_stop_iteration_in_a_step() -> None:
    with tf.Graph().as_default(), tf.Session() as session, pytest.raises(E.OutOfRangeError, match="mine"):
        session.run(_called(tf.constant(1, tf.int64)))


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (StopIteration("mine"), "UnknownError"),
        (KeyError("mine"), "UnknownError"),
        (AssertionError("mine"), "UnknownError"),
        (OSError("mine"), "UnknownError"),
        (ValueError("mine"), "InvalidArgumentError"),
        (TypeError("mine"), "InvalidArgumentError"),
        (MemoryError("mine"), "ResourceExhaustedError"),
        (NotImplementedError("mine"), "UnimplementedError"),
        (E.UnavailableError(None, None, "mine"), "UnknownError"),
        (E.OutOfRangeError(None, None, "mine"), "UnknownError"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_exceptions_of_a_generator(raised: Exception, expected: str) -> None:
    def generator() -> Iterator[int]:
        yield 0
        raise raised

    assert _results(lambda: D.from_generator(generator, tf.int64, [])) == [0, expected, "OutOfRangeError"]
    batches = _results(lambda: D.from_generator(generator, tf.int64, []).batch(2))
    assert batches == [expected, "OutOfRangeError", "OutOfRangeError"]
