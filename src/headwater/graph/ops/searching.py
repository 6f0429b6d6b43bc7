"""Searching, partitioning and counting. Operations whose output shapes depend on values run in NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from headwater.dtypes import DType, int32, int64
from headwater.graph.kernels.finding import distinct
from headwater.graph.ops.common import as_ints, constant_int, output
from headwater.graph.ops.define import host, pure
from headwater.graph.registry import HostArray, Inference, Spec
from headwater.lazy_jax import jax, jnp
from headwater.shapes import brackets, merge_dims
from headwater.tables import hashing


def _where_spec(inference: Inference) -> Sequence[Spec]:
    dims = inference.inputs[0].dims
    return [Spec(int64, (None, None if dims is None else len(dims)))]


@host("Where", inputs="input:T", infer=_where_spec)
def where(input: HostArray) -> HostArray:
    """Returns the indices of all true (or nonzero) elements, one per row, in row-major order."""
    if not input.ndim:
        raise ValueError("WhereOp : Unhandled input dimensions: 0")
    return np.argwhere(input).astype(np.int64)


def _unique_spec(inference: Inference) -> Sequence[Spec]:
    dims = inference.inputs[0].dims
    if dims is not None and len(dims) != 1:
        if inference.op_type == "Unique":
            raise ValueError(f"Shape must be rank 1 but is rank {len(dims)}")
        dims = None  # TensorFlow reports the error only when the step runs
    places = inference.attrs.get("out_idx", int32)
    found = [Spec(inference.inputs[0].dtype.base_dtype, (None,)), Spec(places, dims or (None,))]
    return [*found, Spec(places, (None,))] if inference.op_type == "UniqueWithCounts" else found


_NUMBER_NS: Final = 60
"""Time that NumPy needs to sort many numbers, per number."""


def _unique(x: Any) -> tuple[HostArray, HostArray, HostArray]:
    """Returns the distinct elements in the order of first occurrence, the index of each element among them, and their
    counts; ValueError if ``x`` is no vector."""
    if x.ndim != 1:
        raise ValueError("unique expects a 1D vector.")
    if x.dtype.kind in "iu" and hashing.distinct.pays(_NUMBER_NS * x.size):
        first, places = hashing.distinct(x.astype(np.int64), np.empty(0, np.int64))
        return x[first], places, np.bincount(places, minlength=len(first))
    if x.dtype.kind != "O":
        return distinct(x)
    order: dict[Any, int] = {}
    places = np.array([order.setdefault(item, len(order)) for item in x.tolist()], np.int64)
    values = np.empty(len(order), x.dtype)
    values[:] = list(order)
    return values, places, np.bincount(places, minlength=len(order))


@host("Unique", inputs="x:T", infer=_unique_spec)
def unique(x: HostArray, *, out_idx: DType = int32) -> Sequence[HostArray]:
    """Returns the distinct elements in the order of first occurrence, and the index of each element among them."""
    values, places, _ = _unique(x)
    return values, places.astype(out_idx.numpy_dtype)


@host("UniqueWithCounts", inputs="x:T", infer=_unique_spec)
def unique_with_counts(x: HostArray, *, out_idx: DType = int32) -> Sequence[HostArray]:
    """Like `unique`; also returns the count of each distinct element."""
    values, places, counts = _unique(x)
    return values, places.astype(out_idx.numpy_dtype), counts.astype(out_idx.numpy_dtype)


def _list_diff_spec(inference: Inference) -> Sequence[Spec]:
    return [Spec(inference.inputs[0].dtype.base_dtype, (None,)), Spec(inference.attrs.get("out_idx", int32), (None,))]


@host("ListDiff", inputs="x:T, y:T", infer=_list_diff_spec)
def list_diff(x: HostArray, y: HostArray, *, out_idx: DType = int32) -> Sequence[HostArray]:
    """Returns the elements of x that are not in y, and their positions in x."""
    for name, value in (("x", x), ("y", y)):
        if value.ndim != 1:
            raise ValueError(f"{name} should be a 1D vector.")
    gone = set(y.tolist())
    places = np.array([i for i, item in enumerate(x.tolist()) if item not in gone], out_idx.numpy_dtype)
    return x[places], places


def _partition_spec(inference: Inference) -> Sequence[Spec]:
    data, partitions = inference.inputs[0], inference.inputs[1].dims
    if data.dims is not None and partitions is not None:
        merge_dims(data.dims[: len(partitions)], partitions)
    dims = None if data.dims is None or partitions is None else (None, *data.dims[len(partitions) :])
    return [Spec(data.dtype.base_dtype, dims)] * inference.attrs["num_partitions"]


@host("DynamicPartition", inputs="data:T, partitions:int32", infer=_partition_spec)
def dynamic_partition(data: HostArray, partitions: HostArray, *, num_partitions: int) -> Sequence[HostArray]:
    """Returns the slices of ``data`` that belong to each partition, in order."""
    if data.shape[: partitions.ndim] != partitions.shape:
        raise ValueError(
            f"data.shape must start with partitions.shape, got data.shape = {brackets(data.shape)}, partitions.shape = "
            f"{brackets(partitions.shape)}"
        )
    if partitions.size and not (partitions.min() >= 0 and partitions.max() < num_partitions):
        raise ValueError(f"partitions must be in [0, {num_partitions}), got {partitions.min()} to {partitions.max()}")
    return tuple(data[partitions == part] for part in range(num_partitions))


def _bins_spec(inference: Inference) -> Sequence[Spec]:
    size = inference.constant(1)
    return output(inference, (None if size is None else int(size),), 2)


@host("Bincount", inputs="arr:int32, size:int32, weights:T|numeric", infer=_bins_spec)
def bincount(arr: HostArray, size: HostArray, weights: HostArray) -> HostArray:
    """Returns the counts of 0, 1 … size - 1 in ``arr``, or the sums of their weights, if any."""
    count = int(size)
    flat = arr.ravel()
    if flat.size and flat.min() < 0:
        raise ValueError("Input arr must be non-negative!")
    result = np.zeros(count, weights.dtype)
    inside = flat < count
    np.add.at(result, flat[inside], weights.ravel()[inside] if weights.size else 1)
    return result


def _dense_bins_spec(inference: Inference) -> Sequence[Spec]:
    size = inference.constant(1)
    bins = None if size is None else int(size)
    dims = inference.inputs[0].dims
    if dims is None:
        return [Spec(inference.inputs[2].dtype.base_dtype, None)]
    return [Spec(inference.inputs[2].dtype.base_dtype, (bins,) if len(dims) < 2 else (dims[0], bins))]


@host("DenseBincount", inputs="input:Tidx|index, size:Tidx, weights:T|numeric", infer=_dense_bins_spec)
def dense_bincount(input: HostArray, size: HostArray, weights: HostArray, *, binary_output: bool = False) -> HostArray:
    """Returns `Bincount` of a vector, or of each row of a matrix; with ``binary_output`` 1 in place of counts."""
    rows = input if input.ndim > 1 else input.reshape(1, -1)
    scales = weights.reshape(rows.shape) if weights.size else [weights] * len(rows)
    kind = weights.dtype
    found = [bincount(row, size, np.asarray(scale, kind)) for row, scale in zip(rows, scales, strict=True)]
    counts = np.array(found, kind).reshape(len(rows), int(size))
    if binary_output:
        counts = (np.array([bincount(row, size, np.zeros(0, kind)) for row in rows], kind) > 0).astype(kind)
    return counts if input.ndim > 1 else counts[0]


def _ragged_bins_spec(inference: Inference) -> Sequence[Spec]:
    size = inference.constant(2)
    return [Spec(inference.inputs[3].dtype.base_dtype, (None, None if size is None else int(size)))]


@host("RaggedBincount", inputs="splits:int64, values:Tidx|index, size:Tidx, weights:T|numeric", infer=_ragged_bins_spec)
def ragged_bincount(
    splits: HostArray, values: HostArray, size: HostArray, weights: HostArray, *, binary_output: bool = False
) -> HostArray:
    """Returns `DenseBincount` of each row of a ragged tensor."""
    kind = weights.dtype
    found = np.zeros((len(splits) - 1, int(size)), kind)
    for row, (first, last) in enumerate(itertools.pairwise(splits)):
        scales = np.zeros(0, kind) if binary_output or not weights.size else weights[first:last]
        found[row] = bincount(values[first:last], size, scales)
    return (found > 0).astype(kind) if binary_output else found


def _same_in_int32(inference: Inference) -> Sequence[Spec]:
    return [Spec(int32, inference.inputs[0].dims)]


@pure("Bucketize", inputs="input:T|numeric", infer=_same_in_int32, differentiable=False)
def bucketize(input: jax.Array, *, boundaries: Sequence[float]) -> jax.Array:
    """Returns the number of boundaries that are not greater than each value; for NaN, of all of them."""
    return jnp.searchsorted(jnp.asarray(boundaries, jnp.float32), input, side="right").astype(jnp.int32)


# Ordered rows -----------------------------------------------------------------------------------------------------


def _bound_spec(inference: Inference) -> Sequence[Spec]:
    return [Spec(inference.attrs.get("out_type", int32), inference.inputs[1].dims)]


def _bound(op_type: str, side: str) -> None:
    def lower(sorted_inputs: object, values: jax.Array, *, out_type: DType = int32) -> jax.Array:
        """Returns the insertion position of each value in each ascending row: before equal elements, or after them."""
        search = partial(jnp.searchsorted, side=side)
        rows, wanted = jnp.asarray(sorted_inputs), jnp.asarray(values)
        places = jax.vmap(search)(rows, wanted)
        if wanted.dtype.kind not in "iub":  # an unordered comparison with NaN is always false
            places = jnp.where(jnp.isnan(wanted), 0 if side == "left" else rows.shape[-1], places)
        return places.astype(out_type.numpy_dtype)

    pure(op_type, inputs="sorted_inputs:T|real, values:T", infer=_bound_spec, differentiable=False)(lower)


_bound("LowerBound", "left")
_bound("UpperBound", "right")


def _unravel_spec(inference: Inference) -> Sequence[Spec]:
    indices, dims = inference.inputs[0].dims, inference.inputs[1].dims
    return output(inference, None if indices is None or dims is None else (dims[0], *indices))


@pure(
    "UnravelIndex", inputs="indices:Tidx|index=int32, dims:Tidx", static=(1,), infer=_unravel_spec, differentiable=False
)
def unravel_index(indices: jax.Array, dims: HostArray) -> jax.Array:
    """Returns the coordinates, one row for each dimension, of positions in a flattened tensor."""
    return jnp.stack(jnp.unravel_index(indices, as_ints(dims))).astype(indices.dtype)


def _histogram_spec(inference: Inference) -> Sequence[Spec]:
    return [Spec(inference.attrs.get("dtype", int32), (constant_int(inference, 2),))]


@pure(
    "HistogramFixedWidth",
    inputs="values:T|real, value_range:T, nbins:int32",
    static=(2,),
    infer=_histogram_spec,
    differentiable=False,
)
def histogram_fixed_width(
    values: jax.Array, value_range: jax.Array, nbins: HostArray, *, dtype: DType = int32
) -> jax.Array:
    """Returns the number of values in each of ``nbins`` equal parts of a range; values outside of the range are counted
    in the first or last part."""
    count = int(nbins)
    step = (value_range[1] - value_range[0]) / count
    places = jnp.clip(jnp.floor((jnp.ravel(values) - value_range[0]) / step), 0, count - 1).astype(np.int32)
    return jax.ops.segment_sum(jnp.ones(places.shape, dtype.numpy_dtype), places, count)
