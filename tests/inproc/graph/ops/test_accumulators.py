"""Accumulators of several variables: their gradients are added and taken together."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from headwater.errors import InvalidArgumentError
from headwater.graph.resources.accumulators import Accumulator, DenseSum, RowSum
from headwater.graph.runtime.step import Step

NONE = np.zeros(0, np.int64)


def _accumulator() -> Accumulator:
    return Accumulator("gradients", [DenseSum((2,)), RowSum("table", (4, 1), for_update=True)])


def _gradients(dense: Any, rows: Any, values: Any) -> list[Any]:
    return [(np.array(dense, np.float32),), (np.array(rows), np.array(values, np.float32)[:, None], NONE)]


def test_means_of_all_and_the_step_that_begins() -> None:
    accumulator = _accumulator()
    first = _gradients([1, 2], [1, 1], [1, 2])
    accumulator.apply(first, 0)
    accumulator.apply(_gradients([3, 6], [3, 1, 0], [5, 1, 7]), 0)
    ((dense,), (rows, values, _)), step, _ = accumulator.pop_mean(Step(), 2)
    assert dense.tolist() == [2, 4]
    assert step == 1
    inside = rows < 4
    assert dict(zip(rows[inside].tolist(), values[inside, 0].tolist(), strict=True)) == {0: 3.5, 1: 2, 3: 2.5}
    assert len(rows) == 4
    assert not values[~inside].any()
    assert first[0][0].tolist() == [1, 2], "what was given stays the giver's"
    assert accumulator.count() == 0


def test_a_gradient_that_does_not_fit_leaves_no_part_behind() -> None:
    accumulator = _accumulator()
    with pytest.raises(InvalidArgumentError, match="index is 4 exceeded 4"):
        accumulator.apply(_gradients([1, 2], [4], [1]), 0)
    with pytest.raises(InvalidArgumentError, match=r"expected \[2\], got \[3\]"):
        accumulator.apply(_gradients([1, 2, 3], [0], [1]), 0)
    assert accumulator.count() == 0
    accumulator.apply(_gradients([1, 2], [0], [1]), 0)
    ((dense,), _), *_ = accumulator.pop_mean(Step(), 1)
    assert dense.tolist() == [1, 2]


def test_stale_gradients_are_dropped_and_counted() -> None:
    accumulator = _accumulator()
    accumulator.set_step(3)
    accumulator.apply(_gradients([1, 2], [0], [1]), 2)
    assert (accumulator.count(), accumulator.dropped) == (0, 1)
    accumulator.apply(_gradients([1, 2], [0], [1]), 3)
    assert accumulator.count() == 1


def test_a_waiting_thread_receives_its_gradients() -> None:
    accumulator = _accumulator()
    taken: list[Any] = []
    waiting = Step()
    thread = threading.Thread(target=lambda: taken.append(accumulator.pop_mean(waiting, 3)))
    thread.start()
    for value in (1, 2, 6):
        accumulator.apply(_gradients([value, 0], [0], [0]), 0)
    thread.join()
    (means, step, _), *more = taken
    assert (means[0][0].tolist(), step, more) == ([3, 0], 1, [])


def test_integers_have_whole_means() -> None:
    accumulator = Accumulator("counts", [DenseSum((1,))])
    for value in (1, 4):
        accumulator.apply([(np.array([value]),)], 0)
    ((total,),), *_ = accumulator.pop_mean(Step(), 2)
    assert total.tolist() == [2]
