"""Assertions about ragged tensors; and other results that TensorFlow's own tests showed. Values of TensorFlow 1.15."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headwater import tf


def test_assertions_compare_ragged_tensors_by_element() -> None:
    case = tf.test.TestCase()
    ragged = tf.ragged.constant([[1.0, 2.0], [3.0]])
    with case.session() as session:
        case.assertAllEqual(ragged, [[1.0, 2.0], [3.0]])
        case.assertAllEqual([[1.0, 2.0], [3.0]], session.run(ragged))
        case.assertAllClose(ragged, [[1.0, 2.0 + 1e-7], [3.0]])
        with pytest.raises(AssertionError):
            case.assertAllEqual(ragged, [[1.0, 2.0], [4.0]])
        with pytest.raises(AssertionError):
            case.assertAllClose(ragged, [[1.0, 2.0], [4.0]])


@pytest.mark.parametrize(
    ("text", "encoding", "expected"),
    [
        (b"\xfe\xff\x00*", "UTF-16", b"*"),
        (b"\xff\xfe*\x00", "UTF-16", b"*"),
        (b"\x00*", "UTF-16", b"*"),
        (b"\x00<\xfe\xff\x00>", "UTF-16", b"<\xef\xbb\xbf>"),
        (b"\xff\xfe*\x00", "UTF-16-LE", b"\xef\xbb\xbf*"),
        (b"\x00\x00\x00a\x00\x00\x20\xac", "UTF-32", b"a\xe2\x82\xac"),
    ],
)
def test_the_order_of_bytes_follows_from_the_mark(text: bytes, encoding: str, expected: bytes) -> None:
    with tf.Session() as session:
        assert session.run(tf.strings.unicode_transcode(text, encoding, "UTF-8")) == expected


def test_offsets_count_the_mark() -> None:
    with tf.Session() as session:
        points, offsets = session.run(tf.strings.unicode_decode_with_offsets(b"\xff\xfea\x00b\x00", "UTF-16"))
    assert (points.tolist(), offsets.tolist()) == ([97, 98], [2, 4])


@pytest.mark.parametrize("shape", [[0, 6], None])
def test_a_size_beside_zero_follows_from_the_other_sizes(shape: list[int] | None) -> None:
    empty = tf.placeholder(tf.float32, shape)
    result = tf.reshape(empty, [0, -1, 3])
    assert result.shape.as_list() == [0, 2 if shape else None, 3]
    with tf.Session() as session:
        assert session.run(result, {empty: np.zeros([0, 6], np.float32)}).shape == (0, 2, 3)


def test_the_initial_value_is_read_from_the_checkpoint(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("old", initializer=[1.0, 2.0])
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, str(tmp_path / "model"))
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.get_variable("new", [2], initializer=tf.zeros_initializer())
        before = variable.initialized_value()
        tf.train.init_from_checkpoint(str(tmp_path / "model"), {"old": variable})
        after = variable.initialized_value()
        assert session.run([before, after])[0].tolist() == [0.0, 0.0]
        assert session.run(after).tolist() == [1.0, 2.0]
        session.run(tf.global_variables_initializer())
        assert session.run(before).tolist() == [1.0, 2.0]
