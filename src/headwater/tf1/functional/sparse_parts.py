"""Sparse tensors from sparse and dense ones: parts, further dimensions, diagonals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater import dtypes
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.indexed_slices import IndexedSlices
from headwater.graph.sparse_tensor import as_sparse
from headwater.graph.types import TensorLike
from headwater.tf1.functional import arrays, indexing, math, reductions, searching
from headwater.tf1.functional.sparse import SparseTensor
from headwater.tf1.functional.sparse_changes import sparse_retain

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike


def sparse_from_dense(tensor: TensorLike, name: str | None = None) -> SparseTensor:
    """The elements of a tensor that are not zero."""
    with name_scope(name, "dense_to_sparse", [tensor]):
        tensor = convert_to_tensor(tensor)
        indices = indexing.where(math.not_equal(tensor, arrays.zeros_like(tensor)))
        values = indexing.gather_nd(tensor, indices)
        return SparseTensor(indices, values, arrays.shape(tensor, out_type=dtypes.int64))


def sparse_eye(
    num_rows: int, num_columns: int | None = None, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> SparseTensor:
    """The matrix with ones on the diagonal."""
    with name_scope(name, "eye", [num_rows, num_columns]):
        rows = math.to_int64(num_rows)
        columns = rows if num_columns is None else math.to_int64(num_columns)
        diagonal = arrays.range(math.minimum(rows, columns))
        places = arrays.stack([diagonal, diagonal], 1)
        return SparseTensor(places, arrays.ones_like(diagonal, dtype), arrays.stack([rows, columns]))


def sparse_expand_dims(sp_input: SparseTensor, axis: int | None = None, name: str | None = None) -> SparseTensor:
    """Inserts a dimension of size 1 at ``axis``; the last if None.

    Raises:
      ValueError: the rank is not known, or ``axis`` is outside of it.
    """
    sp_input = as_sparse(sp_input)
    rank = sp_input.shape.ndims
    if rank is None:
        raise ValueError("sparse.expand_dims needs a sparse tensor of known rank")
    place = -1 if axis is None else axis
    if not -rank - 1 <= place <= rank:
        raise ValueError(f"axis must be in [{-rank - 1}, {rank}], not {place}")
    place %= rank + 1
    with name_scope(name, "expand_dims", [sp_input.indices]):
        zeros = arrays.zeros_like(sp_input.indices[:, :1])
        indices = arrays.concat([sp_input.indices[:, :place], zeros, sp_input.indices[:, place:]], 1)
        one = arrays.ones([1], dtypes.int64)
        shape = arrays.concat([sp_input.dense_shape[:place], one, sp_input.dense_shape[place:]], 0)
        return SparseTensor(indices, sp_input.values, shape)


def sparse_slice(sp_input: SparseTensor, start: TensorLike, size: TensorLike, name: str | None = None) -> SparseTensor:
    """The part of ``size`` that begins at ``start``, cut off at the end of the whole."""
    sp_input = as_sparse(sp_input)
    with name_scope(name, "SparseSlice", [sp_input.indices]):
        begin, extent = math.to_int64(convert_to_tensor(start)), math.to_int64(convert_to_tensor(size))
        away = sp_input.indices - begin
        inside = math.logical_and(away >= arrays.zeros_like(away), away < extent)
        shape = math.maximum(math.minimum(extent, sp_input.dense_shape - begin), arrays.zeros_like(begin))
        return sparse_retain(SparseTensor(away, sp_input.values, shape), reductions.reduce_all(inside, 1))


def sparse_mask(a: IndexedSlices, mask_indices: TensorLike, name: str | None = None) -> IndexedSlices:
    """Removes the slices with the given indices."""
    with name_scope(name, "sparse_mask", [a.values, mask_indices]) as scope:
        indices, places = searching.setdiff1d(a.indices, mask_indices)
        return IndexedSlices(indexing.gather(a.values, places, name=scope), indices, a.dense_shape)
