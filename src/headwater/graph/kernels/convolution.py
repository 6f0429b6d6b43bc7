"""Convolutions of images and volumes: products of matrices, by BLAS.

The elements of some windows are copied to the rows of a matrix that fits into a core's cache, and multiplied by the
filter.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.lib.stride_tricks import as_strided

from headwater.graph.kernels.common import Arrays, Needed, ints, sum_over
from headwater.graph.kernels.padding import Pairs, padded_by, pads_of, within
from headwater.graph.kernels.pieces import PIECE_BYTES, compute_pieces, divided, pieces_of
from headwater.graph.kernels.registry import NoKernel, gradient_kernel, kernel

if TYPE_CHECKING:
    from headwater.graph.registry import Attrs, HostArray

#: The least number of windows in a product: for each product, BLAS copies the filter.
_LEAST_WINDOWS: Final = 64
#: Up to this number, channels are added separately.
_FEW_CHANNELS: Final = 4
#: The number of parts of the batch for which the gradient of a filter is summed separately, in threads.
_SUMS: Final = 4


# Convolution ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class _Windows:
    """The positions of a convolution's windows in an image of shape [batch, height, width, channels], or in a volume,
    which also has a depth.

    Attributes:
      window: sizes of the filter, [height, width].
      strides: distance from one window to the next.
      rates: distance from one element of a window to the next.
      pads: padding of height and width.
      counts: numbers of windows.
    """

    window: Sequence[int]
    strides: Sequence[int]
    rates: Sequence[int]
    pads: Pairs
    counts: Sequence[int]

    def padded(self, image: HostArray) -> HostArray:
        return padded_by(image, ((0, 0), *self.pads, (0, 0)))

    def view(self, padded: HostArray) -> HostArray:
        """Returns a view of the elements of all windows, ``[batch, *counts, *window, channels]``."""
        batch, *steps, channel = padded.strides
        windows = [step * stride for step, stride in zip(steps, self.strides, strict=True)]
        elements = [step * rate for step, rate in zip(steps, self.rates, strict=True)]
        shape = (len(padded), *self.counts, *self.window, padded.shape[-1])
        return as_strided(padded, shape, (batch, *windows, *elements, channel), writeable=False)

    def parts(self, batch: int, nbytes: int) -> Sequence[tuple[slice, slice]]:
        """Divides the windows, each with ``nbytes`` of temporary arrays, into pieces: whole images, or, if an image has
        many windows, some of its rows. Returns slices of the images and of the rows."""
        row = math.prod(self.counts[1:])
        if self.counts[0] * row > max(_LEAST_WINDOWS, PIECE_BYTES // max(nbytes, 1)):
            rows = pieces_of(self.counts[0], row * nbytes, -(-_LEAST_WINDOWS // row))
            return list(itertools.product([slice(i, i + 1) for i in range(batch)], rows))
        size = self.counts[0] * row
        return [(images, slice(None)) for images in pieces_of(batch, size * nbytes, -(-_LEAST_WINDOWS // size))]

    def places(self) -> Iterator[tuple[int, ...]]:
        """Yields the places in a window."""
        return itertools.product(*map(range, self.window))

    def slices(self, place: Sequence[int], rows: slice = slice(None)) -> tuple[slice, ...]:
        """Returns the slices of the padded image that have the elements at ``place`` of all windows, or of those in
        some rows of windows."""
        first, last, _ = rows.indices(self.counts[0])
        spans = [(first, last), *((0, count) for count in self.counts[1:])]
        return (
            slice(None),
            *(
                slice(at * rate + start * stride, at * rate + (stop - 1) * stride + 1, stride)
                for at, rate, (start, stop), stride in zip(place, self.rates, spans, self.strides, strict=True)
            ),
        )

    def without_pads(self, padded: HostArray, size: Sequence[int]) -> HostArray:
        return padded[within(((0, 0), *self.pads, (0, 0)), size)]

    def reversed(self, size: Sequence[int]) -> _Windows:
        """Returns the windows of the result's gradient that determine the gradient of an image of ``size``, if all
        strides are 1."""
        reach = [(extent - 1) * rate for extent, rate in zip(self.window, self.rates, strict=True)]
        pads = [(far - before, far - after) for far, (before, after) in zip(reach, self.pads, strict=True)]
        return _Windows(window=self.window, strides=self.strides, rates=self.rates, pads=pads, counts=size[1:-1])


def _windows(
    size: Sequence[int], filter_shape: Sequence[int], strides: Sequence[int], padding: str, dilations: Sequence[int]
) -> _Windows:
    """Returns the windows of an image of ``size``, [batch, height, width, channels]."""
    window, steps = filter_shape[:-2], strides[1:-1]
    rates = dilations[1:-1] or [1] * len(window)
    reach = [(size - 1) * rate + 1 for size, rate in zip(window, rates, strict=True)]
    pads = pads_of(size[1:-1], reach, steps, padding)
    counts = [
        (there + sum(pad) - whole) // step + 1
        for there, pad, whole, step in zip(size[1:-1], pads, reach, steps, strict=True)
    ]
    if min(counts) < 1:
        raise NoKernel
    return _Windows(window=window, strides=steps, rates=rates, pads=pads, counts=counts)


def _columns(windows: HostArray, channels: int) -> HostArray:
    """Returns a matrix with a row for each window.

    NumPy copies runs of elements. If the rows of a window are short, runs along the rows of windows are copied, to the
    columns of the matrix.
    """
    outer = windows.ndim // 2
    if 2 * windows.shape[-2] * windows.shape[-1] >= windows.shape[outer - 1]:
        return np.ascontiguousarray(windows).reshape(-1, channels)
    by_place = windows.transpose(*range(outer, windows.ndim), *range(outer))
    return np.ascontiguousarray(by_place).reshape(channels, -1).T


def _convolved(image: HostArray, filter: HostArray, windows: _Windows) -> HostArray:
    view, matrix = windows.view(windows.padded(image)), filter.reshape(-1, filter.shape[-1])
    result = np.empty((len(image), *windows.counts, filter.shape[-1]), image.dtype)

    def compute(part: tuple[slice, slice]) -> None:
        np.matmul(_columns(view[part], len(matrix)), matrix, out=result[part].reshape(-1, filter.shape[-1]))

    compute_pieces(compute, windows.parts(len(image), len(matrix) * image.itemsize))
    return result


def _for_image(size: Sequence[int], filter: HostArray, gradient: HostArray, windows: _Windows) -> HostArray:
    """The gradient of an image of ``size``."""
    if {*windows.strides} == {1}:
        mirrored = np.flip(filter, tuple(range(filter.ndim - 2))).swapaxes(-1, -2)
        return _convolved(gradient, np.ascontiguousarray(mirrored), windows.reversed(size))
    padded, matrix = windows.padded(np.zeros(size, gradient.dtype)), filter.reshape(-1, filter.shape[-1]).T
    # NumPy would add few channels in short loops; separately, they are added in loops over the columns.
    each: Any = range(size[-1]) if size[-1] <= _FEW_CHANNELS else [slice(None)]

    def compute(parts: Sequence[tuple[slice, slice]]) -> None:
        for images, rows in parts:
            given, target = gradient[images, rows], padded[images]
            products = np.matmul(given.reshape(-1, len(matrix)), matrix)
            products = products.reshape(*given.shape[:-1], *filter.shape[:-1])
            for place in windows.places():
                slices = windows.slices(place, rows)
                for channels in each:
                    target[*slices, channels] += products[..., *place, channels]

    # Windows in the rows of one image may overlap, so one thread computes all of them.
    parts = windows.parts(len(gradient), matrix.shape[1] * gradient.itemsize)
    compute_pieces(compute, [[*group] for _, group in itertools.groupby(parts, lambda part: part[0].start)])
    return windows.without_pads(padded, size)


def _for_filter(image: HostArray, shape: Sequence[int], gradient: HostArray, windows: _Windows) -> HostArray:
    """The gradient of a filter of ``shape``."""
    view, channels = windows.view(windows.padded(image)), math.prod(shape[:-1])
    parts = windows.parts(len(image), channels * image.itemsize)
    totals = np.zeros((min(_SUMS, len(parts)), channels, shape[-1]), image.dtype)

    shares = divided(len(parts), len(totals))

    def compute(index: int) -> None:
        for part in parts[shares[index]]:
            columns = _columns(view[part], channels)
            totals[index] += np.matmul(columns.T, gradient[part].reshape(-1, shape[-1]))

    compute_pieces(compute, range(len(totals)))
    return np.add.reduce(totals, axis=0).reshape(shape)


@dataclass(frozen=True, slots=True)
class _Layout:
    """Layout of images; within this module, channels are the last dimension."""

    channels_first: bool

    def last(self, image: HostArray) -> HostArray:
        return np.ascontiguousarray(np.moveaxis(image, 1, -1)) if self.channels_first else image

    def back(self, image: HostArray) -> HostArray:
        return np.moveaxis(image, -1, 1) if self.channels_first else image

    def sizes(self, values: Sequence[int]) -> Sequence[int]:
        return (values[0], *values[2:], values[1]) if self.channels_first and values else values


@dataclass(frozen=True, slots=True)
class _Settings:
    """The attributes of a convolution."""

    layout: _Layout
    strides: Sequence[int]
    padding: str
    dilations: Sequence[int]

    @staticmethod
    def of(attrs: Attrs) -> _Settings:
        if attrs.get("explicit_paddings") or attrs["padding"] == "EXPLICIT":
            raise NoKernel
        layout = _Layout(attrs.get("data_format", "NHWC")[1] == "C")
        dilations = layout.sizes(attrs.get("dilations", ()))
        return _Settings(layout, layout.sizes(attrs["strides"]), attrs["padding"], dilations)

    def windows(self, size: Sequence[int], filter_shape: Sequence[int]) -> _Windows:
        return _windows(size, filter_shape, self.strides, self.padding, self.dilations)


def _checked(channels: int, filter: Sequence[int], dtype: np.dtype[Any]) -> None:
    """Raises NoKernel for groups of channels, and for element types that BLAS does not support."""
    if channels != filter[-2] or dtype.itemsize < 4:
        raise NoKernel


@kernel("Conv2D", "Conv3D")
def convolution(input: HostArray, filter: HostArray, *, use_cudnn_on_gpu: bool = True, **attrs: object) -> HostArray:
    """Cross-correlation with a filter of shape [height, width, channels in, channels out], for volumes [depth, …]."""
    del use_cudnn_on_gpu
    settings = _Settings.of(attrs)
    image = settings.layout.last(input)
    _checked(image.shape[-1], filter.shape, input.dtype)
    return settings.layout.back(_convolved(image, filter, settings.windows(image.shape, filter.shape)))


@kernel("Conv2DBackpropInput", "Conv3DBackpropInputV2")
def convolution_backprop_input(
    input_sizes: HostArray,
    filter: HostArray,
    out_backprop: HostArray,
    *,
    use_cudnn_on_gpu: bool = True,
    **attrs: object,
) -> HostArray:
    """The gradient of `convolution` for its input; also the transposed convolution."""
    del use_cudnn_on_gpu
    settings = _Settings.of(attrs)
    sizes = ints(input_sizes)
    size = settings.layout.sizes((len(out_backprop), *sizes[1:]) if sizes[0] == -1 else sizes)
    _checked(size[-1], filter.shape, filter.dtype)
    gradient = settings.layout.last(out_backprop)
    return settings.layout.back(_for_image(size, filter, gradient, settings.windows(size, filter.shape)))


@kernel("Conv2DBackpropFilter", "Conv3DBackpropFilterV2")
def convolution_backprop_filter(
    input: HostArray,
    filter_sizes: HostArray,
    out_backprop: HostArray,
    *,
    use_cudnn_on_gpu: bool = True,
    **attrs: object,
) -> HostArray:
    """The gradient of `convolution` for its filter."""
    del use_cudnn_on_gpu
    settings = _Settings.of(attrs)
    image, shape = settings.layout.last(input), ints(filter_sizes)
    _checked(image.shape[-1], shape, input.dtype)
    gradient = settings.layout.last(out_backprop)
    return _for_filter(image, shape, gradient, settings.windows(image.shape, shape))


@gradient_kernel("Conv2D", "Conv3D")
def convolution_gradient(inputs: Arrays, grads: Arrays, needed: Needed, attrs: Attrs) -> Arrays:
    """See `convolution_backprop_input` and `convolution_backprop_filter`."""
    image, filter = inputs
    return (
        convolution_backprop_input(np.array(image.shape), filter, grads[0], **attrs) if needed[0] else None,
        convolution_backprop_filter(image, np.array(filter.shape), grads[0], **attrs) if needed[1] else None,
    )


@gradient_kernel("Conv2DBackpropInput")
def convolution_backprop_input_gradient(inputs: Arrays, grads: Arrays, needed: Needed, attrs: Attrs) -> Arrays:
    """Returns the gradients of a transposed convolution's filter and image; the latter is a convolution of the
    gradient."""
    _, filter, image = inputs
    return (
        None,
        convolution_backprop_filter(grads[0], np.array(filter.shape), image, **attrs) if needed[1] else None,
        convolution(grads[0], filter, **attrs) if needed[2] else None,
    )


# Separate convolutions of channels ----------------------------------------------------------------------------------


@kernel("DepthwiseConv2dNative")
def depthwise_conv2d(input: HostArray, filter: HostArray, **attrs: object) -> HostArray:
    """A convolution of each channel with its own filters; filter's shape is [height, width, channels, multiplier]."""
    settings = _Settings.of(attrs)
    image = settings.layout.last(input)
    windows = settings.windows(image.shape, filter.shape)
    return settings.layout.back(_depthwise(_repeated(image, filter.shape[3]), filter, windows))


def _depthwise(image: HostArray, filter: HostArray, windows: _Windows) -> HostArray:
    view = windows.view(windows.padded(image))
    result = np.zeros((len(image), *windows.counts, image.shape[-1]), image.dtype)
    factors = {place: _in_each_column(filter, place, windows) for place in windows.places()}

    def compute(part: tuple[slice, slice]) -> None:
        elements, total = view[part], result[part]
        product = np.empty_like(total)
        for place, factor in factors.items():
            total += np.multiply(elements[..., *place, :], factor, out=product)

    compute_pieces(compute, windows.parts(len(image), image.shape[-1] * image.itemsize))
    return result


def _repeated(image: HostArray, times: int) -> HostArray:
    """Returns each channel as often as it has filters."""
    return image if times == 1 else np.repeat(image, times, axis=3)


def _in_each_column(filter: HostArray, place: tuple[int, ...], windows: _Windows) -> HostArray:
    """Returns the filter's elements at ``place`` once for each column, because NumPy multiplies long rows faster."""
    return np.tile(filter[place].ravel(), (windows.counts[1], 1))


@gradient_kernel("DepthwiseConv2dNative")
def depthwise_gradient(inputs: Arrays, grads: Arrays, needed: Needed, attrs: Attrs) -> Arrays:
    """The gradients of image and filter: products of the result's gradient with the other operand."""
    settings = _Settings.of(attrs)
    image, filter = settings.layout.last(inputs[0]), inputs[1]
    windows = settings.windows(image.shape, filter.shape)
    gradient = settings.layout.last(grads[0])
    for_image = _depthwise_for_image(image.shape, filter, gradient, windows) if needed[0] else None
    return (
        None if for_image is None else settings.layout.back(for_image),
        _depthwise_for_filter(_repeated(image, filter.shape[3]), filter.shape, gradient, windows)
        if needed[1]
        else None,
    )


def _depthwise_for_image(size: Sequence[int], filter: HostArray, gradient: HostArray, windows: _Windows) -> HostArray:
    each = filter.shape[3]
    wide = (*size[:-1], size[-1] * each)
    if {*windows.strides} == {1}:
        found = _depthwise(gradient, np.flip(filter, (0, 1)), windows.reversed(wide))
    else:
        padded = windows.padded(np.zeros(wide, gradient.dtype))
        factors = {place: _in_each_column(filter, place, windows) for place in windows.places()}

        def compute(images: slice) -> None:
            given, target = gradient[images], padded[images]
            product = np.empty_like(given)
            for place, factor in factors.items():
                target[windows.slices(place)] += np.multiply(given, factor, out=product)

        compute_pieces(compute, pieces_of(len(padded), padded[:1].nbytes))
        found = windows.without_pads(padded, wide)
    return functools.reduce(np.add, [found[..., start::each] for start in range(each)]) if each > 1 else found


def _depthwise_for_filter(image: HostArray, shape: Sequence[int], gradient: HostArray, windows: _Windows) -> HostArray:
    view = windows.view(windows.padded(image))
    parts = windows.parts(len(image), image.shape[-1] * image.itemsize)
    totals = np.zeros((len(parts), *windows.window, image.shape[-1]), image.dtype)

    def compute(index: int) -> None:
        elements, given = view[parts[index]], gradient[parts[index]]
        product = np.empty_like(given)
        for place in windows.places():
            np.multiply(elements[..., *place, :], given, out=product)
            totals[(index, *place)] = sum_over(product, 0, product.ndim - 1)

    compute_pieces(compute, range(len(parts)))
    return np.add.reduce(totals, axis=0, dtype=image.dtype).reshape(shape)
