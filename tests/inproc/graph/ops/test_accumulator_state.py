"""The state of accumulators: like TensorFlow's, they return the mean of all gradients, and require a minimum number."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from headwater.errors import CancelledError
from headwater.graph.resources.accumulators import Accumulator, DenseSum, RowSum
from headwater.graph.runtime.step import Step


def _give(gathered: Accumulator, value: float, step: int) -> None:
    gathered.apply([(np.array(value, np.float32),)], step)


class _Asked:
    """A thread that repeats a request to an accumulator of scalars, and its results."""

    def __init__(self, gathered: Accumulator, times: int, run: Callable[[float], Any]) -> None:
        self.step = Step()
        self.error: BaseException | None = None
        waits = threading.Event()
        wait_until = self.step.wait_until

        def announced(condition: threading.Condition, ready: Callable[[], bool], what: str) -> None:
            waits.set()
            wait_until(condition, ready, what)

        self.step.wait_until = announced

        def taken() -> None:
            run(float(gathered.pop_mean(self.step, 2)[0][0][0]))

        def ask() -> None:
            try:
                gathered.repeat(self.step, 2, taken, times)
            except BaseException as error:  # noqa: BLE001
                self.error = error

        self.thread = threading.Thread(target=ask)
        self.thread.start()
        waits.wait()


def test_a_gradient_of_another_start_does_not_count() -> None:
    gathered = Accumulator("a", [DenseSum(())])
    one = [(np.array(1.0, np.float32),)]
    gathered.start("chief", 0, 0, renews=False, name=7)
    gathered.apply(one, 0, "worker", 0)
    gathered.apply(one, 0, "worker", 7)
    assert gathered.count() == 2
    gathered.start("chief", 0, 1, renews=False, name=8)
    for start in (0, 7):
        gathered.apply(one, 0, "worker", start)
    assert (gathered.count(), gathered.dropped) == (0, 2)
    gathered.apply(one, 0, "worker", 8)
    assert gathered.count() == 1


def test_the_thread_of_the_last_gradient_runs_the_update() -> None:
    gathered, seen = Accumulator("a", [DenseSum(())]), list[tuple[float, str]]()
    asked = _Asked(gathered, 3, lambda mean: seen.append((mean, threading.current_thread().name)))
    for step in range(3):
        _give(gathered, 1.0 + step, step)
        assert len(seen) == step
        _give(gathered, 3.0 + step, step)
    asked.thread.join()
    assert asked.error is None
    me = threading.current_thread().name
    assert seen == [(2.0, me), (3.0, me), (4.0, me)]
    for _ in range(2):
        _give(gathered, 7.0, 3)
    assert (len(seen), gathered.count()) == (3, 2)


def test_gradients_that_arrive_during_an_update_are_left_to_the_waiting_thread() -> None:
    gathered, seen = Accumulator("a", [DenseSum(())]), list[tuple[float, bool]]()

    def run(mean: float) -> None:
        seen.append((mean, threading.current_thread() is threading.main_thread()))
        if len(seen) == 1:
            for _ in range(2):
                _give(gathered, 5.0, 1)

    asked = _Asked(gathered, 2, run)
    for _ in range(2):
        _give(gathered, 1.0, 0)
    asked.thread.join()
    assert asked.error is None
    assert seen == [(1.0, True), (5.0, False)]


def test_an_error_is_raised_in_the_waiting_thread() -> None:
    def fail(mean: float) -> None:
        raise ValueError(f"not {mean}")

    gathered = Accumulator("a", [DenseSum(())])
    asked = _Asked(gathered, 3, fail)
    for _ in range(2):
        _give(gathered, 1.0, 0)
    asked.thread.join()
    assert isinstance(asked.error, ValueError)
    for _ in range(2):
        _give(gathered, 1.0, 1)
    assert gathered.count() == 2


def test_a_waiting_thread_can_be_cancelled() -> None:
    gathered = Accumulator("a", [DenseSum(())])
    asked = _Asked(gathered, 3, lambda mean: pytest.fail(f"ran with {mean}"))
    asked.step.cancel("enough")
    asked.thread.join()
    assert isinstance(asked.error, CancelledError)
    assert "2 needed" in asked.error.message
    for _ in range(2):
        _give(gathered, 1.0, 0)
    assert gathered.count() == 2


def test_sums_start_where_xla_uses_them_in_place() -> None:
    gathered = Accumulator("a", [DenseSum((3, 5)), DenseSum(())])
    gathered.apply([(np.ones((5, 3), np.float32).T,), (np.array(2.0),)], 0)
    (big,), (small,) = gathered.pop_mean(Step(), 1)[0]
    assert big.ctypes.data % 64 == small.ctypes.data % 64 == 0
    np.testing.assert_array_equal(big, np.ones((3, 5)))
    assert small == 2.0


def test_gradients_beyond_the_number_count() -> None:
    gathered = Accumulator("a", [DenseSum(())])
    for value in (1.0, 2.0, 6.0):
        gathered.apply([(np.array(value, np.float32),)], 0)
    assert gathered.count() == 3
    assert gathered.pop_mean(Step(), 2)[0][0][0] == 3.0
    assert gathered.count() == 0
    # A gradient that arrives after the mean was taken is of an earlier version.
    gathered.apply([(np.array(5.0, np.float32),)], 0)
    assert (gathered.count(), gathered.dropped) == (0, 1)
    gathered.apply([(np.array(5.0, np.float32),)], 1)
    assert gathered.pop_mean(Step(), 1)[0][0][0] == 5.0


def test_rows_beyond_the_number_count() -> None:
    gathered = Accumulator("a", [RowSum("a", (4, 1))])
    for row, value in ((0, 2.0), (0, 4.0), (3, 9.0)):
        gathered.apply([(np.array([row]), np.array([[value]], np.float32), np.zeros(0, np.int64))], 0)
    ((indices, values, shape),), *_ = gathered.pop_mean(Step(), 2)
    assert indices.tolist() == [0, 3]
    assert values.tolist() == [[3.0], [9.0]]
    assert shape.tolist() == [4, 1]
