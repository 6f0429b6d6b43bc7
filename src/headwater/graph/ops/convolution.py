"""Convolutions of images and volumes, and pooling over them.

``data_format`` is the position of the channels: last (``NHWC``, ``NDHWC``) or second (``NCHW``, ``NCDHW``). With
``SAME``, the padding is chosen so that there are ⌈size / stride⌉ outputs. It is divided between both sides; if it is
odd, the end gets the additional element. ``VALID`` adds no padding; ``EXPLICIT`` takes pairs of numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headwater.dtypes import DType, int64
from headwater.graph.ops.common import AnyArray, as_ints, output
from headwater.graph.ops.convolving import Windows, convolve
from headwater.graph.ops.define import pure
from headwater.graph.ops.pooling import Pools, largest, total
from headwater.graph.registry import HostArray, Inference, Spec
from headwater.lazy_jax import jax, jnp

# Pyright finds the types of these functions of JAX in part only.
_jax: Any = jax


def _space(data_format: str) -> tuple[int, ...]:
    """The positions of the spatial dimensions."""
    return tuple(i for i, letter in enumerate(data_format) if letter in "DHW")


def _pads(
    sizes: Sequence[int], windows: Sequence[int], strides: Sequence[int], padding: str, explicit: Sequence[int] = ()
) -> list[tuple[int, int]]:
    if padding == "EXPLICIT":
        return [(explicit[2 * i], explicit[2 * i + 1]) for i in range(len(sizes))]
    if padding == "VALID":
        for size, window, stride in zip(sizes, windows, strides, strict=True):
            if size - window + stride < 0:
                raise ValueError(f"Computed output size would be negative: {(size - window + stride) // stride}")
        return [(0, 0)] * len(sizes)
    totals = [
        max((-(-size // stride) - 1) * stride + window - size, 0)
        for size, window, stride in zip(sizes, windows, strides, strict=True)
    ]
    return [(total // 2, total - total // 2) for total in totals]


def _out_size(size: int | None, window: int | None, stride: int, padding: str, explicit: tuple[int, int]) -> int | None:
    if stride < 1:
        raise ValueError(f"Stride must be > 0, but got {stride}")
    if padding not in ("SAME", "VALID", "EXPLICIT"):
        raise ValueError(f"padding must be SAME or VALID, not {padding!r}")
    if size is None or (window is None and padding != "SAME"):
        return None
    if padding == "SAME":
        return -(-size // stride)
    assert window is not None
    extra = sum(explicit) if padding == "EXPLICIT" else 0
    if size + extra < window:
        raise ValueError(f"Negative dimension size caused by subtracting {window} from {size + extra}")
    return (size + extra - window) // stride + 1


# Convolution ------------------------------------------------------------------------------------------------------


def _conv_spec(inference: Inference) -> Sequence[Spec]:
    source, kernel = inference.inputs
    attrs = inference.attrs
    rank = 5 if inference.op_type == "Conv3D" else 4
    data_format = attrs.get("data_format", "NDHWC" if rank == 5 else "NHWC")
    for spec in (source, kernel):
        if spec.dims is not None and len(spec.dims) != rank:
            raise ValueError(f"Shape must be rank {rank} but is rank {len(spec.dims)}")
    dims, filters = source.dims or (None,) * rank, kernel.dims or (None,) * rank
    channel = data_format.index("C")
    depthwise = inference.op_type == "DepthwiseConv2dNative"
    inside, there = filters[-2], dims[channel]
    if None not in (inside, there) and there != inside and (depthwise or not inside or (there or 0) % inside):
        raise ValueError(f"input depth must be evenly divisible by filter depth: {there} vs {inside}")
    result: list[int | None] = [dims[0]] * rank
    if depthwise:
        result[channel] = None if None in (filters[2], filters[3]) else (filters[2] or 0) * (filters[3] or 0)
    else:
        result[channel] = filters[-1]
    explicit = tuple(attrs.get("explicit_paddings", ())) or (0, 0) * rank
    dilations = tuple(attrs.get("dilations", ())) or (1,) * rank
    for index, axis in enumerate(_space(data_format)):
        window = filters[index]
        if dilations[axis] < 1:
            raise ValueError(f"Dilation rate must be >= 1, but got {dilations[axis]}")
        reach = None if window is None else (window - 1) * dilations[axis] + 1
        result[axis] = _out_size(
            dims[axis], reach, attrs["strides"][axis], attrs["padding"], (explicit[2 * axis], explicit[2 * axis + 1])
        )
    return output(inference, tuple(result))


def _convolve(
    input: jax.Array,
    filter: jax.Array,
    strides: Sequence[int],
    padding: str,
    explicit: Sequence[int],
    data_format: str,
    dilations: Sequence[int],
    groups: int,
) -> jax.Array:
    space = _space(data_format)
    steps = [strides[axis] for axis in space]
    spread = [dilations[axis] if dilations else 1 for axis in space]
    reach = [(filter.shape[i] - 1) * rate + 1 for i, rate in enumerate(spread)]
    given = [explicit[2 * axis + side] for axis in space for side in (0, 1)] if explicit else ()
    pads = _pads([input.shape[axis] for axis in space], reach, steps, padding, given)
    windows = Windows(strides=tuple(steps), pads=tuple(pads), rates=tuple(spread))
    return convolve(input, filter, windows, data_format, groups)


@pure("Conv2D", inputs="input:T|floating, filter:T", infer=_conv_spec)
def conv2d(
    input: jax.Array,
    filter: jax.Array,
    *,
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int] = (),
    data_format: str = "NHWC",
    dilations: Sequence[int] = (1, 1, 1, 1),
    use_cudnn_on_gpu: bool = True,
) -> jax.Array:
    """Cross-correlation with a filter of shape [height, width, channels in, channels out]."""
    del use_cudnn_on_gpu
    groups = input.shape[data_format.index("C")] // filter.shape[2]
    return _convolve(input, filter, strides, padding, explicit_paddings, data_format, dilations, groups)


@pure("Conv3D", inputs="input:T|floating, filter:T", infer=_conv_spec)
def conv3d(
    input: jax.Array,
    filter: jax.Array,
    *,
    strides: Sequence[int],
    padding: str,
    data_format: str = "NDHWC",
    dilations: Sequence[int] = (1, 1, 1, 1, 1),
) -> jax.Array:
    """Cross-correlation with a filter of shape [depth, height, width, channels in, channels out]."""
    groups = input.shape[data_format.index("C")] // filter.shape[3]
    return _convolve(input, filter, strides, padding, (), data_format, dilations, groups)


@pure("DepthwiseConv2dNative", inputs="input:T|floating, filter:T", infer=_conv_spec)
def depthwise_conv2d(
    input: jax.Array,
    filter: jax.Array,
    *,
    strides: Sequence[int],
    padding: str,
    data_format: str = "NHWC",
    dilations: Sequence[int] = (1, 1, 1, 1),
) -> jax.Array:
    """A convolution of each channel with its own filters; filter's shape is [height, width, channels, multiplier]."""
    height, width, channels, multiplier = filter.shape
    split = jnp.reshape(filter, (height, width, 1, channels * multiplier))
    return _convolve(input, split, strides, padding, (), data_format, dilations, channels)


def _sized_by(position: int) -> Callable[[Inference], Sequence[Spec]]:
    def infer(inference: Inference) -> Sequence[Spec]:
        other = 1 if position == 0 else 0
        dims = inference.partial(position)
        return output(inference, (None,) * 4 if dims is None else tuple(None if d == -1 else d for d in dims), other)

    return infer


@pure(
    "Conv2DBackpropInput",
    inputs="input_sizes:int32, filter:T|floating, out_backprop:T",
    static=(0,),
    infer=_sized_by(0),
)
def conv2d_backprop_input(
    input_sizes: HostArray,
    filter: jax.Array,
    out_backprop: jax.Array,
    *,
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int] = (),
    data_format: str = "NHWC",
    dilations: Sequence[int] = (1, 1, 1, 1),
    use_cudnn_on_gpu: bool = True,
) -> jax.Array:
    """The gradient of `conv2d` for its input; also the transposed convolution."""
    del use_cudnn_on_gpu
    sizes = as_ints(input_sizes)
    sizes = (out_backprop.shape[0], *sizes[1:]) if sizes[0] == -1 else sizes
    settings = _Settings(strides, padding, explicit_paddings, data_format, dilations)
    return _gradient(0, settings, sizes, filter.shape)(filter, jnp.asarray(out_backprop))


@pure(
    "Conv2DBackpropFilter",
    inputs="input:T|floating, filter_sizes:int32, out_backprop:T",
    static=(1,),
    infer=_sized_by(1),
)
def conv2d_backprop_filter(
    input: jax.Array,
    filter_sizes: HostArray,
    out_backprop: jax.Array,
    *,
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int] = (),
    data_format: str = "NHWC",
    dilations: Sequence[int] = (1, 1, 1, 1),
    use_cudnn_on_gpu: bool = True,
) -> jax.Array:
    """The gradient of `conv2d` for its filter."""
    del use_cudnn_on_gpu
    settings = _Settings(strides, padding, explicit_paddings, data_format, dilations)
    return _gradient(1, settings, input.shape, as_ints(filter_sizes))(input, jnp.asarray(out_backprop))


@dataclass(frozen=True, slots=True)
class _Settings:
    """The attributes of a two-dimensional convolution."""

    strides: Sequence[int]
    padding: str
    explicit_paddings: Sequence[int]
    data_format: str
    dilations: Sequence[int]

    def convolve(self, image: jax.Array, filter: jax.Array) -> jax.Array:
        return conv2d(
            image,
            filter,
            strides=self.strides,
            padding=self.padding,
            explicit_paddings=self.explicit_paddings,
            data_format=self.data_format,
            dilations=self.dilations,
        )


def _gradient(position: int, settings: _Settings, image_shape: Sequence[int], filter_shape: Sequence[int]) -> Any:
    """Returns the gradient of a convolution for its image (``position`` 0) or its filter (1).

    The returned function takes the other operand and the gradient of the convolution's result. A convolution is linear
    in both operands, so this function is also linear in its arguments, and its own two gradients are a convolution and
    the gradient at the other position. They are defined here explicitly, because XLA runs the expressions that JAX
    derives slowly.
    """
    shapes = image_shape, filter_shape

    @_jax.custom_vjp
    def gradient(other: jax.Array, slope: jax.Array) -> jax.Array:
        def forward(value: jax.Array) -> jax.Array:
            return settings.convolve(other, value) if position else settings.convolve(value, other)

        return jax.vjp(forward, jnp.zeros(shapes[position], other.dtype))[1](slope)[0]

    def backward(inputs: tuple[jax.Array, jax.Array], slope: jax.Array) -> tuple[jax.Array, jax.Array]:
        other, back = inputs
        for_other = _gradient(1 - position, settings, image_shape, filter_shape)(slope, back)
        return for_other, settings.convolve(other, slope) if position else settings.convolve(slope, other)

    gradient.defvjp(lambda *inputs: (gradient(*inputs), inputs), backward)
    return gradient


# Pooling ----------------------------------------------------------------------------------------------------------


def pool_spec(inference: Inference) -> Sequence[Spec]:
    dims, attrs = inference.inputs[0].dims, inference.attrs
    rank = len(attrs["ksize"])
    if dims is None:
        dims = (None,) * rank
    if len(dims) != rank:
        raise ValueError(f"Shape must be rank {rank} but is rank {len(dims)}")
    if min(attrs["ksize"][1:]) < 1:
        raise ValueError("ksize must be positive in all dimensions")
    return output(
        inference,
        tuple(
            _out_size(size, window, stride, attrs["padding"], (0, 0))
            for size, window, stride in zip(dims, attrs["ksize"], attrs["strides"], strict=True)
        ),
    )


def max_pool(
    input: jax.Array, *, ksize: Sequence[int], strides: Sequence[int], padding: str, data_format: str = "NHWC"
) -> Any:
    """Returns the maximum of each window; of equal elements, the first gets the gradient."""
    del data_format
    return largest(input, _pools(input.shape, ksize, strides, padding))


def _pools(sizes: Sequence[int], ksize: Sequence[int], strides: Sequence[int], padding: str) -> Pools:
    pads = _pads(sizes, ksize, strides, padding)
    return Pools(sizes=tuple(sizes), window=tuple(ksize), strides=tuple(strides), pads=tuple(pads))


def _avg_pool(
    value: jax.Array, *, ksize: Sequence[int], strides: Sequence[int], padding: str, data_format: str = "NHWC"
) -> jax.Array:
    """Returns the mean of each window without padding."""
    del data_format
    total, counts = summed_windows(value, ksize, strides, padding)
    return total / counts


def summed_windows(
    value: jax.Array, ksize: Sequence[int], strides: Sequence[int], padding: str
) -> tuple[jax.Array, jax.Array]:
    """Returns the sum of each window without padding, and the number of its elements, in the same type."""
    pools = _pools(value.shape, ksize, strides, padding)
    return total(value, pools), jnp.asarray(pools.elements(), value.dtype)


def _max_pool_3d(
    input: jax.Array, *, ksize: Sequence[int], strides: Sequence[int], padding: str, data_format: str = "NDHWC"
) -> tuple[jax.Array, ...]:
    return max_pool(input, ksize=ksize, strides=strides, padding=padding, data_format=data_format)


def _avg_pool_3d(
    input: jax.Array, *, ksize: Sequence[int], strides: Sequence[int], padding: str, data_format: str = "NDHWC"
) -> jax.Array:
    return _avg_pool(input, ksize=ksize, strides=strides, padding=padding, data_format=data_format)


pure("MaxPool", inputs="input:T|numeric=float32", infer=pool_spec)(max_pool)
pure("AvgPool", inputs="value:T|floating", infer=pool_spec)(_avg_pool)
pure("MaxPool3D", inputs="input:T|floating", infer=pool_spec)(_max_pool_3d)
pure("AvgPool3D", inputs="input:T|floating", infer=pool_spec)(_avg_pool_3d)


def _argmax_specs(inference: Inference) -> Sequence[Spec]:
    (pooled,) = pool_spec(inference)
    return [pooled, Spec(inference.attrs.get("Targmax", int64), pooled.dims)]


@pure("MaxPoolWithArgmax", inputs="input:T|real", infer=_argmax_specs)
def max_pool_with_argmax(
    input: jax.Array,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    Targmax: DType = int64,
    include_batch_in_index: bool = False,
) -> tuple[jax.Array, jax.Array]:
    """Returns the maximum of each window, and its position in the flattened image or batch: of equal elements, the
    first."""
    pads = _pads(input.shape, ksize, strides, padding)
    lowest = -np.inf if jnp.issubdtype(input.dtype, np.inexact) else np.iinfo(input.dtype).min
    shape = input.shape if include_batch_in_index else (1, *input.shape[1:])
    places = np.arange(int(np.prod(shape)), dtype=Targmax.numpy_dtype).reshape(shape)
    padded = jnp.pad(input, pads, constant_values=lowest)
    numbered = np.pad(np.broadcast_to(places, input.shape), pads, constant_values=-1)
    (value, place), *rest = zip(_windows(padded, ksize, strides), _windows(numbered, ksize, strides), strict=True)
    for part, there in rest:
        better = (value < part) | ((place < 0) & (there >= 0))
        value, place = jnp.where(better, part, value), jnp.where(better, there, place)
    return value, jnp.asarray(place)


def _windows(value: AnyArray, ksize: Sequence[int], strides: Sequence[int]) -> list[Any]:
    """Yields, for each offset within a window, the elements of all windows at that offset."""
    counts = [(size - window) // stride + 1 for size, window, stride in zip(value.shape, ksize, strides, strict=True)]
    return [
        value[
            tuple(
                slice(start, start + (count - 1) * stride + 1, stride)
                for start, count, stride in zip(offset, counts, strides, strict=True)
            )
        ]
        for offset in itertools.product(*map(range, ksize))
    ]


# Grey-scale morphology --------------------------------------------------------------------------------------------


def _dilation_spec(inference: Inference) -> Sequence[Spec]:
    attrs = inference.attrs
    for spec, rank in zip(inference.inputs, (4, 3), strict=True):
        if spec.dims is not None and len(spec.dims) != rank:
            raise ValueError(f"Shape must be rank {rank} but is rank {len(spec.dims)}")
    dims, kernel = (inference.inputs[0].dims or (None,) * 4), (inference.inputs[1].dims or (None,) * 3)
    if None not in (dims[3], kernel[2]) and dims[3] != kernel[2]:
        raise ValueError(f"Dimensions must be equal, but are {dims[3]} and {kernel[2]}")
    space: list[int | None] = []
    for axis in (1, 2):
        window = kernel[axis - 1]
        reach = None if window is None else (window - 1) * attrs["rates"][axis] + 1
        space.append(_out_size(dims[axis], reach, attrs["strides"][axis], attrs["padding"], (0, 0)))
    return output(inference, (dims[0], *space, dims[3] if kernel[2] is None else kernel[2]))


@pure("Dilation2D", inputs="input:T|real, filter:T", infer=_dilation_spec)
def dilation2d(
    input: jax.Array, filter: jax.Array, *, strides: Sequence[int], rates: Sequence[int], padding: str
) -> jax.Array:
    """Returns the maximum over a window of input + filter, without padding; filter: [height, width, channels]."""
    steps, spread = tuple(strides[1:3]), tuple(rates[1:3])
    reach = [(size - 1) * rate + 1 for size, rate in zip(filter.shape, spread, strict=False)]
    pads = [(0, 0), *_pads(input.shape[1:3], reach, steps, padding), (0, 0)]
    floating = jnp.issubdtype(input.dtype, np.inexact)
    lowest = -np.inf if floating else np.iinfo(input.dtype).min
    padded = jnp.pad(input, pads)
    inside = np.pad(np.ones((1, *input.shape[1:3], 1), bool), pads)
    counts = [(padded.shape[axis + 1] - reach[axis]) // steps[axis] + 1 for axis in (0, 1)]
    result = None
    for row, column in itertools.product(range(filter.shape[0]), range(filter.shape[1])):
        rows, columns = (
            slice(start, start + (count - 1) * step + 1, step)
            for start, count, step in zip((row * spread[0], column * spread[1]), counts, steps, strict=True)
        )
        part = jnp.where(inside[:, rows, columns], padded[:, rows, columns] + filter[row, column], lowest)
        result = part if result is None else jnp.where(result < part, part, result)
    assert result is not None
    return result.astype(input.dtype)
