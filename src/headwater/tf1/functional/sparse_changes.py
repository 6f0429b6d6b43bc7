"""Transformations of sparse tensors: order, shape, concatenation, reduction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headwater import dtypes
from headwater.graph.convert import constant, convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.sparse_tensor import as_sparse
from headwater.graph.types import TensorLike
from headwater.tf1.functional import arrays, indexing, math, reductions
from headwater.tf1.functional.apply import apply, one
from headwater.tf1.functional.reductions import either
from headwater.tf1.functional.sparse import SparseTensor, sparse_tensor_to_dense

if TYPE_CHECKING:
    from headwater.graph.types import Ints


def sparse_reorder(sp_input: SparseTensor, name: str | None = None) -> SparseTensor:
    """The elements in row-major order."""
    sp_input = as_sparse(sp_input)
    op = apply("SparseReorder", sp_input.indices, sp_input.values, sp_input.dense_shape, name=name)
    return SparseTensor(op.outputs[0], op.outputs[1], sp_input.dense_shape)


def sparse_retain(sp_input: SparseTensor, to_retain: TensorLike) -> SparseTensor:
    """Returns the elements for which ``to_retain`` is true."""
    sp_input = as_sparse(sp_input)
    kept = convert_to_tensor(to_retain)
    sp_input.values.shape[:1].assert_is_compatible_with(kept.shape)
    places = arrays.reshape(indexing.where(kept), [-1])
    return SparseTensor(
        indexing.gather(sp_input.indices, places), indexing.gather(sp_input.values, places), sp_input.dense_shape
    )


def sparse_fill_empty_rows(
    sp_input: SparseTensor, default_value: TensorLike, name: str | None = None
) -> tuple[SparseTensor, Tensor]:
    """Adds an element ``default_value`` to each empty row; also returns which rows were empty."""
    sp_input = as_sparse(sp_input)
    with name_scope(name, "SparseFillEmptyRows", [sp_input.indices]):
        default = convert_to_tensor(default_value, sp_input.values.dtype.base_dtype)
        indices, values, empty, _ = apply(
            "SparseFillEmptyRows", sp_input.indices, sp_input.values, sp_input.dense_shape, default
        ).outputs
        return SparseTensor(indices, values, sp_input.dense_shape), empty


def sparse_reshape(sp_input: SparseTensor, shape: TensorLike, name: str | None = None) -> SparseTensor:
    """The same elements in another shape, one size of which may be -1."""
    sp_input = as_sparse(sp_input)
    with name_scope(name, "SparseReshape", [sp_input.indices]) as scope:
        wanted = math.cast(convert_to_tensor(shape), dtypes.int64)
        indices, sizes = apply("SparseReshape", sp_input.indices, sp_input.dense_shape, wanted, name=scope).outputs
        return SparseTensor(indices, sp_input.values, sizes)


def sparse_transpose(
    sp_input: SparseTensor, perm: Sequence[int] | None = None, name: str | None = None
) -> SparseTensor:
    """Permutes the dimensions by ``perm``; reverses them if None."""
    sp_input = as_sparse(sp_input)
    with name_scope(name, "SparseTranspose", [sp_input.indices]):
        rank = sp_input.shape.ndims or 2
        order = [int(axis) for axis in (range(rank)[::-1] if perm is None else perm)]
        indices = one("Transpose", one("GatherV2", one("Transpose", sp_input.indices, [1, 0]), order, 0), [1, 0])
        return sparse_reorder(SparseTensor(indices, sp_input.values, indexing.gather(sp_input.dense_shape, order)))


def sparse_concat(
    axis: int | None,
    sp_inputs: Sequence[SparseTensor],
    name: str | None = None,
    expand_nonconcat_dim: bool = False,
    concat_dim: int | None = None,
    expand_nonconcat_dims: bool | None = None,
) -> SparseTensor:
    """Concatenates sparse tensors along a dimension.

    Args:
      expand_nonconcat_dim, expand_nonconcat_dims: whether the other dimensions may differ; each is then the largest.
      concat_dim: the older name of ``axis``.

    Raises:
      ValueError: the other dimensions differ and may not, or both names of an argument are given.
    """
    sp_inputs = [as_sparse(item) for item in sp_inputs]
    axis = either(axis, concat_dim, "axis", "concat_dim")
    if expand_nonconcat_dims is not None and expand_nonconcat_dim:
        raise ValueError("Cannot specify both 'expand_nonconcat_dims' and 'expand_nonconcat_dim'")
    expands = expand_nonconcat_dim if expand_nonconcat_dims is None else expand_nonconcat_dims
    if axis is None:
        raise ValueError("sparse_concat needs an axis")
    with name_scope(name, "SparseConcat", [item.indices for item in sp_inputs]):
        rank = next((item.shape.ndims for item in sp_inputs if item.shape.ndims), None)
        if rank is None:
            raise ValueError("sparse_concat needs sparse tensors of known rank")
        if not -rank <= axis < rank:
            raise IndexError(f"index {axis} is out of bounds for axis 0 with size {rank}")
        along = [1 if i == axis % rank else 0 for i in range(rank)]
        if expands:
            largest = reductions.reduce_max(arrays.stack([item.dense_shape for item in sp_inputs]), 0)
            others = largest * constant([1 - a for a in along], dtypes.int64)
            kept = constant(along, dtypes.int64)
            sp_inputs = [
                SparseTensor(item.indices, item.values, item.dense_shape * kept + others) for item in sp_inputs
            ]
        else:
            _require_equal_others(sp_inputs, axis % rank)
        offset: TensorLike = constant([0] * rank, dtypes.int64)
        indices: list[Tensor] = []
        for item in sp_inputs:
            indices.append(item.indices + offset)
            offset = offset + item.dense_shape * constant(along, dtypes.int64)
        shape = sp_inputs[0].dense_shape * constant([1 - a for a in along], dtypes.int64) + offset
        values = arrays.concat([item.values for item in sp_inputs], 0)
        return sparse_reorder(SparseTensor(arrays.concat(indices, 0), values, shape))


def sparse_to_indicator(sp_input: SparseTensor, vocab_size: int, name: str | None = None) -> Tensor:
    """Returns, for each row of numbers, which numbers below ``vocab_size`` it contains."""
    sp_input = as_sparse(sp_input)
    with name_scope(name, "SparseToIndicator", [sp_input.indices]):
        rows = sp_input.indices[:, :-1]
        ids = arrays.expand_dims(math.to_int64(sp_input.values), 1)
        shape = arrays.concat([sp_input.dense_shape[:-1], constant([vocab_size], dtypes.int64)], 0)
        ones = arrays.ones_like(sp_input.values, dtypes.bool_)
        return indexing.sparse_to_dense(arrays.concat([rows, ids], 1), shape, ones, False, False)


def _require_equal_others(sp_inputs: Sequence[SparseTensor], axis: int) -> None:
    """Raises ValueError if static shapes differ in another dimension than ``axis``."""
    first = sp_inputs[0].shape
    for item in sp_inputs[1:]:
        for place, (a, b) in enumerate(zip(first.dims or (), item.shape.dims or (), strict=False)):
            if place != axis and not a.is_compatible_with(b):
                raise ValueError(
                    f"sparse_concat needs shapes that differ in dimension {axis} only, not {first} and {item.shape}; "
                    "expand_nonconcat_dim=True takes the largest"
                )


def sparse_reduce_sum(
    sp_input: SparseTensor,
    axis: Ints | None = None,
    keepdims: bool | None = None,
    reduction_axes: object = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The sum along some dimensions, dense."""
    sp_input = as_sparse(sp_input)
    return _reduced(reductions.reduce_sum, sp_input, axis, keepdims, reduction_axes, keep_dims)


def sparse_reduce_max(
    sp_input: SparseTensor,
    axis: int | None = None,
    keepdims: bool | None = None,
    reduction_axes: object = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Returns the maximum of existing values along some dimensions, dense; 0 where there is no value."""
    sp_input = as_sparse(sp_input)
    values = sp_input.values
    there = sparse_tensor_to_dense(
        SparseTensor(sp_input.indices, arrays.ones_like(values), sp_input.dense_shape), None, False
    )
    lowest = constant(values.dtype.base_dtype.min, values.dtype.base_dtype)
    filled = sparse_tensor_to_dense(sp_input, lowest, False)
    kept = (axis, keepdims, reduction_axes, keep_dims)
    with name_scope(None, "SparseReduceMax", [sp_input.indices]):
        found = _dense_reduced(reductions.reduce_max, filled, *kept)
        some = math.greater(_dense_reduced(reductions.reduce_max, there, *kept), arrays.zeros_like(found))
        return indexing.where(some, found, arrays.zeros_like(found))


def sparse_reduce_sum_sparse(
    sp_input: SparseTensor,
    axis: int | None = None,
    keepdims: bool | None = None,
    reduction_axes: object = None,
    keep_dims: bool | None = None,
) -> SparseTensor:
    """`sparse_reduce_sum` as a sparse tensor, with elements only where there was a value."""
    sp_input = as_sparse(sp_input)
    return _kept_sparse(sparse_reduce_sum, sp_input, axis, keepdims, reduction_axes, keep_dims)


def sparse_reduce_max_sparse(
    sp_input: SparseTensor,
    axis: int | None = None,
    keepdims: bool | None = None,
    reduction_axes: object = None,
    keep_dims: bool | None = None,
) -> SparseTensor:
    """`sparse_reduce_max` as a sparse tensor, with elements only where there was a value."""
    sp_input = as_sparse(sp_input)
    return _kept_sparse(sparse_reduce_max, sp_input, axis, keepdims, reduction_axes, keep_dims)


def _kept_sparse(function: Callable[..., Tensor], sp_input: SparseTensor, *how: Any) -> SparseTensor:
    dense = function(sp_input, *how)
    ones = SparseTensor(sp_input.indices, arrays.ones_like(sp_input.indices[:, 0]), sp_input.dense_shape)
    places = indexing.where(math.greater(sparse_reduce_sum(ones, *how), constant(0, dtypes.int64)))
    return SparseTensor(places, indexing.gather_nd(dense, places), arrays.shape(dense, out_type=dtypes.int64))


def _reduced(function: Callable[..., Tensor], sp_input: SparseTensor, *how: Any) -> Tensor:
    with name_scope(None, "SparseReduceSum", [sp_input.indices]):
        return _dense_reduced(function, sparse_tensor_to_dense(sp_input, None, False), *how)


def _dense_reduced(
    function: Callable[..., Tensor], dense: Tensor, axis: int | None, keepdims: object, old: object, keep: object
) -> Tensor:
    along = either(axis, old, "axis", "reduction_axes")
    return function(dense, along, keepdims=bool(either(keepdims, keep, "keepdims", "keep_dims")))
