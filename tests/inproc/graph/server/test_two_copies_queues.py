"""Backups of queues, accumulators and lookup tables: nothing is lost or repeated when a ``ps`` is killed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from headwater import tf
from headwater.errors import (
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    OpError,
    OutOfRangeError,
)
from headwater.tf1.training.supervised_session import SupervisedSession
from tests.support.copied_cluster import CopiedCluster, copied_cluster
from tests.support.cuts import Cuts

FRAMES = 100
"""Frames of all operations below, in their order."""


@dataclass
class Program:
    """Queues, an accumulator and tables on two ``ps``, and operations on them."""

    cluster: CopiedCluster
    session: tf.Session
    operations: Sequence[Any]

    def run(self) -> list[Any]:
        """Returns the result of each operation, in order."""
        return [self.session.run(one) for one in self.operations]


@contextmanager
def session(workers: int = 1) -> Generator[tuple[CopiedCluster, tf.Session]]:
    with (
        copied_cluster(workers, Cuts()) as cluster,
        tf.Graph().as_default(),
        SupervisedSession(cluster.target()) as one,
    ):
        yield cluster, one


def _on(ps: int) -> Any:
    return tf.device(f"/job:ps/task:{ps}")


@contextmanager
def program() -> Generator[Program]:
    with session() as (cluster, one):
        with _on(0):
            queue = tf.FIFOQueue(8, [tf.int64, tf.string], [(), ()], shared_name="queue")
            shuffled = tf.RandomShuffleQueue(8, 1, [tf.int64], [()], seed=3, shared_name="shuffled")
            sums = tf.ConditionalAccumulator(tf.float32, [2], "sums")
        with _on(1):
            first = tf.PriorityQueue(8, [tf.string], [()], shared_name="first")
            table = tf.contrib.lookup.MutableHashTable(tf.string, tf.int64, -1, shared_name="table")
            pairs: Any = tf.contrib.lookup.KeyValueTensorInitializer(
                tf.constant([1, 2], tf.int64), tf.constant(["a", "b"])
            )
            fixed = tf.contrib.lookup.HashTable(pairs, "?")
        gradients = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])
        operations = [
            [queue.enqueue_many(([1, 2, 3, 4], ["a", "b", "c", "d"])), first.enqueue_many(([2, 1], ["late", "soon"]))],
            [shuffled.enqueue_many([[1, 2, 3, 4, 5]]), table.insert(tf.constant(["x", "y"]), np.array([1, 2]))],
            queue.dequeue(),
            [
                shuffled.dequeue_many(3),
                table.insert(tf.constant(["x"]), np.array([7])),
                sums.apply_grad(gradients[0]),
            ],
            [sums.apply_grad(gradients[1]), first.dequeue(), fixed.lookup(tf.constant([2, 3], tf.int64))],
            [queue.dequeue_many(2), sums.take_grad(2)],
            [table.lookup(tf.constant(["x", "y", "z"])), first.dequeue(), queue.size(), shuffled.dequeue()],
        ]
        one.run([fixed.init, queue.size(), shuffled.size(), first.size(), table.size(), sums.num_accumulated()])
        cluster.paired()
        yield Program(cluster, one, operations)


@pytest.fixture(scope="module")
def reference() -> list[Any]:
    with program() as undisturbed:
        undisturbed.cluster.cuts.plan()
        return undisturbed.run()


def _flat(values: Any) -> list[Any]:
    several: Sequence[Any] | None = values if isinstance(values, list | tuple) else None
    return [values] if several is None else [leaf for value in several for leaf in _flat(value)]


def _check(found: list[Any], expected: list[Any]) -> None:
    for value, other in zip(_flat(found), _flat(expected), strict=True):
        np.testing.assert_array_equal(value, other)


def test_results_of_queues_equal_the_reference(reference: list[Any]) -> None:
    assert reference[2] == [1, b"a"]
    assert _flat(reference[4])[1:3] == [1, b"soon"]
    np.testing.assert_array_equal(reference[4][-1], [b"b", b"?"])
    np.testing.assert_array_equal(reference[5][0][0], [2, 3])
    np.testing.assert_array_equal(reference[5][1], [2.0, 3.0])
    np.testing.assert_array_equal(reference[6][0], [7, 2, -1])


def test_how_many_frames_there_are() -> None:
    with program() as found:
        found.cluster.cuts.plan()
        found.run()
        assert found.cluster.cuts.frames == FRAMES


def test_each_ps_in_turn(reference: list[Any]) -> None:
    with program() as found:
        given: list[Any] = []
        for number, operation in enumerate(found.operations):
            found.cluster.kill(number % 2)
            given.append(found.session.run(operation))
            found.cluster.start(number % 2)
            found.cluster.paired()
        _check(given, reference)


@pytest.mark.slow
@pytest.mark.parametrize("ps", [0, 1])
@pytest.mark.parametrize("frame", range(FRAMES))
def test_a_ps_dies_at_every_frame(reference: list[Any], frame: int, ps: int) -> None:
    with program() as found:
        found.cluster.cuts.on_cut = lambda: found.cluster.kill(ps)
        found.cluster.cuts.plan(before=[frame])
        _check(found.run(), reference)


# Steps that wait ------------------------------------------------------------------------------------------------------


class Waiting:
    """A step in its own thread, which waits on a ``ps``."""

    def __init__(self, cluster: CopiedCluster, one: tf.Session, operation: Any, task: int = 0) -> None:
        self.given: Any = None
        self.error: OpError | None = None
        self._thread = threading.Thread(target=self._run, args=(one, operation))
        self._thread.start()
        self.wait(cluster, task)

    def _run(self, one: tf.Session, operation: Any) -> None:
        try:
            self.given = one.run(operation)
        except OpError as error:
            self.error = error

    @staticmethod
    def wait(cluster: CopiedCluster, task: int = 0) -> None:
        """Returns once a step waits on the primary of a task."""
        looks = threading.Event()
        while not cluster.primary(task).runtime.waits():
            looks.wait(0.01)

    def end(self) -> Any:
        self._thread.join()
        if self.error is not None:
            raise self.error
        return self.given


def test_a_step_that_waits_for_an_element_waits_on_the_other_copy() -> None:
    with session() as (cluster, one):
        with _on(0):
            queue = tf.FIFOQueue(3, [tf.int64], [()], shared_name="queue")
            dequeued, enqueued, size = queue.dequeue(), queue.enqueue(np.int64(5)), queue.size()
        one.run(size)
        cluster.paired()
        waiting = Waiting(cluster, one, dequeued)
        cluster.kill(0)
        waiting.wait(cluster)
        one.run(enqueued)
        assert waiting.end() == 5
        assert one.run(size) == 0


def test_a_batch_that_has_entered_in_part_enters_once() -> None:
    with session() as (cluster, one):
        with _on(0):
            queue = tf.FIFOQueue(3, [tf.int64], [()], shared_name="queue")
            enqueued, dequeued, size = queue.enqueue_many([np.arange(8)]), queue.dequeue(), queue.size()
        one.run(size)
        cluster.paired()
        waiting = Waiting(cluster, one, enqueued)
        found = [one.run(dequeued)]
        waiting.wait(cluster)
        cluster.kill(0)
        waiting.wait(cluster)
        found += [one.run(dequeued) for _ in range(7)]
        waiting.end()
        assert found == list(range(8))
        assert one.run(size) == 0


def test_closing_a_queue_ends_waits_on_the_backup() -> None:
    with session() as (cluster, one):
        with _on(0):
            full = tf.FIFOQueue(1, [tf.int64], [()], shared_name="full")
            empty = tf.FIFOQueue(1, [tf.int64], [()], shared_name="empty")
            close = tf.group(full.close(cancel_pending_enqueues=True), empty.close())
            sizes = [full.size(), empty.size()]
            enqueued, dequeued, kept = full.enqueue(np.int64(1)), empty.dequeue(), full.dequeue()
        one.run(enqueued)
        one.run(sizes)
        cluster.paired()
        pending, waiting = Waiting(cluster, one, enqueued), Waiting(cluster, one, dequeued)
        cluster.kill(0)
        waiting.wait(cluster)
        one.run(close)
        with pytest.raises(CancelledError, match="is closed"):
            pending.end()
        with pytest.raises(OutOfRangeError, match="closed"):
            waiting.end()
        cluster.start(0)
        cluster.paired()
        cluster.kill(1)
        assert one.run(kept) == 1
        with pytest.raises(OutOfRangeError, match="closed"):
            one.run(kept)


def test_abandoned_step_removes_no_element_on_the_backup() -> None:
    with session() as (cluster, one):
        with _on(0):
            queue = tf.FIFOQueue(3, [tf.int64], [()], shared_name="queue")
            dequeued, enqueued, size = queue.dequeue(), queue.enqueue(np.int64(5)), queue.size()
        one.run(size)
        cluster.paired()
        either = "Timed out waiting for elements|step 2 has exceeded its deadline"
        with pytest.raises(DeadlineExceededError, match=either):
            one.run(dequeued, options=tf.RunOptions(timeout_in_ms=200))
        cluster.kill(0)
        one.run(enqueued)
        assert one.run(size) == 1


# Limits ---------------------------------------------------------------------------------------------------------------


def test_a_batch_that_never_fits_is_refused() -> None:
    with session() as (_, one):
        with _on(0):
            batch = tf.FIFOQueue(3, [tf.int64], [()], shared_name="queue").dequeue_many(4)
        with pytest.raises(InvalidArgumentError, match="which is replicated: the maximum is 3"):
            one.run(batch)


def _in_a_branch() -> Any:
    queue = tf.FIFOQueue(3, [tf.int64], [()], shared_name="queue")
    return tf.cond(tf.placeholder_with_default(True, ()), lambda: queue.enqueue(np.int64(1)), tf.no_op)


def _iterator() -> Any:
    return tf.data.Dataset.range(3).make_one_shot_iterator().get_next()


@pytest.mark.parametrize(("make", "message"), [(_iterator, "an iterator"), (_in_a_branch, "branches and loops")])
def test_unsupported_queue_operations_are_refused(make: Callable[[], Any], message: str) -> None:
    with session() as (_, one):
        with _on(1):
            operation = make()
        with pytest.raises(FailedPreconditionError, match=message):
            one.run(operation)
