"""Sessions used by several threads at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from headwater import tf

SIZE = 20_000


def _together(*actions: Callable[[], Any]) -> None:
    """Runs all actions at once and waits for all; raises the first error."""
    ready = threading.Barrier(len(actions))

    def start(action: Callable[[], Any]) -> Any:
        ready.wait()
        return action()

    with ThreadPoolExecutor(len(actions)) as pool:
        futures: list[Future[Any]] = [pool.submit(start, action) for action in actions]
    for future in futures:
        future.result()


def test_no_reader_sees_half_an_update() -> None:
    """Two variables that one step updates are seen with both updates or with neither."""
    with tf.Graph().as_default():
        first, second = tf.Variable(tf.zeros([SIZE])), tf.Variable(tf.zeros([SIZE]))
        by = tf.placeholder(tf.float32, [SIZE])
        update = tf.group(first.assign_add(by), second.assign_sub(by))
        computed = [first + 1.0, second * 1.0]
        done = threading.Event()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())

            def update_often() -> None:
                ones = np.ones(SIZE, np.float32)
                try:
                    for _ in range(1500):
                        session.run(update, {by: ones})
                finally:
                    done.set()

            def read(fetches: list[Any], offset: float) -> int:
                seen: set[float] = set()
                while not done.is_set():
                    one, other = session.run(fetches)
                    assert (one == one[0]).all()
                    assert (other == other[0]).all()
                    assert one[0] - offset == -other[0]
                    seen.add(float(one[0]))
                return len(seen)

            _together(update_often, lambda: read([first, second], 0.0), lambda: read(computed, 1.0))
            assert session.run(first)[0] == 1500


def test_every_update_counts() -> None:
    with tf.Graph().as_default():
        counter = tf.Variable(0)
        up = counter.assign_add(1)
        with tf.Session() as session:
            session.run(counter.initializer)
            call = session.make_callable(up.op)

            def count(run: Callable[[], Any]) -> None:
                for _ in range(500):
                    run()

            _together(lambda: count(lambda: session.run(up)), lambda: count(call))
            assert session.run(counter) == 1000


def test_threads_have_their_own_default_sessions() -> None:
    with tf.Graph().as_default():
        x = tf.constant(1)
        with tf.Session() as session, ThreadPoolExecutor(1) as pool:
            assert x.eval() == 1
            assert pool.submit(tf.get_default_session).result() is None
            with pytest.raises(ValueError, match="No default session"):
                pool.submit(x.eval).result()

            def inside() -> Any:
                with session.as_default():
                    return x.eval()

            assert pool.submit(inside).result() == 1


def test_the_graph_grows_while_others_run_it() -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.constant(1.0)

        def build_and_run(first: int) -> None:
            with graph.as_default():
                for number in range(first, first + 20):
                    assert session.run(tf.identity(x) + float(number)) == 1.0 + number

        _together(lambda: build_and_run(0), lambda: build_and_run(100), lambda: build_and_run(200))
        assert len({op.name for op in graph.get_operations()}) == len(graph.get_operations())


def test_the_same_step_is_first_run_by_all_at_once() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        p = tf.placeholder(tf.float32, [3])
        total = tf.reduce_sum(p * 2.0)
        results: list[float] = []

        def run(value: float) -> None:
            results.append(float(session.run(total, {p: [value] * 3})))

        _together(*(lambda value=value: run(value) for value in (1.0, 2.0, 3.0, 4.0)))
        assert sorted(results) == [6.0, 12.0, 18.0, 24.0]
