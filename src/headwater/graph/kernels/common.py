"""Helpers shared by several families of kernels."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from headwater.graph.registry import HostArray

Arrays: TypeAlias = Sequence[Any]
"""Arrays, or None for no gradient; kernels also accept and return NumPy's scalars instead of arrays."""
Needed: TypeAlias = Sequence[bool]

_BLOCK = 256
"""Number of rows that `sum_over` adds in the precision of the elements."""
_LARGE_SIZE = 4096
_BITS = {np.dtype(real): np.dtype(bits) for real, bits in (("f4", "i4"), ("f8", "i8"), ("i4", "i4"), ("i8", "i8"))}
_SHORT_AXIS = 32
"""NumPy reduces a last axis of up to this many elements several times slower than a longer one."""


def ints(value: object) -> tuple[int, ...]:
    """An integer input of any rank, as Python integers."""
    return tuple(np.asarray(value).ravel().tolist())


def is_floating(dtype: np.dtype[Any]) -> bool:
    """Returns whether elements are real floating-point numbers; the kind of bfloat16 and similar types in NumPy is
    ``V``."""
    return dtype.kind in "fV"


def axis_in(axis: Any, rank: int, demand: str = "") -> int:
    """Returns ``axis`` counted from the front; ValueError if it is out of range, with ``demand`` in the message."""
    place = int(axis)
    if not -rank <= place < rank:
        limits = f"[-{rank}, {rank})"
        raise ValueError(f"{demand} {limits}, but got {place}" if demand else f"axis = {place} is not in {limits}")
    return place % rank


def cut(value: HostArray, sizes: Iterable[int], axis: int = 0) -> tuple[HostArray, ...]:
    """Returns views of consecutive parts of ``value`` with these sizes along ``axis``."""
    spans = itertools.pairwise(itertools.accumulate(sizes, initial=0))
    if not axis:  # the usual case, which takes half the time without tuples of slices
        return tuple([value[begin:end] for begin, end in spans])
    before = (slice(None),) * axis
    return tuple([value[(*before, slice(begin, end))] for begin, end in spans])


def where(condition: HostArray, x: Any, y: Any) -> HostArray:
    """Returns the same as ``np.where``. If the arrays are large, it selects bits instead of branching for each element,
    which takes a sixth of the time if the condition is irregular."""
    if condition.size < _LARGE_SIZE:
        return np.where(condition, x, y)
    dtype = getattr(x, "dtype", None)
    bits = _BITS.get(dtype) if dtype is not None and dtype == getattr(y, "dtype", None) else None
    if bits is None:
        return np.where(condition, x, y)
    mask = condition.astype(bits)
    np.negative(mask, out=mask)  # all bits are set where the condition holds
    found, other = x.view(bits), y.view(bits)
    if not other.ndim and not other:
        return (mask & found).view(dtype)
    return (mask & (found ^ other) ^ other).view(dtype)


@lru_cache
def _ones(count: int, char: str) -> HostArray:
    """Returns a vector of ones of a type, given by its character."""
    return np.ones(count, char)


def sum_over(x: HostArray, first: int, stop: int) -> HostArray:
    """Returns the sum over the dimensions ``first`` to ``stop - 1``.

    If dimensions follow, ``np.add.reduce`` adds one element after the other, which rounds once per element. Matrix
    products with a vector of ones, block by block, take a tenth of the time; the sums of the blocks are added in
    float64, so that rounding errors do not accumulate. For a short last axis, a product is faster, too.
    """
    rows = math.prod(x.shape[first:stop])
    if x.dtype.char not in "fd" or not x.size or (stop == x.ndim and rows > _SHORT_AXIS):
        return np.add.reduce(x, axis=tuple(range(first, stop)), dtype=x.dtype)
    shape = x.shape[:first] + x.shape[stop:]
    if stop == x.ndim:
        return np.matmul(x.reshape(-1, rows), np.ones(rows, x.dtype)).reshape(shape)
    x = x.reshape(math.prod(x.shape[:first]), rows, -1)
    if rows <= _BLOCK:
        ones = _ones(rows, x.dtype.char)
        return (ones.dot(x[0]) if len(x) == 1 else np.matmul(ones, x)).reshape(shape)
    whole = rows - rows % _BLOCK
    blocks = x[:, :whole].reshape(len(x), -1, _BLOCK, x.shape[2])
    total = np.add.reduce(np.matmul(_ones(_BLOCK, x.dtype.char), blocks), axis=1, dtype=np.float64)
    if whole < rows:
        total += np.matmul(np.ones(rows - whole, x.dtype), x[:, whole:])
    return total.astype(x.dtype).reshape(shape)


def inferred_shape(found: Sequence[int], wanted: list[int]) -> list[int]:
    """Returns ``wanted`` for a tensor without elements. As in TensorFlow, the size -1 is computed from the sizes that
    are not 0."""
    if 0 not in wanted or -1 not in wanted:
        return wanted
    size = math.prod(filter(None, found)) // math.prod(each for each in wanted if each > 0)
    return [size if each == -1 else each for each in wanted]


def spread(x: HostArray, shape: tuple[int, ...]) -> HostArray:
    """Repeats ``x`` along its dimensions of size 1 to ``shape``. The result is a view only if it is large:
    ``np.broadcast_to`` takes as long as copying some thousand elements."""
    if math.prod(shape) > _LARGE_SIZE:
        return np.broadcast_to(x, shape)
    found = np.empty(shape, x.dtype)
    found[...] = x
    return found


def sum_to(gradient: HostArray, shape: tuple[int, ...]) -> HostArray:
    """Returns the gradient of a broadcast input of ``shape``, given the result's gradient, summed over repetitions."""
    if gradient.shape == shape:
        return gradient
    more = gradient.ndim - len(shape)
    if not more and len(shape) == 1:
        return np.add.reduce(gradient, axis=0, dtype=gradient.dtype, keepdims=True)
    if gradient.shape[more:] == shape:
        return sum_over(gradient, 0, more)
    axes = (*range(more), *(more + i for i, size in enumerate(shape) if size == 1 and gradient.shape[more + i] != 1))
    return np.add.reduce(gradient, axis=axes, dtype=gradient.dtype).reshape(shape)


def conjugate(x: HostArray) -> HostArray:
    """Returns the complex conjugate; ``x`` itself if it is real."""
    return x.conj() if x.dtype.kind == "c" else x


def channels_last(x: HostArray, data_format: str) -> HostArray:
    """Returns ``x`` with the channels as the last dimension."""
    return np.moveaxis(x, 1, -1) if data_format == "NCHW" else x


def given(gradient: HostArray | None, shape: Sequence[int], dtype: np.dtype[Any]) -> HostArray:
    """Returns the gradient of an output; zeros if the graph has none."""
    return np.zeros(shape, dtype) if gradient is None else gradient


def kept_shape(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """``shape`` with size 1 along ``axes``."""
    return tuple(1 if axis in axes else size for axis, size in enumerate(shape))


def check_mirrored(shape: Sequence[int], paddings: object, mode: str) -> None:
    """Raises ValueError if a dimension has too few elements to mirror."""
    for size, (before, after) in zip(shape, np.asarray(paddings).tolist(), strict=True):
        if mode == "REFLECT" and max(before, after) >= max(size, 1):
            raise ValueError(f"paddings must be less than the dimension size: {before}, {after} not less than {size}")
        if mode == "SYMMETRIC" and max(before, after) > size:
            raise ValueError(
                f"paddings must be no greater than the dimension size: {before}, {after} greater than {size}"
            )
