"""Segment reductions: sums and other reductions over rows with the same segment id."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.graph.kernels.finding import run_starts
from headwater.graph.kernels.rows import combine_rows, sum_chosen_rows
from headwater.graph.ops.common import constant_int, constant_ints, output
from headwater.graph.ops.define import host, pure
from headwater.graph.ops.indexing import require_rows
from headwater.graph.ops.table_rows import add_rows
from headwater.graph.registry import Inference, Spec
from headwater.lazy_jax import custom_jvp, jax, jnp
from headwater.shapes import Dims

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray


# Ids in any order, with a given number of segments
# ---------------------------------------------------------------------


def _segments(op_type: str, compute: Callable[..., object]) -> None:
    """Registers a reduction of the rows of ``data`` with equal ``segment_ids``; rows with negative ids are ignored."""

    def lower(data: jax.Array, segment_ids: jax.Array, num_segments: jax.Array) -> object:
        count = int(num_segments)
        rows = jnp.reshape(data, (segment_ids.size, *data.shape[segment_ids.ndim :]))
        ids = jnp.ravel(segment_ids)
        return compute(rows, jnp.where(ids < 0, count, ids), count)

    pure(
        op_type,
        inputs="data:T|numeric, segment_ids:Tindices|index, num_segments:Tnumsegments=int32",
        static=(2,),
        infer=_unsorted_spec,
    )(lower)


def _unsorted_spec(inference: Inference) -> Sequence[Spec]:
    data, ids = inference.inputs[0].dims, inference.inputs[1].dims
    count = constant_int(inference, 2)
    if data is None or ids is None:
        return output(inference, None)
    for have, want in zip(data, ids, strict=False):
        if None not in (have, want) and have != want:
            raise ValueError(f"Dimensions must be equal: segment_ids' shape {ids} begins data's {data}")
    if len(ids) > len(data):
        raise ValueError(f"Shape must be at least rank {len(ids)} but is rank {len(data)}")
    return output(inference, (count, *data[len(ids) :]))


_segments("UnsortedSegmentSum", lambda rows, ids, count: _added(rows, ids, count))
_segments("UnsortedSegmentProd", lambda rows, ids, count: _product(rows, ids, count))
_segments("UnsortedSegmentMax", lambda *rows: jnp.maximum(jax.ops.segment_max(*rows), _limits(rows[0]).min))
_segments("UnsortedSegmentMin", lambda *rows: jnp.minimum(jax.ops.segment_min(*rows), _limits(rows[0]).max))


def _added(rows: jax.Array, ids: jax.Array, count: int) -> jax.Array:
    return add_rows(jnp.zeros((count, *rows.shape[1:]), rows.dtype), ids, rows)


@partial(custom_jvp, nondiff_argnums=(1, 2))
def _product(rows: jax.Array, ids: jax.Array, count: int) -> jax.Array:
    return jax.ops.segment_prod(rows, ids, count)


@_product.defjvp
def _product_jvp(
    ids: jax.Array, count: int, primals: tuple[jax.Array], tangents: tuple[jax.Array]
) -> tuple[jax.Array, jax.Array]:
    # The slope for a row is the product of the other rows. Unless a row is zero, this is the whole product divided by
    # the row.
    rows = primals[0]
    zero = rows == 0
    zeros = jax.ops.segment_sum(zero.astype(np.int32), ids, count)[ids]
    rest = jax.ops.segment_prod(jnp.where(zero, 1, rows), ids, count)[ids]
    others = jnp.where(zeros == 0, rest / jnp.where(zero, 1, rows), jnp.where(zero & (zeros == 1), rest, 0))
    return _product(rows, ids, count), jax.ops.segment_sum(others * tangents[0], ids, count)


def _limits(rows: jax.Array) -> Any:
    """Returns the lowest and the highest finite number of a type. As in TensorFlow, these are the extremes of an empty
    segment and of a segment of infinities."""
    return jnp.finfo(rows.dtype) if jnp.issubdtype(rows.dtype, jnp.inexact) else jnp.iinfo(rows.dtype)


# Ascending ids: the last one determines the number of segments -----------------------------------------------------


def _sorted_spec(inference: Inference) -> Sequence[Spec]:
    data = inference.inputs[0].dims
    dims: Dims = None if data is None else (None, *data[1:])
    ids = constant_ints(inference, 1)
    if ids and dims is not None:
        dims = (ids[-1] + 1, *dims[1:])
    return output(inference, dims)


def disorder(segment_ids: Sequence[int]) -> str:
    """Returns the message of TensorFlow's kernels for ids that are negative or not in ascending order."""
    count = segment_ids[-1] + 1
    if count < 1:
        return "segment ids must be >= 0"
    for own, following in itertools.pairwise(segment_ids):
        if following > own and not 0 <= own < count:
            return f"Segment id {own} out of range [0, {count}), possibly because 'segment_ids' input is not sorted."
        if following < own:
            break
    return "segment ids are not increasing"


def _require_ascending(segment_ids: HostArray, rows: int | None = None) -> int:
    """Returns the number of segments.

    Raises:
      ValueError: the ids are not a vector of ``rows`` numbers, are negative, or are not in ascending order.
    """
    if segment_ids.ndim != 1:
        raise ValueError("segment_ids should be a vector.")
    if rows is not None and len(segment_ids) != rows:
        raise ValueError("segment_ids should be the same size as dimension 0 of input.")
    if not segment_ids.size:
        return 0
    if (segment_ids[1:] < segment_ids[:-1]).any() or segment_ids[0] < 0:
        raise ValueError(disorder(segment_ids.tolist()))
    return int(segment_ids[-1]) + 1


def _divided(sums: HostArray, segment_ids: HostArray, divisor: Callable[[Any], Any]) -> HostArray:
    """Returns the sums of segments, each divided by a function of the segment's number of rows; integer quotients are
    truncated."""
    sizes = np.maximum(np.bincount(segment_ids, minlength=len(sums)), 1)
    wide = divisor(sizes.reshape((-1,) + (1,) * (sums.ndim - 1))).astype(sums.dtype)
    return (sums / wide).astype(sums.dtype, copy=False)


def _sums(rows: HostArray, segment_ids: HostArray, count: int) -> HostArray:
    """The sum of each of ``count`` segments."""
    sums = np.zeros((count, *rows.shape[1:]), rows.dtype)
    combine_rows(np.add, sums, segment_ids, rows)
    return sums


def _sorted_segments(op_type: str, reduce: Any, mean: bool = False, empty: int = 0) -> None:
    """Reduces rows of ``data`` with equal ``segment_ids``; the result for segments without rows is ``empty``."""

    def lower(context: object, data: Any, segment_ids: HostArray) -> object:
        del context
        count = _require_ascending(segment_ids, len(data))
        if reduce is np.add:
            result = _sums(data, segment_ids, count)
            return _divided(result, segment_ids, np.asarray) if mean else result
        result = np.full((count, *data.shape[1:]), empty, data.dtype)
        if count:
            starts = np.flatnonzero(run_starts(segment_ids))
            result[segment_ids[starts]] = reduce.reduceat(data, starts, axis=0)
        return result

    host(op_type, inputs="data:T|numeric, segment_ids:Tindices|index", infer=_sorted_spec)(lower)


_sorted_segments("SegmentSum", np.add)
_sorted_segments("SegmentMean", np.add, mean=True)
_sorted_segments("SegmentProd", np.multiply, empty=1)
_sorted_segments("SegmentMax", np.maximum)
_sorted_segments("SegmentMin", np.minimum)


# Reductions of selected rows
# ---------------------------------------------------------------------------------------------------


def _chosen_spec(inference: Inference) -> Sequence[Spec]:
    data = inference.inputs[0].dims
    count = constant_int(inference, 3) if len(inference.inputs) > 3 else None
    return output(inference, None if data is None else (count, *data[1:]))


def _chosen_segments(op_type: str, power: float) -> None:
    """Registers a sum of the rows at ``indices`` by segment, divided by a power of the segment's number of rows."""

    def lower(context: object, data: Any, indices: Any, segment_ids: Any, num_segments: Any = None) -> Any:
        del context
        quick = sum_chosen_rows(data, indices, segment_ids, None if num_segments is None else int(num_segments), power)
        if quick is not None:
            return quick
        found = _require_ascending(segment_ids)
        if indices.shape != segment_ids.shape:
            raise ValueError("segment_ids and indices should have same size.")
        require_rows(indices, len(data))
        count = found if num_segments is None else int(num_segments)
        if count < found:
            raise ValueError(f"segment ids must be < num_segments = {count}, not {found - 1}")
        result = _sums(data.take(indices, 0), segment_ids, count)
        return _divided(result, segment_ids, lambda sizes: sizes**power) if power else result

    inputs = f"data:T|{'floating' if power else 'real'}, indices:Tidx|index=int32, segment_ids:int32"
    host(op_type, inputs=inputs, infer=_chosen_spec)(lower)
    more = f"{inputs}, num_segments:Tnumsegments|index=int32"
    host(f"{op_type}WithNumSegments", inputs=more, infer=_chosen_spec)(lower)


_chosen_segments("SparseSegmentSum", 0)
_chosen_segments("SparseSegmentMean", 1)
_chosen_segments("SparseSegmentSqrtN", 0.5)


# Gradients of sums and means of selected rows -----------------------------------------------------------------------


def _chosen_gradient(op_type: str, divisor: Callable[[Any], Any]) -> None:
    """Registers the gradient of a sum or mean of selected rows: for each row, the sum of the gradients of its segments,
    each divided by a function of the segment's number of rows."""

    def lower(grad: jax.Array, indices: jax.Array, segment_ids: jax.Array, output_dim0: object) -> object:
        sizes = jnp.zeros(grad.shape[0], grad.dtype).at[segment_ids].add(1)
        shares = grad * (1 / divisor(jnp.maximum(sizes, 1))).reshape((-1,) + (1,) * (grad.ndim - 1))
        return _added(shares[segment_ids], indices, int(output_dim0))  # pyright: ignore[reportArgumentType]

    pure(
        op_type,
        inputs="grad:T|floating, indices:Tidx|index=int32, segment_ids:int32, output_dim0:int32",
        static=(3,),
        infer=_rows_spec,
    )(lower)


def _rows_spec(inference: Inference) -> Sequence[Spec]:
    grad = inference.inputs[0].dims
    return output(inference, None if grad is None else (constant_int(inference, 3), *grad[1:]))


_chosen_gradient("SparseSegmentSumGrad", lambda sizes: jnp.ones_like(sizes))
_chosen_gradient("SparseSegmentMeanGrad", lambda sizes: sizes)
_chosen_gradient("SparseSegmentSqrtNGrad", lambda sizes: jnp.sqrt(sizes))  # `jnp.sqrt` alone would import JAX
