"""Convolutions and pooling over small images and volumes: sums of products of shifted images, by BLAS.

The result at each position is a sum over the offsets within a window. For one offset, the elements of all windows are a
strided slice of the padded image, so each offset takes one matrix product.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from headwater.graph.kernels.common import Arrays, Needed, ints, is_floating, sum_over
from headwater.graph.kernels.registry import NoKernel, gradient_kernel, kernel

if TYPE_CHECKING:
    from headwater.graph.registry import Attrs, HostArray

#: Up to this number of channels, the elements at all offsets are multiplied as one matrix, because with few channels, a
#: separate product for each offset is slow.
_FEW_CHANNELS: Final = 16

Pairs = Sequence[tuple[int, int]]


def _pads(sizes: Sequence[int], reach: Sequence[int], strides: Sequence[int], padding: str) -> list[tuple[int, int]]:
    """Returns the padding before and after each dimension; see `headwater.graph.ops.convolution`."""
    if padding == "VALID":
        if any(size - window + stride < 0 for size, window, stride in zip(sizes, reach, strides, strict=True)):
            raise NoKernel  # the executable explains the error
        return [(0, 0)] * len(sizes)
    if padding != "SAME":
        raise NoKernel
    totals = [
        max((-(-size // stride) - 1) * stride + window - size, 0)
        for size, window, stride in zip(sizes, reach, strides, strict=True)
    ]
    return [(total // 2, total - total // 2) for total in totals]


def _padded(x: HostArray, pads: Pairs, value: object = 0) -> HostArray:
    if not any(before or after for before, after in pads):
        return x
    sizes = [before + size + after for (before, after), size in zip(pads, x.shape, strict=True)]
    result = np.full(sizes, value, x.dtype)
    result[_within(pads, x.shape)] = x
    return result


def _within(pads: Pairs, sizes: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(before, before + size) for (before, _), size in zip(pads, sizes, strict=True))


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

    @property
    def plain(self) -> bool:
        """Whether each window is a single element, and no two windows have the same element."""
        return {*self.window, *self.strides} == {1} and not any(map(any, self.pads))

    def padded(self, image: HostArray) -> HostArray:
        return _padded(image, ((0, 0), *self.pads, (0, 0)))

    def offsets(self) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
        """Yields, for each element of a window, its place, and the slices of the padded image."""
        for place in itertools.product(*map(range, self.window)):
            parts = [
                slice(at * rate, at * rate + (count - 1) * stride + 1, stride)
                for at, rate, count, stride in zip(place, self.rates, self.counts, self.strides, strict=True)
            ]
            yield place, (slice(None), *parts)

    def columns(self, padded: HostArray) -> HostArray:
        """Returns all elements of each window, ``[windows, height * width * channels]``."""
        parts = [padded[key] for _, key in self.offsets()]
        return np.stack(parts, axis=-2).reshape(-1, len(parts) * padded.shape[-1])

    def without_pads(self, padded: HostArray, size: Sequence[int]) -> HostArray:
        return padded[_within(((0, 0), *self.pads, (0, 0)), size)]


def _windows(
    size: Sequence[int], filter_shape: Sequence[int], strides: Sequence[int], padding: str, dilations: Sequence[int]
) -> _Windows:
    """Returns the windows of an image of ``size``, [batch, height, width, channels]."""
    window, steps = filter_shape[:-2], strides[1:-1]
    rates = dilations[1:-1] or [1] * len(window)
    reach = [(size - 1) * rate + 1 for size, rate in zip(window, rates, strict=True)]
    pads = _pads(size[1:-1], reach, steps, padding)
    counts = [
        (there + sum(pad) - whole) // step + 1
        for there, pad, whole, step in zip(size[1:-1], pads, reach, steps, strict=True)
    ]
    if min(counts) < 1:
        raise NoKernel
    return _Windows(window=window, strides=steps, rates=rates, pads=pads, counts=counts)


def _convolved(image: HostArray, filter: HostArray, windows: _Windows) -> HostArray:
    shape = (len(image), *windows.counts, filter.shape[-1])
    if windows.plain:
        return np.matmul(image, filter.reshape(filter.shape[-2:]))
    padded = windows.padded(image)
    if image.shape[-1] <= _FEW_CHANNELS:
        return np.matmul(windows.columns(padded), filter.reshape(-1, filter.shape[-1])).reshape(shape)
    result = np.zeros(shape, image.dtype)
    for place, key in windows.offsets():
        result += np.matmul(padded[key], filter[place])
    return result


def _for_image(size: Sequence[int], filter: HostArray, gradient: HostArray, windows: _Windows) -> HostArray:
    """The gradient of an image of ``size``."""
    if windows.plain:
        return np.matmul(gradient, filter.reshape(filter.shape[-2:]).T)
    padded = windows.padded(np.zeros(size, gradient.dtype))
    for place, key in windows.offsets():
        padded[key] += np.matmul(gradient, filter[place].T)
    return windows.without_pads(padded, size)


def _for_filter(image: HostArray, shape: Sequence[int], gradient: HostArray, windows: _Windows) -> HostArray:
    """The gradient of a filter of ``shape``."""
    flat = gradient.reshape(-1, gradient.shape[-1])
    padded = windows.padded(image)
    if image.shape[-1] <= _FEW_CHANNELS:
        return np.matmul(windows.columns(padded).T, flat).reshape(shape)
    result = np.empty(shape, image.dtype)
    for place, key in windows.offsets():
        np.matmul(padded[key].reshape(-1, image.shape[-1]).T, flat, out=result[place])
    return result


@dataclass(frozen=True, slots=True)
class _Layout:
    """Layout of images; within this module, channels are the last dimension."""

    channels_first: bool

    def last(self, image: HostArray) -> HostArray:
        return np.moveaxis(image, 1, -1) if self.channels_first else image

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


@kernel("DepthwiseConv2dNative")
def depthwise_conv2d(input: HostArray, filter: HostArray, **attrs: object) -> HostArray:
    """A convolution of each channel with its own filters; filter's shape is [height, width, channels, multiplier]."""
    settings = _Settings.of(attrs)
    image = settings.layout.last(input)
    windows = settings.windows(image.shape, filter.shape)
    padded = _repeated(windows.padded(image), filter.shape[3])
    result = np.zeros((len(image), *windows.counts, padded.shape[3]), image.dtype)
    product = np.empty_like(result)
    for place, key in windows.offsets():
        result += np.multiply(padded[key], _in_each_column(filter, place, windows), out=product)
    return settings.layout.back(result)


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
    padded = _repeated(windows.padded(image), filter.shape[3])
    for_image, for_filter = np.zeros(padded.shape, image.dtype), np.empty(filter.shape, filter.dtype)
    product = np.empty_like(gradient)
    for place, key in windows.offsets():
        if needed[0]:
            for_image[key] += np.multiply(gradient, _in_each_column(filter, place, windows), out=product)
        if needed[1]:
            np.multiply(padded[key], gradient, out=product)
            for_filter[place] = sum_over(product, 0, 3).reshape(filter.shape[2:])
    each = filter.shape[3]
    for_image = functools.reduce(np.add, [for_image[..., start::each] for start in range(each)])
    return settings.layout.back(windows.without_pads(for_image, image.shape)), for_filter


# Pooling ----------------------------------------------------------------------------------------------------------


def _pool_slices(sizes: Sequence[int], attrs: Attrs) -> tuple[Pairs, list[tuple[slice, ...]]]:
    """Returns the padding, and for each offset within a window the slices of the padded array."""
    window, strides = attrs["ksize"], attrs["strides"]
    pads = _pads(sizes, window, strides, attrs["padding"])
    counts = [
        (size + sum(pad) - reach) // stride + 1
        for size, pad, reach, stride in zip(sizes, pads, window, strides, strict=True)
    ]
    if min(counts) < 1:
        raise NoKernel
    keys = [
        tuple(
            slice(start, start + (count - 1) * stride + 1, stride)
            for start, count, stride in zip(offset, counts, strides, strict=True)
        )
        for offset in itertools.product(*map(range, window))
    ]
    return pads, keys


def _lowest(dtype: np.dtype[Any]) -> float | int:
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


@kernel("MaxPool", "MaxPool3D")
def max_pool(input: HostArray, **attrs: object) -> HostArray:
    """The maximum of each window."""
    pads, keys = _pool_slices(input.shape, attrs)
    padded = _padded(input, pads, _lowest(input.dtype))
    result = np.array(padded[keys[0]])
    for key in keys[1:]:
        np.maximum(result, padded[key], out=result)
    if is_floating(result.dtype) and np.isnan(result).any():
        # As in an executable, NaN is the result only if it is a window's first element.
        result = padded[keys[0]]
        for key in keys[1:]:
            result = np.where(result < padded[key], padded[key], result)
    return result


def _to_maxima(image: HostArray, pooled: HostArray, gradient: HostArray, attrs: Attrs) -> HostArray:
    """Returns the gradient of the image: each window's gradient is added to the window's maximum, the first one if
    several elements are equal."""
    pads, keys = _pool_slices(image.shape, attrs)
    padded = _padded(image, pads, _lowest(image.dtype))
    result, left = np.zeros(padded.shape, gradient.dtype), np.array(gradient)
    # Masks of bits select elements several times faster than `np.where`.
    bits = np.dtype(f"i{left.dtype.itemsize}")
    rest = left.view(bits)
    for key in keys:
        moved = (padded[key] == pooled).astype(bits)
        np.negative(moved, out=moved)
        moved &= rest
        rest ^= moved
        result[key] += moved.view(left.dtype)
    return result[_within(pads, image.shape)]


@gradient_kernel("MaxPool", "MaxPool3D", outputs=True)
def max_pool_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, attrs: Attrs, outputs: Arrays) -> Arrays:
    """See `_to_maxima`."""
    return (_to_maxima(inputs[0], outputs[0], grads[0], attrs),)


@kernel("MaxPoolGrad", "MaxPool3DGrad")
def max_pool_grad(orig_input: HostArray, orig_output: HostArray, grad: HostArray, **attrs: object) -> HostArray:
    """The gradient of MaxPool."""
    return _to_maxima(orig_input, orig_output, grad, attrs)


def _window_sizes(sizes: Sequence[int], pads: Pairs, keys: Sequence[tuple[slice, ...]], dtype: np.dtype[Any]) -> object:
    """Returns the number of elements of each window without padding."""
    if not any(before or after for before, after in pads):
        return dtype.type(len(keys))
    inside = _padded(np.ones(sizes, dtype), pads)
    total = inside[keys[0]].copy()
    for key in keys[1:]:
        total += inside[key]
    return total


@kernel("AvgPool", "AvgPool3D")
def avg_pool(value: HostArray, **attrs: object) -> HostArray:
    """The mean of each window without padding."""
    pads, keys = _pool_slices(value.shape, attrs)
    padded = _padded(value, pads)
    total = padded[keys[0]].copy()
    for key in keys[1:]:
        total += padded[key]
    return total / _window_sizes((1, *value.shape[1:]), pads, keys, value.dtype)


def _to_windows(sizes: Sequence[int], gradient: HostArray, attrs: Attrs) -> HostArray:
    """Returns the gradient of the image: each window's gradient is divided equally among the window's elements."""
    pads, keys = _pool_slices(sizes, attrs)
    share = gradient / _window_sizes((1, *sizes[1:]), pads, keys, gradient.dtype)
    result = _padded(np.zeros(sizes, gradient.dtype), pads)
    for key in keys:
        result[key] += share
    return result[_within(pads, sizes)]


@gradient_kernel("AvgPool", "AvgPool3D")
def avg_pool_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, attrs: Attrs) -> Arrays:
    """See `_to_windows`."""
    return (_to_windows(inputs[0].shape, grads[0], attrs),)


@kernel("AvgPoolGrad", "AvgPool3DGrad")
def avg_pool_grad(orig_input_shape: HostArray, grad: HostArray, **attrs: object) -> HostArray:
    """The gradient of AvgPool."""
    return _to_windows(ints(orig_input_shape), grad, attrs)
