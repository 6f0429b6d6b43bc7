"""Errors of assertions and text functions that the graph raises while it is built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from headwater import tf

NO_SHAPE: Any = 2
ERRORS: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: tf.assert_negative([0]), tf.errors.InvalidArgumentError, "x < 0 did not hold"),
    (lambda: tf.assert_positive([0]), tf.errors.InvalidArgumentError, "x > 0 did not hold"),
    (lambda: tf.assert_less([1], [0], data=["mine"]), tf.errors.InvalidArgumentError, "mine"),
    (lambda: tf.assert_less([0, 1], [1, 2, 3]), ValueError, "Dimensions must be equal, but are 2 and 3"),
    (lambda: tf.assert_rank([0], np.array([1])), ValueError, "Rank must be a scalar"),
    (lambda: tf.assert_rank([0], 0.5), TypeError, "must be of type"),
    (lambda: tf.assert_rank_in([0], (1, tf.constant(0.5))), TypeError, "must be of type"),
    (lambda: tf.debugging.assert_proper_iterable(3), TypeError, "to be iterable"),
    (lambda: tf.debugging.assert_shapes([([1, 2], (3,))]), ValueError, "must have size 3"),
    (lambda: tf.debugging.assert_shapes([([1, 2], NO_SHAPE)]), ValueError, "Specified shape must be an iterable"),
    (lambda: tf.strings.substr("test", 3, 1, unit="UTF8"), ValueError, 'not in: "BYTE"'),
    (lambda: tf.strings.length("test", unit="UTF8"), ValueError, 'not in: "BYTE"'),
    (lambda: tf.strings.substr(["a"] * 3, [0] * 4, [1] * 4), ValueError, "3 and 4"),
    (lambda: tf.strings.substr(["a"] * 3, 0, [1] * 3), ValueError, "ranks differ"),
    (lambda: tf.signal.frame(1, 1, 1), ValueError, "rank"),
]


@pytest.mark.parametrize(("build", "error", "message"), ERRORS)
def test_errors_of_building(build: Callable[[], object], error: type[Exception], message: str) -> None:
    with tf.Graph().as_default(), pytest.raises(error, match=message):
        build()


def test_a_rank_may_be_computed() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        rank = tf.placeholder_with_default(1, [])
        check = tf.assert_rank([0], rank)
        session.run(check)
        with pytest.raises(tf.errors.InvalidArgumentError, match="must have rank"):
            session.run(check, {rank: 2})


def test_raw_bytes_of_complex_numbers_and_of_nothing() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        value = np.array([1 + 2j, 3], np.complex64)
        assert session.run(tf.decode_raw(value.tobytes(), tf.complex64)).tolist() == value.tolist()
        assert session.run(tf.decode_raw(["", ""], tf.int32)).shape == (2, 0)


def test_a_transposed_vector_has_an_unknown_rank_if_its_input_has() -> None:
    with tf.Graph().as_default():
        assert tf.transpose(tf.placeholder(tf.int32), [0]).shape.ndims is None
        assert tf.transpose(tf.placeholder(tf.int32), [1, 0]).shape.ndims == 2
