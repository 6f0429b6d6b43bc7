"""Steps that add elements to a queue and take elements of the same queue, in the order of TensorFlow 1.15's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from headwater import tf
from tests.inproc.conftest import StartCluster

_WITHOUT_WAITS = tf.ConfigProto(operation_timeout_in_ms=20_000)


def _fifo(capacity: int) -> Any:
    return tf.FIFOQueue(capacity, [tf.int32], [()])


@pytest.mark.parametrize("place", ["local", "/job:ps/task:0", "/job:worker/task:0"])
@pytest.mark.parametrize(
    ("queue_of", "take_of", "put_of", "filled", "taken", "left"),
    [
        (lambda: _fifo(5), lambda q: q.dequeue(), lambda q, x: q.enqueue(x), [], [1, 2, 3], 0),
        (lambda: _fifo(2), lambda q: q.dequeue(), lambda q, x: q.enqueue(x), [10, 20], [10, 20, 1], 2),
        (
            lambda: _fifo(2),
            lambda q: q.dequeue_many(3),
            lambda q, x: q.enqueue_many([tf.range(3) + x]),
            [],
            [[1, 2, 3], [2, 3, 4], [3, 4, 5]],
            0,
        ),
        (
            lambda: _fifo(3),
            lambda q: q.dequeue_many(3),
            lambda q, x: q.enqueue_many([tf.range(3) + x]),
            [10, 20, 30],
            [[10, 20, 30], [1, 2, 3], [2, 3, 4]],
            3,
        ),
        (
            lambda: tf.PriorityQueue(1, [tf.int32], [()]),
            lambda q: q.dequeue()[1],
            lambda q, x: q.enqueue((tf.cast(x, tf.int64), x)),
            [],
            [1, 2, 3],
            0,
        ),
    ],
    ids=["empty", "full", "larger than the capacity", "full, many", "computed element"],
)
def test_a_step_takes_what_it_adds_if_the_queue_is_empty_and_makes_room_if_it_is_full(
    start_cluster: StartCluster,
    place: str,
    queue_of: Callable[[], Any],
    take_of: Callable[[Any], Any],
    put_of: Callable[[Any, Any], Any],
    filled: list[int],
    taken: list[Any],
    left: int,
) -> None:
    target = "" if place == "local" else start_cluster(ps=1, worker=1).targets["worker:0"]
    with tf.Graph().as_default(), tf.device(None if place == "local" else place):
        x = tf.placeholder(tf.int32, [])
        queue = queue_of()
        take, size = take_of(queue), queue.size()
        put = put_of(queue, x)
        with tf.Session(target, config=_WITHOUT_WAITS) as session:
            for value in filled:
                session.run(queue.enqueue(value))
            assert [session.run([take, put], {x: value})[0].tolist() for value in (1, 2, 3)] == taken
            assert session.run(size) == left


def test_an_ordered_addition_waits_for_room() -> None:
    with tf.Graph().as_default():
        queue = _fifo(1)
        put = queue.enqueue(8)
        with tf.control_dependencies([put]):
            take = queue.dequeue()
        with tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=100)) as session:
            session.run(queue.enqueue(7))
            with pytest.raises(tf.errors.DeadlineExceededError, match="room in FIFOQueue"):
                session.run(take)
            assert session.run(queue.size()) == 1


def test_elements_circulate_in_two_queues_within_a_step() -> None:
    with tf.Graph().as_default():
        first, second = _fifo(1), _fifo(1)
        to_second = second.enqueue(first.dequeue() + 1)
        to_first = first.enqueue(second.dequeue() + 1)
        with tf.Session(config=_WITHOUT_WAITS) as session:
            session.run(first.enqueue(0))
            for _ in range(3):
                session.run([to_second, to_first])
            assert session.run(first.dequeue()) == 6


def test_a_staging_area_of_one_element_is_read_and_filled_in_a_step() -> None:
    with tf.Graph().as_default(), tf.Session(config=_WITHOUT_WAITS) as session:
        area = tf.contrib.staging.StagingArea([tf.int32], [()], capacity=1)
        x = tf.placeholder(tf.int32, [])
        get, put = area.get(), area.put([x])
        assert np.ravel([session.run([get, put], {x: value})[0] for value in range(3)]).tolist() == [0, 1, 2]
        session.run(put, {x: 100})
        assert np.ravel([session.run([get, put], {x: value})[0] for value in range(3)]).tolist() == [100, 0, 1]
