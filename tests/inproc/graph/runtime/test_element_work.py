"""Operations on a dataset's element run in the iterator's thread, with the same results and errors."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from headwater import tf
from headwater.data.batches import Batch
from headwater.data.node import Element
from headwater.data.prefetch import Prefetch
from headwater.data.sources import Range
from headwater.errors import InvalidArgumentError, OutOfRangeError
from headwater.graph.resources.iterators import IteratorState


def test_results_are_computed_by_the_thread_that_produces_the_elements() -> None:
    numbers = Range(start=np.int64(0), stop=np.int64(20), step=np.int64(1))
    batches = Batch(input=numbers, batch_size=np.int64(2), drop_remainder=np.bool_(False))
    state = IteratorState("test")
    state.start(Prefetch(input=batches, buffer_size=np.int64(2)), None)

    def prepare(element: Element) -> tuple[str, int]:
        return threading.current_thread().name, int(element[0].sum())

    elements, results = zip(*[state.next_prepared(None, prepare) for _ in range(10)], strict=True)
    # Three elements at most were produced before the second call: two in the buffer, and one that waits for room.
    assert results[:2] == (None, None)
    assert results[5:] == tuple(("headwater-data-ahead", int(element[0].sum())) for element in elements[5:])
    with pytest.raises(OutOfRangeError):
        state.next_prepared(None, prepare)


def test_steps_get_the_results_of_their_own_elements() -> None:
    rng = np.random.default_rng(1)
    ids = rng.integers(0, 50, (12, 8))
    with tf.Graph().as_default(), tf.Session() as session:
        (batch,) = tf.data.Dataset.from_tensor_slices((ids,)).batch(1).prefetch(2).make_one_shot_iterator().get_next()
        buckets = tf.strings.to_hash_bucket_fast(tf.as_string(batch), 10)
        distinct, _ = tf.unique(tf.reshape(buckets, [-1]))
        of_batch = tf.unique(batch[0]).y
        fed = tf.placeholder(tf.int64, [1, 8])
        expected = tf.strings.to_hash_bucket_fast(tf.as_string(fed), 10)
        for row in ids:
            found: Any = session.run([batch, buckets, distinct, of_batch])
            np.testing.assert_array_equal(found[0], row[None])
            np.testing.assert_array_equal(found[1], session.run(expected, {fed: row[None]}))
            np.testing.assert_array_equal(found[2], list(dict.fromkeys(found[1][0].tolist())))
            np.testing.assert_array_equal(found[3], list(dict.fromkeys(row.tolist())))
            found[1][...] = -1  # a program may change what it fetched
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(buckets)


def test_a_step_raises_the_error_of_its_element() -> None:
    texts = [b"1", b"2", b"3", b"4", b"five", b"6", b"7", b"8", b"9", b"ten", b"11"]
    with tf.Graph().as_default(), tf.Session() as session:
        text = tf.data.Dataset.from_tensor_slices(texts).batch(1).prefetch(1).make_one_shot_iterator().get_next()
        number = tf.strings.to_number(text, name="number")
        for each in texts:
            if each.isdigit():
                assert session.run(number) == [float(each)]
            else:
                with pytest.raises(InvalidArgumentError, match="number"):
                    session.run(number)


def test_two_programs_on_one_iterator_each_get_their_results() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        number = tf.data.Dataset.range(40).batch(1).prefetch(1).make_one_shot_iterator().get_next()
        text = tf.as_string(number)
        bucket = tf.strings.to_hash_bucket_fast(text, 1000)
        expected = dict(enumerate(session.run(tf.strings.to_hash_bucket_fast([str(n) for n in range(40)], 1000))))
        for turn in range(0, 40, 4):
            assert [session.run(text) for _ in range(3)] == [[str(turn + n).encode()] for n in range(3)]
            assert session.run(bucket) == [expected[turn + 3]]
