"""Segment reductions: sums and other reductions over rows with the same segment id; and their gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from headwater.graph.kernels.common import Arrays, Needed, is_floating
from headwater.graph.kernels.registry import gradient_kernel, kernel
from headwater.graph.kernels.rows import combine_rows, inside, outside, share_chosen_rows, sum_equal_rows, take

if TYPE_CHECKING:
    from headwater.graph.registry import Attrs, HostArray


def _flat(data: HostArray, segment_ids: HostArray) -> tuple[HostArray, HostArray]:
    return data.reshape((segment_ids.size, *data.shape[segment_ids.ndim :])), segment_ids.reshape(-1)


def _combined(combine: object, empty: object, data: HostArray, segment_ids: HostArray, count: int) -> HostArray:
    """Reduces rows of ``data`` with equal ``segment_ids``; ids out of range are skipped."""
    rows, ids = _flat(data, segment_ids)
    ids, rows = inside(ids, rows, count)
    result = np.full((count, *rows.shape[1:]), empty, data.dtype)
    combine_rows(combine, result, ids, rows)
    return result


@kernel("UnsortedSegmentSum")
def segment_sum(data: HostArray, segment_ids: HostArray, num_segments: HostArray) -> HostArray:
    """The sum of each segment; 0 for an empty one."""
    return _combined(np.add, 0, data, segment_ids, int(num_segments))


@kernel("UnsortedSegmentProd")
def segment_prod(data: HostArray, segment_ids: HostArray, num_segments: HostArray) -> HostArray:
    """The product of each segment; 1 for an empty one."""
    return _combined(np.multiply, 1, data, segment_ids, int(num_segments))


def _limits(data: HostArray) -> Any:
    """Returns the lowest and the highest finite number of a type, which are the extremes of an empty segment and of a
    segment of infinities."""
    # ml_dtypes supports NumPy's types and bfloat16.
    return ml_dtypes.finfo(data.dtype) if is_floating(data.dtype) else np.iinfo(data.dtype)


@kernel("UnsortedSegmentMax")
def segment_max(data: HostArray, segment_ids: HostArray, num_segments: HostArray) -> HostArray:
    """The maximum of each segment."""
    return _combined(np.maximum, _limits(data).min, data, segment_ids, int(num_segments))


@kernel("UnsortedSegmentMin")
def segment_min(data: HostArray, segment_ids: HostArray, num_segments: HostArray) -> HostArray:
    """The minimum of each segment."""
    return _combined(np.minimum, _limits(data).max, data, segment_ids, int(num_segments))


@gradient_kernel("UnsortedSegmentSum")
def segment_sum_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """The gradient of each row's segment; 0 for rows with ids out of range."""
    data, ids, _ = inputs
    return take(grads[0], ids).reshape(data.shape), None, None


@gradient_kernel("UnsortedSegmentProd")
def segment_prod_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """The gradient times the product of the segment's other rows."""
    data, ids, count = inputs
    zero = data == 0
    zeros = take(_combined(np.add, 0, zero.astype(np.int32), ids, int(count)), ids).reshape(data.shape)
    filled = np.where(zero, data.dtype.type(1), data)
    rest = take(segment_prod(filled, ids, count), ids).reshape(data.shape)
    others = np.where(zeros == 0, rest / filled, np.where(zero & (zeros == 1), rest, data.dtype.type(0)))
    return others * take(grads[0], ids).reshape(data.shape), None, None


def _to_extreme(found: HostArray, gradient: HostArray, data: HostArray, ids: HostArray, count: HostArray) -> HostArray:
    """Returns the gradient of the data: the gradient of each segment is divided equally among the rows with its extreme
    value."""
    hit = (data == take(found, ids).reshape(data.shape)).astype(data.dtype)
    shared = take(gradient / np.maximum(segment_sum(hit, ids, count), data.dtype.type(1)), ids)
    return hit * shared.reshape(data.shape)


@gradient_kernel("UnsortedSegmentMax")
def segment_max_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """See `_to_extreme`."""
    return _to_extreme(segment_max(*inputs), grads[0], *inputs), None, None


@gradient_kernel("UnsortedSegmentMin")
def segment_min_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """See `_to_extreme`."""
    return _to_extreme(segment_min(*inputs), grads[0], *inputs), None, None


@kernel("SumEqualRows")
def summed_rows(values: HostArray, indices: HostArray) -> tuple[HostArray, HostArray]:
    """Adds up rows with the same index; see `headwater.graph.ops.state.sum_equal_rows`."""
    return sum_equal_rows(values, indices)


def _chosen_gradient(op_type: str, power: float) -> None:
    @kernel(op_type)
    def gradient(grad: HostArray, indices: HostArray, segment_ids: HostArray, output_dim0: HostArray) -> HostArray:  # pyright: ignore[reportUnusedFunction]
        quick = share_chosen_rows(grad, indices, segment_ids, int(output_dim0), power)
        if quick is not None:
            return quick
        if outside(indices, int(output_dim0)) is not None or outside(segment_ids, len(grad)) is not None:
            raise ValueError("an index or segment id is out of range")
        sizes = np.maximum(np.bincount(segment_ids, minlength=len(grad)), 1).astype(grad.dtype)
        shares = grad * (1 / sizes**power).reshape((-1,) + (1,) * (grad.ndim - 1))
        result = np.zeros((int(output_dim0), *grad.shape[1:]), grad.dtype)
        combine_rows(np.add, result, indices, shares.take(segment_ids, 0))
        return result


_chosen_gradient("SparseSegmentSumGrad", 0)
_chosen_gradient("SparseSegmentMeanGrad", 1)
_chosen_gradient("SparseSegmentSqrtNGrad", 0.5)
