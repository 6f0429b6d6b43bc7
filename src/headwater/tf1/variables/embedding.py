"""Lookups of rows of an embedding table, which may be partitioned over several parameter servers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from headwater import dtypes
from headwater.cluster.devices import parse_device
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.registry import HostArray
from headwater.shapes import dimension_value
from headwater.tf1.functional import arrays, indexing, math, reductions, searching
from headwater.tf1.functional.apply import apply, one
from headwater.tf1.functional.clip import clip_by_norm
from headwater.tf1.functional.sparse import SparseTensor
from headwater.tf1.functional.sparse_changes import sparse_fill_empty_rows, sparse_reshape, sparse_retain
from headwater.tf1.variables.partitioned import PartitionedVariable

if TYPE_CHECKING:
    from headwater.graph.types import Structure, TensorLike

#: Environment variable: the type in which rows of tables on a ``ps``, and their gradients, are sent.
WIRE: Final = "HEADWATER_ROWS_WIRE"
#: A batch of unknown size has more ids than this, as a rule.
_FEW_ROWS: Final = 256


def embedding_lookup(
    params: Structure,
    ids: TensorLike,
    partition_strategy: str = "mod",
    name: str | None = None,
    validate_indices: bool = True,
    max_norm: float | None = None,
) -> Tensor:
    """Returns the rows ``ids`` of a table, in the shape of ``ids``; the gradient is `IndexedSlices` of just these rows.

    If the table has parts, each id is sent only to the part with its row, and each part has a gradient, in which
    unused rows have the index `headwater.graph.ops.routing.NO_ROW`. The same holds for a small table on another task:
    each row that a batch uses is transferred once, however many ids refer to it.

    Args:
      params: the table: a tensor, variable or array, or its parts as a list or a partitioned variable.
      ids: row numbers, of type int32 or int64.
      partition_strategy: the part that contains row i of a table of n parts. ``mod``: part i mod n. ``div``: the parts
          contain consecutive rows, and if the sizes differ, the first parts have one row more.
      max_norm: scale rows with a larger norm down to this norm.

    Raises:
      ValueError: ``params`` is empty, or the strategy is unknown.
    """
    del validate_indices
    parts: list[Any] = list(params) if isinstance(params, list | tuple | PartitionedVariable) else [params]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if not parts:
        raise ValueError("Need at least one param")
    _require_strategy(partition_strategy)
    parts = [
        part if hasattr(part, "op") else convert_to_tensor(cast("HostArray", part), name="params") for part in parts
    ]
    with name_scope(name, "embedding_lookup", [*parts, ids]) as scope:
        graph = get_default_graph()
        ids = convert_to_tensor(ids, name="ids")
        halves = _in_halves(parts)
        if len(parts) == 1 and not halves and not _repeats(parts[0], ids):
            with graph.colocate_with(parts[0]):
                rows = _clipped(indexing.gather(parts[0], ids, name=scope), ids, max_norm)
                return arrays.identity(rows)
        *routed, places = apply(
            "RouteIds", ids, _sizes(parts), name="RouteIds", parts=len(parts), strategy=partition_strategy
        ).outputs
        found: list[Tensor] = []
        for part, wanted in zip(parts, routed, strict=True):
            with graph.colocate_with(part):
                found.append(one("GatherRouted", part, wanted, halves=halves))
        rows = _clipped(one("JoinRouted", places, found, name=scope, halves=halves), ids, max_norm)
        return arrays.identity(rows) if len(parts) == 1 else rows


def _require_strategy(strategy: str) -> None:
    if strategy not in ("mod", "div"):
        raise ValueError(f"Unrecognized partition strategy: {strategy}")


def _repeats(table: Any, ids: Tensor) -> bool:
    """Returns whether a table is on a ``ps``, and so small that most ids of a batch refer to repeated rows."""
    dims = table.get_shape().as_dims
    if parse_device(table.device or "").job != "ps" or not dims or dims[0] is None or ids.op.type == "Unique":
        return False
    known = ids.shape.num_elements()
    return dims[0] <= (_FEW_ROWS if known is None else known // 2)


def _in_halves(parts: Sequence[Any]) -> bool:
    """Returns whether rows of a table are sent as bfloat16.

    Raises:
      ValueError: `WIRE` has an invalid value.
    """
    wire = os.environ.get(WIRE) or "float32"
    if wire not in ("float32", "bfloat16"):
        raise ValueError(f"{WIRE} is {wire!r}, not float32 or bfloat16")
    if wire == "float32" or parse_device(parts[0].device or "").job != "ps":
        return False
    return all(part.dtype.base_dtype == dtypes.float32 for part in parts)


def _sizes(parts: Sequence[Any]) -> HostArray | Tensor:
    """Returns the number of rows of each part."""
    known = [dimension_value(part.get_shape()[0]) for part in parts]
    if None not in known:
        return np.array(known, np.int64)
    return arrays.stack([arrays.shape(part, out_type=dtypes.int64)[0] for part in parts])


def _clipped(rows: Tensor, ids: Tensor, max_norm: float | None) -> Tensor:
    if max_norm is None:
        return rows
    if ids.dims is None or rows.dims is None:
        raise ValueError("max_norm needs ids and params of known rank")
    return clip_by_norm(rows, max_norm, axes=list(range(len(ids.dims), len(rows.dims))))


def _on_ps(params: object, max_norm: float | None) -> list[Any]:
    """Returns the parts of a float32 table on ``ps`` tasks, if `_in_bags` can combine its rows; else an empty list."""
    parts: list[Any] = list(params) if isinstance(params, list | tuple | PartitionedVariable) else [params]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    able = max_norm is None and all(
        hasattr(part, "op")
        and parse_device(part.device or "").job == "ps"
        and part.dtype.base_dtype == dtypes.float32
        and None not in (part.get_shape().as_dims or (None,))
        for part in parts
    )
    return parts if able else []


def _in_bags(
    parts: Sequence[Any],
    ids: SparseTensor,
    weights: SparseTensor | None,
    strategy: str,
    combiner: str,
    name: str | None,
    *,
    safe: bool = False,
    default_id: int | None = None,
) -> Tensor:
    """Combines rows of a table on ``ps`` tasks into one row for each row of ``ids``. The ``ps`` combine them if this
    sends fewer bytes.

    Args:
      parts: the parts of the table.
      safe: whether to handle ids as `safe_embedding_lookup_sparse` does, for a matrix; else as
        `embedding_lookup_sparse`.

    Raises:
      ValueError: the strategy is unknown.
    """
    _require_strategy(strategy)
    halves = _in_halves(parts)
    sizes = [tuple(int(size) for size in part.get_shape()) for part in parts]
    given = arrays.zeros([0], dtypes.float32) if weights is None else math.cast(weights.values, dtypes.float32)
    attrs: dict[str, Any] = {
        "parts": len(parts),
        "strategy": strategy,
        "combiner": combiner,
        "weighted": weights is not None,
        "safe": safe,
        "row_bytes": int(np.prod(sizes[0][1:])) * (2 if halves else 4),
        "small": all(rows < 1 << 31 for rows, *_ in sizes),
    }
    if default_id is not None:
        attrs["default_id"] = default_id
    route = apply("RouteBags", ids.values, ids.indices, ids.dense_shape, given, _sizes(parts), **attrs).outputs
    count = len(parts)
    asked = [route[first : first + count] for first in range(0, 4 * count, count)]
    found: list[Tensor] = []
    for part, *wanted in zip(parts, *asked, strict=True):
        with get_default_graph().colocate_with(part):
            found.append(one("GatherBags", part, *wanted, halves=halves))
    bags = [*route[4 * count :], asked[2][0]]
    return one("JoinBags", *bags, found, name=name, combiner=combiner, weighted=weights is not None)


def embedding_lookup_sparse(
    params: Structure,
    sp_ids: SparseTensor,
    sp_weights: SparseTensor | None,
    partition_strategy: str = "mod",
    name: str | None = None,
    combiner: str | None = None,
    max_norm: float | None = None,
) -> Tensor:
    """Combines, for each row of a sparse matrix of row numbers, these rows of a table into one vector.

    Args:
      params, partition_strategy, max_norm: as for `embedding_lookup`.
      sp_ids: the row numbers; each row has at least one.
      sp_weights: a weight for each row number; all 1 if None.
      combiner: ``sum``; ``mean``, divided by the sum of the weights (the meaning of None); or ``sqrtn``, divided by the
        root of the sum of their squares.

    Raises:
      ValueError: the combiner is unknown.
      TypeError: ids or weights are not sparse tensors.
    """
    combiner = combiner or "mean"
    if combiner not in ("mean", "sqrtn", "sum"):
        raise ValueError("combiner must be one of 'mean', 'sqrtn' or 'sum'")
    for value, what in ((sp_ids, "sp_ids"), (sp_weights, "sp_weights")):
        if not isinstance(value, SparseTensor) and (what == "sp_ids" or value is not None):
            raise TypeError(f"{what} must be SparseTensor")
    with name_scope(name, "embedding_lookup_sparse", [sp_ids.indices]) as scope:
        parts = _on_ps(params, max_norm)
        if parts:
            return _in_bags(parts, sp_ids, sp_weights, partition_strategy, combiner, scope)
        segments = math.cast(sp_ids.indices[:, 0], dtypes.int32)
        ids, places = searching.unique(sp_ids.values)
        rows = embedding_lookup(params, ids, partition_strategy, max_norm=max_norm)
        if rows.dtype.base_dtype in (dtypes.float16, dtypes.bfloat16):
            rows = math.cast(rows, dtypes.float32)
        if sp_weights is None:
            combine = {"sum": reductions.sparse_segment_sum, "mean": reductions.sparse_segment_mean}
            return combine.get(combiner, reductions.sparse_segment_sqrt_n)(rows, places, segments, name=scope)
        found = indexing.gather(rows, places)
        weights = math.cast(sp_weights.values, found.dtype)
        rank = len(rows.dims or (None, None))
        wide = arrays.reshape(weights, [-1] + [1] * (rank - 1))
        total = reductions.segment_sum(found * wide, segments, name=None if combiner != "sum" else scope)
        if combiner == "sum":
            return total
        squares = weights if combiner == "mean" else math.square(weights)
        size = reductions.segment_sum(squares, segments)
        divisor = size if combiner == "mean" else math.sqrt(size)
        return math.realdiv(total, arrays.reshape(divisor, [-1] + [1] * (rank - 1)), name=scope)


def safe_embedding_lookup_sparse(
    embedding_weights: object,
    sparse_ids: SparseTensor,
    sparse_weights: SparseTensor | None = None,
    combiner: str | None = "mean",
    default_id: int | None = None,
    name: str | None = None,
    partition_strategy: str = "div",
    max_norm: float | None = None,
) -> Tensor:
    """Combines rows as `embedding_lookup_sparse`, but accepts empty rows and invalid ids and weights.

    Args:
      embedding_weights: the table, or its parts.
      sparse_ids: row numbers; negative ones are ignored.
      sparse_weights: a weight for each; except with ``sum``, ids with weights of 0 and below are ignored.
      default_id: the table row for rows without valid ids; zeros if None.

    Raises:
      ValueError: there is no table.
    """
    if embedding_weights is None:
        raise ValueError(f"Missing embedding_weights {embedding_weights}.")
    if isinstance(embedding_weights, PartitionedVariable | list | tuple):
        embedding_weights = list(embedding_weights)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        if not embedding_weights:
            raise ValueError(f"Missing embedding_weights {embedding_weights}.")
    with name_scope(name, "embedding_lookup", [sparse_ids.indices]) as scope:
        shape = sparse_ids.dense_shape
        known = sparse_ids.shape.as_dims
        rank = sparse_ids.shape.ndims or 2
        last = indexing.slice(shape, [rank - 1], [1])
        if rank != 2:
            rows = reductions.reduce_prod(shape[:-1])
            sparse_ids = sparse_reshape(sparse_ids, arrays.concat([arrays.expand_dims(rows, 0), last], 0))
        parts = _on_ps(embedding_weights, max_norm)
        if parts:
            result = _in_bags(
                parts,
                sparse_ids,
                sparse_weights,
                partition_strategy,
                combiner or "mean",
                scope if rank == 2 else None,
                safe=True,
                default_id=default_id,
            )
        else:
            valid = math.greater_equal(sparse_ids.values, 0)
            if sparse_weights is not None:
                sparse_weights = SparseTensor(sparse_ids.indices, sparse_weights.values, sparse_ids.dense_shape)
                if combiner != "sum":
                    valid = math.logical_and(valid, math.greater(sparse_weights.values, 0))
                sparse_weights = sparse_retain(sparse_weights, valid)
            sparse_ids = sparse_retain(sparse_ids, valid)
            sparse_ids, empty = sparse_fill_empty_rows(sparse_ids, default_id or 0)
            if sparse_weights is not None:
                sparse_weights, _ = sparse_fill_empty_rows(sparse_weights, 1.0)
            result = embedding_lookup_sparse(
                embedding_weights, sparse_ids, sparse_weights, partition_strategy, combiner=combiner, max_norm=max_norm
            )
            if default_id is None:
                result = indexing.where(empty, arrays.zeros_like(result), result, name=scope)
        if rank == 2:
            return result
        size = result.dims
        wide = arrays.concat([math.to_int32(shape[:-1]), arrays.shape(result)[1:]], 0)
        final = arrays.reshape(result, wide)
        if known is not None and size is not None:
            final.set_shape([*known[:-1], *size[1:]])
        return final
