"""Maxima and sums of windows, expressed in the way that XLA runs fastest.

XLA's code for CPUs visits the elements of each window in a naive loop. The functions here take slices of the whole
array instead, one for each position in a window, and combine these with vector instructions.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from headwater.graph.ops.by_platform import by_platform
from headwater.lazy_jax import jax, jnp, lax

# Pyright finds the types of these functions of JAX in part only.
_lax: Any = lax

Sizes = tuple[int, ...]

_MAX_SLICES: Final = 16
"""Windows with more elements (for sums: windows longer than this) use XLA's operation, since many slices take long to
compile."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pools:
    """Windows of an array; each field has one entry for each dimension.

    Attributes:
      sizes: the array's shape.
      window: sizes of a window.
      strides: distance from one window to the next.
      pads: padding before and after the array.
    """

    sizes: Sizes
    window: Sizes
    strides: Sizes
    pads: tuple[tuple[int, int], ...]

    @property
    def counts(self) -> Sizes:
        """The number of windows along each dimension."""
        return tuple(
            (size + sum(pad) - reach) // stride + 1
            for size, reach, stride, pad in zip(self.sizes, self.window, self.strides, self.pads, strict=True)
        )

    def elements(self) -> Any:
        """Returns the number of elements of each window, excluding padding, in a shape that broadcasts to the shape of
        the windows."""
        result: Any = np.ones((), np.int64)
        for axis, (size, reach, stride, (before, _)) in enumerate(
            zip(self.sizes, self.window, self.strides, self.pads, strict=True)
        ):
            starts = np.arange(self.counts[axis]) * stride - before
            inside = np.minimum(starts + reach, size) - np.maximum(starts, 0)
            if (inside != inside[:1]).any():
                result = result * inside.reshape([-1 if i == axis else 1 for i in range(len(self.sizes))])
            elif inside.size:
                result = result * inside[0]
        return result

    def along(self, axis: int, sizes: Sizes) -> Pools:
        """Returns the windows along one dimension of an array with ``sizes``."""
        rank = range(len(sizes))
        return Pools(
            sizes=sizes,
            window=tuple(self.window[i] if i == axis else 1 for i in rank),
            strides=tuple(self.strides[i] if i == axis else 1 for i in rank),
            pads=tuple(self.pads[i] if i == axis else (0, 0) for i in rank),
        )

    def slices(self, array: jax.Array, fill: object) -> list[jax.Array]:
        """Returns, for each position in a window, the elements of all windows at that position."""
        padded = _apart(_padded(array, [(*pad, 0) for pad in self.pads], fill))
        reach = [(count - 1) * stride + 1 for count, stride in zip(self.counts, self.strides, strict=True)]
        return [
            lax.slice(padded, first, [start + size for start, size in zip(first, reach, strict=True)], self.strides)
            for first in itertools.product(*map(range, self.window))
        ]

    def back(self, windows: jax.Array, fill: object) -> list[jax.Array]:
        """Returns, for each position in a window, an array of shape `sizes`. Its value at an element is the value of
        the window that has the element at that position, or ``fill`` if there is no such window."""
        pads = [
            (reach - 1 - before, size + before - 1 - (count - 1) * stride, stride - 1)
            for reach, size, (before, _), count, stride in zip(
                self.window, self.sizes, self.pads, self.counts, self.strides, strict=True
            )
        ]
        spread = _apart(_padded(windows, pads, fill))
        return [
            lax.slice(spread, first, [start + size for start, size in zip(first, self.sizes, strict=True)])
            for offset in itertools.product(*map(range, self.window))
            for first in [[reach - 1 - place for reach, place in zip(self.window, offset, strict=True)]]
        ]


def largest(array: jax.Array, pools: Pools) -> Any:
    """Returns the maximum of each window; of equal elements, the first gets the slope."""
    if math.prod(pools.window) > _MAX_SLICES or not array.size:
        return _reduced(array, pools, _lowest(array.dtype), lax.max)
    return _largest(pools)(array)


@functools.lru_cache(maxsize=1024)
def _largest(pools: Pools) -> Any:
    def pull(inputs: tuple[jax.Array], slope: jax.Array) -> object:
        _, places = _first_of_largest(inputs[0], pools)
        places = _apart(places)
        result: Any = None
        for place, (at, part) in enumerate(zip(pools.back(places, -1), pools.back(slope, 0), strict=True)):
            hit = jnp.where(at == place, part, jnp.zeros((), slope.dtype))
            result = hit if result is None else result + hit
        return (result,)

    def value(array: jax.Array) -> jax.Array:
        return _first_of_largest(array, pools)[0]

    return by_platform(value, value, pull)


def _first_of_largest(array: jax.Array, pools: Pools) -> tuple[jax.Array, jax.Array]:
    """Returns the maximum of each window, and the position of the maximum within the window."""
    first, *rest = pools.slices(array, _lowest(array.dtype))
    result, places = first, jnp.zeros(first.shape, np.int8)
    for place, part in enumerate(rest, 1):
        better = result < part
        result, places = jnp.where(better, part, result), jnp.where(better, np.int8(place), places)
    return result, places


def total(array: jax.Array, pools: Pools) -> Any:
    """Returns the sum of each window."""
    if max(pools.window) > _MAX_SLICES or not array.size:
        return _reduced(array, pools, 0, lax.add)
    return _total(pools)(array)


@functools.lru_cache(maxsize=1024)
def _total(pools: Pools) -> Any:
    def plain(array: jax.Array) -> jax.Array:
        return _reduced(array, pools, 0, lax.add)

    stages: list[Pools] = []
    sizes = pools.sizes
    for axis, reach in enumerate(pools.window):
        if reach > 1 or pools.strides[axis] > 1:
            stages.append(pools.along(axis, sizes))
            sizes = stages[-1].counts

    def on_cpus(array: jax.Array) -> jax.Array:
        for stage in stages:
            array = functools.reduce(lax.add, stage.slices(array, 0))
        return array

    def pull(inputs: tuple[jax.Array], slope: jax.Array) -> object:
        del inputs
        for stage in reversed(stages):
            slope = functools.reduce(lax.add, stage.back(slope, 0))
        return (slope,)

    return by_platform(plain, on_cpus, pull)


def _reduced(array: jax.Array, pools: Pools, initial: object, combine: object) -> jax.Array:
    start = np.asarray(initial, array.dtype)
    return _lax.reduce_window(array, start, combine, pools.window, pools.strides, pools.pads)


def _lowest(dtype: Any) -> object:
    return -np.inf if jnp.issubdtype(dtype, np.inexact) else np.iinfo(dtype).min


def _padded(array: jax.Array, pads: list[tuple[int, int, int]], fill: object) -> jax.Array:
    return lax.pad(array, jnp.asarray(fill, array.dtype), pads) if any(map(any, pads)) else array


def _apart(array: object) -> Any:
    """Forces XLA to store ``array`` before it is used. Otherwise XLA fuses the padding into the combination of slices,
    which makes each slice slow."""
    return _lax.optimization_barrier(array)
