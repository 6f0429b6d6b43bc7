"""A ``ps`` shuts down and restarts: each step counts once on every ``ps``, at whichever frame the shutdown happens."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from headwater import tf
from headwater.errors import AbortedError, UnavailableError
from headwater.tf1.training.supervised_session import SupervisedSession
from tests.support.cluster import MemoryCluster, memory_cluster
from tests.support.cuts import Cuts
from tests.support.rounds import KINDS, WORKERS, check_rounds

STEPS = 3
FRAMES = 10
"""Frames of a step below: a request, values, gradients and an answer for each `ps`, and a transfer between the `ps`
with its acknowledgement.
"""


@dataclass
class Training:
    """A cluster of two `ps`, and a program whose step changes variables of both."""

    cluster: MemoryCluster
    cuts: Cuts
    session: tf.Session
    step: Any
    state: Any

    def run(self) -> list[Any]:
        """Runs some steps; returns their results, then the state after them."""
        seen: list[Any] = []
        for _ in range(STEPS):
            seen += self.session.run(self.step)
        self.cuts.plan()
        return seen + self.session.run(self.state)


@contextmanager
def training() -> Iterator[Training]:
    cuts = Cuts()
    with memory_cluster(cuts, ps=2, worker=1) as cluster, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            w = tf.get_variable("w", initializer=np.full((3,), 0.5, np.float32))
            global_step = tf.train.get_or_create_global_step()
        with tf.device("/job:ps/task:1"):
            v = tf.get_variable("v", initializer=np.full((2,), -0.25, np.float32))
            names = tf.get_variable("names", initializer=tf.constant([b"a", b"", b"ccc"]))
        with tf.device("/job:worker/task:0"):
            loss = tf.reduce_sum(tf.square(w - 1.0)) * tf.reduce_sum(tf.square(v))
        optimizer = tf.train.MomentumOptimizer(0.01, 0.9)
        train_op = optimizer.minimize(loss, global_step=global_step)
        variables = [w, v, names, global_step, *(optimizer.get_slot(x, "momentum") for x in (w, v))]
        with SupervisedSession(cluster.target("worker")) as session:
            session.run(tf.global_variables_initializer())
            found = Training(cluster, cuts, session, [train_op, loss], variables)
            session.run(found.step)
            yield found


@pytest.fixture(scope="module")
def reference() -> list[Any]:
    with training() as undisturbed:
        undisturbed.cuts.plan()
        return undisturbed.run()


def _check(found: list[Any], expected: list[Any]) -> None:
    for value, other in zip(found, expected, strict=True):
        if other is not None:
            np.testing.assert_array_equal(value, other)


def test_how_many_frames_there_are() -> None:
    with training() as found:
        found.cuts.plan()
        found.session.run(found.step)
        assert found.cuts.frames == FRAMES


@pytest.mark.slow
@pytest.mark.parametrize(
    "cut", ["", "unnoticed", *(pytest.param(cut, marks=pytest.mark.long) for cut in ("before", "after"))]
)
@pytest.mark.parametrize("ps", [0, 1])
@pytest.mark.parametrize("frame", range(FRAMES))
def test_shutdown_at_every_frame(reference: list[Any], frame: int, ps: int, cut: str) -> None:
    """The frame's channel may be cut at the same moment, so that the frame must be sent again."""
    with training() as found:
        movers: list[threading.Thread] = []

        def move(number: int) -> None:
            if number == frame + FRAMES:
                movers.append(threading.Thread(target=found.cluster.drain_and_restart, args=("ps", ps)))
                movers[0].start()

        found.cuts.on_frame = move
        before = found.cluster.task("ps", ps)
        found.cuts.plan(**({cut: [frame + FRAMES]} if cut else {}))
        got = found.run()
        movers[0].join()
        assert found.cluster.task("ps", ps) is not before
    _check(got, reference)


@pytest.fixture
def waiting() -> Iterator[tuple[threading.Event, threading.Event]]:
    """Yields two events: a worker sets the first while it computes; the second lets it continue."""
    computes, release = threading.Event(), threading.Event()
    yield computes, release
    release.set()


@pytest.mark.parametrize("changes", [False, True])
def test_a_step_that_cannot_end(changes: bool, waiting: tuple[threading.Event, threading.Event]) -> None:
    """Its worker continues. A step without changes starts again; any other step resumes at its last instruction."""
    computes, release = waiting

    def slow(first: Any) -> Any:
        del first  # the ps has completed its part of the step
        computes.set()
        release.wait()
        return np.float32(1.0)

    with memory_cluster(Cuts(), ps=1, worker=1) as cluster, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            w, v = (tf.get_variable(name, [], initializer=tf.zeros_initializer()) for name in "wv")
            first = tf.assign_add(v, 1.0) if changes else tf.identity(w)
        with tf.device("/job:worker/task:0"):
            more = first * 0.0 + tf.py_func(slow, [first], tf.float32)
        step = tf.assign_add(w, more)
        with SupervisedSession(cluster.target("worker")) as session:
            session.run(tf.global_variables_initializer())
            ends: list[object] = []
            worker = threading.Thread(target=lambda: ends.append(session.run(step)))
            worker.start()
            computes.wait()
            old = cluster.task("ps")
            assert not old.steps.suspend(0.0)
            cluster.replace(old)
            old.stop()
            release.set()
            worker.join()
            assert ends == [1.0]
            assert session.run([w, v]) == [1.0, float(changes)]


def test_contents_of_queues_and_tables_are_deposited() -> None:
    with memory_cluster(Cuts(), ps=1, worker=1) as cluster, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            w = tf.get_variable("w", initializer=1.0)
            queue = tf.FIFOQueue(10, [tf.float32, tf.string], [(), ()], shared_name="q")
            shuffled = tf.RandomShuffleQueue(10, 0, tf.int64, [()], seed=1, shared_name="shuffled")
            table = tf.contrib.lookup.MutableHashTable(tf.string, tf.int64, -1)
            filled = [queue.enqueue_many(([2.0, 3.0], ["two", "three"])), shuffled.enqueue_many([range(5)])]
            inserted = table.insert(tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64))
            found = table.lookup(tf.constant(["b", "c"]))
        with SupervisedSession(cluster.target("worker")) as session:
            session.run(w.initializer)
            session.run([*filled, inserted])
            cluster.drain_and_restart("ps")
            assert session.run(w) == 1.0
            assert session.run(found).tolist() == [2, -1]
            assert session.run(queue.dequeue()) == [2.0, b"two"]
            assert sorted(session.run(shuffled.dequeue_many(5)).tolist()) == [0, 1, 2, 3, 4]
            session.run(filled)
            assert session.run([queue.size(), shuffled.size()]) == [3, 5]


def _wait(cluster: MemoryCluster) -> None:
    """Returns once a step waits on the ``ps``."""
    looks = threading.Event()
    while not cluster.task("ps").runtime.waits():
        looks.wait(0.001)


def test_a_step_resumes_with_its_previous_results() -> None:
    """The step has changed a variable, and waits for an element that another step enqueues."""
    with memory_cluster(Cuts(), ps=1, worker=2) as cluster, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            w = tf.get_variable("w", initializer=1.0)
            queue = tf.FIFOQueue(10, tf.float32, [()], shared_name="q")
            with tf.control_dependencies([tf.assign_add(w, 1.0)]):
                taken = queue.dequeue()
            step = taken * 10.0 + w.read_value()
        with SupervisedSession(cluster.target("worker")) as session:
            session.run(w.initializer)
            ends: list[Any] = []
            worker = threading.Thread(target=lambda: ends.append(session.run(step)))
            worker.start()
            _wait(cluster)
            cluster.drain_and_restart("ps")
            with SupervisedSession(cluster.target("worker", 1)) as other:
                other.run(queue.enqueue(4.0))
            worker.join()
            assert ends == [42.0]
            assert session.run([w, queue.size()]) == [2.0, 0]


def test_a_step_that_is_stopped_between_two_effects_fails() -> None:
    with memory_cluster(Cuts(), ps=1, worker=1) as cluster, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            w = tf.get_variable("w", initializer=1.0)
            queue = tf.FIFOQueue(2, tf.float32, [()], shared_name="q")
            step = queue.enqueue_many([[1.0, 2.0, 3.0]])
        with SupervisedSession(cluster.target("worker")) as session:
            session.run(w.initializer)
            ends: list[str] = []

            def run() -> None:
                with pytest.raises(UnavailableError) as raised:
                    session.run(step)
                ends.append(raised.value.message)

            worker = threading.Thread(target=run)
            worker.start()
            _wait(cluster)
            old = cluster.task("ps")
            cluster.drain_and_restart("ps")
            worker.join()
            assert "has ended during step" in ends[0]
            assert old.steps.is_inconsistent
            assert session.run(queue.size()) == 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ps", [0, 1])
@pytest.mark.parametrize("frame", range(0, 60, 6))
def test_shutdown_in_a_round(kind: str, frame: int, ps: int) -> None:
    cuts = Cuts()
    with memory_cluster(cuts, ps=2, worker=WORKERS) as cluster:
        mover = threading.Thread(target=cluster.drain_and_restart, args=("ps", ps))
        moving = threading.Event()

        def move(number: int) -> None:
            if number == frame:
                mover.start()
                moving.set()

        def begin() -> None:
            cuts.on_frame = move
            cuts.plan()

        check_rounds(kind, lambda worker: cluster.target("worker", worker), begin)
        moving.wait()
        mover.join()


def test_sessions_are_aborted_when_an_iterator_cannot_be_deposited() -> None:
    with memory_cluster(Cuts(), ps=1, worker=1) as cluster, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            w = tf.get_variable("w", initializer=1.0)
            numbers = tf.data.Dataset.range(10).make_initializable_iterator()
            number = numbers.get_next()
        with SupervisedSession(cluster.target("worker")) as session:
            session.run([w.initializer, numbers.initializer])
            assert session.run(number) == 0
            cluster.drain_and_restart("ps")
            with pytest.raises(AbortedError, match="was restarted"):
                session.run(w)
        with SupervisedSession(cluster.target("worker")) as session:
            assert session.run(w) == 1.0


def test_updates_after_the_deposit_are_not_acknowledged() -> None:
    with memory_cluster(Cuts(), ps=1, worker=1) as cluster, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            w = tf.get_variable("w", initializer=1.0)
        with SupervisedSession(cluster.target("worker")) as session:
            session.run(w.initializer)
            old = cluster.task("ps")
            old.steps.suspend(60.0)
            old.steps.freeze()
            old.steps.stop()
            with pytest.raises(UnavailableError, match="has ended"):
                old.steps.require_not_frozen()
