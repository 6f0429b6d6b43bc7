"""Selection of elements by bits gives the elements that `np.where` gives."""

from __future__ import annotations

import numpy as np
import pytest

from headwater.graph.kernels.common import where


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
