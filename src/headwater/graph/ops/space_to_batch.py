"""Rearrangement of blocks of pixels: into channels, into the batch, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from headwater.graph.ops.common import as_ints, constant_ints, output
from headwater.graph.ops.define import by_evaluation, pure
from headwater.graph.ops.unsupported_windows import unsupported
from headwater.graph.registry import HostArray, Inference, Spec
from headwater.lazy_jax import jax, jnp, lax


def _blocks_spec(inference: Inference) -> Sequence[Spec]:
    dims, block = inference.inputs[0].dims, inference.attrs["block_size"]
    if dims is None:
        return output(inference, (None,) * 4)
    batch, height, width, depth = dims
    if inference.op_type == "SpaceToDepth":
        new = [None if d is None else d // block for d in (height, width)]
        channels = None if depth is None else depth * block * block
    else:
        new = [None if d is None else d * block for d in (height, width)]
        if depth is not None and depth % (block * block):
            raise ValueError(f"Dimension size must be evenly divisible by {block * block} but is {depth}")
        channels = None if depth is None else depth // (block * block)
    for size in (height, width):
        if inference.op_type == "SpaceToDepth" and size is not None and size % block:
            raise ValueError(f"Dimension size must be evenly divisible by {block} but is {size}")
    return output(inference, (batch, *new, channels))


@pure("SpaceToDepth", inputs="input:T", infer=_blocks_spec)
def space_to_depth(input: jax.Array, *, block_size: int) -> jax.Array:
    """Blocks of pixels become channels (``NHWC``)."""
    batch, height, width, depth = input.shape
    parts = jnp.reshape(input, (batch, height // block_size, block_size, width // block_size, block_size, depth))
    return jnp.transpose(parts, (0, 1, 3, 2, 4, 5)).reshape(
        batch, height // block_size, width // block_size, block_size * block_size * depth
    )


@pure("DepthToSpace", inputs="input:T", infer=_blocks_spec)
def depth_to_space(input: jax.Array, *, block_size: int) -> jax.Array:
    """Channels become blocks of pixels (``NHWC``)."""
    batch, height, width, depth = input.shape
    inner = depth // (block_size * block_size)
    parts = jnp.reshape(input, (batch, height, width, block_size, block_size, inner))
    return jnp.transpose(parts, (0, 1, 3, 2, 4, 5)).reshape(batch, height * block_size, width * block_size, inner)


def _pairs(value: object) -> list[tuple[int, int]]:
    return [(int(before), int(after)) for before, after in np.asarray(value).reshape(-1, 2)]


def _check_blocks(op_type: str, block: Sequence[int] | None, pads: HostArray | None) -> None:
    """Raises ValueError if a block is not positive, or a padding or a crop is negative."""
    if block is not None and min(block, default=1) < 1:
        raise ValueError("block_shape must be positive")
    if pads is not None and pads.size and pads.min() < 0:
        raise ValueError(f"{'paddings' if op_type == 'SpaceToBatchND' else 'crops'} cannot be negative")


def _batched_spec(inference: Inference) -> Sequence[Spec]:
    dims, block = inference.inputs[0].dims, constant_ints(inference, 1)
    pads = inference.constant(2)
    _check_blocks(inference.op_type, block, pads)
    if dims is None or block is None or pads is None:
        blocks = inference.inputs[1].dims
        if dims is None or not blocks or blocks[0] is None:
            return output(inference, None if dims is None else (None,) * len(dims))
        return output(inference, ((None,) * len(dims))[: 1 + blocks[0]] + dims[1 + blocks[0] :])
    to_batch = inference.op_type == "SpaceToBatchND"
    count = math.prod(block)
    if len(dims) <= len(block):
        raise ValueError(f"Shape must be at least rank {len(block) + 1} but is rank {len(dims)}")
    if len(_pairs(pads)) != len(block):
        raise ValueError(f"{len(_pairs(pads))} pairs of numbers for {len(block)} dimensions of a block")
    if not to_batch and dims[0] is not None and dims[0] % count:
        raise ValueError(f"Dimension size must be evenly divisible by {count} but is {dims[0]}")
    batch = None if dims[0] is None else (dims[0] * count if to_batch else dims[0] // count)
    sizes: list[int | None] = []
    for size, step, (before, after) in zip(dims[1:], block, _pairs(pads), strict=False):
        if size is None:
            sizes.append(None)
        elif to_batch:
            if (size + before + after) % step:
                raise ValueError(f"padded size {size + before + after} is not a multiple of the block's {step}")
            sizes.append((size + before + after) // step)
        else:
            if size * step < before + after:
                raise ValueError(f"Negative dimension size caused by subtracting {before + after} from {size * step}")
            sizes.append(size * step - before - after)
    return output(inference, (batch, *sizes, *dims[1 + len(block) :]))


@pure(
    "SpaceToBatchND",
    inputs="input:T, block_shape:Tblock_shape|index=int32, paddings:Tpaddings|index=int32",
    static=(1, 2),
    infer=_batched_spec,
)
def space_to_batch(input: jax.Array, block_shape: HostArray, paddings: HostArray) -> jax.Array:
    """Divides the padded dimensions after the first into blocks, and moves the position within a block to the batch
    dimension."""
    block = as_ints(block_shape)
    _check_blocks("SpaceToBatchND", block, paddings)
    rank = len(block)
    padded = jnp.pad(input, [(0, 0), *_pairs(paddings), *[(0, 0)] * (input.ndim - 1 - rank)])
    batch, rest = input.shape[0], input.shape[1 + rank :]
    sizes = [size // step for size, step in zip(padded.shape[1:], block, strict=False)]
    split = padded.reshape(batch, *(n for pair in zip(sizes, block, strict=True) for n in pair), *rest)
    order = [*range(2, 2 * rank + 1, 2), 0, *range(1, 2 * rank, 2), *range(2 * rank + 1, split.ndim)]
    return split.transpose(order).reshape(batch * math.prod(block), *sizes, *rest)


@pure(
    "BatchToSpaceND",
    inputs="input:T, block_shape:Tblock_shape|index=int32, crops:Tcrops|index=int32",
    static=(1, 2),
    infer=_batched_spec,
)
def batch_to_space(input: jax.Array, block_shape: HostArray, crops: HostArray) -> jax.Array:
    """Reverses SpaceToBatchND; crops the padding."""
    block = as_ints(block_shape)
    _check_blocks("BatchToSpaceND", block, crops)
    rank = len(block)
    batch, rest = input.shape[0] // math.prod(block), input.shape[1 + rank :]
    sizes = input.shape[1 : 1 + rank]
    split = jnp.reshape(input, (*block, batch, *sizes, *rest))
    order = [rank, *(n for i in range(rank) for n in (rank + 1 + i, i)), *range(2 * rank + 1, split.ndim)]
    whole = split.transpose(order).reshape(batch, *(s * b for s, b in zip(sizes, block, strict=True)), *rest)
    parts = [slice(before, size - after) for size, (before, after) in zip(whole.shape[1:], _pairs(crops), strict=False)]
    return whole[(slice(None), *parts)]


def _image_patches(
    images: jax.Array, *, ksizes: Sequence[int], strides: Sequence[int], rates: Sequence[int], padding: str
) -> jax.Array:
    """Returns the window at every position, flattened into the channels: ordered by rows, then columns, then
    channels."""
    found = lax.conv_general_dilated_patches(
        images, ksizes[1:3], strides[1:3], padding, rhs_dilation=rates[1:3], dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    channels = images.shape[3]
    split = found.reshape(*found.shape[:3], channels, ksizes[1] * ksizes[2])
    return jnp.swapaxes(split, 3, 4).reshape(found.shape)


def _patches_spec(inference: Inference) -> Sequence[Spec]:
    if unsupported(inference.op_type, inference.attrs):
        return output(inference, (None,) * 4)  # the step will fail
    return by_evaluation(_image_patches)(inference)


pure("ExtractImagePatches", inputs="images:T|numeric", infer=_patches_spec)(_image_patches)
