"""Kernels and gradients of operations that read and change shapes, and that join, split and fill tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.graph.kernels.common import Arrays, Needed, axis_in, check_mirrored, cut, inferred_shape, ints, sum_to
from headwater.graph.kernels.registry import NoKernel, gradient_kernel, kernel

if TYPE_CHECKING:
    from headwater.dtypes import DType
    from headwater.graph.registry import Attrs, HostArray

# Reading shapes ---------------------------------------------------------------------------------------------------


@kernel("Shape")
def shape(input: HostArray, *, out_type: DType | None = None) -> HostArray:
    """The sizes of all dimensions."""
    return np.array(input.shape, np.int32 if out_type is None else out_type.numpy_dtype)


@kernel("ShapeN")
def shape_n(*input: HostArray, out_type: DType | None = None) -> tuple[HostArray, ...]:
    """The shape of each input."""
    return tuple(shape(value, out_type=out_type) for value in input)


@kernel("Size")
def size(input: HostArray, *, out_type: DType | None = None) -> HostArray:
    """The number of elements."""
    return np.array(input.size, np.int32 if out_type is None else out_type.numpy_dtype)


@kernel("Rank")
def rank(input: HostArray) -> HostArray:
    """The number of dimensions."""
    return np.array(input.ndim, np.int32)


@kernel("BroadcastArgs")
def broadcast_args(s0: HostArray, s1: HostArray) -> HostArray:
    """The shape that two shapes broadcast to."""
    return np.array(np.broadcast_shapes(ints(s0), ints(s1)), s0.dtype)


@kernel("BroadcastGradientArgs")
def broadcast_gradient_args(s0: HostArray, s1: HostArray) -> tuple[HostArray, ...]:
    """The dimensions along which each of two tensors was repeated when they were broadcast."""
    left, right = ints(s0), ints(s1)
    longest = max(len(left), len(right))
    padded = [(1,) * (longest - len(sizes)) + sizes for sizes in (left, right)]
    return tuple(np.array([axis for axis in range(longest) if sizes[axis] == 1], s0.dtype) for sizes in padded)


# The same elements in another shape -------------------------------------------------------------------------------


@kernel("Reshape")
def reshape(tensor: HostArray, shape: HostArray) -> HostArray:
    """The elements in row-major order in another shape; one size may be -1."""
    sizes = shape.tolist()
    return tensor.reshape(sizes if tensor.size else inferred_shape(tensor.shape, sizes))


@kernel("ExpandDims")
def expand_dims(input: HostArray, dim: HostArray) -> HostArray:
    """The input with a further dimension of size 1, inserted at position ``dim``."""
    axis = axis_in(dim.item(), input.ndim + 1)
    return input.reshape((*input.shape[:axis], 1, *input.shape[axis:]))


@kernel("Squeeze")
def squeeze(input: HostArray, *, squeeze_dims: Arrays = ()) -> HostArray:
    """Removes the given dimensions of size 1, or all dimensions of size 1."""
    return np.squeeze(input, tuple(squeeze_dims) or None)


@gradient_kernel("ExpandDims", "Reshape", "Squeeze")
def reshape_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """The gradient in the input's shape."""
    return grads[0].reshape(inputs[0].shape), *[None] * (len(inputs) - 1)


@kernel("Transpose")
def transpose(x: HostArray, perm: HostArray) -> HostArray:
    """Dimension ``i`` of the result is dimension ``perm[i]`` of x."""
    return x.transpose(perm.tolist())


@kernel("ConjugateTranspose")
def conjugate_transpose(x: HostArray, perm: HostArray) -> HostArray:
    """Like `transpose`, of the conjugate."""
    return np.conj(x.transpose(perm.tolist()))


@gradient_kernel("Transpose")
def transpose_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """The gradient with its dimensions moved back."""
    x, perm = inputs
    return grads[0].transpose(np.argsort(perm % max(x.ndim, 1)).tolist()), None


@gradient_kernel("ConjugateTranspose")
def conjugate_transpose_gradient(inputs: Arrays, grads: Arrays, needed: Needed, attrs: Attrs) -> Arrays:
    """Like `transpose_gradient`, of the conjugate."""
    return np.conj(transpose_gradient(inputs, grads, needed, attrs)[0]), None


# Repeated, padded, reversed ---------------------------------------------------------------------------------------


@kernel("Tile")
def tile(input: HostArray, multiples: HostArray) -> HostArray:
    """The input repeated ``multiples[i]`` times along each dimension ``i``."""
    return np.tile(input, multiples.tolist())


@gradient_kernel("Tile")
def tile_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """The sum over all repetitions."""
    x, multiples = inputs
    apart = [number for pair in zip(ints(multiples), x.shape, strict=True) for number in pair]
    folded = grads[0].reshape(apart)
    return np.add.reduce(folded, axis=tuple(range(0, len(apart), 2)), dtype=x.dtype).reshape(x.shape), None


def _pairs(paddings: HostArray) -> list[tuple[int, int]]:
    return [(before, after) for before, after in paddings.tolist()]


def _padded(input: HostArray, paddings: HostArray, value: object) -> HostArray:
    pairs = _pairs(paddings)
    sizes = [before + size + after for (before, after), size in zip(pairs, input.shape, strict=True)]
    result = np.full(sizes, value, input.dtype) if value else np.zeros(sizes, input.dtype)
    result[_inside(pairs, input.shape)] = input
    return result


def _inside(pairs: list[tuple[int, int]], sizes: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple(slice(before, before + size) for (before, _), size in zip(pairs, sizes, strict=True))


@kernel("Pad")
def pad(input: HostArray, paddings: HostArray) -> HostArray:
    """Adds zeros before and after the elements, by dimension."""
    return _padded(input, paddings, 0)


@kernel("PadV2")
def pad_v2(input: HostArray, paddings: HostArray, constant_values: HostArray) -> HostArray:
    """Like `pad`, with ``constant_values`` in place of zeros."""
    return _padded(input, paddings, constant_values)


@gradient_kernel("Pad")
def pad_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """The gradient without the padding."""
    return grads[0][_inside(_pairs(inputs[1]), inputs[0].shape)], None


@gradient_kernel("PadV2")
def pad_v2_gradient(inputs: Arrays, grads: Arrays, needed: Needed, _attrs: Attrs) -> Arrays:
    """The gradient without the padding, and the sum of the gradient in the padding."""
    x, paddings, value = inputs
    inside = grads[0][_inside(_pairs(paddings), x.shape)]
    outside = grads[0].sum(dtype=value.dtype) - inside.sum(dtype=value.dtype) if needed[2] else None
    return inside, None, outside


@kernel("MirrorPad")
def mirror_pad(input: HostArray, paddings: HostArray, *, mode: str) -> HostArray:
    """Pads with the input's own elements, mirrored at each border. REFLECT does not repeat the border element,
    SYMMETRIC repeats it."""
    check_mirrored(input.shape, paddings, mode)
    chosen: Any = mode.lower()
    return np.pad(input, _pairs(paddings), mode=chosen)


def _folded(gradient: HostArray, paddings: HostArray, mode: str) -> HostArray:
    """Adds the gradient of each mirrored element to the gradient of its original."""
    skip = 1 if mode == "REFLECT" else 0
    for axis, (before, after) in enumerate(_pairs(paddings)):
        if not before and not after:
            continue
        rows = np.moveaxis(gradient, axis, 0)
        size = len(rows) - before - after
        if max(before, after) > size - skip:
            raise NoKernel
        inner = rows[before : before + size].copy()
        inner[skip : skip + before] += rows[:before][::-1]
        inner[size - skip - after : size - skip] += rows[before + size :][::-1]
        gradient = np.moveaxis(inner, 0, axis)
    return gradient


@gradient_kernel("MirrorPad")
def mirror_pad_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, attrs: Attrs) -> Arrays:
    """See `_folded`."""
    return _folded(grads[0], inputs[1], attrs["mode"]), None


@kernel("MirrorPadGrad")
def mirror_pad_grad(input: HostArray, paddings: HostArray, *, mode: str) -> HostArray:
    """The gradient of MirrorPad."""
    return _folded(input, paddings, mode)


@kernel("ReverseV2")
def reverse(tensor: HostArray, axis: HostArray) -> HostArray:
    """The input with the order of elements reversed along the given dimensions."""
    return np.flip(tensor, ints(axis))


@gradient_kernel("ReverseV2")
def reverse_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """Reverses the gradient along the same dimensions."""
    return np.flip(grads[0], ints(inputs[1])), None


@kernel("Reverse")
def old_reverse(tensor: HostArray, dims: HostArray) -> HostArray:
    """Reverses the flagged dimensions."""
    return np.flip(tensor, tuple(np.flatnonzero(dims).tolist()))


@gradient_kernel("Reverse")
def old_reverse_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """Like `reverse_gradient`."""
    return old_reverse(grads[0], inputs[1]), None


@kernel("Roll")
def roll(input: HostArray, shift: HostArray, axis: HostArray) -> HostArray:
    """Shifts elements cyclically along dimensions."""
    return np.roll(input, ints(shift), ints(axis))


@gradient_kernel("Roll")
def roll_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """The gradient shifted back."""
    _, shift, axis = inputs
    return np.roll(grads[0], tuple(-step for step in ints(shift)), ints(axis)), None, None


# Filled -----------------------------------------------------------------------------------------------------------


@kernel("Fill")
def fill(dims: HostArray, value: HostArray) -> HostArray:
    """A tensor of one value."""
    shape = ints(dims)
    # `np.zeros` allocates pages lazily: untouched zeros take no memory.
    return np.full(shape, value, value.dtype) if value.tobytes().strip(b"\0") else np.zeros(shape, value.dtype)


@gradient_kernel("Fill")
def fill_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """The sum of the gradient."""
    return None, np.add.reduce(grads[0], axis=None, dtype=inputs[1].dtype)


@kernel("ZerosLike")
def zeros_like(x: HostArray) -> HostArray:
    """Zeros in the shape of x."""
    return np.zeros(x.shape, x.dtype)


@kernel("OnesLike")
def ones_like(x: HostArray) -> HostArray:
    """Ones in the shape of x."""
    return np.ones(x.shape, x.dtype)


@kernel("BroadcastTo")
def broadcast_to(input: HostArray, shape: HostArray) -> HostArray:
    """The input repeated to a larger shape by the rules of broadcasting."""
    return np.broadcast_to(input, ints(shape))


@gradient_kernel("BroadcastTo")
def broadcast_to_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """The gradient, summed over the repetitions."""
    return sum_to(grads[0], inputs[0].shape), None


@kernel("Range")
def range_(start: HostArray, limit: HostArray, delta: HostArray) -> HostArray:
    """The numbers start, start + delta, … below ``limit`` (above it for a negative delta)."""
    if delta == 0:
        raise ValueError("Requires delta != 0")
    whole = np.arange(start.item(), limit.item(), delta.item())
    return whole.astype(start.dtype)


@kernel("LinSpace")
def lin_space(start: HostArray, stop: HostArray, num: HostArray) -> HostArray:
    """``num`` numbers from start to stop, both included."""
    return np.linspace(start, stop, int(num), dtype=start.dtype)


@kernel("InvertPermutation")
def invert_permutation(x: HostArray) -> HostArray:
    """y with y[x[i]] = i."""
    return np.argsort(x).astype(x.dtype)


# Joining and splitting -------------------------------------------------------------------------------------------


@kernel("ConcatV2")
def concat(*inputs: HostArray) -> HostArray:
    """Concatenates all inputs but the last along the dimension given by the last."""
    return np.concatenate(inputs[:-1], axis=int(inputs[-1]))


@kernel("Concat")
def old_concat(concat_dim: HostArray, *values: HostArray) -> HostArray:
    """Like `concat`, with the dimension first."""
    return np.concatenate(values, axis=int(concat_dim))


def _parts(gradient: HostArray, values: Arrays, axis: int) -> list[HostArray]:
    """Splits a gradient into the parts for each of the concatenated tensors."""
    axis %= gradient.ndim
    before = (slice(None),) * axis
    parts: list[HostArray] = []
    end = 0
    for value in values:
        begin, end = end, end + value.shape[axis]
        parts.append(gradient[(*before, slice(begin, end))])
    return parts


@gradient_kernel("ConcatV2")
def concat_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """The gradient taken apart."""
    return *_parts(grads[0], inputs[:-1], int(inputs[-1])), None


@gradient_kernel("Concat")
def old_concat_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """The gradient taken apart."""
    return None, *_parts(grads[0], inputs[1:], int(inputs[0]))


@kernel("ConcatOffset")
def concat_offset(concat_dim: HostArray, *shape: HostArray) -> tuple[HostArray, ...]:
    """Returns the offset of each tensor in the concatenation."""
    axis = int(concat_dim)
    offsets = np.zeros((len(shape), shape[0].size), np.int32)
    offsets[1:, axis] = np.cumsum([int(value[axis]) for value in shape[:-1]])
    return tuple(offsets)


@kernel("Pack")
def pack(*values: HostArray, axis: int = 0) -> HostArray:
    """Stacks tensors of one shape along a new dimension."""
    return np.stack(values, axis=axis)


@gradient_kernel("Pack")
def pack_gradient(_inputs: Arrays, grads: Arrays, _needed: Needed, attrs: Attrs) -> Arrays:
    """The slices of the gradient."""
    return tuple(np.moveaxis(grads[0], attrs.get("axis", 0), 0))


@kernel("Unpack")
def unpack(value: HostArray, *, num: int, axis: int = 0) -> tuple[HostArray, ...]:
    """Splits along one dimension, which is removed."""
    if value.shape[axis] != num:
        raise ValueError(f"Input shape axis {axis} must equal {num}, got shape {list(value.shape)}")
    return tuple(np.moveaxis(value, axis, 0))


@gradient_kernel("Unpack")
def unpack_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, attrs: Attrs) -> Arrays:
    """The gradients stacked."""
    result = np.zeros(inputs[0].shape, inputs[0].dtype)
    rows = np.moveaxis(result, attrs.get("axis", 0), 0)
    for index, grad in enumerate(grads):
        if grad is not None:
            rows[index] = grad
    return (result,)


@kernel("Split")
def split(split_dim: HostArray, value: HostArray, *, num_split: int) -> tuple[HostArray, ...]:
    """Splits into ``num_split`` equal parts along one dimension."""
    axis = axis_in(split_dim, value.ndim)
    size, rest = divmod(value.shape[axis], num_split)
    if rest:
        raise ValueError(f"Dimension size must be evenly divisible by {num_split} but is {value.shape[axis]}")
    return cut(value, [size] * num_split, axis)


@kernel("SplitV")
def split_v(value: HostArray, size_splits: HostArray, split_dim: HostArray, *, num_split: int) -> tuple[HostArray, ...]:
    """Splits into parts of the given sizes along one dimension; one size may be -1, for the rest."""
    del num_split
    axis = axis_in(split_dim, value.ndim)
    return cut(value, _sizes(ints(size_splits), value.shape[axis]), axis)


def _sizes(sizes: tuple[int, ...], total: int) -> list[int]:
    """Returns the sizes with -1 replaced by the remaining size."""
    known = sum(size for size in sizes if size != -1)
    if known > total or (-1 not in sizes and known != total):
        raise ValueError(f"sizes {list(sizes)} do not add up to the dimension's {total}")
    return [total - known if size == -1 else size for size in sizes]


def _joined(grads: Arrays, value: HostArray, sizes: Arrays, axis: int) -> HostArray:
    if all(grad is not None for grad in grads):
        return np.concatenate(grads, axis)
    result = np.zeros(value.shape, value.dtype)
    for part, grad in zip(cut(result, sizes, axis), grads, strict=True):
        if grad is not None:
            part[...] = grad
    return result


@gradient_kernel("Split")
def split_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """The gradients joined."""
    dim, value = inputs
    axis = axis_in(dim, value.ndim)
    return None, _joined(grads, value, [value.shape[axis] // len(grads)] * len(grads), axis)


@gradient_kernel("SplitV")
def split_v_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """The gradients joined."""
    value, sizes, dim = inputs
    axis = axis_in(dim, value.ndim)
    return _joined(grads, value, _sizes(ints(sizes), value.shape[axis]), axis), None, None
