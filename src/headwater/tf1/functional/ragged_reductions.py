"""Reductions that take ragged tensors as well: over rows, within rows, or of everything."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from headwater.dtypes import bool_, int32
from headwater.graph.constants import constant_value
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.tf1.functional import arrays, indexing, math, reductions
from headwater.tf1.functional.ragged_tensor import RaggedTensor
from headwater.tf1.functional.reductions import either

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)


def _for_both(plain: F, segments: Function | None) -> F:
    """``plain``, which for a ragged tensor takes the way of ``segments``, a reduction of unsorted segments."""

    @functools.wraps(plain)
    def reduce(
        input_tensor: Any,
        axis: Any = None,
        keepdims: bool | None = None,
        name: str | None = None,
        reduction_indices: Any = None,
        keep_dims: bool | None = None,
    ) -> Any:
        if not isinstance(input_tensor, RaggedTensor):
            return plain(input_tensor, axis, keepdims, name, reduction_indices, keep_dims)
        if either(keepdims, keep_dims, "keepdims", "keep_dims"):
            raise ValueError("keepdims=True is not supported for RaggedTensors.")
        axis = either(axis, reduction_indices, "axis", "reduction_indices")
        with name_scope(name, f"Ragged{plain.__name__.title().replace('_', '')}"):
            if axis is None:
                return plain(input_tensor.flat_values)
            return _over(input_tensor, axis, plain, segments or _mean)

    return cast("F", reduce)


def _over(ragged: Any, axis: Any, plain: Function, segments: Function) -> Any:
    """The reduction over the dimensions ``axis``, the last one first."""
    rank = ragged.shape.ndims
    given = constant_value(convert_to_tensor(axis))
    if given is None:
        raise ValueError("axis must be known when the graph is built.")
    several: list[int] = np.ravel(given).astype(int).tolist()
    if any(each < 0 for each in several) and rank is None:
        raise ValueError("A negative axis needs a ragged tensor of known rank.")
    whole = sorted({each + rank if each < 0 else each for each in several}, reverse=True)
    if segments is _mean and len(whole) > 1:
        ones = ragged.with_flat_values(arrays.ones_like(ragged.flat_values))
        total = _over(ragged, whole, reductions.reduce_sum, reductions.unsorted_segment_sum)
        return math.divide(total, _over(ones, whole, reductions.reduce_sum, reductions.unsorted_segment_sum))
    found = ragged
    for each in whole:
        found = _one(found, each, plain, segments) if isinstance(found, RaggedTensor) else plain(found, each)
    return found


def _one(ragged: RaggedTensor, axis: int, plain: Function, segments: Function) -> Any:
    values = ragged.values
    if axis > 1:
        inner = _one(values, axis - 1, plain, segments) if isinstance(values, RaggedTensor) else plain(values, axis - 1)
        return ragged.with_values(inner)
    if isinstance(values, RaggedTensor):
        raise NotImplementedError("reductions over a dimension that holds ragged rows: reduce the inner one first")
    rows = ragged.value_rowids()
    if axis == 1:
        return segments(values, rows, ragged.nrows())
    lengths = ragged.row_lengths()
    place = arrays.range(arrays.shape(rows, out_type=rows.dtype)[0]) - indexing.gather(ragged.row_starts(), rows)
    widest = math.maximum(reductions.reduce_max(lengths), convert_to_tensor(0, lengths.dtype))
    return segments(values, place, widest)


def _mean(values: Any, ids: Any, count: Any) -> Any:
    total = reductions.unsorted_segment_sum(values, ids, count)
    return math.divide(total, reductions.unsorted_segment_sum(arrays.ones_like(values), ids, count))


def _truth(segments: Function) -> Function:
    def found(values: Any, ids: Any, count: Any) -> Any:
        return math.cast(segments(math.cast(values, int32), ids, count), bool_)

    return found


def _any_of(values: Any, ids: Any, count: Any) -> Any:
    return math.maximum(reductions.unsorted_segment_max(values, ids, count), convert_to_tensor(0, values.dtype))


reduce_sum = _for_both(reductions.reduce_sum, reductions.unsorted_segment_sum)
reduce_prod = _for_both(reductions.reduce_prod, reductions.unsorted_segment_prod)
reduce_min = _for_both(reductions.reduce_min, reductions.unsorted_segment_min)
reduce_max = _for_both(reductions.reduce_max, reductions.unsorted_segment_max)
reduce_mean = _for_both(reductions.reduce_mean, None)
reduce_all = _for_both(reductions.reduce_all, _truth(reductions.unsorted_segment_prod))
reduce_any = _for_both(reductions.reduce_any, _truth(_any_of))
