"""Selection of elements by bits, and of the highest entries of rows by partition."""

from __future__ import annotations

import numpy as np
import pytest

from headwater.graph.kernels.common import where
from headwater.graph.kernels.registry import kernel_of


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8", "f2", "c8"])
@pytest.mark.parametrize("shapes", [((100, 80), (100, 80)), ((100, 80), ()), ((), (100, 80)), ((80,), (3, 100, 1))])
def test_selection(dtype: str, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    draw = np.random.default_rng(0)
    condition = draw.random((100, 80)) < 0.5
    x, y = (np.asarray(3 * draw.normal(size=shape)).astype(dtype) for shape in shapes)
    if dtype[0] == "f":
        for value in (x, y):
            value[draw.random(value.shape) < 0.2] = np.nan
            value[draw.random(value.shape) < 0.2] = -np.inf
            value[draw.random(value.shape) < 0.2] = -0.0
    zero = x.dtype.type(0)
    for pair in ((x, y), (x, zero), (zero, y), (x[..., ::-1] if x.ndim else x, y)):
        found, expected = where(condition, *pair), np.where(condition, *pair)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("k", [1, 5, 60])
@pytest.mark.parametrize("dtype", ["f4", "i4"])
def test_highest_entries_of_many(dtype: str, k: int) -> None:
    draw = np.random.default_rng(0)
    rows = np.round(3 * draw.normal(size=(2, 5, 600))).astype(dtype)  # most entries have equals
    if dtype == "f4":
        rows[draw.random(rows.shape) < 0.1] = np.nan
        rows[1, 2, 3:] = -np.inf
    kernel = kernel_of("TopKV2")
    assert kernel is not None
    values, places = kernel(rows, np.array(k))
    known = np.where(np.isnan(rows), -np.inf, rows)
    expected = [
        sorted(range(600), key=lambda place, row=row: (-row[place], place))[:k]
        for row in known.reshape(-1, 600).tolist()
    ]
    np.testing.assert_array_equal(places.reshape(-1, k), expected)
    np.testing.assert_array_equal(values, np.take_along_axis(rows, places.astype(np.int64), -1))
