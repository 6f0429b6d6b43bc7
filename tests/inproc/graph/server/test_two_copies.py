"""Backups of each ``ps`` have each acknowledged step once, at whichever frame a connection is cut or a ``ps`` is
killed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater import tf
from headwater.errors import FailedPreconditionError
from headwater.tf1.training.supervised_session import SupervisedSession
from tests.support.copied_cluster import CopiedCluster, copied_cluster
from tests.support.cuts import Cuts

STEPS = 2
FRAMES = 20
"""Frames of a step below: 20. A request, values, gradients and an answer for each `ps`, and a transfer between the `ps`
with its acknowledgement: 10, as without backups. For four updates (the counts are updated separately, and the global
step waits) and for the transfer, a change to the backup and its confirmation each: 10.
"""


@dataclass
class Training:
    """Two `ps`, and a program whose step changes variables of both in several ways."""

    cluster: CopiedCluster
    session: tf.Session
    step: Any
    drawn: Any
    state: Any

    def run(self) -> list[Any]:
        """Runs some steps; returns their results, then the state after them."""
        seen: list[Any] = []
        for _ in range(STEPS):
            seen.append(self.session.run(self.step))
            self.session.run(self.drawn)
        self.cluster.cuts.plan()
        seen.append(self.session.run(self.state))
        return seen


@contextmanager
def training(processes: int = 2) -> Iterator[Training]:
    with copied_cluster(cuts=Cuts(), processes=processes) as cluster, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            w = tf.get_variable("w", initializer=np.full((3,), 0.5, np.float32))
            global_step = tf.train.get_or_create_global_step()
            count = tf.get_variable("count", [], tf.int64, initializer=tf.zeros_initializer())
            counted = tf.assign_add(count, 1)
        with tf.device("/job:ps/task:1"):
            v = tf.get_variable("v", initializer=np.full((2,), -0.25, np.float32))
            rows = tf.get_variable("rows", initializer=np.zeros((5, 2), np.float32))
            noise = tf.get_variable("noise", initializer=np.zeros((2,), np.float32))
        with tf.device("/job:worker/task:0"):
            loss = tf.reduce_sum(tf.square(w - 1.0)) * tf.reduce_sum(tf.square(v))
            loss += tf.reduce_sum(tf.square(tf.gather(rows, [1, 3]) - 1.0))
        optimizer = tf.train.MomentumOptimizer(0.01, 0.9)
        train_op = optimizer.minimize(loss, global_step=global_step)
        with tf.device("/job:ps/task:1"):
            drawn = tf.assign_add(noise, tf.random_uniform([2], seed=7))
        variables = [w, v, rows, noise, *(optimizer.get_slot(x, "momentum") for x in (w, v, rows))]
        with SupervisedSession(cluster.target()) as session:
            session.run(tf.global_variables_initializer())
            found = Training(cluster, session, [loss, train_op, counted], drawn.op, [global_step, count, *variables])
            session.run([found.step, drawn.op])
            cluster.paired()
            session.run(found.step)
            session.run(found.drawn)
            yield found


@pytest.fixture(scope="module")
def reference() -> list[Any]:
    with training() as undisturbed:
        undisturbed.cluster.cuts.plan()
        return undisturbed.run()


def _check(found: list[Any], expected: list[Any]) -> None:
    for value, other in zip(_flat(found), _flat(expected), strict=True):
        np.testing.assert_array_equal(value, other)


def _flat(values: list[Any]) -> list[Any]:
    return [leaf for value in values for leaf in (_flat(value) if isinstance(value, list) else [value])]


def test_how_many_frames_there_are() -> None:
    with training() as found:
        found.cluster.cuts.plan()
        found.session.run(found.step)
        assert found.cluster.cuts.frames == FRAMES


def test_both_copies_have_the_same_bits() -> None:
    with training() as found:
        found.run()
        before = found.session.run(found.state)
        for index in (0, 1):
            found.cluster.kill(index)
            found.cluster.primary(index)
            _check(found.session.run(found.state), before)
            found.cluster.start(index)
            found.cluster.paired()
            found.session.run(found.step)
            before = found.session.run(found.state)


def test_unrepeatable_results_are_replicated_by_value() -> None:
    with copied_cluster() as cluster, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            noise = tf.get_variable("noise", initializer=tf.random_normal([4]))
            text = tf.Variable("begun", name="text")
            count = tf.get_variable("count", [], tf.int32, initializer=tf.zeros_initializer())
            changes = [
                tf.assign_add(noise, tf.random_uniform([4])).op,
                tf.assign(text, "changed").op,
                tf.count_up_to(count, 5).op,
            ]
        with SupervisedSession(cluster.target()) as session:
            session.run(tf.global_variables_initializer())
            cluster.paired()
            for change in changes:
                session.run(change)
            before = session.run([noise, text, count])
            cluster.kill(0)
            found = session.run([noise, text, count])
            np.testing.assert_array_equal(found[0], before[0])
            assert (found[1], found[2]) == (b"changed", 1)


def test_a_row_travels_without_its_table() -> None:
    with copied_cluster() as cluster, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            table = tf.get_variable("table", [100_000, 8], initializer=tf.zeros_initializer())
            change = tf.scatter_add(table, [7], tf.ones([1, 8])).op
        with SupervisedSession(cluster.target()) as session:
            session.run(tf.global_variables_initializer())
            cluster.paired()
            session.run(change)
            before = cluster.feed_bytes(0)
            session.run(change)
            assert cluster.feed_bytes(0) - before < 1000
            cluster.kill(0)
            assert session.run(table[7, 0]) == 2.0


def test_a_previous_primary_no_longer_serves() -> None:
    """The replicas are partitioned from each other, but not from the worker; a new view has only one of them."""
    with training() as found:
        found.run()
        former = found.cluster.primary(1)
        found.cluster.part()
        for _ in range(3):
            found.session.run(found.drawn)
        before = found.session.run(found.state)
        found.cluster.meet()
        found.cluster.paired()
        _check(found.session.run(found.state), before)
        present = found.cluster.primary(1)
        assert present is former or not former.serves


def test_a_session_with_variables_of_its_own_is_refused() -> None:
    with copied_cluster() as cluster, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            one = tf.Variable(1.0)
        config = tf.ConfigProto(isolate_session_state=True)
        with (
            tf.Session(cluster.target(), config=config) as session,
            pytest.raises(FailedPreconditionError, match="isolate_session_state"),
        ):
            session.run(one.initializer)


def test_a_process_that_is_lost_is_not_dialled(monkeypatch: pytest.MonkeyPatch) -> None:
    """An attempt to connect to a stopped process would last until its timeout."""
    opened: list[int] = []
    with copied_cluster() as cluster, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            one = tf.Variable(1.0)
        with SupervisedSession(cluster.target()) as session:
            session.run(one.initializer)
            cluster.paired()
            cluster.kill(0)
            open_channel = cluster.open
            monkeypatch.setattr(cluster, "open", lambda index, me: opened.append(index) or open_channel(index, me))
            assert session.run(one) == 1.0
    assert 1 in opened
    assert 0 not in opened


def test_plain_sessions_find_the_copy_that_serves() -> None:
    with copied_cluster() as cluster, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            one = tf.Variable(1.0)
        with tf.Session(cluster.target()) as session:
            session.run(one.initializer)
        cluster.paired()
        cluster.kill(0)
        with tf.Session(cluster.target()) as session:
            assert session.run(one) == 1.0
            session.run(one.assign(2.0).op)
            assert session.run(one) == 2.0
        tf.Session.reset(cluster.target())
        with tf.Session(cluster.target()) as session, pytest.raises(FailedPreconditionError, match="uninitialized"):
            session.run(one)


def test_copies_move_while_steps_are_made(reference: list[Any]) -> None:
    """The replicas move to a process that had none, with a new backup, and back; finally there is one replica, and then
    a backup again.
    """
    with training(processes=3) as found:
        moves = [(0, 2, 1), (1, 2, 0), (0, 1, 0), (1, 0, None), (1, 0, 1)]
        mover = threading.Thread(target=lambda: [found.cluster.move(*move) for move in moves])
        mover.start()
        _check(found.run(), reference)
        mover.join()
        found.session.run(found.step)
        before = found.session.run(found.state)
        found.cluster.kill(0)
        assert found.cluster.primary(1) in found.cluster.copies[1]
        _check(found.session.run(found.state), before)


def test_a_hand_off_copies_nothing(reference: list[Any]) -> None:
    with training() as found:
        results = found.run()
        primary, sent = found.cluster.primary(0), found.cluster.feed_bytes(1)
        second = next(copy for copy in found.cluster.copies[1] if copy.served.index == 0)
        values = [cell.value for cell in second.runtime.resources.cells().values()]
        moved = found.cluster.move(0, 1, 0)
        assert moved is second
        assert found.cluster.feed_bytes(1) - sent < 1000  # a few frames without tensors
        after = [cell.value for cell in second.runtime.resources.cells().values()]
        assert all(one is other for one, other in zip(after, values, strict=True))
        _check(results, reference)
        assert primary.runtime.resources.cells().keys() == second.runtime.resources.cells().keys()
        found.session.run(found.step)
        before = found.session.run(found.state)
        found.cluster.kill(1)
        assert found.cluster.primary(0) is primary
        _check(found.session.run(found.state), before)


def test_a_hand_off_ends_steps_that_wait_for_other_tasks() -> None:
    looks = threading.Event()
    with copied_cluster() as cluster, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            queue = tf.FIFOQueue(1, tf.float32, [()])
            taken, put = queue.dequeue(), queue.enqueue(1.0)
        with tf.device("/job:ps/task:1"):
            total = tf.Variable(1.0)
            added = total.assign_add(taken)
        with SupervisedSession(cluster.target()) as session:
            session.run(total.initializer)
            cluster.paired()
            before = cluster.primary(1).runtime
            step = threading.Thread(target=session.run, args=(added.op,))
            step.start()
            while not before.waits():
                looks.wait(0.01)
            assert cluster.move(1, 0, 1).runtime is not before
            while before.waits():
                looks.wait(0.01)
            session.run(put)
            step.join()
            assert session.run(total) == 2.0


@pytest.mark.slow
@pytest.mark.parametrize("ps", [0, 1])
@pytest.mark.parametrize("frame", range(FRAMES))
def test_a_ps_dies_at_every_frame(reference: list[Any], frame: int, ps: int) -> None:
    with training() as found:
        found.cluster.cuts.on_cut = lambda: found.cluster.kill(ps)
        found.cluster.cuts.plan(before=[frame])
        _check(found.run(), reference)


@pytest.mark.slow
@pytest.mark.parametrize("frame", range(FRAMES))
def test_all_ps_shut_down_at_every_frame(reference: list[Any], frame: int) -> None:
    with training() as found:
        ending = threading.Thread(target=found.cluster.end_at_once)

        def on_frame(number: int) -> None:
            if number == frame and ending.ident is None:
                ending.start()

        found.cluster.cuts.on_frame = on_frame
        found.cluster.cuts.plan()
        _check(found.run(), reference)
        ending.join()


@settings(max_examples=10, deadline=None)
@given(
    before=st.sets(st.integers(0, 2 * FRAMES * STEPS), max_size=3),
    after=st.sets(st.integers(0, 2 * FRAMES * STEPS), max_size=3),
)
def test_cuts_anywhere(reference: list[Any], before: set[int], after: set[int]) -> None:
    with training() as found:
        found.cluster.cuts.plan(before=before, after=after)
        _check(found.run(), reference)
