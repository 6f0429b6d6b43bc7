"""Moves blocks of pixels to other dimensions, and dilated convolutions based on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.graph.constants import constant_value
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import Ints, TensorLike
from headwater.tf1.functional import convolution
from headwater.tf1.functional.apply import one
from headwater.tf1.functional.reductions import either

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray


def _require_channels_last(data_format: str) -> None:
    if data_format != "NHWC":
        raise ValueError(f"only data_format 'NHWC' is supported, not {data_format!r}")


def space_to_depth(input: TensorLike, block_size: int, name: str | None = None, data_format: str = "NHWC") -> Tensor:
    """Blocks of pixels become channels."""
    _require_channels_last(data_format)
    return one("SpaceToDepth", input, block_size=block_size, name=name)


def depth_to_space(input: TensorLike, block_size: int, name: str | None = None, data_format: str = "NHWC") -> Tensor:
    """Channels become blocks of pixels."""
    _require_channels_last(data_format)
    return one("DepthToSpace", input, block_size=block_size, name=name)


def space_to_batch_nd(
    input: TensorLike, block_shape: TensorLike, paddings: TensorLike, name: str | None = None
) -> Tensor:
    """Pads the dimensions after the first, cuts them into blocks, and moves positions in blocks to the batch."""
    return one("SpaceToBatchND", input, block_shape, paddings, name=name)


def space_to_batch(
    input: TensorLike,
    paddings: TensorLike,
    block_size: int | None = None,
    name: str | None = None,
    block_shape: TensorLike | None = None,
) -> Tensor:
    """`space_to_batch_nd` of images, with square blocks."""
    size = either(block_size, block_shape, "block_size", "block_shape")
    result = space_to_batch_nd(input, np.full(2, size, np.int32), paddings, name)
    result.set_shape([None] * 4)
    return result


def batch_to_space_nd(input: TensorLike, block_shape: TensorLike, crops: TensorLike, name: str | None = None) -> Tensor:
    """Reverses `space_to_batch_nd`, and crops its padding."""
    return one("BatchToSpaceND", input, block_shape, crops, name=name)


def batch_to_space(
    input: TensorLike,
    crops: TensorLike,
    block_size: int | None = None,
    name: str | None = None,
    block_shape: TensorLike | None = None,
) -> Tensor:
    """`batch_to_space_nd` of images, with square blocks."""
    size = either(block_size, block_shape, "block_size", "block_shape")
    result = batch_to_space_nd(input, np.full(2, size, np.int32), crops, name)
    result.set_shape([None] * 4)
    return result


def required_space_to_batch_paddings(
    input_shape: TensorLike, block_shape: TensorLike, base_paddings: TensorLike | None = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Returns the paddings that make sizes multiples of a block's, and the crops that undo them.

    Args:
      base_paddings: least paddings.

    Raises:
      ValueError: an argument is not known when the graph is built.
    """
    with name_scope(name, "required_space_to_batch_paddings", [input_shape, block_shape]):
        sizes, block = _known(input_shape), _known(block_shape)
        base = np.zeros((block.size, 2), np.int32) if base_paddings is None else _known(base_paddings)
        more = -(sizes + base.sum(1)) % block
        paddings = np.stack([base[:, 0], base[:, 1] + more], 1).astype(np.int32)
        crops = np.stack([np.zeros_like(more), more], 1).astype(np.int32)
        return convert_to_tensor(paddings, name="paddings"), convert_to_tensor(crops, name="crops")


def _known(value: TensorLike) -> HostArray:
    found = constant_value(convert_to_tensor(value))
    if found is None:
        raise ValueError("required_space_to_batch_paddings needs shapes that are known when the graph is built")
    return found


def extract_image_patches(
    images: TensorLike,
    ksizes: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    rates: Sequence[int] | None = None,
    padding: str | None = None,
    name: str | None = None,
    sizes: Sequence[int] | None = None,
) -> Tensor:
    """The window around every place of images, flattened into the channels.

    Args:
      ksizes: the window, [1, height, width, 1].
      strides: the distance between windows, [1, rows, columns, 1].
      rates: the distance between the elements of a window, [1, rows, columns, 1].
      padding: ``SAME`` or ``VALID``.
    """
    window = either(ksizes, sizes, "ksizes", "sizes")
    return one(
        "ExtractImagePatches",
        images,
        ksizes=tuple(window),
        strides=tuple(strides or ()),
        rates=tuple(rates or ()),
        padding=padding,
        name=name,
    )


def extract_patches(
    images: TensorLike,
    sizes: Sequence[int],
    strides: Sequence[int],
    rates: Sequence[int],
    padding: str,
    name: str | None = None,
) -> Tensor:
    """`extract_image_patches`."""
    return extract_image_patches(images, sizes, strides, rates, padding, name)


# Of any rank ------------------------------------------------------------------------------------------------------


def _numbers(value: Any, count: int) -> list[int]:
    return [1] * count if value is None else [int(n) for n in np.broadcast_to(np.ravel(value), (count,))]


def convolution_(
    input: TensorLike,
    filter: TensorLike,
    padding: str,
    strides: TensorLike | None = None,
    dilation_rate: TensorLike | None = None,
    name: str | None = None,
    data_format: str | None = None,
    filters: object = None,
    dilations: TensorLike | None = None,
) -> Tensor:
    """A convolution over one, two or three spatial dimensions.

    Args:
      strides, dilation_rate: one number for all spatial dimensions, or one for each.
      data_format: where the channels are: last (None) or second (``NCW``, ``NCHW``, ``NCDHW``).

    Raises:
      ValueError: the rank of ``input`` is not known, or another than 3 to 5.
    """
    kernel = either(filter, filters, "filter", "filters")
    rate = either(dilation_rate, dilations, "dilation_rate", "dilations")
    input = convert_to_tensor(input, name="input")
    space = 0 if input.dims is None else len(input.dims) - 2
    if space not in (1, 2, 3):
        raise ValueError(f"input must have 1 to 3 spatial dimensions, not shape {input.shape}")
    first = data_format is not None and data_format.startswith("NC")
    steps, spread = _numbers(strides, space), _numbers(rate, space)
    if max(steps) > 1 and max(spread) > 1:
        raise ValueError("strides > 1 not supported in conjunction with dilation_rate > 1")
    with name_scope(name, "convolution", [input, kernel]) as scope:
        if space == 1:
            kind = "NCW" if first else "NWC"
            return convolution.conv1d(input, kernel, steps, padding, data_format=kind, dilations=spread, name=scope)
        if space == 2:
            kind = "NCHW" if first else "NHWC"
            return convolution.conv2d(input, kernel, steps, padding, data_format=kind, dilations=spread, name=scope)
        kind = "NCDHW" if first else "NDHWC"
        return convolution.conv3d(input, kernel, steps, padding, kind, spread, name=scope)


def atrous_conv2d(value: TensorLike, filters: TensorLike, rate: int, padding: str, name: str | None = None) -> Tensor:
    """Convolves images with a dilated filter, which has ``rate`` - 1 holes between its elements."""
    return convolution_(value, filters, padding, dilation_rate=rate, name=name)


def pool(
    input: TensorLike,
    window_shape: TensorLike,
    pooling_type: str,
    padding: str,
    dilation_rate: Ints | None = None,
    strides: TensorLike | None = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Ints | None = None,
) -> Tensor:
    """The maximum (``MAX``) or mean (``AVG``) of each window over two or three spatial dimensions.

    Raises:
      ValueError: ``pooling_type`` is unknown, windows have holes, or ``input`` has the wrong rank.
    """
    if any(rate != 1 for rate in np.ravel(1 if dilation_rate is None else dilation_rate)) or dilations is not None:
        raise ValueError("windows with holes are not supported")
    if pooling_type not in ("MAX", "AVG"):
        raise ValueError(f"pooling_type must be 'MAX' or 'AVG', not {pooling_type!r}")
    input = convert_to_tensor(input, name="input")
    space = 0 if input.dims is None else len(input.dims) - 2
    if space not in (2, 3):
        raise ValueError(f"input must have 2 or 3 spatial dimensions, not shape {input.shape}")
    maximum = pooling_type == "MAX"
    kind = data_format or ("NHWC" if space == 2 else "NDHWC")
    window, steps = _numbers(window_shape, space), _numbers(strides, space)
    with name_scope(name, "max_pool" if maximum else "avg_pool", [input]) as scope:
        if space == 2:
            function = convolution.max_pool if maximum else convolution.avg_pool
        else:
            function = convolution.max_pool3d if maximum else convolution.avg_pool3d
        return function(input, window, steps, padding, kind, scope)


def _pool_1d(maximum: bool, doc: str) -> Callable[..., Tensor]:
    def function(
        input: TensorLike, ksize: Ints, strides: Ints, padding: str, data_format: str = "NWC", name: str | None = None
    ) -> Tensor:
        first = data_format.startswith("NC")
        height, kind = (2, "NCHW") if first else (1, "NHWC")
        with name_scope(name, "MaxPool1d" if maximum else "AvgPool1D", [input]) as scope:
            images = one("ExpandDims", input, height)
            window, step = (int(np.ravel(v)[0]) for v in (ksize, strides))
            compute = convolution.max_pool if maximum else convolution.avg_pool
            return one("Squeeze", compute(images, [1, window], [1, step], padding, kind, scope), squeeze_dims=(height,))

    function.__doc__ = doc
    return function


max_pool1d: object = _pool_1d(True, "The maximum of each window of a sequence [batch, width, channels].")
avg_pool1d: object = _pool_1d(
    False, "The mean of each window of a sequence [batch, width, channels]; padding does not count."
)
