"""Elementwise functions of two sparse tensors, splitting, and changes of the dense shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater import dtypes
from headwater.graph.constants import constant_value
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.sparse_tensor import as_sparse
from headwater.graph.types import TensorLike
from headwater.shapes import merge_dims
from headwater.tf1.functional import arrays, indexing, math, reductions, searching
from headwater.tf1.functional.apply import apply
from headwater.tf1.functional.checks import Assert, assert_less_equal
from headwater.tf1.functional.control_flow import with_dependencies
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.functional.reductions import either
from headwater.tf1.functional.sparse import SparseTensor, SparseTensorValue, convert_to_tensor_or_sparse_tensor
from headwater.tf1.functional.sparse_changes import sparse_reorder
from headwater.tf1.functional.sparse_parts import sparse_slice

if TYPE_CHECKING:
    pass


def _parts(value: SparseTensor) -> tuple[Tensor, Tensor, Tensor]:
    return value.indices, value.values, value.dense_shape


def sparse_add(a: Any, b: Any, threshold: TensorLike | None = None, thresh: TensorLike | None = None) -> Any:
    """Returns the sum: sparse for two sparse tensors, dense if one of them is dense.

    Args:
      threshold, thresh: drop elements of a sparse sum with a smaller absolute value; 0 if None.

    Raises:
      TypeError: neither is sparse.
      ValueError: their shapes differ.
    """
    least = either(threshold, thresh, "threshold", "thresh")
    kinds = (SparseTensor, SparseTensorValue)
    if not isinstance(a, kinds) and not isinstance(b, kinds):
        raise TypeError("At least one input should be SparseTensor; do you mean to use tf.add()?")
    a, b = convert_to_tensor_or_sparse_tensor(a), convert_to_tensor_or_sparse_tensor(b)
    if isinstance(a, SparseTensor) and isinstance(b, SparseTensor):
        real = {dtypes.complex64: dtypes.float32, dtypes.complex128: dtypes.float64}
        own = a.values.dtype.base_dtype
        limit = convert_to_tensor(0 if least is None else least, real.get(own, own), name="thresh")
        a.shape.assert_is_compatible_with(b.shape)
        indices, values, shape = apply("SparseAdd", *_parts(a), *_parts(b), limit).outputs
        known = merge_dims(a.shape.as_dims, b.shape.as_dims)
        return SparseTensor(indices, values, shape if known is None or None in known else np.array(known, np.int64))
    sparse, dense = (a, b) if isinstance(a, SparseTensor) else (b, a)
    return indexing.tensor_scatter_add(dense, sparse.indices, sparse.values)


def sparse_maximum(sp_a: SparseTensor, sp_b: SparseTensor, name: str | None = None) -> SparseTensor:
    """Returns the elementwise maximum; missing elements count as zero."""
    sp_a, sp_b = as_sparse(sp_a), as_sparse(sp_b)
    with name_scope(name, "SparseSparseMaximum", [sp_a.indices, sp_a.values, sp_b.indices, sp_b.values]) as scope:
        indices, values = apply("SparseSparseMaximum", *_parts(sp_a), *_parts(sp_b), name=scope).outputs
    return SparseTensor(indices, values, sp_a.dense_shape)


def sparse_minimum(sp_a: SparseTensor, sp_b: SparseTensor, name: str | None = None) -> SparseTensor:
    """Returns the elementwise minimum; missing elements count as zero."""
    sp_a, sp_b = as_sparse(sp_a), as_sparse(sp_b)
    with name_scope(name, "SparseSparseMinimum", [sp_a.indices, sp_a.values, sp_b.indices, sp_b.values]) as scope:
        indices, values = apply("SparseSparseMinimum", *_parts(sp_a), *_parts(sp_b), name=scope).outputs
    return SparseTensor(indices, values, sp_a.dense_shape)


def sparse_softmax(sp_input: SparseTensor, name: str | None = None) -> SparseTensor:
    """Returns the softmax of existing elements along the last dimension."""
    sp_input = as_sparse(sp_input)
    with name_scope(name, "SparseSoftmax", [sp_input.indices, sp_input.values]):
        sizes = sp_input.dense_shape[:-1]
        steps = reductions.cumprod(sizes, exclusive=True, reverse=True)
        rows = searching.unique(reductions.reduce_sum(sp_input.indices[:, :-1] * steps, 1))
        count = arrays.size(rows.y)
        values = sp_input.values
        highest = reductions.unsorted_segment_max(arrays.stop_gradient(values), rows.idx, count)
        powers = math.exp(values - indexing.gather(highest, rows.idx))
        totals = reductions.unsorted_segment_sum(powers, rows.idx, count)
        return SparseTensor(sp_input.indices, powers / indexing.gather(totals, rows.idx), sp_input.dense_shape)


_REQUIRED = object()


def sparse_split(
    keyword_required: object = _REQUIRED,
    sp_input: SparseTensor | None = None,
    num_split: int | None = None,
    axis: TensorLike | None = None,
    name: str | None = None,
    split_dim: int | None = None,
) -> list[SparseTensor]:
    """Splits a dimension into ``num_split`` parts; if its size is not divisible, the first parts are longer by one.

    Raises:
      ValueError: an argument is missing, or is not passed by name.
    """
    if keyword_required is not _REQUIRED:
        raise ValueError("Keyword arguments are required for this function.")
    if sp_input is None:
        raise ValueError("sp_input is required")
    if num_split is None:
        raise ValueError("num_split is required")
    place = either(axis, split_dim, "axis", "split_dim")
    if place is None:
        raise ValueError("axis is required")
    sp_input = as_sparse(sp_input)
    if num_split < 1:
        raise ValueError(f"Attr 'num_split' of 'SparseSplit' Op passed {num_split} less than minimum 1.")
    with name_scope(name, "SparseSplit", [sp_input.indices]):
        shape = sp_input.dense_shape
        rank = sp_input.shape.ndims
        place = constant_value(convert_to_tensor(place))
        if rank is None or place is None:
            raise ValueError("sparse_split needs a sparse tensor of known rank, and an axis that is known")
        if not -rank <= int(place) < rank:
            raise ValueError(f"axis {int(place)} is not in [{-rank}, {rank})")
        along = indexing.one_hot(int(place) % rank, rank, dtype=dtypes.int64)
        said = "Input num_split should be between 1 and the splitting dimension size"
        with control_dependencies([Assert(shape[int(place)] >= num_split, [said, shape[int(place)], num_split])]):
            whole = arrays.identity(shape[int(place)])
        size, longer = math.floordiv(whole, num_split), math.floormod(whole, num_split)
        parts: list[SparseTensor] = []
        for part in range(num_split):
            number = convert_to_tensor(part, dtypes.int64)
            begin = number * size + math.minimum(number, longer)
            own = size + math.cast(number < longer, dtypes.int64)
            parts.append(sparse_slice(sp_input, along * begin, shape + along * (own - whole)))
        return parts


def sparse_reset_shape(sp_input: SparseTensor, new_shape: TensorLike | None = None) -> SparseTensor:
    """Changes the dense shape to ``new_shape``; to the smallest possible shape if None.

    Raises:
      ValueError: the rank differs, or the shape is known to be too small.
    """
    sp_input = as_sparse(sp_input)
    shape, indices = sp_input.dense_shape, sp_input.indices
    if new_shape is None:
        none = arrays.zeros_like(shape)
        some = arrays.concat([indices, arrays.expand_dims(none - 1, 0)], 0)
        return SparseTensor(indices, sp_input.values, reductions.reduce_max(some, 0) + 1)
    wanted = math.cast(new_shape, dtypes.int64)
    wanted.shape.with_rank(1)
    wanted.shape.assert_is_compatible_with(shape.shape)
    known, least = constant_value(wanted), constant_value(shape)
    if known is not None and least is not None and (known < least).any():
        raise ValueError(f"Requested new_shape should have dimension sizes >= sp_input.shape.  Found {known} < {least}")
    return SparseTensor(indices, sp_input.values, with_dependencies([assert_less_equal(shape, wanted)], wanted))


def sparse_merge(
    sp_ids: Any, sp_values: SparseTensor, vocab_size: object, name: str | None = None, already_sorted: bool = False
) -> SparseTensor:
    """Returns the values of a sparse tensor at indices with the last dimension replaced by values of ``sp_ids``.

    Args:
      sp_ids: a sparse tensor with the last index of each value; a list of several for several dimensions.
      vocab_size: the size of the last dimension; a list with ``sp_ids``.
      already_sorted: skip sorting.

    Raises:
      TypeError: an argument is not a sparse tensor of integers.
      ValueError: the lists have different lengths.
    """
    if isinstance(sp_ids, SparseTensor | SparseTensorValue):
        sp_ids, vocab_size = [sp_ids], [vocab_size]
    if not isinstance(vocab_size, Sequence):
        raise TypeError("vocab_size has to be a list of Tensors or Python ints. Found: " + type(vocab_size).__name__)
    limits: list[Tensor] = list(vocab_size)  # pyright: ignore[reportUnknownArgumentType]
    every = [SparseTensor.from_value(item) for item in sp_ids]
    if len(every) != len(limits):
        raise ValueError("sp_ids and vocab_size have to have equal lengths.")
    sp_values = SparseTensor.from_value(sp_values)
    with name_scope(name, "SparseMerge", [sp_values.values]):
        columns: list[Tensor] = []
        for item in every:
            if not item.values.dtype.is_integer:
                raise TypeError(f"sp_ids must be integers, not {item.values.dtype.name}")
            columns.append(arrays.expand_dims(math.cast(item.values, dtypes.int64), 1))
        sizes = [arrays.reshape(math.cast(size, dtypes.int64), [1]) for size in limits]
        shape = arrays.concat([every[0].dense_shape[:-1], *sizes], 0)
        result = SparseTensor(arrays.concat([every[0].indices[:, :-1], *columns], 1), sp_values.values, shape)
        return result if already_sorted else sparse_reorder(result)
