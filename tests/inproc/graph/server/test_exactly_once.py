"""Every acknowledged step was applied exactly once on every task, at whichever frame connections were lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater import tf
from headwater.cluster.transport.channel import Channel
from headwater.errors import AbortedError, UnavailableError
from headwater.tf1.training.supervised_session import SupervisedSession
from tests.support.cluster import MemoryCluster, MemoryLink, memory_cluster
from tests.support.cuts import Cuts

STEPS = 4
FRAMES = 14
"""Frames of a step below: a request, values, gradients and an answer for each `ps`; two transfers between the `ps` with
their acknowledgements; and the step that fills the queue.
"""


@dataclass
class Training:
    """A cluster of two `ps`, and a program whose step changes state of both, takes from a queue and fills another."""

    cluster: MemoryCluster
    cuts: Cuts
    session: tf.Session
    step: Any
    feed: Any
    fill: Any
    fed: Any
    state: Any

    def run(self) -> list[Any]:
        """Runs some steps; returns their results, then the state after them."""
        seen: list[Any] = []
        for number in range(STEPS):
            self.session.run(self.feed, {self.fed: number + 1.0})
            seen.append(self.session.run(self.step))
        self.cuts.plan()
        seen.append(self.session.run(self.state))
        return seen


@contextmanager
def training() -> Iterator[Training]:
    cuts = Cuts()
    with memory_cluster(cuts, ps=2, worker=1) as cluster, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            w = tf.get_variable("w", initializer=np.full((3,), 0.5, np.float32))
            global_step = tf.train.get_or_create_global_step()
            queue = tf.FIFOQueue(100, tf.float32, [()], shared_name="in")
        with tf.device("/job:ps/task:1"):
            v = tf.get_variable("v", initializer=np.full((2,), -0.25, np.float32))
            done = tf.FIFOQueue(100, tf.float32, [()], shared_name="out")
        with tf.device("/job:worker/task:0"):
            taken = queue.dequeue()
            loss = tf.reduce_sum(tf.square(w * taken - 1.0)) * tf.reduce_sum(tf.square(v))
        optimizer = tf.train.MomentumOptimizer(0.01, 0.9)
        train_op = optimizer.minimize(loss, global_step=global_step)
        with tf.control_dependencies([train_op]), tf.device("/job:ps/task:1"):
            finished = done.enqueue(loss)
        fed = tf.placeholder(tf.float32, ())
        feed = queue.enqueue(fed)
        variables = [w, v, global_step, *(optimizer.get_slot(x, "momentum") for x in (w, v))]
        state = [variables, queue.size(), done.size()]
        with SupervisedSession(cluster.target("worker")) as session:
            session.run(tf.global_variables_initializer())
            found = Training(cluster, cuts, session, [finished, loss, taken], feed, finished, fed, state)
            session.run(feed, {fed: 0.0})
            session.run([finished, loss])
            yield found


def _reference() -> list[Any]:
    with training() as undisturbed:
        undisturbed.cuts.plan()
        return undisturbed.run()


@pytest.fixture(scope="module")
def reference() -> list[Any]:
    return _reference()


def _check(found: list[Any], expected: list[Any]) -> None:
    for value, other in zip(_flat(found), _flat(expected), strict=True):
        np.testing.assert_array_equal(value, other)


def _flat(values: list[Any]) -> list[Any]:
    return [leaf for value in values for leaf in (_flat(value) if isinstance(value, list) else [value])]


def test_how_many_frames_there_are() -> None:
    with training() as found:
        found.cuts.plan()
        found.session.run(found.feed, {found.fed: 1.0})
        found.session.run(found.step)
        assert found.cuts.frames == FRAMES


def test_tasks_that_send_to_each_other_meet_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """In each step, each `ps` notifies the other that its part is done, which updates of the global step wait for."""
    met: list[str] = []
    wait_for_channel = MemoryLink.wait_for_channel

    def counted(link: MemoryLink, check: Callable[[], None]) -> Channel:
        met.append(str(link))
        return wait_for_channel(link, check)

    monkeypatch.setattr(MemoryLink, "wait_for_channel", counted)
    with training() as found:
        found.cuts.plan()
        found.run()
        assert len(met) == 2  # each connects to the other


@pytest.mark.parametrize("where", ["before", "after", "unnoticed"])
@pytest.mark.parametrize("frame", range(FRAMES))
def test_a_cut_at_every_frame(reference: list[Any], frame: int, where: str) -> None:
    with training() as found:
        found.cuts.plan(**{where: range(frame, frame + FRAMES * STEPS, FRAMES)})
        got = found.run()
    _check(got, reference)


@settings(max_examples=15, deadline=None)
@given(*[st.sets(st.integers(0, 120), max_size=40)] * 3)
def test_cuts_anywhere(reference: list[Any], before: set[int], after: set[int], unnoticed: set[int]) -> None:
    with training() as found:
        found.cuts.plan(before=before, after=after, unnoticed=unnoticed)
        got = found.run()
    _check(got, reference)


@pytest.mark.parametrize("arrives", [False, True])
def test_a_step_that_waits_for_a_queue(arrives: bool) -> None:
    """An element that the step dequeues is not lost with the connection that was cut while the step waited."""
    cuts = Cuts()
    with memory_cluster(cuts, ps=1, worker=1) as cluster, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            queue = tf.FIFOQueue(10, tf.float32, [()], shared_name="slow")
            fed = tf.placeholder(tf.float32, ())
            feed, taken = queue.enqueue(fed), queue.dequeue()
        target = cluster.target("worker")
        with SupervisedSession(target) as session, SupervisedSession(target) as other:
            session.run(queue.size())
            other.run(queue.size())
            got: list[Any] = []
            cuts.plan(before=() if arrives else [1], after=[1] if arrives else ())
            waiting = threading.Thread(target=lambda: got.extend(session.run(taken) for _ in range(3)))
            waiting.start()
            for value in (1.0, 2.0, 3.0):
                other.run(feed, {fed: value})
            waiting.join()
    assert got == [1.0, 2.0, 3.0]
    assert cuts.made == 1


def test_a_plain_session_raises() -> None:
    cuts = Cuts()
    with memory_cluster(cuts, ps=1, worker=1) as cluster, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            step = tf.get_variable("n", initializer=0).assign_add(1)
        with tf.Session(cluster.target("worker")) as session:
            session.run(tf.global_variables_initializer())
            assert session.run(step) == 1
            cuts.plan(before=[1])
            with pytest.raises(UnavailableError, match="was lost during step"):
                session.run(step)
            assert session.run(step) == 3


@pytest.mark.parametrize("restarts", [False, True])
def test_a_plan_is_given_again(monkeypatch: pytest.MonkeyPatch, restarts: bool) -> None:
    """Otherwise a hook that runs a new request after a step would cause that step to be repeated."""
    lost: list[MemoryLink] = []
    add_plan = MemoryLink.add_plan

    def loses_one(link: MemoryLink, *args: Any) -> None:
        if not lost:
            lost.append(link)
            if restarts:
                cluster.restart("ps")
            raise UnavailableError(None, None, "the test has cut it")
        add_plan(link, *args)

    with memory_cluster(Cuts(), ps=1, worker=1) as cluster, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            one, two = tf.constant(1.0) + 0.0, tf.constant(2.0) + 0.0
        with SupervisedSession(cluster.target("worker")) as session, tf.Session(cluster.target("worker")) as plain:
            assert session.run(one) == plain.run(one) == 1.0
            monkeypatch.setattr(MemoryLink, "add_plan", loses_one)
            if restarts:
                with pytest.raises(AbortedError, match="was restarted"):
                    session.run(two)
                return
            assert session.run(two) == 2.0
            lost.clear()
            with pytest.raises(UnavailableError, match="has cut it"):
                plain.run(two)


def test_a_restarted_task_ends_the_step() -> None:
    cuts = Cuts()
    with memory_cluster(cuts, ps=1, worker=1) as cluster, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            queue = tf.FIFOQueue(1, tf.float32, [()], shared_name="never")
            taken, size = queue.dequeue(), queue.size()
        with SupervisedSession(cluster.target("worker")) as session:
            assert session.run(size) == 0
            cuts.plan(before=[0])
            cuts.on_cut = lambda: cluster.restart("ps")
            with pytest.raises(AbortedError, match="was restarted"):
                session.run(taken)


def test_acknowledged_steps_are_forgotten() -> None:
    with training() as found:
        found.cuts.plan(after=range(0, 40, 3))
        for _ in range(6):
            found.session.run(found.feed, {found.fed: 1.0})
            found.session.run(found.step)
        services = [found.cluster.task("ps", index).steps for index in range(2)]
        assert all(service.resumable_count() <= 40 for service in services)
        found.session.close()
        assert [service.resumable_count() for service in services] == [0, 0]
