"""Rows of sparse and ragged components."""

from __future__ import annotations

import numpy as np

from headwater.data.composites import RaggedArray, SparseArray

ROWS = np.array([2, 0, 2, 1])


def test_rows_of_a_ragged_array_in_any_order() -> None:
    deep = RaggedArray([1, 2, 3, 4, 5], [np.array([0, 2, 2, 3]), np.array([0, 2, 2, 5])])
    found = deep[ROWS]
    assert [part.tolist() for part in found.splits] == [[0, 1, 3, 4, 4], [0, 3, 5, 5, 8]]
    assert found.values.tolist() == [3, 4, 5, 1, 2, 3, 4, 5]
    assert found.shape == (4, None, None)
    assert len(deep[ROWS[:0]]) == 0


def test_rows_of_a_sparse_array_in_any_order() -> None:
    sparse = SparseArray([[0, 1], [2, 0], [2, 3]], np.array([b"a", b"b", b"c"], object), [3, 4])
    found = sparse[ROWS]
    assert found.indices.tolist() == [[0, 0], [0, 3], [1, 1], [2, 0], [2, 3]]
    assert found.values.tolist() == [b"b", b"c", b"a", b"b", b"c"]
    assert found.shape == (4, 4)
    assert sparse[::-2].values.tolist() == [b"b", b"c", b"a"]
