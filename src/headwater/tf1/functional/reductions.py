"""Functions of many elements: sums and other reductions, positions of extremes, cumulative and segment sums.

A reduction runs over the dimensions in ``axis``, or all dimensions; ``keepdims`` keeps them with size 1.
``reduction_indices`` and ``keep_dims`` are older names of the same arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater import dtypes
from headwater.dtypes import DTypeLike, as_dtype
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, make_const, name_scope
from headwater.graph.indexed_slices import checked
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional import math
from headwater.tf1.functional.apply import one

if TYPE_CHECKING:
    from headwater.graph.types import Ints


Function = Callable[..., Tensor]


def either(new: object, old: object, new_name: str, old_name: str) -> Any:
    """Returns the argument that was given under its new or its old name; ValueError if both were given."""
    if new is not None and old is not None:
        raise ValueError(f"Cannot specify both '{new_name}' and '{old_name}'")
    return old if new is None else new


def all_axes(x: Tensor) -> Tensor:
    """0, 1 … rank - 1."""
    if x.dims is not None:
        return make_const(np.arange(len(x.dims), dtype=np.int32))
    graph = get_default_graph()
    count = graph.create_op("Rank", [x]).outputs[0]
    return one("Range", 0, count, 1, name="range")


def reduce(
    op_type: str,
    input_tensor: TensorLike,
    axis: TensorLike | None,
    keepdims: object,
    name: str | None,
    reduction_indices: Ints | None,
    keep_dims: object,
) -> Tensor:
    """Adds a reduction of type ``op_type``."""
    axis = either(axis, reduction_indices, "axis", "reduction_indices")
    keep = bool(either(keepdims, keep_dims, "keepdims", "keep_dims"))
    x = convert_to_tensor(input_tensor, preferred_dtype=dtypes.bool_ if op_type in ("All", "Any") else None)
    result = one(op_type, x, all_axes(x) if axis is None else axis, keep_dims=keep, name=name)
    if axis is None and not keep:
        result.set_shape(())
    return result


def _reduction(op_type: str, doc: str) -> Function:
    def function(
        input_tensor: TensorLike,
        axis: TensorLike | None = None,
        keepdims: bool | None = None,
        name: str | None = None,
        reduction_indices: Ints | None = None,
        keep_dims: bool | None = None,
    ) -> Tensor:
        return reduce(op_type, input_tensor, axis, keepdims, name, reduction_indices, keep_dims)

    function.__doc__ = doc
    return function


reduce_sum: Function = _reduction("Sum", "The sum.")
reduce_mean: Function = _reduction("Mean", "The mean; of integers without its fraction.")
reduce_prod: Function = _reduction("Prod", "The product.")
reduce_max: Function = _reduction("Max", "The largest.")
reduce_min: Function = _reduction("Min", "The smallest.")
reduce_all: Function = _reduction("All", "Whether all are true.")
reduce_any: Function = _reduction("Any", "Whether any is true.")


def reduce_euclidean_norm(
    input_tensor: TensorLike, axis: int | None = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The root of the sum of squares."""
    return reduce("EuclideanNorm", input_tensor, axis, keepdims, name, None, None)


def reduce_logsumexp(
    input_tensor: TensorLike,
    axis: TensorLike | None = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: TensorLike | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """log Σ exp(x), as m + log Σ exp(x - m) with the largest finite m."""
    axis = either(axis, reduction_indices, "axis", "reduction_indices")
    keep = bool(either(keepdims, keep_dims, "keepdims", "keep_dims"))
    with name_scope(name, "ReduceLogSumExp", [input_tensor]) as scope:
        x = convert_to_tensor(input_tensor, name="input_tensor")
        largest = reduce_max(x, axis, keepdims=True)
        largest = one("Select", math.is_finite(largest), largest, one("ZerosLike", largest))
        largest = one("StopGradient", largest)
        total = math.log(reduce_sum(math.exp(x - largest), axis, keepdims=keep))
        if not keep:
            largest = one("Reshape", largest, one("Shape", total))
        return math.add(total, largest, name=scope + "Add/")


def _moment(square_root: bool, default: str, doc: str) -> Function:
    def function(
        input_tensor: TensorLike, axis: TensorLike | None = None, keepdims: bool = False, name: str | None = None
    ) -> Tensor:
        with name_scope(name, default, [input_tensor]):
            x = convert_to_tensor(input_tensor)
            away = x - reduce_mean(x, axis, keepdims=True)
            squares = math.abs(away * math.conj(away)) if x.dtype.is_complex else math.square(away)
            variance = reduce_mean(squares, axis, keepdims=keepdims)
            return math.sqrt(variance) if square_root else variance

    function.__doc__ = doc
    return function


reduce_variance: Function = _moment(False, "reduce_variance", "The mean square of the distance from the mean.")
reduce_std: Function = _moment(True, "reduce_std", "The square root of the variance.")


def count_nonzero(
    input_tensor: TensorLike | None = None,
    axis: TensorLike | None = None,
    keepdims: bool | None = None,
    dtype: DTypeLike = dtypes.int64,
    name: str | None = None,
    reduction_indices: TensorLike | None = None,
    keep_dims: bool | None = None,
    input: TensorLike | None = None,
) -> Tensor:
    """The number of elements that are not zero; of strings, the number that are not empty."""
    axis = either(axis, reduction_indices, "axis", "reduction_indices")
    keep = bool(either(keepdims, keep_dims, "keepdims", "keep_dims"))
    x = either(input_tensor, input, "input_tensor", "input")
    with name_scope(name, "count_nonzero", [x]):
        x = convert_to_tensor(x, name="input")
        zero = "" if x.dtype.base_dtype == dtypes.string else np.zeros((), x.dtype.numpy_dtype)
        there = math.cast(math.not_equal(x, zero), dtypes.int64)
        return math.cast(reduce_sum(there, axis, keepdims=keep), as_dtype(dtype))


def _arg(op_type: str, doc: str) -> Function:
    def function(
        input: TensorLike,
        axis: TensorLike | None = None,
        name: str | None = None,
        dimension: object = None,
        output_type: DTypeLike = dtypes.int64,
    ) -> Tensor:
        axis = either(axis, dimension, "axis", "dimension")
        return one(op_type, input, 0 if axis is None else axis, output_type=as_dtype(output_type), name=name)

    function.__doc__ = doc
    return function


argmax: Function = _arg(
    "ArgMax", "Index of the largest element along a dimension (default: the first); of equal elements, the first."
)
argmin: Function = _arg(
    "ArgMin", "Index of the smallest element along a dimension (default: the first); of equal elements, the first."
)


def cumsum(
    x: TensorLike, axis: int = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Sums of all elements up to each one along a dimension; ``exclusive``: without itself; ``reverse``: from the
    end."""
    return one("Cumsum", x, axis, exclusive=exclusive, reverse=reverse, name=name)


def cumprod(
    x: TensorLike, axis: int = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Products of all elements up to each one along a dimension; ``exclusive``: without itself; ``reverse``: from the
    end."""
    return one("Cumprod", x, axis, exclusive=exclusive, reverse=reverse, name=name)


# Segments ---------------------------------------------------------------------------------------------------------


def _segments(op_type: str, what: str) -> Function:
    def function(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
        return one(op_type, data, segment_ids, name=name)

    function.__doc__ = f"The {what} of the rows with equal ids, which must ascend; 0 for an id without rows."
    return function


segment_sum: Function = _segments("SegmentSum", "sum")
segment_mean: Function = _segments("SegmentMean", "mean")
segment_prod: Function = _segments("SegmentProd", "product")
segment_max: Function = _segments("SegmentMax", "largest")
segment_min: Function = _segments("SegmentMin", "smallest")


def _unsorted(op_type: str, what: str) -> Function:
    def function(
        data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
    ) -> Tensor:
        return one(op_type, data, segment_ids, num_segments, name=name, **checked(segment_ids))

    function.__doc__ = f"The {what} of the rows with equal ids; negative ids are omitted."
    return function


unsorted_segment_sum: Function = _unsorted("UnsortedSegmentSum", "sum")
unsorted_segment_prod: Function = _unsorted("UnsortedSegmentProd", "product")
unsorted_segment_max: Function = _unsorted("UnsortedSegmentMax", "largest")
unsorted_segment_min: Function = _unsorted("UnsortedSegmentMin", "smallest")


def _rows_per_segment(data: Tensor, ids: Tensor, count: TensorLike) -> Tensor:
    """Returns the number of rows of each segment, at least 1, in a shape that broadcasts to the segments' sums."""
    ones = one("OnesLike", math.cast(ids, data.dtype.base_dtype))
    rows = math.maximum(unsorted_segment_sum(ones, ids, count), 1)
    assert data.dims is not None, "data must have a known rank"
    assert ids.dims is not None, "segment_ids must have a known rank"
    return one("Reshape", rows, [-1] + [1] * (len(data.dims) - len(ids.dims)))


def unsorted_segment_mean(
    data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
) -> Tensor:
    """The mean of the rows with equal ids; negative ids are omitted."""
    with name_scope(name, "UnsortedSegmentMean"):
        data, ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
        return unsorted_segment_sum(data, ids, num_segments) / _rows_per_segment(data, ids, num_segments)


def unsorted_segment_sqrt_n(
    data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
) -> Tensor:
    """The sum of the rows with equal ids, divided by the root of their number; negative ids are omitted."""
    with name_scope(name, "UnsortedSegmentSqrtN"):
        data, ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
        return unsorted_segment_sum(data, ids, num_segments) / math.sqrt(_rows_per_segment(data, ids, num_segments))


# Histograms -------------------------------------------------------------------------------------------------------


def bincount(
    arr: TensorLike,
    weights: TensorLike | None = None,
    minlength: TensorLike | None = None,
    maxlength: TensorLike | None = None,
    dtype: DTypeLike = dtypes.int32,
) -> Tensor:
    """The number of occurrences of 0, 1, 2 …, or the sums of their weights; at least ``minlength`` and at most
    ``maxlength`` results."""
    with name_scope(None, "bincount"):
        arr = convert_to_tensor(arr, dtypes.int32, name="arr")
        length = math.cast(reduce_prod(one("Shape", arr)) > 0, dtypes.int32) * (reduce_max(arr) + 1)
        if minlength is not None:
            length = math.maximum(convert_to_tensor(minlength, dtypes.int32, name="minlength"), length)
        if maxlength is not None:
            length = math.minimum(convert_to_tensor(maxlength, dtypes.int32, name="maxlength"), length)
        if weights is not None:
            return unsorted_segment_sum(convert_to_tensor(weights, name="weights"), arr, length)
        return one("Bincount", arr, length, make_const(np.zeros(0, as_dtype(dtype).numpy_dtype)))


def histogram_fixed_width(
    values: TensorLike,
    value_range: TensorLike,
    nbins: TensorLike = 100,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """The number of values in each of ``nbins`` equal parts of a range; values outside count for the first or last
    part."""
    with name_scope(name, "histogram_fixed_width", [values, value_range, nbins]) as scope:
        return one("HistogramFixedWidth", values, value_range, nbins, dtype=as_dtype(dtype), name=scope)


def histogram_fixed_width_bins(
    values: TensorLike,
    value_range: TensorLike,
    nbins: TensorLike = 100,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Returns the index of each value's bin among ``nbins`` equal bins of a range, clipped to the first and last.

    Args:
      values: a tensor of any shape.
      value_range: the ends of the range.
      nbins: number of bins.
      dtype: int32 or int64; the result is int32 in any case, as in TensorFlow 1.15.

    Raises:
      TypeError: ``dtype`` is not a type.
    """
    as_dtype(dtype)
    with name_scope(name, "histogram_fixed_width_bins", [values, value_range, nbins]):
        values = convert_to_tensor(values, name="values")
        bounds = convert_to_tensor(value_range, values.dtype, name="value_range")
        count = convert_to_tensor(nbins, dtypes.int32, name="nbins")
        share = math.truediv(values - bounds[0], bounds[1] - bounds[0])
        places = math.floor(math.cast(count, share.dtype) * share)
        clipped = math.minimum(math.maximum(places, 0), math.cast(count - 1, places.dtype))
        return math.cast(clipped, dtypes.int32)


def _chosen(op_type: str, what: str) -> Function:
    def function(
        data: TensorLike,
        indices: TensorLike,
        segment_ids: TensorLike,
        name: str | None = None,
        num_segments: TensorLike | None = None,
    ) -> Tensor:
        if num_segments is None:
            return one(op_type, data, indices, segment_ids, name=name)
        return one(f"{op_type}WithNumSegments", data, indices, segment_ids, num_segments, name=name)

    function.__doc__ = f"The {what} of the rows that ``indices`` lists, with equal segment ids, which must ascend."
    return function


sparse_segment_sum: Function = _chosen("SparseSegmentSum", "sum")
sparse_segment_mean: Function = _chosen("SparseSegmentMean", "mean")
sparse_segment_sqrt_n: Function = _chosen("SparseSegmentSqrtN", "sum, divided by the root of their number,")
