"""Slices of tensors, and their gradients."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.graph.kernels.common import Arrays, Needed, ints
from headwater.graph.kernels.registry import gradient_kernel, kernel

if TYPE_CHECKING:
    from headwater.graph.registry import Attrs, HostArray


@dataclass(frozen=True, slots=True)
class Entry:
    """The effect of a strided slice on one dimension: a dimension of the input, or a dimension that the slice adds.

    Attributes:
      position: its position in begin, end and strides; -1 for a dimension covered by an ellipsis.
      adds: whether it adds a dimension.
      drops: whether it takes a single element, so that the result lacks the dimension.
      begin: whether the given begin is used; otherwise the slice starts at the first element (at the last element for a
        negative stride).
      end: whether the given end is used; otherwise the slice takes all remaining elements.
    """

    position: int
    adds: bool = False
    drops: bool = False
    begin: bool = False
    end: bool = False


Masks = tuple[int, int, int, int, int]
"""The masks of begin, end, ellipsis, new_axis and shrink_axis."""


def masks_of(attrs: Attrs) -> Masks:
    """The masks in a strided slice's attributes."""
    begin, end, ellipsis, new_axis, shrink_axis = (
        int(attrs.get(f"{name}_mask", 0)) for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    )
    return begin, end, ellipsis, new_axis, shrink_axis


@functools.lru_cache(maxsize=1024)
def entries(masks: Masks, count: int, rank: int) -> tuple[Entry, ...]:
    """Expands a slice: returns one entry for each dimension of the input, and for each added dimension."""
    begins, ends, ellipses, adds, drops = masks

    def has(mask: int, position: int) -> bool:
        return bool(mask >> position & 1)

    ellipsis = next((i for i in range(count) if has(ellipses, i)), count)
    consuming = sum(1 for i in range(count) if i != ellipsis and not has(adds, i))
    if consuming > rank:
        raise ValueError(f"Index out of range using input dim {consuming - 1}; input has only {rank} dims")
    result: list[Entry] = []
    for i in range(count):
        if i == ellipsis:
            result.extend([Entry(-1)] * (rank - consuming))
        elif has(adds, i):
            result.append(Entry(i, adds=True))
        else:
            single = has(drops, i)
            result.append(Entry(i, drops=single, begin=single or not has(begins, i), end=not has(ends, i)))
    if ellipsis == count:
        result.extend([Entry(-1)] * (rank - consuming))
    return tuple(result)


def keys(
    parts: Sequence[Entry], begin: Sequence[int], end: Sequence[int], strides: Sequence[int], sizes: Sequence[int]
) -> Iterator[Any]:
    """Converts each entry to an index for Python's brackets.

    Raises:
      ValueError: an element is out of bounds; the message names it and its dimension.
    """
    axis = 0
    for entry in parts:
        if entry.adds:
            yield None
            continue
        if entry.position == -1:
            yield slice(None)
        elif entry.drops:
            first = begin[entry.position]
            if not -sizes[axis] <= first < sizes[axis]:
                raise ValueError(f"slice index {first} of dimension {axis} out of bounds.")
            yield first
        else:
            first = begin[entry.position] if entry.begin else None
            yield slice(first, end[entry.position] if entry.end else None, strides[entry.position])
        axis += 1


@lru_cache(maxsize=4096)
def _key(
    begin: tuple[int, ...], end: tuple[int, ...], strides: tuple[int, ...], masks: Masks, sizes: tuple[int, ...]
) -> tuple[Any, ...]:
    return tuple(keys(entries(masks, len(strides), len(sizes)), begin, end, strides, sizes))


def key_of(begin: HostArray, end: HostArray, strides: HostArray, masks: Masks, sizes: tuple[int, ...]) -> Any:
    """Converts a strided slice of an array of ``sizes`` to an index for Python's brackets."""
    return _key(tuple(begin.tolist()), tuple(end.tolist()), tuple(strides.tolist()), masks, sizes)


@kernel("StridedSlice")
def strided_slice(
    input: HostArray,
    begin: HostArray,
    end: HostArray,
    strides: HostArray,
    *,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> HostArray:
    """Python's slicing: ``input[begin:end:strides, ...]``; see `headwater.graph.ops.slices.strided_slice`."""
    masks = begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask
    return input[key_of(begin, end, strides, masks, input.shape)]


@gradient_kernel("StridedSlice")
def strided_slice_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, attrs: Attrs) -> Arrays:
    """Zeros with the gradient where the slice was taken."""
    x, begin, end, strides = inputs
    result = np.zeros(x.shape, x.dtype)
    result[key_of(begin, end, strides, masks_of(attrs), x.shape)] = grads[0]
    return result, None, None, None


@kernel("StridedSliceGrad")
def strided_slice_grad(
    shape: HostArray,
    begin: HostArray,
    end: HostArray,
    strides: HostArray,
    dy: HostArray,
    *,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> HostArray:
    """Returns zeros of a shape, with ``dy`` at the positions of the elements that a strided slice takes."""
    masks = begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask
    result = np.zeros(ints(shape), dy.dtype)
    result[key_of(begin, end, strides, masks, result.shape)] = dy
    return result


@kernel("Slice")
def slice_(input: HostArray, begin: HostArray, size: HostArray) -> HostArray:
    """Returns, for each dimension, ``size`` elements from ``begin`` on; all remaining elements if ``size`` is -1."""
    return input[slice_key(begin.tolist(), size.tolist(), input.shape)]


def slice_key(begin: Sequence[int], counts: Sequence[int], sizes: Sequence[int]) -> tuple[slice, ...]:
    """Converts a slice of an array of ``sizes`` to an index for Python's brackets.

    Raises:
      ValueError: the slice exceeds a dimension; the message names the dimension.
    """
    found: list[slice] = []
    for axis, (first, count, dim_size) in enumerate(zip(begin, counts, sizes, strict=True)):
        stop = dim_size if count == -1 else first + count
        if not 0 <= first <= stop <= dim_size:
            raise ValueError(
                f"Expected 0 <= begin[{axis}] <= begin[{axis}] + size[{axis}] <= {dim_size}, but got [{first}, {stop})"
            )
        found.append(slice(first, stop))
    return tuple(found)


@gradient_kernel("Slice")
def slice_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """Zeros with the gradient where the slice was taken."""
    x, begin, size = inputs
    result = np.zeros(x.shape, x.dtype)
    result[slice_key(begin.tolist(), size.tolist(), x.shape)] = grads[0]
    return result, None, None
