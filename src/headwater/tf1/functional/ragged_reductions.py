"""Reductions of ragged tensors: over rows, within rows, or of everything."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.dtypes import bool_, int32
from headwater.graph.constants import constant_value
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.tf1.functional import arrays, indexing, math, reductions, strings
from headwater.tf1.functional.ragged_functions import (
    expand_dims,
    of_segments,
    place_of,
    segment_max,
    segment_mean,
    segment_min,
    segment_prod,
)
from headwater.tf1.functional.ragged_functions import segment_sum as segment_sum
from headwater.tf1.functional.ragged_operators import of_two
from headwater.tf1.functional.ragged_tensor import RaggedTensor, as_ragged_or_tensor, map_flat_values
from headwater.tf1.functional.reductions import either

if TYPE_CHECKING:
    from headwater.graph.operation import Tensor
    from headwater.graph.types import Ints, SparseLike, TensorLike


Function = Callable[..., Any]


def _reduction(plain: Function, segments: Function) -> Function:
    """Returns a reduction of ragged tensors, given the reduction of tensors and the reduction of unsorted segments."""

    def reduce(
        input_tensor: TensorLike,
        axis: Ints | None = None,
        keepdims: bool | None = None,
        name: str | None = None,
        reduction_indices: Ints | None = None,
        keep_dims: bool | None = None,
    ) -> Any:
        keep = either(keepdims, keep_dims, "keepdims", "keep_dims")
        axis = either(axis, reduction_indices, "axis", "reduction_indices")
        with name_scope(name, "RaggedReduce"):
            ragged = as_ragged_or_tensor(input_tensor)
            if plain in (reductions.reduce_all, reductions.reduce_any):
                # As in TensorFlow, numbers are rounded towards 0 first.
                ragged = map_flat_values(math.cast, map_flat_values(math.cast, ragged, int32), bool_)
            return reduced(ragged, axis, plain, segments, bool(keep))

    return reduce


def _known(axis: TensorLike, rank: int | None) -> list[int]:
    """Returns the reduced dimensions, counted from the first, the last one first."""
    given = constant_value(convert_to_tensor(axis, int32 if isinstance(axis, str) else None))
    if given is None:
        raise ValueError("axis must be known when the graph is built.")
    found = [place_of(int(each), rank) for each in np.ravel(given)]
    if len(set(found)) < len(found):
        raise ValueError(f"axis={found} has a dimension twice")
    return sorted(found, reverse=True)


def _with_kept(found: Any, axis: Any, rank: int | None) -> Any:
    """Returns a result with dimensions of size 1 in place of the reduced ones."""
    if rank is None:
        raise ValueError("keepdims needs a ragged tensor of known rank.")
    for each in range(rank) if axis is None else reversed(_known(axis, rank)):
        found = expand_dims(found, each)
    return found


def reduced(ragged: Any, axis: Any, plain: Function, segments: Function, keep: bool = False) -> Any:
    """The reduction over the dimensions ``axis``, the last one first; over all when it is None.

    Raises:
      ValueError: ``axis`` is not known.
    """
    if keep:
        return _with_kept(reduced(ragged, axis, plain, segments), axis, ragged.shape.ndims)
    if axis is None:
        flat = ragged.flat_values
        if segments is segment_mean and flat.dtype.is_integer:
            return math.divide(reductions.reduce_sum(flat), reductions.reduce_sum(arrays.ones_like(flat)))
        return plain(flat)
    whole = _known(axis, ragged.shape.ndims)
    if segments is segment_mean and len(whole) > 1:
        ones = ragged.with_flat_values(arrays.ones_like(ragged.flat_values))
        total = reduced(ragged, whole, reductions.reduce_sum, segment_sum)
        return map_flat_values(math.divide, total, reduced(ones, whole, reductions.reduce_sum, segment_sum))
    found = ragged
    for each in whole:
        found = _one(found, each, plain, segments) if isinstance(found, RaggedTensor) else plain(found, each)
    return found


def _one(ragged: RaggedTensor, axis: int, plain: Function, segments: Function) -> Any:
    values = ragged.values
    if axis > 1:
        inner = _one(values, axis - 1, plain, segments) if isinstance(values, RaggedTensor) else plain(values, axis - 1)
        return ragged.with_values(inner)
    rows = ragged.value_rowids()
    if axis == 1:
        return segments(values, rows, ragged.nrows())
    lengths = ragged.row_lengths()
    place = arrays.range(arrays.shape(rows, out_type=rows.dtype)[0]) - indexing.gather(ragged.row_starts(), rows)
    widest = math.maximum(reductions.reduce_max(lengths), convert_to_tensor(0, lengths.dtype))
    return segments(values, place, widest)


def _truth(segments: Function) -> Function:
    def found(values: object, ids: object, count: object) -> Any:
        numbers = map_flat_values(math.cast, values, int32)
        return map_flat_values(math.cast, segments(numbers, ids, count), bool_)

    return found


def _any_of(values: SparseLike, ids: SparseLike, count: TensorLike) -> object:
    return map_flat_values(math.maximum, segment_max(values, ids, count), np.int32(0))


reduce_sum = _reduction(reductions.reduce_sum, segment_sum)
reduce_prod = _reduction(reductions.reduce_prod, segment_prod)
reduce_min = _reduction(reductions.reduce_min, segment_min)
reduce_max = _reduction(reductions.reduce_max, segment_max)
reduce_mean = _reduction(reductions.reduce_mean, segment_mean)
reduce_all = _reduction(reductions.reduce_all, _truth(segment_prod))
reduce_any = _reduction(reductions.reduce_any, _truth(_any_of))


def reduce_variance(
    input_tensor: TensorLike, axis: TensorLike | None = None, keepdims: bool = False, name: str | None = None
) -> Any:
    """The variance: the mean of the squares less the square of the mean."""
    with name_scope(name, "RaggedReduceVariance"):
        square = map_flat_values(math.square, input_tensor)
        means = [reduced(each, axis, reductions.reduce_mean, segment_mean, keepdims) for each in (square, input_tensor)]
        squared = map_flat_values(math.square, means[1])
        if isinstance(squared, RaggedTensor):
            return of_two(math.subtract, means[0], squared)
        return means[0] - squared


def reduce_std(
    input_tensor: TensorLike, axis: TensorLike | None = None, keepdims: bool = False, name: str | None = None
) -> Any:
    """The root of the variance."""
    with name_scope(name, "RaggedReduceStd"):
        variance = reduce_variance(input_tensor, axis, keepdims)
        return map_flat_values(math.sqrt, map_flat_values(math.maximum, variance, 0.0))


def reduce_join(
    inputs: RaggedTensor,
    axis: Ints | None = None,
    keep_dims: bool | None = None,
    separator: str = "",
    name: str | None = None,
    reduction_indices: Ints | None = None,
    keepdims: bool | None = None,
) -> Any:
    """Joins the strings along a dimension, with a separator between them."""
    keep = either(keepdims, keep_dims, "keepdims", "keep_dims")
    axis = either(axis, reduction_indices, "axis", "reduction_indices")

    def plain(texts: Any, inner: Any = None) -> Tensor:
        return strings.reduce_join(texts, inner, separator=separator)

    def joined(texts: Any, ids: Any, count: Any) -> Any:
        return strings.unsorted_segment_join(texts, ids, count, separator)

    with name_scope(name, "RaggedReduceJoin"):
        return reduced(inputs, axis, plain, of_segments(joined), bool(keep))
