"""Pools that are computed from slices have the values and gradients of XLA's operation."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from headwater.graph.ops import convolution, pooling
from headwater.graph.ops.pooling import Pools

jax_: Any = jax

#: Sizes, window, strides.
CASES = [
    ((2, 6, 7, 3), (1, 3, 3, 1), (1, 1, 1, 1)),
    ((2, 7, 6, 3), (1, 2, 2, 1), (1, 2, 2, 1)),
    ((2, 7, 8, 3), (1, 3, 3, 1), (1, 2, 2, 1)),
    ((1, 8, 7, 2), (1, 2, 3, 1), (1, 3, 2, 1)),
    ((2, 5, 5, 6), (1, 1, 1, 2), (1, 1, 1, 2)),
    ((2, 3, 6, 7), (1, 1, 3, 2), (1, 1, 2, 1)),
    ((1, 5, 9, 2), (1, 5, 7, 1), (1, 1, 1, 1)),
    ((1, 4, 5, 6, 2), (1, 2, 3, 2, 1), (1, 2, 1, 2, 1)),
]
MATRIX = [
    *((case, padding, "float32") for case in CASES for padding in ("SAME", "VALID")),
    *((CASES[2], "SAME", dtype) for dtype in ("float64", "bfloat16", "float16")),
]


def reduced(array: Any, initial: Any, combine: Any, window: Any, strides: Any, padding: str) -> Any:
    return lax.reduce_window(array, np.asarray(initial, array.dtype), combine, window, strides, padding)


def value_and_slope(function: Any, array: Any) -> Any:
    value, pull = jax.vjp(function, array)
    slope = jnp.cos(jnp.arange(value.size, dtype=value.dtype)).reshape(value.shape)
    return value, pull(slope)[0]


def compare(found: Any, wanted: Any, array: Any) -> None:
    tolerance = {"float16": 1e-2, "bfloat16": 1e-1, "float32": 1e-5, "float64": 1e-12}[str(array.dtype)]
    for one, other in zip(
        jax_.jit(lambda: value_and_slope(found, array))(),
        jax_.jit(lambda: value_and_slope(wanted, array))(),
        strict=True,
    ):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(
            np.asarray(one, np.float64), np.asarray(other, np.float64), rtol=tolerance, atol=tolerance
        )


@pytest.mark.parametrize(("case", "padding", "dtype"), MATRIX, ids=str)
def test_maxima(case: Any, padding: str, dtype: str) -> None:
    sizes, window, strides = case
    with jax.enable_x64(True):
        # Small integers, so that many windows have several equal maxima.
        array = jnp.asarray(np.random.default_rng(0).integers(-2, 3, sizes), dtype)
        attrs: Any = {"ksize": window, "strides": strides, "padding": padding}
        compare(
            lambda array: convolution.max_pool(array, **attrs),
            lambda array: reduced(array, -np.inf, lax.max, window, strides, padding),
            array,
        )


@pytest.mark.parametrize(("case", "padding", "dtype"), MATRIX, ids=str)
def test_sums(case: Any, padding: str, dtype: str) -> None:
    sizes, window, strides = case
    with jax.enable_x64(True):
        array = jnp.asarray(np.random.default_rng(0).uniform(-1, 1, sizes), dtype)
        found, counts = convolution.summed_windows(array, window, strides, padding)
        ones = reduced(jnp.ones(sizes, dtype), 0, lax.add, window, strides, padding)
        np.testing.assert_array_equal(np.broadcast_to(counts, found.shape), ones)
        compare(
            lambda array: convolution.summed_windows(array, window, strides, padding)[0],
            lambda array: reduced(array, 0, lax.add, window, strides, padding),
            array,
        )


def test_maxima_of_whole_numbers() -> None:
    array = jnp.asarray(np.random.default_rng(0).integers(-9, 9, (1, 5, 5, 2)), jnp.int32)
    pools = Pools(sizes=array.shape, window=(1, 3, 3, 1), strides=(1, 1, 1, 1), pads=((0, 0), (1, 1), (1, 1), (0, 0)))
    lowest = np.iinfo(np.int32).min
    np.testing.assert_array_equal(
        pooling.largest(array, pools), reduced(array, lowest, lax.max, pools.window, pools.strides, "SAME")
    )


def test_slopes_of_slopes_of_sums() -> None:
    array = jnp.asarray(np.random.default_rng(0).uniform(-1, 1, (1, 5, 6, 2)), jnp.float32)

    def twice(total: Any) -> Any:
        return jax_.grad(lambda array: (jax_.grad(lambda array: (total(array) ** 3).sum())(array) ** 2).sum())(array)

    window, strides = (1, 3, 2, 1), (1, 2, 1, 1)
    np.testing.assert_allclose(
        twice(lambda array: convolution.summed_windows(array, window, strides, "SAME")[0]),
        twice(lambda array: reduced(array, 0, lax.add, window, strides, "SAME")),
        rtol=1e-4,
        atol=1e-4,
    )
