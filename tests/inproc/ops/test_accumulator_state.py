"""What accumulators count: TensorFlow's take the mean of all that has come, and want a least number."""

from __future__ import annotations

import numpy as np

from headwater.ops.accumulator_state import Accumulator, DenseSum, RowSum
from headwater.runtime.step import Step


def test_gradients_beyond_the_number_count() -> None:
    gathered = Accumulator("a", [DenseSum(())])
    for value in (1.0, 2.0, 6.0):
        gathered.apply([(np.array(value, np.float32),)], 0)
    assert gathered.count() == 3
    assert gathered.take(Step(), 2)[0][0][0] == 3.0
    assert gathered.count() == 0
    # What comes after the mean was taken is of a version that is over.
    gathered.apply([(np.array(5.0, np.float32),)], 0)
    assert (gathered.count(), gathered.dropped) == (0, 1)
    gathered.apply([(np.array(5.0, np.float32),)], 1)
    assert gathered.take(Step(), 1)[0][0][0] == 5.0


def test_rows_beyond_the_number_count() -> None:
    gathered = Accumulator("a", [RowSum("a", (4, 1))])
    for row, value in ((0, 2.0), (0, 4.0), (3, 9.0)):
        gathered.apply([(np.array([row]), np.array([[value]], np.float32), np.zeros(0, np.int64))], 0)
    ((indices, values, shape),), _ = gathered.take(Step(), 2)
    assert indices.tolist() == [0, 3]
    assert values.tolist() == [[3.0], [9.0]]
    assert shape.tolist() == [4, 1]
