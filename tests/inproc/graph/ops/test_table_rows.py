"""Compiled loops that copy and add rows within an executable: same results as XLA alone, in place, on CPUs only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headwater import tf
from headwater.graph.ops import table_rows
from headwater.graph.registry import lookup

ROWS, PICKED = 50, 200
LIMIT = table_rows._MIN_ROWS
RANDOM = np.random.default_rng(7)
INDICES = RANDOM.integers(-4, ROWS + 4, PICKED)
"""Many indices are repeated, some are out of range."""


@pytest.fixture(autouse=True)
def few_rows_are_worth_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_rows, "_MIN_ROWS", 64)


def numbers(shape: tuple[int, ...], dtype: str) -> Any:
    return (RANDOM.random(shape) * 100).astype(dtype)


def without_calls(function: Callable[..., Any], *inputs: Any) -> Any:
    """Returns the results of XLA alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_rows, "_worth_a_call", lambda *_: False)
        # Wrapped in a new function, because JAX caches the executable of the original one.
        return jax.jit(lambda *given: function(*given))(*inputs)


def called(function: Callable[..., Any], *inputs: Any, **options: Any) -> tuple[Any, str]:
    """Returns the result, and XLA's code."""
    compiled = jax.jit(function, **options).lower(*inputs).compile()
    return compiled(*inputs), str(compiled.as_text())


@pytest.mark.parametrize(
    ("shape", "dtype", "index"),
    [
        ((ROWS, 16), "float32", "int64"),
        ((ROWS, 2, 5), "float64", "int32"),
        ((1, 1), "int64", "int32"),
        ((ROWS, 3), "complex64", "int64"),
        ((ROWS, 3), "float16", "int64"),
        ((ROWS, 3), "bool", "int32"),
    ],
)
def test_rows_are_taken_and_put(shape: tuple[int, ...], dtype: str, index: str) -> None:
    array, indices = numbers(shape, dtype), INDICES.astype(index)
    rows = numbers((PICKED, *shape[1:]), dtype)
    for nearest in (True, False):

        def take(array: Any, indices: Any, nearest: bool = nearest) -> Any:
            return table_rows.take_rows(array, indices, nearest=nearest)

        found, code = called(take, array, indices)
        np.testing.assert_array_equal(found, without_calls(take, array, indices))
        assert ("headwater_take" in code) == (dtype not in ("float16", "bool"))
    distinct = RANDOM.permutation(np.arange(-80, 120)).astype(index)
    found, _ = called(table_rows.put_rows, array, distinct, rows)
    np.testing.assert_array_equal(found, without_calls(table_rows.put_rows, array, distinct, rows))


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_are_added_up(dtype: str, index: str) -> None:
    array, indices, rows = numbers((ROWS, 16), dtype), INDICES.astype(index), numbers((PICKED, 16), dtype)
    found, _ = called(table_rows.add_rows, array, indices, rows)
    np.testing.assert_allclose(found, without_calls(table_rows.add_rows, array, indices, rows), rtol=1e-5)
    spread = np.where(indices < 10, indices, np.iinfo(index).max - indices).astype(index)
    for given in (indices, spread, np.full(PICKED, 7, index)):
        found = [np.array(each) for each in called(table_rows.sum_equal_rows, rows, given)[0]]
        wanted = [np.array(each) for each in without_calls(table_rows.sum_equal_rows, rows, given)]
        for sums, distinct in (found, wanted):
            order = np.argsort(distinct, kind="stable")
            sums[:], distinct[:] = sums[order], distinct[order]
        np.testing.assert_array_equal(found[1], wanted[1])
        np.testing.assert_allclose(found[0], wanted[0], rtol=1e-6)


@pytest.mark.parametrize("limit", [64, LIMIT])
def test_the_array_of_an_update_is_changed_in_place(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_rows, "_MIN_ROWS", limit)

    def update(array: Any, state: Any, indices: Any, rows: Any) -> Any:
        before = table_rows.take_rows(array, indices, nearest=True)
        squares = table_rows.take_rows(state, indices, nearest=True) + rows * rows
        return table_rows.put_rows(array, indices, before - rows / squares), table_rows.put_rows(
            state, indices, squares
        )

    shapes = [jax.ShapeDtypeStruct(shape, np.float32) for shape in ((5000, 16), (5000, 16), (100, 16))]
    indices = jax.ShapeDtypeStruct((100,), np.int64)
    compiled = jax.jit(update, donate_argnums=(0, 1)).lower(*shapes[:2], indices, shapes[2]).compile()
    assert "f32[5000,16]{1,0} copy(" not in str(compiled.as_text())
    array, state = jnp.ones((5000, 16), np.float32), jnp.ones((5000, 16), np.float32)
    places = [each.unsafe_buffer_pointer() for each in (array, state)]
    changed = compiled(array, state, np.arange(100), np.ones((100, 16), np.float32))
    assert [each.unsafe_buffer_pointer() for each in changed] == places
    np.testing.assert_array_equal(np.asarray(changed[0])[:, 3], [0.5] * 100 + [1] * 4900)


def test_batched_adagrad_equals_adagrad_row_by_row() -> None:
    array, squares, rows = numbers((ROWS, 5), "float32"), numbers((ROWS, 5), "float32"), numbers((PICKED, 5), "float32")
    indices = RANDOM.permutation(np.arange(-80, 120)).astype(np.int32)

    def update(*given: Any) -> Any:
        return lookup("SparseApplyAdagrad").lower(*given)

    inputs = array, squares, np.float32(0.3), rows, indices
    found, code = called(update, *inputs)
    assert "headwater_adagrad" in code
    for one, other in zip(found, without_calls(update, *inputs), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_gradients_of_gradients_and_many_at_once() -> None:
    array, rows = numbers((ROWS, 3), "float64"), numbers((PICKED, 3), "float64")

    def loss(array: Any, rows: Any) -> Any:
        taken = table_rows.take_rows(array, INDICES)
        total = table_rows.add_rows(jnp.zeros_like(array), jnp.asarray(INDICES[::-1]), rows * taken * taken)
        return jnp.sum(total**2)

    def slopes(array: Any, rows: Any) -> Any:
        first = jax.grad(loss, (0, 1))
        return first(array, rows), jax.grad(lambda *both: jnp.sum(first(*both)[0]), (0, 1))(array, rows)

    found, code = called(slopes, array, rows)
    assert "headwater_add_rows" not in code  # XLA adds float64
    jax.tree.map(
        lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-9),
        found,
        without_calls(slopes, array, rows),
    )
    several = np.stack([INDICES, INDICES[::-1]])
    taken, _ = called(jax.vmap(lambda indices: table_rows.take_rows(array, indices)), several)
    np.testing.assert_array_equal(taken[1], without_calls(table_rows.take_rows, array, several[1]))


def test_a_gpu_is_left_to_xla() -> None:
    arguments = numbers((ROWS, 8), "float32"), INDICES
    traced = jax.jit(table_rows.take_rows).trace(*arguments)
    assert "headwater_" in traced.lower(lowering_platforms=("cpu",)).as_text()
    assert "headwater_" not in traced.lower(lowering_platforms=("cuda",)).as_text()


def test_lookups_of_a_usual_batch_load_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_rows, "_MIN_ROWS", LIMIT)
    array, indices, rows = numbers((5000, 64), "float32"), np.arange(1280), numbers((1280, 64), "float32")
    assert "headwater_" not in called(table_rows.take_rows, array, indices)[1]
    assert "headwater_" not in called(table_rows.sum_equal_rows, rows, indices)[1]
    assert "headwater_" in called(table_rows.take_rows, array, np.arange(LIMIT))[1]


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint64"])
def test_unique_of_many_numbers_is_that_of_few(dtype: str) -> None:
    many = (RANDOM.zipf(1.3, 1000) % 2**31 - 5).astype(dtype)
    with tf.Graph().as_default(), tf.Session() as session:
        values, places, counts = session.run(tf.unique_with_counts(tf.constant(many)))
    first = list(dict.fromkeys(many.tolist()))
    assert values.tolist() == first
    np.testing.assert_array_equal(values[places], many)
    assert counts.tolist() == [many.tolist().count(number) for number in first]
