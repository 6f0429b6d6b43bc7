"""Kernels and gradients for blocks of pixels that move to other dimensions, and for elements of arrays that loops
write."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.graph.kernels.common import Arrays, Needed, ints
from headwater.graph.kernels.registry import gradient_kernel, kernel

if TYPE_CHECKING:
    from headwater.dtypes import DType
    from headwater.graph.registry import Attrs, HostArray
    from headwater.shapes import TensorShape


@kernel("SpaceToDepth")
def space_to_depth(input: HostArray, *, block_size: int) -> HostArray:
    """Blocks of pixels become channels (``NHWC``)."""
    batch, height, width, depth = input.shape
    rows, columns = height // block_size, width // block_size
    parts = input.reshape((batch, rows, block_size, columns, block_size, depth))
    return parts.transpose(0, 1, 3, 2, 4, 5).reshape((batch, rows, columns, block_size * block_size * depth))


@kernel("DepthToSpace")
def depth_to_space(input: HostArray, *, block_size: int) -> HostArray:
    """Channels become blocks of pixels (``NHWC``)."""
    batch, height, width, depth = input.shape
    inner = depth // (block_size * block_size)
    parts = input.reshape((batch, height, width, block_size, block_size, inner))
    return parts.transpose(0, 1, 3, 2, 4, 5).reshape((batch, height * block_size, width * block_size, inner))


@gradient_kernel("SpaceToDepth")
def space_to_depth_gradient(_inputs: Arrays, grads: Arrays, _needed: Needed, attrs: Attrs) -> Arrays:
    """Moves the gradient's blocks back to their places."""
    return (depth_to_space(grads[0], block_size=attrs["block_size"]),)


@gradient_kernel("DepthToSpace")
def depth_to_space_gradient(_inputs: Arrays, grads: Arrays, _needed: Needed, attrs: Attrs) -> Arrays:
    """Moves the gradient's blocks back to their places."""
    return (space_to_depth(grads[0], block_size=attrs["block_size"]),)


def _inside(sizes: tuple[int, ...], borders: HostArray) -> tuple[slice, ...]:
    """Returns the slices of the whole batch, and of the other dimensions without their borders."""
    pairs = borders.reshape(-1, 2).tolist()
    return (slice(None), *(slice(before, size - after) for size, (before, after) in zip(sizes, pairs, strict=False)))


@kernel("SpaceToBatchND")
def space_to_batch(input: HostArray, block_shape: HostArray, paddings: HostArray) -> HostArray:
    """Divides the padded dimensions after the first into blocks, and moves the position within a block to the batch
    dimension."""
    block = ints(block_shape)
    rank = len(block)
    whole = [size + int(pair.sum()) for size, pair in zip(input.shape[1:], paddings.reshape(-1, 2), strict=False)]
    padded = np.zeros((len(input), *whole, *input.shape[1 + rank :]), input.dtype)
    padded[_inside(tuple(whole), paddings)] = input
    sizes = [size // step for size, step in zip(whole, block, strict=True)]
    split = padded.reshape(
        (len(input), *(n for pair in zip(sizes, block, strict=True) for n in pair), *padded.shape[1 + rank :])
    )
    order = [*range(2, 2 * rank + 1, 2), 0, *range(1, 2 * rank, 2), *range(2 * rank + 1, split.ndim)]
    return split.transpose(order).reshape((len(input) * math.prod(block), *sizes, *padded.shape[1 + rank :]))


@kernel("BatchToSpaceND")
def batch_to_space(input: HostArray, block_shape: HostArray, crops: HostArray) -> HostArray:
    """Reverses SpaceToBatchND; crops the padding."""
    block = ints(block_shape)
    rank = len(block)
    batch, sizes = len(input) // math.prod(block), input.shape[1 : 1 + rank]
    split = input.reshape((*block, batch, *input.shape[1:]))
    order = [rank, *(n for i in range(rank) for n in (rank + 1 + i, i)), *range(2 * rank + 1, split.ndim)]
    whole = [size * step for size, step in zip(sizes, block, strict=True)]
    joined = split.transpose(order).reshape((batch, *whole, *input.shape[1 + rank :]))
    return joined[_inside(tuple(whole), crops)]


@gradient_kernel("SpaceToBatchND")
def space_to_batch_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """Moves the gradient's blocks back to their places, without the padding."""
    return batch_to_space(grads[0], *inputs[1:]), None, None


@gradient_kernel("BatchToSpaceND")
def batch_to_space_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """Moves the gradient's blocks back to their places, with zeros in the cropped parts."""
    return space_to_batch(grads[0], *inputs[1:]), None, None


# TensorArrays ------------------------------------------------------------------------------------------


@kernel("TensorArray")
def new_array(size: HostArray, *, dtype: DType, element_shape: TensorShape | None = None) -> HostArray:
    """Returns an array of ``size`` elements for a loop to fill. If the elements' shape is known, they are zeros."""
    shape = None if element_shape is None else element_shape.as_dims
    known: tuple[Any, ...] = (0,) if shape is None or None in shape else shape
    return np.zeros((int(size), *known), dtype.numpy_dtype)


@kernel("TensorArrayWrite")
def write(
    array: HostArray, index: HostArray, value: HostArray, *, grows: bool = False, owned: object = False
) -> HostArray:
    """Returns ``array`` with ``value`` at ``index``. Writes in place if ``array`` is ``owned`` and large enough,
    otherwise into a copy."""
    place = int(index)
    if owned and 0 <= place < len(array) and array.shape[1:] == value.shape:
        array[place] = value
        return array
    size = max(len(array), place + 1) if grows else len(array)
    result = np.zeros((size, *value.shape), array.dtype)
    if array.shape[1:] == value.shape:
        result[: len(array)] = array
    elif array.size:
        raise ValueError(f"an element of shape {value.shape} in an array of {array.shape[1:]}")
    result[place] = value
    return result


@gradient_kernel("TensorArrayWrite")
def write_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """The gradient of the array, in which the written element is 0, and the gradient of that element."""
    array, index, _ = inputs
    place = int(index)
    if not array.size:
        return np.zeros(array.shape, array.dtype), None, grads[0][place]
    rest = np.array(grads[0][: len(array)])
    if place < len(rest):
        rest[place] = 0
    return rest, None, grads[0][place]


def write_gradient_in_place(inputs: Arrays, grads: Arrays, needed: Needed, attrs: Attrs) -> Arrays:
    """Like `write_gradient`, but reuses the memory of the result's gradient for the gradient of the array."""
    array, index, _ = inputs
    (grad,) = grads
    if not array.size or len(grad) != len(array):
        return write_gradient(inputs, grads, needed, attrs)
    element = np.array(grad[int(index)])
    grad[int(index)] = 0
    return grad, None, element


@kernel("AdjustContrastv2")
def adjust_contrast(images: HostArray, contrast_factor: HostArray) -> HostArray:
    """(x - mean) factor + mean, with the mean of each channel of each image."""
    mean = np.mean(images, axis=(-3, -2), keepdims=True, dtype=images.dtype)
    return (images - mean) * contrast_factor.astype(images.dtype) + mean
