"""Kernels and gradients for parts of tensors: rows and single elements, and assembly from parts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from headwater.graph.kernels.common import Arrays, Needed, axis_in, ints
from headwater.graph.kernels.registry import gradient_kernel, kernel
from headwater.graph.kernels.rows import add_rows, combine_rows, flat_places, rows_of, take

if TYPE_CHECKING:
    from headwater.graph.registry import Attrs, HostArray

# Rows and elements ------------------------------------------------------------------------------------------------


@kernel("Gather")
def gather(params: HostArray, indices: HostArray, *, validate_indices: bool = True) -> HostArray:
    """Returns ``params[indices[i, ...]]``; zeros for indices out of range."""
    del validate_indices
    return take(params, indices)


@gradient_kernel("Gather")
def gather_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """Adds up the gradient's rows at the gathered places."""
    params, indices = inputs
    return _spread(grads[0], indices, params.shape, 0), None


def _spread(gradient: HostArray, indices: HostArray, shape: tuple[int, ...], axis: int) -> HostArray:
    """Returns zeros of ``shape`` with the slices of ``gradient`` along ``axis`` added at ``indices``."""
    result = np.zeros(shape, gradient.dtype)
    if axis == 0:
        add_rows(result, indices.reshape(-1), gradient.reshape((indices.size, *shape[1:])))
        return result
    places = tuple(range(axis, axis + indices.ndim))
    rows = np.moveaxis(gradient, places, tuple(range(indices.ndim)))
    turned = np.zeros((shape[axis], *shape[:axis], *shape[axis + 1 :]), gradient.dtype)
    add_rows(turned, indices.reshape(-1), rows.reshape((indices.size, *turned.shape[1:])))
    return np.moveaxis(turned, 0, axis)


def _batched(shape: tuple[int, ...], indices: HostArray, axis: int, batch: int) -> tuple[HostArray, tuple[int, ...]]:
    """Returns two values: indices into the batch dimensions and ``axis`` flattened to one dimension, with -1 for an
    index out of range; and a permutation that moves ``axis`` behind the batch dimensions."""
    size, count = shape[axis], math.prod(shape[:batch])
    flat = indices.reshape((count, -1)).astype(np.int64, copy=False)
    places = np.where((flat < 0) | (flat >= size), -1, flat + np.arange(count)[:, np.newaxis] * size)
    order = (*range(batch), axis, *(place for place in range(batch, len(shape)) if place != axis))
    return places.reshape(indices.shape), order


def _with_batch(axis: object, rank: int, indices: HostArray, batch_dims: int) -> tuple[int, int]:
    return axis_in(axis, rank), batch_dims % indices.ndim if batch_dims < 0 else batch_dims


@kernel("GatherV2")
def gather_v2(params: HostArray, indices: HostArray, axis: HostArray, *, batch_dims: int = 0) -> HostArray:
    """Slices of ``params`` along ``axis``; the first ``batch_dims`` dimensions are common to both inputs."""
    where, batch = _with_batch(axis, params.ndim, indices, batch_dims)
    if not batch:
        return take(params, indices, where)
    places, order = _batched(params.shape, indices, where, batch)
    found = take(rows_of(params.transpose(order), batch + 1), places)
    # The non-batch dimensions of the indices are now after the batch dimensions; move them to the position of the axis.
    own = tuple(range(batch, indices.ndim))
    return np.moveaxis(found, own, tuple(range(where, where + len(own))))


@gradient_kernel("GatherV2")
def gather_v2_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, attrs: Attrs) -> Arrays:
    """Adds up the gradient's slices at the gathered places."""
    params, indices, axis = inputs
    where, batch = _with_batch(axis, params.ndim, indices, attrs.get("batch_dims", 0))
    if not batch:
        return _spread(grads[0], indices, params.shape, where), None, None
    places, order = _batched(params.shape, indices, where, batch)
    own = tuple(range(batch, indices.ndim))
    rows = np.moveaxis(grads[0], tuple(range(where, where + len(own))), own)
    turned = np.zeros([params.shape[place] for place in order], grads[0].dtype)
    flat = rows_of(turned, batch + 1)
    add_rows(flat, places.reshape(-1), rows.reshape((places.size, *flat.shape[1:])))
    return turned.transpose(np.argsort(order).tolist()), None, None


@kernel("GatherNd")
def gather_nd(params: HostArray, indices: HostArray) -> HostArray:
    """Returns ``params[indices[..., 0], indices[..., 1], …]``; zeros for indices out of range."""
    places, bad = flat_places(indices, params.shape)
    return take(rows_of(params, indices.shape[-1]), places if bad is None else np.where(bad, -1, places))


@gradient_kernel("GatherNd")
def gather_nd_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """Adds up the gradient's slices at their source places."""
    params, indices = inputs
    return scattered(np.add, np.zeros(params.shape, params.dtype), indices, grads[0]), None


def scattered(combine: object, array: HostArray, indices: HostArray, updates: HostArray) -> HostArray:
    """Returns ``array`` after ``array[indices[...]] = combine(array[indices[...]], updates)``, in place. If ``combine``
    is None, ``updates`` replace the old values. Indices out of range update nothing."""
    depth = indices.shape[-1]
    places, bad = flat_places(indices, array.shape)
    updates = np.broadcast_to(updates, indices.shape[:-1] + array.shape[depth:])
    rows, places = updates.reshape((places.size, *array.shape[depth:])), places.reshape(-1)
    if bad is not None:
        good = ~bad.reshape(-1)
        rows, places = rows[good], places[good]
    target = rows_of(array, depth)
    if combine is None:
        target[places] = rows
    else:
        combine_rows(combine, target, places, rows)
    return array


@kernel("ScatterNd")
def scatter_nd(indices: HostArray, updates: HostArray, shape: HostArray) -> HostArray:
    """Returns zeros of ``shape`` with ``updates`` added at ``indices``."""
    return scattered(np.add, np.zeros(ints(shape), updates.dtype), indices, updates)


@gradient_kernel("ScatterNd")
def scatter_nd_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """Returns the gradient at the scattered positions."""
    return None, gather_nd(grads[0], inputs[0]), None


@kernel("TensorScatterUpdate")
def tensor_scatter_update(tensor: HostArray, indices: HostArray, updates: HostArray) -> HostArray:
    """``tensor`` with ``updates`` at ``indices``."""
    return scattered(None, np.array(tensor), indices, updates)


@kernel("TensorScatterAdd")
def tensor_scatter_add(tensor: HostArray, indices: HostArray, updates: HostArray) -> HostArray:
    """``tensor`` with ``updates`` added at ``indices``."""
    return scattered(np.add, np.array(tensor), indices, updates)


@kernel("TensorScatterSub")
def tensor_scatter_sub(tensor: HostArray, indices: HostArray, updates: HostArray) -> HostArray:
    """``tensor`` with ``updates`` subtracted at ``indices``."""
    return scattered(np.subtract, np.array(tensor), indices, updates)


@gradient_kernel("TensorScatterAdd")
def tensor_scatter_add_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """The gradients of the tensor and of the updates: the whole gradient, and the gradient at ``indices``."""
    return grads[0], None, gather_nd(grads[0], inputs[1])


@gradient_kernel("TensorScatterSub")
def tensor_scatter_sub_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """The gradients of the tensor and of the updates: the whole gradient, and the negative gradient at ``indices``."""
    return grads[0], None, -gather_nd(grads[0], inputs[1])


@kernel("OneHot")
def one_hot(
    indices: HostArray, depth: HostArray, on_value: HostArray, off_value: HostArray, *, axis: int = -1
) -> HostArray:
    """Returns ``on_value`` at ``indices`` along a new dimension, ``off_value`` elsewhere."""
    axis = indices.ndim if axis == -1 else axis
    steps = np.arange(int(depth)).reshape((-1,) + (1,) * (indices.ndim - axis))
    hit = np.expand_dims(indices, axis) == steps.astype(indices.dtype)
    return np.where(hit, on_value, off_value)


# Assembly -----------------------------------------------------------------------------------------------------


@kernel("ReverseSequence")
def reverse_sequence(input: HostArray, seq_lengths: HostArray, *, seq_dim: int, batch_dim: int = 0) -> HostArray:
    """Reverses the first ``seq_lengths[b]`` elements along ``seq_dim``, for each index ``b`` along ``batch_dim``."""
    steps = np.arange(input.shape[seq_dim])
    lengths = seq_lengths[:, np.newaxis]
    order = np.where(steps < lengths, lengths - 1 - steps, steps)
    rows = np.moveaxis(input, (batch_dim, seq_dim), (0, 1))
    found = rows[np.arange(rows.shape[0])[:, np.newaxis], order]
    return np.moveaxis(found, (0, 1), (batch_dim, seq_dim))


@gradient_kernel("ReverseSequence")
def reverse_sequence_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, attrs: Attrs) -> Arrays:
    """Reverses the gradient in the same way."""
    found = reverse_sequence(grads[0], inputs[1], seq_dim=attrs["seq_dim"], batch_dim=attrs.get("batch_dim", 0))
    return found, None


@kernel("SparseToDense")
def sparse_to_dense(
    sparse_indices: HostArray,
    output_shape: HostArray,
    sparse_values: HostArray,
    default_value: HostArray,
    *,
    validate_indices: bool = True,
) -> HostArray:
    """Returns a tensor of ``default_value`` with ``sparse_values`` at some places: one value for all places, or one for
    each."""
    del validate_indices
    shape = ints(output_shape)
    places = sparse_indices.reshape((-1, len(shape)))
    return scattered(None, np.full(shape, default_value, sparse_values.dtype), places, sparse_values)


@gradient_kernel("SparseToDense")
def sparse_to_dense_gradient(inputs: Arrays, grads: Arrays, needed: Needed, _attrs: Attrs) -> Arrays:
    """The gradients of the values and of the default: the gradient at the places, and its sum elsewhere."""
    indices, output_shape, values, default = inputs
    places = indices.reshape((-1, len(ints(output_shape))))
    picked = gather_nd(grads[0], places)
    for_values = picked.reshape(values.shape) if values.ndim else picked.sum(dtype=values.dtype)
    if not needed[3]:
        return None, None, for_values, None
    rest = scattered(None, np.array(grads[0]), places, np.zeros((), grads[0].dtype))
    return None, None, for_values, rest.sum(dtype=default.dtype)


def _halves(inputs: Arrays) -> tuple[Arrays, Arrays]:
    half = len(inputs) // 2
    return inputs[:half], inputs[half:]


def stitched_count(indices: Arrays, data: Arrays) -> int:
    """Returns the number of rows of a stitch; ValueError for negative indices and data that does not fit."""
    if any((value < 0).any() for value in indices):
        raise ValueError("indices of a stitch must not be negative")
    for place, (where, rows) in enumerate(zip(indices, data, strict=True)):
        if rows.shape[: where.ndim] != where.shape:
            shapes = list(rows.shape), list(where.shape)
            said = "data[{0}].shape = {1} does not start with indices[{0}].shape = {2}"
            raise ValueError(said.format(place, *shapes))
    return max((int(value.max()) + 1 for value in indices if value.size), default=0)


@kernel("DynamicStitch", "ParallelDynamicStitch")
def stitch(*inputs: HostArray) -> HostArray:
    """Writes rows at ``indices``; of several rows for one place, the last is used."""
    indices, data = _halves(inputs)
    rest = data[0].shape[indices[0].ndim :]
    result = np.zeros((stitched_count(indices, data), *rest), data[0].dtype)
    for where, rows in zip(indices, data, strict=True):
        result[where.reshape(-1)] = rows.reshape((where.size, *rest))
    return result


@gradient_kernel("DynamicStitch", "ParallelDynamicStitch")
def stitch_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """Returns the gradient's rows, also for rows that were overwritten, as TensorFlow does."""
    indices, _ = _halves(inputs)
    return [*[None] * len(indices), *(grads[0][where] for where in indices)]
