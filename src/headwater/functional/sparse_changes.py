"""Sparse tensors in another order, shape or company."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater import dtypes
from headwater.functional import arrays, indexing, math, reductions
from headwater.functional.apply import apply, one
from headwater.functional.sparse import SparseTensor, sparse_tensor_to_dense
from headwater.graph.convert import constant, convert_to_tensor, name_scope
from headwater.graph.operation import Tensor


def sparse_reorder(sp_input: SparseTensor, name: str | None = None) -> SparseTensor:
    """The elements in row-major order."""
    op = apply("SparseReorder", sp_input.indices, sp_input.values, sp_input.dense_shape, name=name)
    return SparseTensor(op.outputs[0], op.outputs[1], sp_input.dense_shape)


def sparse_retain(sp_input: SparseTensor, to_retain: Any) -> SparseTensor:
    """The elements for which ``to_retain`` holds."""
    places = arrays.reshape(indexing.where(convert_to_tensor(to_retain)), [-1])
    return SparseTensor(
        indexing.gather(sp_input.indices, places), indexing.gather(sp_input.values, places), sp_input.dense_shape
    )


def sparse_fill_empty_rows(
    sp_input: SparseTensor, default_value: Any, name: str | None = None
) -> tuple[SparseTensor, Tensor]:
    """With an element ``default_value`` in each row that has none, and which rows these were."""
    with name_scope(name, "SparseFillEmptyRows", [sp_input.indices]):
        default = convert_to_tensor(default_value, sp_input.values.dtype.base_dtype)
        indices, values, empty, _ = apply(
            "SparseFillEmptyRows", sp_input.indices, sp_input.values, sp_input.dense_shape, default
        ).outputs
        return SparseTensor(indices, values, sp_input.dense_shape), empty


def sparse_reshape(sp_input: SparseTensor, shape: Any, name: str | None = None) -> SparseTensor:
    """The same elements in another shape, one size of which may be -1."""
    with name_scope(name, "SparseReshape", [sp_input.indices]) as scope:
        wanted = math.cast(convert_to_tensor(shape), dtypes.int64)
        indices, sizes = apply("SparseReshape", sp_input.indices, sp_input.dense_shape, wanted, name=scope).outputs
        return SparseTensor(indices, sp_input.values, sizes)


def sparse_transpose(sp_input: SparseTensor, perm: Any = None, name: str | None = None) -> SparseTensor:
    """The dimensions in another order; turned round when None."""
    with name_scope(name, "SparseTranspose", [sp_input.indices]):
        rank = sp_input.shape.ndims or 2
        order = [int(axis) for axis in (range(rank)[::-1] if perm is None else perm)]
        indices = one("Transpose", one("GatherV2", one("Transpose", sp_input.indices, [1, 0]), order, 0), [1, 0])
        return sparse_reorder(SparseTensor(indices, sp_input.values, indexing.gather(sp_input.dense_shape, order)))


def sparse_concat(axis: int, sp_inputs: Sequence[SparseTensor], name: str | None = None) -> SparseTensor:
    """Several one after the other along a dimension."""
    with name_scope(name, "SparseConcat", [item.indices for item in sp_inputs]):
        rank = next(item.shape.ndims for item in sp_inputs if item.shape.ndims)
        assert rank is not None
        along = [1 if i == axis % rank else 0 for i in range(rank)]
        offset: Any = constant([0] * rank, dtypes.int64)
        indices: list[Tensor] = []
        for item in sp_inputs:
            indices.append(item.indices + offset)
            offset = offset + item.dense_shape * constant(along, dtypes.int64)
        shape = sp_inputs[0].dense_shape * constant([1 - a for a in along], dtypes.int64) + offset
        values = arrays.concat([item.values for item in sp_inputs], 0)
        return sparse_reorder(SparseTensor(arrays.concat(indices, 0), values, shape))


def sparse_to_indicator(sp_input: SparseTensor, vocab_size: int, name: str | None = None) -> Tensor:
    """For each row of numbers which of ``vocab_size`` it has."""
    with name_scope(name, "SparseToIndicator", [sp_input.indices]):
        rows = sp_input.indices[:, :-1]
        ids = arrays.expand_dims(math.to_int64(sp_input.values), 1)
        shape = arrays.concat([sp_input.dense_shape[:-1], constant([vocab_size], dtypes.int64)], 0)
        ones = arrays.ones_like(sp_input.values, dtypes.bool_)
        return indexing.sparse_to_dense(arrays.concat([rows, ids], 1), shape, ones, False)


def sparse_reduce_sum(
    sp_input: SparseTensor, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The sum along some dimensions, dense."""
    with name_scope(name, "SparseReduceSum", [sp_input.indices]):
        return reductions.reduce_sum(sparse_tensor_to_dense(sp_input), axis, keepdims=keepdims)
