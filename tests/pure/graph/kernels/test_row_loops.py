"""Compiled loops over rows, and for random numbers, have the same bits as NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

from headwater.graph.kernels import generator
from headwater.graph.kernels.registry import kernel_of, update_kernel_of
from headwater.graph.kernels.rows import add_rows
from headwater.graph.ops.sparse import distinct_bags
from headwater.graph.registry import lookup
from headwater.tables import row_loops
from tests.support.loops import use_loops

F = np.float32
Array: TypeAlias = np.ndarray[Any, Any]


def both(monkeypatch: pytest.MonkeyPatch, run: Callable[[], list[Array]]) -> tuple[list[Array], list[Array]]:
    """Returns the results of ``run`` by compiled loops and by NumPy."""
    results: list[list[Array]] = []
    for compiled in (True, False):
        use_loops(monkeypatch, compiled=compiled)
        results.append(run())
    return results[0], results[1]


@pytest.mark.parametrize("width", [1, 3, 8])
@pytest.mark.parametrize("repeated", [False, True])
def test_updates_of_rows(monkeypatch: pytest.MonkeyPatch, width: int, repeated: bool) -> None:
    rng = np.random.default_rng(width)
    start = [rng.uniform(0.1, 2, (50, width)).astype(F) for _ in range(3)]
    at = rng.integers(-1, 50, 40).astype(np.int32) if repeated else np.sort(rng.permutation(50)[:40])
    grad = rng.normal(size=(40, width)).astype(F)
    grad.flags.writeable = False

    def run() -> list[Array]:
        var, accum, linear = (array.copy() for array in start)
        adagrad, ftrl = update_kernel_of("SparseApplyAdagrad"), update_kernel_of("SparseApplyFtrl")
        assert adagrad is not None
        assert ftrl is not None
        adagrad(var, accum, F(0.05), grad, at)
        ftrl(var, accum, linear, grad, at, F(0.05), F(0.4), F(0.02), F(-0.5))
        adagrad(var, accum, F(0.05), grad[:0], at[:0])
        ftrl(var, accum, linear, grad[:1], at[:1] - 100, F(0.05), F(0.4), F(0.02), F(-0.5))
        added = start[0].copy()
        add_rows(added, at, grad)
        return [var, accum, linear, added]

    for ours, numpys in zip(*both(monkeypatch, run), strict=True):
        np.testing.assert_array_equal(ours.view(np.uint32), numpys.view(np.uint32))


def test_adam(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    start = [rng.uniform(0, 2, (50, 3)).astype(F) for _ in range(3)]
    grad, at = rng.normal(size=(50, 3)).astype(F), rng.integers(-1, 50, 40)
    scalars = [np.array(value, F) for value in (0.9, 0.999, 0.01, 0.9, 0.999, 1e-8)]

    def run() -> list[Array]:
        arrays = [array.copy() for array in start]
        dense, sparse = update_kernel_of("ApplyAdam"), update_kernel_of("SparseApplyAdam")
        assert dense is not None
        assert sparse is not None
        dense(*arrays, *scalars, grad)
        sparse(*arrays, *scalars, grad[:40], at)
        return arrays

    for ours, numpys, before in zip(*both(monkeypatch, run), start, strict=True):
        np.testing.assert_array_equal(ours.view(np.uint32), numpys.view(np.uint32))
        assert not np.array_equal(ours, before)


@pytest.mark.parametrize("count", [1, 1000, 40_000])
def test_random_words(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    key = (0xFFFFFFFE, 0x12345678)
    ours, numpys = both(monkeypatch, lambda: [*generator.words(key, count), generator.uniform(key, [count])])
    for one, other in zip(ours, numpys, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("kind", "share"), [("Sum", 1), ("Mean", 2), ("SqrtN", np.sqrt(F(2)))])
def test_gradients_of_segments(monkeypatch: pytest.MonkeyPatch, kind: str, share: float) -> None:
    grad, indices, ids = np.array([[1, 2], [3, 4]], F), np.array([3, 0, 3]), np.array([0, 1, 1], np.int32)
    kernel = kernel_of(f"SparseSegment{kind}Grad")
    assert kernel is not None
    expected = np.array([[3 / share, 4 / share], [0, 0], [0, 0], [1 + 3 / share, 2 + 4 / share]], F)
    ours, numpys = both(monkeypatch, lambda: [kernel(grad, indices, ids, np.int32(4))])
    np.testing.assert_allclose(ours[0], expected, rtol=1e-6)
    np.testing.assert_array_equal(ours[0], numpys[0])
    for bad in (np.array([4, 0, 0]), np.array([0, -1, 0])):
        with pytest.raises(ValueError, match="out of range"):
            kernel(grad, bad, ids, np.int32(4))


@pytest.mark.parametrize("mean", ["Sum", "Mean", "SqrtN"])
def test_sums_of_segments(monkeypatch: pytest.MonkeyPatch, mean: str) -> None:
    rng = np.random.default_rng(3)
    data, indices = rng.normal(size=(20, 4)).astype(F), rng.integers(0, 20, 30).astype(np.int32)
    ids = np.sort(rng.integers(0, 12, 30)).astype(np.int32)
    lower: Any = lookup(f"SparseSegment{mean}").lower
    counted: Any = lookup(f"SparseSegment{mean}WithNumSegments").lower
    ours, numpys = both(
        monkeypatch, lambda: [lower(None, data, indices, ids), counted(None, data, indices, ids, np.int64(15))]
    )
    assert ours[0].shape == (ids[-1] + 1, 4)
    assert ours[1].shape == (15, 4)
    for each, other in zip(ours, numpys, strict=True):
        np.testing.assert_array_equal(each.view(np.uint32), other.view(np.uint32))
    rows = data[indices[ids == ids[-1]]]
    size = {"Sum": 1, "Mean": len(rows), "SqrtN": np.sqrt(len(rows))}[mean]
    np.testing.assert_allclose(ours[0][-1], rows.sum(0) / size, rtol=1e-5)
    with pytest.raises(IndexError, match="is not in"):
        lower(None, data, indices + 20, ids)
    with pytest.raises(ValueError, match="not increasing"):
        lower(None, data, indices, ids[::-1])
    with pytest.raises(ValueError, match="num_segments = 3"):
        counted(None, data, indices, ids, np.int64(3))


def test_rows_of_dropped_ids_may_be_out_of_range(monkeypatch: pytest.MonkeyPatch) -> None:
    ids, rows = np.array([5, -1, 7, -2, 5]), np.array([1, 1 << 40, 1, -9, 3])
    indices = np.stack([rows, np.arange(5)], 1)
    shape, default = np.array([4, 5]), np.array(2)

    def run() -> list[Array]:
        return list(distinct_bags(ids, indices, shape, default))

    for ours, numpys in zip(*both(monkeypatch, run), strict=True):
        np.testing.assert_array_equal(ours, numpys)
    found, numbers, empty, bags, count = run()
    assert [each.tolist() for each in (found, numbers, bags)] == [[2, 5, 7], [0, 1, 2, 0, 1], [0, 1, 1, 2, 3]]
    assert empty.tolist() == [True, False, True, False]
    assert count == 4
    with pytest.raises(ValueError, match="is invalid: 4 >= 4"):
        distinct_bags(ids, indices + np.array([[0, 0]] * 4 + [[1, 0]]), shape, default)


@pytest.mark.parametrize("writable", [True, False])
def test_arguments_of_loops_are_not_copied(writable: bool) -> None:
    """Values of variables are read-only; a lookup must not copy its table."""
    table = np.arange(12, dtype=F).reshape(4, 3)
    table.flags.writeable = writable
    vector = row_loops.flat(table, F)
    assert np.shares_memory(vector, table)
    assert vector.tolist() == list(range(12))
    del table
    assert vector.sum() == 66
    assert row_loops.flat(np.arange(3)[::2], F).tolist() == [0, 2]
