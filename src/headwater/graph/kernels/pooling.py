"""Pooling over images and volumes: maxima and sums of slices of the image, one for each place in a window.

With strides of 1, rows and columns are pooled one after the other: for windows of 3 × 3, these are two times three
slices instead of nine.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from headwater.graph.kernels.common import Arrays, Needed, ints, is_floating
from headwater.graph.kernels.padding import padded_by, pads_of, within
from headwater.graph.kernels.pieces import compute_pieces, pieces_of
from headwater.graph.kernels.registry import NoKernel, gradient_kernel, kernel

if TYPE_CHECKING:
    from headwater.graph.registry import Attrs, HostArray


Places: TypeAlias = list[tuple[slice, ...]]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Windows:
    """The windows of an array of shape ``sizes``; each field has one entry for each dimension."""

    sizes: Sequence[int]
    window: Sequence[int]
    strides: Sequence[int]
    pads: Sequence[tuple[int, int]]
    counts: Sequence[int]

    @staticmethod
    def of(sizes: Sequence[int], attrs: Attrs) -> _Windows:
        window, strides = attrs["ksize"], attrs["strides"]
        pads = pads_of(sizes, window, strides, attrs["padding"])
        counts = [
            (size + sum(pad) - reach) // stride + 1
            for size, pad, reach, stride in zip(sizes, pads, window, strides, strict=True)
        ]
        if min(counts) < 1:
            raise NoKernel
        return _Windows(sizes=sizes, window=window, strides=strides, pads=pads, counts=counts)

    def pieces(self, nbytes: int) -> Sequence[slice]:
        """Divides the batch into pieces; an image has ``nbytes``."""
        if self.window[0] != 1 or self.strides[0] != 1:
            return [slice(None)]
        return pieces_of(self.sizes[0], nbytes // 2)

    def _places(self, axes: Sequence[int]) -> Places:
        """Returns, for each place in a window along ``axes``, the slices of the padded array with these elements."""
        spans = [[slice(None)]] * len(self.sizes)
        for axis in axes:
            if self.window[axis] == self.strides[axis] == 1:
                continue
            stride, reach = self.strides[axis], (self.counts[axis] - 1) * self.strides[axis] + 1
            spans[axis] = [slice(place, place + reach, stride) for place in range(self.window[axis])]
        return list(itertools.product(*spans))

    def places(self) -> Places:
        """Returns, for each place in a window, the slices of the padded array with these elements."""
        return self._places(range(len(self.sizes)))

    def stages(self) -> list[Places]:
        """Returns the slices to combine in each pass; with larger strides than 1, one pass takes less time."""
        if {*self.strides} == {1}:
            axes = [axis for axis in reversed(range(len(self.sizes))) if self.window[axis] > 1]
            return [self._places([axis]) for axis in axes] or [self.places()]
        return [self.places()]

    def elements(self, dtype: np.dtype[Any]) -> Any:
        """Returns the number of elements of each window without padding, in a shape that broadcasts to the result's."""
        result: Any = dtype.type(1)
        for axis in range(len(self.sizes)):
            starts = np.arange(self.counts[axis]) * self.strides[axis] - self.pads[axis][0]
            stops = np.minimum(starts + self.window[axis], self.sizes[axis])
            inside = (stops - np.maximum(starts, 0)).astype(dtype)
            same = (inside == inside[0]).all()
            result = result * (inside[0] if same else inside.reshape(-1, *[1] * (len(self.sizes) - 1 - axis)))
        return result

    def reduced(self, array: HostArray, combine: Callable[..., HostArray]) -> HostArray:
        """Combines the elements of each window."""
        for places in self.stages():
            array = _combined(array, places, combine)
        return array


def _combined(array: HostArray, places: Places, combine: Callable[..., HostArray]) -> HostArray:
    first, *rest = [array[key] for key in places]
    result = combine(first, rest[0]) if rest else np.array(first)
    for part in rest[1:]:
        combine(result, part, out=result)
    return result


def _lowest(dtype: np.dtype[Any]) -> float | int:
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


@kernel("MaxPool", "MaxPool3D")
def max_pool(input: HostArray, **attrs: object) -> HostArray:
    """The maximum of each window."""
    windows = _Windows.of(input.shape, attrs)
    result = np.empty(windows.counts, input.dtype)

    def compute(images: slice) -> None:
        whole = padded_by(input[images], windows.pads, _lowest(input.dtype))
        value = windows.reduced(whole, np.maximum)
        if is_floating(value.dtype) and np.isnan(value).any():
            # As in an executable, NaN is the result only if it is a window's first element.
            first, *rest = [whole[key] for key in windows.places()]
            value = functools.reduce(lambda most, part: np.where(most < part, part, most), rest, first)
        result[images] = value

    compute_pieces(compute, windows.pieces(input[:1].nbytes))
    return result


def _to_maxima(image: HostArray, pooled: HostArray, gradient: HostArray, attrs: Attrs) -> HostArray:
    """Returns the gradient of the image: each window's gradient is added to the window's maximum, the first one if
    several elements are equal."""
    windows = _Windows.of(image.shape, attrs)
    result = np.empty(image.shape, gradient.dtype)

    def compute(images: slice) -> None:
        slope, stages = gradient[images], windows.stages()
        found = [padded_by(image[images], windows.pads, _lowest(image.dtype))]
        for places in stages[:-1]:
            found.append(_combined(found[-1], places, np.maximum))
        if is_floating(image.dtype) and np.isnan(found[-1]).any():
            stages, found = [windows.places()], found[:1]
        found.append(pooled[images])
        overlap = any(map(operator.gt, windows.window, windows.strides))
        for places, (before, after) in reversed([*zip(stages, itertools.pairwise(found), strict=True)]):
            slope = _moved(slope, before, after, places, overlap=overlap)
        result[images] = slope[within(windows.pads, result[images].shape)]

    compute_pieces(compute, windows.pieces(image[:1].nbytes))
    return result


def _moved(slope: HostArray, elements: HostArray, largest: HostArray, places: Places, *, overlap: bool) -> HostArray:
    """Returns the slope of ``elements``: the slope of each window's maximum, at the first element that equals it."""
    result, left = np.zeros(elements.shape, slope.dtype), np.array(slope)
    # Masks of bits select elements several times faster than `np.where`.
    bits = np.dtype(f"i{left.dtype.itemsize}")
    rest, target = left.view(bits), result.view(bits)
    for key in places:
        moved = (elements[key] == largest).astype(bits)
        np.negative(moved, out=moved)
        moved &= rest
        rest ^= moved
        if overlap:
            result[key] += moved.view(left.dtype)
        else:
            target[key] = moved
    return result


@gradient_kernel("MaxPool", "MaxPool3D", outputs=True)
def max_pool_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, attrs: Attrs, outputs: Arrays) -> Arrays:
    """See `_to_maxima`."""
    return (_to_maxima(inputs[0], outputs[0], grads[0], attrs),)


@kernel("MaxPoolGrad", "MaxPool3DGrad")
def max_pool_grad(orig_input: HostArray, orig_output: HostArray, grad: HostArray, **attrs: object) -> HostArray:
    """The gradient of MaxPool."""
    return _to_maxima(orig_input, orig_output, grad, attrs)


@kernel("AvgPool", "AvgPool3D")
def avg_pool(value: HostArray, **attrs: object) -> HostArray:
    """The mean of each window without padding."""
    windows = _Windows.of(value.shape, attrs)
    result, elements = np.empty(windows.counts, value.dtype), windows.elements(value.dtype)

    def compute(images: slice) -> None:
        total = windows.reduced(padded_by(value[images], windows.pads), np.add)
        np.divide(total, elements, out=result[images])

    compute_pieces(compute, windows.pieces(value[:1].nbytes))
    return result


def _to_windows(sizes: Sequence[int], gradient: HostArray, attrs: Attrs) -> HostArray:
    """Returns the gradient of the image: each window's gradient is divided equally among the window's elements."""
    windows = _Windows.of(sizes, attrs)
    result, elements = np.empty(sizes, gradient.dtype), windows.elements(gradient.dtype)
    whole = [size + sum(pad) for size, pad in zip(sizes, windows.pads, strict=True)]

    def compute(images: slice) -> None:
        slope = gradient[images] / elements
        for places in reversed(windows.stages()):
            shape = [
                count if key == slice(None) else size
                for key, count, size in zip(places[0], slope.shape, whole, strict=True)
            ]
            spread = np.zeros(shape, slope.dtype)
            for key in places:
                spread[key] += slope
            slope = spread
        result[images] = slope[within(windows.pads, result[images].shape)]

    compute_pieces(compute, windows.pieces(result[:1].nbytes))
    return result


@gradient_kernel("AvgPool", "AvgPool3D")
def avg_pool_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, attrs: Attrs) -> Arrays:
    """See `_to_windows`."""
    return (_to_windows(inputs[0].shape, grads[0], attrs),)


@kernel("AvgPoolGrad", "AvgPool3DGrad")
def avg_pool_grad(orig_input_shape: HostArray, grad: HostArray, **attrs: object) -> HostArray:
    """The gradient of AvgPool."""
    return _to_windows(ints(orig_input_shape), grad, attrs)
