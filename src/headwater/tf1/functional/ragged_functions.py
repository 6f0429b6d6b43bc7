"""Functions of ragged tensors that depend on their rows, called by `headwater.tf1.functional.ragged_dispatch`.

Each has the arguments of the function of tensors that it replaces.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from headwater import dtypes
from headwater.dtypes import DTypeLike, as_dtype
from headwater.graph.constants import constant_value
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.tf1.functional import arrays, indexing, math, reductions
from headwater.tf1.functional.checks import assert_equal
from headwater.tf1.functional.control_flow import with_dependencies
from headwater.tf1.functional.ragged import concatenated_rows, merged_rows, stack_along, stack_dynamic_partitions
from headwater.tf1.functional.ragged_tensor import (
    RaggedTensor,
    as_ragged_or_tensor,
    check_splits,
    gather_rows,
    length_of,
    map_flat_values,
    same_kind_of_splits,
)
from headwater.tf1.functional.reductions import either

if TYPE_CHECKING:
    from headwater.graph.types import TensorLike


Function = Callable[..., Any]


def _ragged(value: object) -> Any:
    return value if isinstance(value, RaggedTensor) else RaggedTensor.from_tensor(value)


def place_of(axis: Any, rank: int | None, what: str = "axis") -> int:
    """A dimension, counted from the first.

    Raises:
      TypeError: it is not known, or is text.
      ValueError: there is none.
    """
    if isinstance(axis, str):
        raise TypeError(f"{what} must be an int, not {axis!r}")
    known = axis if isinstance(axis, int) or axis is None else constant_value(convert_to_tensor(axis))
    if known is None:
        raise TypeError(f"{what} must be an integer that is known when the graph is built")
    number = int(known)
    if number < 0:
        if rank is None:
            raise ValueError(f"A negative {what} needs a ragged tensor of known rank.")
        number += rank
    if number < 0 or (rank is not None and number >= rank):
        raise ValueError(f"{what}={int(known)} out of bounds: expected {-(rank or 0)}<={what}<{rank}")
    return number


# Putting together and taking apart ------------------------------------------------------------------------------------


def concat(values: object, axis: object, name: str = "RaggedConcat") -> Any:
    """Concatenates tensors and ragged tensors of one rank along a dimension."""
    with name_scope(name, "RaggedConcat", []):
        given = cast("list[Any]", values) if isinstance(values, list | tuple) else [values]
        parts = [as_ragged_or_tensor(value) for value in given]
        same_kind_of_splits(parts)
        rank = next((part.shape.ndims for part in parts if part.shape.ndims is not None), None)
        return _concat(parts, place_of(axis, rank))


def _concat(parts: list[Any], axis: int) -> Any:
    if not any(isinstance(part, RaggedTensor) for part in parts):
        return arrays.concat(parts, axis)
    if axis == 0:
        return concatenated_rows(parts)
    ragged = [_ragged(part) for part in parts]
    if axis > 1:
        return ragged[0].with_values(_concat([part.values for part in ragged], axis - 1))
    return merged_rows(stack_along(ragged, cast("int", ragged[0].shape.ndims), 1))


def expand_dims(input: Any, axis: Any = None, name: str | None = None, dim: object = None) -> Any:
    """A ragged tensor with one more dimension, of size 1."""
    axis = either(axis, dim, "axis", "dim")
    with name_scope(name, "RaggedExpandDims", []):
        rank = input.shape.ndims
        return _expanded(input, place_of(axis, None if rank is None else rank + 1))


def _expanded(value: object, axis: int) -> Any:
    if not isinstance(value, RaggedTensor):
        return arrays.expand_dims(value, axis)
    count = value.nrows()
    if axis == 0:
        return RaggedTensor(value, arrays.stack([arrays.zeros_like(count), count]), internal=True)
    if axis == 1:
        return RaggedTensor(value, arrays.range(count + 1), internal=True)
    return value.with_values(_expanded(value.values, axis - 1))


def squeeze(input: Any, axis: Any = None, name: str | None = None, squeeze_dims: object = None) -> Any:
    """A ragged tensor without the dimensions ``axis``, which must have the size 1.

    Raises:
      ValueError: ``axis`` is None.
    """
    axis = either(axis, squeeze_dims, "axis", "squeeze_dims")
    if axis is None:
        raise ValueError("Ragged.squeeze must have an axis argument.")
    with name_scope(name, "RaggedSqueeze", []):
        found = input
        axes = [axis] if isinstance(axis, int) else list(axis)
        for each in sorted({place_of(each, input.shape.ndims) for each in axes}, reverse=True):
            found = _squeezed(found, each)
        return found


def _squeezed(value: Any, axis: int) -> Any:
    if not isinstance(value, RaggedTensor):
        return arrays.squeeze(value, [axis])
    if axis > 1:
        return value.with_values(_squeezed(value.values, axis - 1))
    if axis == 1:
        message = "squeeze needs rows of exactly one value"
        check = assert_equal(value.row_splits, arrays.range(value.nrows() + 1), message=message)
        return gather_rows(value.values, with_dependencies([check], value.row_starts()))
    return gather_rows(value.values, arrays.range(arrays.reshape(value.row_lengths(), [])))


def tile(input: Any, multiples: Any, name: str | None = None) -> Any:
    """A ragged tensor, repeated ``multiples[i]`` times along dimension i."""
    with name_scope(name, "RaggedTile", []):
        given = convert_to_tensor(multiples)
        if not given.dtype.is_integer:
            raise TypeError(f"multiples must be integers, not {given.dtype.name}")
        times = math.cast(given, input.row_splits.dtype)
        return _tiled(input, times, cast("int", input.shape.ndims))


def _tiled(value: Any, times: Tensor, rank: int) -> Any:
    if not isinstance(value, RaggedTensor):
        return arrays.tile(value, times)
    inner = _tiled(value.values, arrays.concat([[1], math.cast(times[2:], times.dtype)], 0), rank - 1)
    # Repeat each inner row as often as its outer row contains it, then join the repetitions to outer rows.
    count, repeats = value.nrows(), times[1]
    order = math.floordiv(arrays.range(count * repeats), repeats)
    rows = gather_rows(RaggedTensor(inner, value.row_splits, internal=True), order)
    splits = indexing.gather(rows.row_splits, arrays.range(count + 1) * repeats)
    wide = RaggedTensor(rows.values, splits, internal=True)
    return gather_rows(wide, math.floormod(arrays.range(count * times[0]), count))


def reverse(tensor: Any, axis: Any, name: str | None = None) -> Any:
    """A ragged tensor with the order of the dimensions ``axis`` reversed."""
    with name_scope(name, "RaggedReverse", []):
        found = tensor
        for each in np.ravel(axis):
            found = _reversed(found, place_of(int(each), tensor.shape.ndims))
        return found


def _reversed(value: Any, axis: int) -> Any:
    if not isinstance(value, RaggedTensor):
        return arrays.reverse(value, [axis])
    if axis > 1:
        return value.with_values(_reversed(value.values, axis - 1))
    if axis == 0:
        return gather_rows(value, value.nrows() - 1 - arrays.range(value.nrows()))
    rows = value.value_rowids()
    ends = indexing.gather(value.row_starts() + value.row_limits(), rows) - 1
    return value.with_values(gather_rows(value.values, ends - arrays.range(length_of(value.values))))


def dynamic_partition(data: Any, partitions: Any, num_partitions: int, name: str | None = None) -> list[Any]:
    """Distributes the rows of ``data`` to ``num_partitions`` results by ``partitions``.

    Raises:
      TypeError: ``num_partitions`` is not a number.
    """
    if not isinstance(num_partitions, int) or num_partitions < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError("num_partitions must be a non-negative integer")
    if not num_partitions:
        return []
    found = stack_dynamic_partitions(data, partitions, num_partitions, name)
    return [found[index] for index in range(num_partitions)]


# Rank and size --------------------------------------------------------------------------------------------------------


def rank(input: Any, name: str | None = None) -> Tensor:
    """Returns the number of dimensions."""
    with name_scope(name, "RaggedRank", []):
        return arrays.rank(input.flat_values) + np.int32(input.ragged_rank)


def size(input: Any, name: str | None = None, out_type: DTypeLike = dtypes.int32) -> Tensor:
    """Returns the number of values."""
    return arrays.size(input.flat_values, name, out_type)


# Selection of rows and values
# ------------------------------------------------------------------------------------------------------


def gather(
    params: Any,
    indices: Any,
    validate_indices: object = None,
    name: str | None = None,
    axis: Any = None,
    batch_dims: int = 0,
) -> Any:
    """Gathers the slices of ``params`` at ``indices`` along a dimension; both may be ragged.

    Args:
      axis: the dimension; ``batch_dims`` if None.
      batch_dims: number of leading dimensions that both have in common.
    """
    del validate_indices
    with name_scope(name, "RaggedGather", []):
        params, indices = as_ragged_or_tensor(params, name="params"), as_ragged_or_tensor(indices, name="indices")
        same_kind_of_splits((params, indices))
        batches = place_of(batch_dims, (indices.shape.ndims or 0) + 1, "batch_dims")
        place = batches if axis is None else place_of(axis, params.shape.ndims)
        return _gathered(params, indices, max(place, batches), batches)


def _gathered(params: Any, indices: Any, axis: int, batches: int) -> Any:
    if not isinstance(params, RaggedTensor) and not isinstance(indices, RaggedTensor):
        return indexing.gather(params, indices, axis=axis, batch_dims=batches)
    if batches:
        return _gathered_of_each(_ragged(params), _ragged(indices), axis, batches)
    if axis:
        # All rows use the same indices.
        many = _ragged(params)
        count = many.nrows()
        if isinstance(indices, RaggedTensor):
            raise ValueError("gather along an inner dimension takes ragged indices with batch_dims only")
        flat = arrays.expand_dims(math.cast(indices, dtypes.int64), 0)
        ones = arrays.ones_like(arrays.shape(indices), dtypes.int64)
        each = arrays.tile(flat, arrays.concat([[math.cast(count, dtypes.int64)], ones], 0))
        return _gathered(many, each, axis, 1)
    if isinstance(indices, RaggedTensor):
        return indices.with_values(_gathered(params, indices.values, 0, 0))
    dimensions = indices.shape.ndims or 0
    if dimensions > 1:
        return _gathered(params, RaggedTensor.from_tensor(indices, ragged_rank=dimensions - 1), 0, 0)
    return params[indices] if not dimensions else gather_rows(params, indices)


def _gathered_of_each(params: RaggedTensor, indices: RaggedTensor, axis: int, batches: int) -> Any:
    if batches > 1:
        return indices.with_values(_gathered(params.values, indices.values, axis - 1, batches - 1))
    params.shape[:1].assert_is_compatible_with(indices.shape[:1])
    if axis > 1:
        raise ValueError("gather from ragged rows takes batch_dims and axis that are the same")
    flat = indices.flat_values
    rows: Any = indices.value_rowids()
    inner: Any = indices.values
    while isinstance(inner, RaggedTensor):
        rows = indexing.gather(rows, inner.value_rowids())
        inner = inner.values
    starts = indexing.gather(params.row_starts(), rows)
    wide = arrays.reshape(starts, arrays.concat([[-1], arrays.ones_like(arrays.shape(flat)[1:])], 0))
    places = math.cast(flat, starts.dtype) + wide
    return _gathered(params.values, indices.with_flat_values(places), 0, 0)


def batch_gather(params: Any, indices: Any, name: str | None = None) -> Any:
    """The slices at ``indices`` of the last dimension that ``indices`` has.

    Raises:
      ValueError: the rank of ``indices`` is 0 or unknown, or the batch dimensions differ.
      InvalidArgumentError: the rows of the batch dimensions differ; when run, unless the rows are known.
    """
    params, indices = as_ragged_or_tensor(params, name="params"), as_ragged_or_tensor(indices, name="indices")
    rank = indices.shape.ndims
    if rank is None:
        raise ValueError("batch_gather does not allow indices with unknown shape.")
    if rank == 0:
        raise ValueError("indices.rank must be at least 1.")
    message = "batch shape from indices does not match params shape"
    ragged = isinstance(params, RaggedTensor)
    if (params.shape.ndims or rank) < rank or (rank > 2 and not ragged and isinstance(indices, RaggedTensor)):
        raise ValueError(message)
    if rank > 1:
        params.shape[0].assert_is_compatible_with(indices.shape[0])
    checks = []
    if ragged and isinstance(indices, RaggedTensor):
        count = min(rank - 2, params.ragged_rank, indices.ragged_rank)
        checks = check_splits(params.nested_row_splits[:count], indices.nested_row_splits[:count], message)
    with get_default_graph().control_dependencies(checks):
        return gather(params, indices, name=name, axis=rank - 1, batch_dims=rank - 1)


def gather_nd(params: Any, indices: Any, name: str | None = None, batch_dims: int = 0) -> Any:
    """The slices of ``params`` at the places that the last dimension of ``indices`` lists.

    Raises:
      ValueError: ``batch_dims``, the shape of ``indices`` is not known, or its last dimension is ragged.
    """
    if batch_dims:
        raise ValueError("batch_dims != 0 is not supported for ragged gather yet.")
    with name_scope(name, "RaggedGatherNd", []):
        params, indices = as_ragged_or_tensor(params, name="params"), as_ragged_or_tensor(indices, name="indices")
        rank = indices.shape.ndims
        if rank is None:
            raise ValueError("indices.rank be statically known.")
        if rank == 0:
            raise ValueError("indices.rank must be at least 1.")
        if isinstance(indices, RaggedTensor):
            if indices.ragged_rank == rank - 1:
                raise ValueError("The innermost dimension of indices may not be ragged")
            return indices.with_flat_values(gather_nd(params, indices.flat_values))
        dims = indices.shape.as_list()
        if dims[-1] is None:
            raise ValueError("indices.shape[-1] must be statically known.")
        if not isinstance(params, RaggedTensor):
            return indexing.gather_nd(params, indices)
        if dims[-1] == 0:
            for _ in dims[:-1]:
                params = _expanded(params, 0)
            ones = arrays.ones([cast("int", params.shape.ndims) - rank + 1], dtypes.int32)
            return tile(params, arrays.concat([arrays.shape(indices)[:-1], ones], 0))
        rows = indices[..., 0]
        if dims[-1] == 1:
            return _gathered(params, rows, 0, 0)
        starts = indexing.gather(params.row_starts(), rows)
        places = starts + math.cast(indices[..., 1], starts.dtype)
        rest = math.cast(indices[..., 2:], starts.dtype)
        return gather_nd(params.values, arrays.concat([arrays.expand_dims(places, -1), rest], -1))


def one_hot(
    indices: Any,
    depth: TensorLike,
    on_value: Any = None,
    off_value: Any = None,
    axis: Any = None,
    dtype: Any = None,
    name: str | None = None,
) -> Any:
    """One-hot encodes each value in a new last dimension.

    Raises:
      ValueError: the new dimension would be a ragged one, or before a ragged one.
    """
    place = -1 if axis is None else place_of(axis, indices.shape.ndims)
    if 0 <= place < indices.ragged_rank:
        raise ValueError("axis must be greater than indices.ragged_rank")
    return map_flat_values(indexing.one_hot, indices, depth, on_value, off_value, place, dtype, name)


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    """Selects ``x`` where ``condition`` is true, else ``y``; returns the true indices if these are None.

    A vector of conditions chooses whole rows.

    Raises:
      ValueError: only one of ``x`` and ``y`` is given, or they are not ragged as ``condition`` is.
    """
    if (x is None) != (y is None):
        raise ValueError("x and y must be either both None or both non-None")
    with name_scope(name, "RaggedWhere", []):
        if x is None:
            condition = map_flat_values(math.cast, as_ragged_or_tensor(condition), dtypes.bool_)
            sparse = condition.to_sparse()
            return indexing.boolean_mask(sparse.indices, sparse.values)
        condition = as_ragged_or_tensor(condition, dtypes.bool_, name="condition")
        x, y = as_ragged_or_tensor(x, name="x"), as_ragged_or_tensor(y, name="y")
        same_kind_of_splits((condition, x, y))
        if isinstance(condition, RaggedTensor):
            if not (isinstance(x, RaggedTensor) and isinstance(y, RaggedTensor)):
                raise ValueError("Input shapes do not match.")
            return map_flat_values(indexing.where, condition, x, y)
        if condition.shape.ndims != 1:
            raise ValueError("where takes a ragged condition, or a vector that chooses rows, for ragged x and y")
        for each in (x, y):
            each.shape[:1].assert_is_compatible_with(condition.shape)
        count = arrays.shape(condition, out_type=dtypes.int64)[0]
        places = arrays.range(count)
        chosen = indexing.where(condition, places, places + length_of(x))
        return gather_rows(concatenated_rows([x, y]), chosen)


def where_v2(condition: object, x: object = None, y: object = None, name: str | None = None) -> Any:
    """Like `where`, but broadcasts scalars."""
    if x is None or not isinstance(condition, RaggedTensor):
        return where(condition, x, y, name)
    return map_flat_values(indexing.where_v2, condition, x, y)


# Segments -------------------------------------------------------------------------------------------------------------


def of_segments(plain: Function) -> Function:
    """Applies ``plain``, a reduction of unsorted segments of tensors, to ragged data: combines values at equal
    positions of the rows of a segment."""

    def reduce(data: object, segment_ids: object, num_segments: object, name: str | None = None) -> Any:
        with name_scope(name, "RaggedSegment", []):
            data, ids = as_ragged_or_tensor(data, name="data"), as_ragged_or_tensor(segment_ids, name="segment_ids")
            if ids.dtype not in (dtypes.int32, dtypes.int64):
                raise ValueError(f"segment_ids must have dtype int32 or int64, not {ids.dtype.name}")
            if isinstance(ids, RaggedTensor):
                outer = _ragged(data)
                same_kind_of_splits((outer, ids))
                checks = check_splits([outer.row_splits], [ids.row_splits], "data and segment_ids have different rows")
                inner = map_flat_values(partial(with_dependencies, checks), outer.values)
                return reduce(inner, ids.values, num_segments)
            if not isinstance(data, RaggedTensor):
                return plain(data, ids, num_segments)
            kind = data.row_splits.dtype
            longest = reductions.unsorted_segment_max(data.row_lengths(), ids, num_segments)
            lengths = math.maximum(longest, convert_to_tensor(0, kind))
            splits = arrays.concat([arrays.zeros([1], kind), reductions.cumsum(lengths)], 0)
            rows = data.value_rowids()
            column = arrays.range(math.cast(length_of(data.values), kind)) - indexing.gather(data.row_starts(), rows)
            places = indexing.gather(splits, indexing.gather(ids, rows)) + column
            return RaggedTensor(reduce(data.values, places, splits[-1]), splits, internal=True)

    return reduce


segment_sum = of_segments(reductions.unsorted_segment_sum)
segment_prod = of_segments(reductions.unsorted_segment_prod)
segment_min = of_segments(reductions.unsorted_segment_min)
segment_max = of_segments(reductions.unsorted_segment_max)


def _divided(root: bool) -> Function:
    def reduce(data: object, segment_ids: object, num_segments: object, name: str | None = None) -> Any:
        with name_scope(name, "RaggedSegmentMean", []):
            total = segment_sum(data, segment_ids, num_segments)
            ones = map_flat_values(arrays.ones_like, as_ragged_or_tensor(data))
            count = segment_sum(ones, segment_ids, num_segments)
            divisor = map_flat_values(math.sqrt, count) if root else count
            return map_flat_values(math.divide, total, divisor)

    return reduce


segment_mean = _divided(False)
segment_sqrt_n = _divided(True)


def cumsum(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Any:
    """Returns cumulative sums along a dimension of a ragged tensor."""
    with name_scope(name, "RaggedCumSum", []):
        return _summed(x, place_of(axis, x.shape.ndims), exclusive, reverse)


def _summed(value: Any, axis: int, exclusive: bool, backwards: bool) -> Any:
    if not isinstance(value, RaggedTensor):
        return reductions.cumsum(value, axis, exclusive, backwards)
    if axis > 1:
        return value.with_values(_summed(value.values, axis - 1, exclusive, backwards))
    if axis == 0 or isinstance(value.values, RaggedTensor):
        whole = reductions.cumsum(value.to_tensor(), axis, exclusive, backwards)
        return RaggedTensor.from_tensor(
            whole, list(value.nested_row_lengths()), row_splits_dtype=value.row_splits.dtype
        )
    if backwards:
        forwards = _summed(_reversed(value, 1), 1, exclusive, False)
        return _reversed(forwards, 1)
    before = reductions.cumsum(value.values, 0, exclusive=True)
    base = gather_rows(arrays.concat([before, before[-1:]], 0), value.row_starts())
    found = before if exclusive else before + value.values
    return value.with_values(found - indexing.gather(base, value.value_rowids()))


def softmax(logits: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Any:
    """The softmax of each row.

    Raises:
      ValueError: ``axis`` is not the last dimension.
    """
    with name_scope(name, "RaggedSoftmax", []):
        place = place_of(-1 if axis is None and dim is None else either(axis, dim, "axis", "dim"), logits.shape.ndims)
        return _softmax(logits, place)


def _softmax(value: Any, axis: int) -> Any:
    if axis > 1 and isinstance(value.values, RaggedTensor):
        return value.with_values(_softmax(value.values, axis - 1))
    if axis != 1:
        raise ValueError("softmax of a ragged tensor must be along its innermost rows")
    rows, count = value.value_rowids(), value.nrows()
    largest = indexing.gather(reductions.unsorted_segment_max(value.values, rows, count), rows)
    powers = math.exp(value.values - arrays.stop_gradient(largest))
    return value.with_values(powers / indexing.gather(reductions.unsorted_segment_sum(powers, rows, count), rows))


def assert_type(tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None) -> Any:
    """Raises TypeError unless a ragged tensor has this type."""
    del name
    if tensor.dtype != as_dtype(tf_type):
        raise TypeError(f"{message or ''} tensor {tensor!r} must be of type {as_dtype(tf_type)!r}")
