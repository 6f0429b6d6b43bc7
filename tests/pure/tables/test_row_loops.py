"""Compiled loops over rows of arrays."""

from __future__ import annotations

import numpy as np

from headwater.tables.row_loops import adagrad


def test_divisions_by_zero_have_the_results_of_numpy() -> None:
    # In TensorFlow, too, Adagrad's accumulator of 0 and a gradient of 0 give NaN.
    row, squares = np.ones(2, np.float32), np.zeros(2, np.float32)
    adagrad(row, squares, np.array([0, 2], np.float32), np.zeros(1, np.int64), 2, np.float32(0.5))
    np.testing.assert_array_equal(row, [np.nan, 0.5])


def test_updates_skip_rows_out_of_range() -> None:
    every = np.ones(9, np.float32)
    row, squares = every[3:5], np.ones(2, np.float32)
    adagrad(row, squares, np.ones(6, np.float32), np.array([-1, 1, 0]), 2, np.float32(0.5))
    np.testing.assert_array_equal(squares, [2, 2])
    np.testing.assert_array_equal(np.delete(every, [3, 4]), np.ones(7))
