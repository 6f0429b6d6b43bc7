"""Lookups that combine rows in bags, in a table on other tasks: rows are pooled on those tasks if that sends fewer
bytes.

``RouteBags`` divides the ids among the parts of the table; each id is sent once. ``GatherBags`` reads the rows of one
part; if the request includes the bags, it adds up the rows of each bag and sends one row per bag. ``JoinBags`` combines
the results into bags. The gradient takes the reverse path: ``SplitBags`` sends each part the gradients of its rows or
of the bags, and ``SpreadBags`` converts gradients of bags to gradients of rows on the part. The size of ``counts``
selects the form: it is empty if rows are sent. So ``RouteBags`` decides in each step, and each form has its own
executable.

With bags b of ids i, weights w and a divisor d given by the combiner: out[b] = (Σ w[i] row[i]) / d[b].
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from headwater.dtypes import bfloat16, float32, int32, uint8
from headwater.graph.ops.define import host, pure
from headwater.graph.ops.routing import NO_ROW, refuse
from headwater.graph.ops.segments import disorder
from headwater.graph.ops.table_rows import add_rows, take_rows
from headwater.graph.registry import HostArray, Inference, Spec
from headwater.graph.resources.host_context import HostContext
from headwater.lazy_jax import jax, jnp

if TYPE_CHECKING:
    from headwater.graph.operation import Operation, Tensor

#: As for `headwater.graph.ops.routing.Capacities`. The value is close to 1, because unused places are also sent.
_HEADROOM: Final = 1.03
_NO_ROWS: Final = {np.dtype(dtype): dtype(NO_ROW) for dtype in (np.int32, np.int64)}
_NO_BYTES: Final = np.empty((0, 1), np.uint8)
_NO_WEIGHTS: Final = np.empty(0, np.float32)
#: ``RouteBags`` first has this many outputs for each part. The outputs for the whole table follow; among these, the
#: weights have index `_WEIGHTS`.
_OF_A_PART: Final = 4
_WEIGHTS: Final = 2


@dataclass(frozen=True, slots=True)
class _Rooms:
    """The numbers of places in the arrays of one lookup, see `headwater.tables.bag_loops.route_bags`."""

    places: HostArray


def _bags_spec(inference: Inference) -> Sequence[Spec]:
    parts: int = inference.attrs["parts"]
    row = int32 if inference.attrs["small"] else inference.inputs[0].dtype.base_dtype
    shape = inference.partial(2)
    bags = shape[0] if shape and inference.attrs["safe"] else None
    of_parts = (Spec(row, (None,)), Spec(uint8, (None, None)), Spec(uint8, (None, None)), Spec(float32, (None,)))
    of_ids = (Spec(int32, (None,)), Spec(int32, (None,)), Spec(float32, (None,)), Spec(float32, (bags,)))
    return [*(spec for spec in of_parts for _ in range(parts)), *of_ids]


def _weights_gradient(op: Operation, *grads: Tensor) -> Sequence[object]:
    """Returns the gradient of the ids' weights, in the order of the ids."""
    graph = op.graph
    first = graph.create_op("Const", [], {"value": np.zeros(1, np.int32), "dtype": int32}).outputs[0]
    count = graph.create_op("Shape", [op.inputs[3]], {"out_type": int32}).outputs[0]
    found = grads[_OF_A_PART * op.attrs["parts"] + _WEIGHTS]
    return [None, None, None, graph.create_op("Slice", [found, first, count]).outputs[0], None]


@host(
    "RouteBags",
    inputs="ids:Tids|index, indices:int64, dense_shape:int64, weights:float32, sizes:int64",
    infer=_bags_spec,
    gradient=_weights_gradient,
)
def route_bags(
    context: HostContext,
    ids: HostArray,
    indices: HostArray,
    dense_shape: HostArray,
    weights: HostArray,
    sizes: HostArray,
    *,
    parts: int,
    strategy: str,
    combiner: str,
    weighted: bool,
    safe: bool,
    row_bytes: int,
    small: bool,
    default_id: int | None = None,
) -> Sequence[HostArray]:
    """Divides the ids of a sparse matrix, with bags as rows, among the parts of a table.

    Args:
      ids: row numbers of the whole table, ``[n]``.
      indices: their places in the matrix, ``[n, rank]``.
      weights: weights of the ids, ``[n]``; none if ``weighted`` is false.
      sizes: number of rows of each part, ``[parts]``.
      strategy: see `headwater.tf1.variables.embedding.embedding_lookup`.
      combiner: ``sum``, ``mean`` or ``sqrtn``.
      safe: whether to skip ids below 0 and, unless bags are summed, ids with weights of 0 or less. If so, every row of
        the matrix is a bag; otherwise there are no bags after the bag of the last id.
      row_bytes: bytes of a row when it is sent.
      small: whether row numbers of a part fit int32.
      default_id: id of the row for empty bags, if ``safe``; zeros if None.

    Returns:
      For each part, the requested rows, padded with `headwater.graph.ops.routing.NO_ROW`. Then, if bags are pooled: for
      each part, the index of each id's row among the requested rows, bag by bag, as bytes ``[places, width]``; for each
      part, the number of its ids in each bag, as bytes ``[bags, width]``; for each part, the weights of its ids. Then,
      for each id, the place of its row among the places of all parts, its bag, and its weight. Finally, the divisor of
      each bag.

    Raises:
      IndexError: the table has no row for an id; the message has the id and its position.
      ValueError: the bags' numbers are not in ascending order, and ``safe`` is false.
    """
    from headwater.tables import bag_loops  # noqa: PLC0415  loads numba, only if needed
    from headwater.tables.row_loops import flat  # noqa: PLC0415

    rooms = context.resource("", "", _Rooms, lambda: _Rooms(np.zeros((bag_loops.ORDERS, 2 * parts + 1), np.int64)))
    found = bag_loops.route_bags(
        flat(ids, np.int64),
        flat(indices, np.int64),
        max(indices.shape[-1], 1),
        int(dense_shape[0]) if safe else 0,
        flat(weights, np.float32),
        flat(sizes, np.int64),
        strategy == "div",
        {"sum": bag_loops.SUM, "mean": bag_loops.MEAN}.get(combiner, -1),
        weighted,
        safe,
        safe and default_id is not None,
        default_id or 0,
        row_bytes,
        rooms.places,
        _HEADROOM,
        _NO_ROWS[np.dtype(np.int32 if small else ids.dtype)],
    )
    unordered, bad, routed, *of_ids, numbers, counts, shares, shape = found
    if unordered >= 0 and safe:
        raise ValueError(f"id {ids[unordered]} at position {unordered} is in bag {indices[unordered, 0]}")
    if unordered >= 0:
        raise ValueError(disorder(indices[:, 0].tolist()))
    if bad >= 0:
        refuse(ids if bad < len(ids) else np.array([default_id]), sizes, parts, strategy)
    rows, places, *widths = shape.tolist()
    told = _as_told(numbers, counts, shares, len(of_ids[-1]), places, *widths) if places[0] else _nothing_told(parts)
    return *_cut(routed, rows), *told, *of_ids


def _as_told(
    numbers: HostArray,
    counts: HostArray,
    weights: HostArray,
    bags: int,
    places: Sequence[int],
    of_numbers: Sequence[int],
    of_counts: Sequence[int],
) -> list[HostArray]:
    """Divides the arrays to send for bags among the parts.

    Args:
      numbers, counts, weights: as returned by `headwater.tables.bag_loops.route_bags`.
      places: by part, the number of places for ids.
      of_numbers, of_counts: by part, the bytes of a number and of a count.
    """
    of_ids = _cut(numbers, [count * width for count, width in zip(places, of_numbers, strict=True)])
    of_bags = _cut(counts, [bags * width for width in of_counts])
    return [
        *(each.reshape(-1, width) for each, width in zip(of_ids, of_numbers, strict=True)),
        *(each.reshape(-1, width) for each, width in zip(of_bags, of_counts, strict=True)),
        *(_cut(weights, places) if len(weights) else [weights] * len(places)),
    ]


def _nothing_told(parts: int) -> list[HostArray]:
    return [*[_NO_BYTES] * (2 * parts), *[_NO_WEIGHTS] * parts]


def _cut(array: HostArray, sizes: Sequence[int]) -> list[HostArray]:
    """Divides a vector into consecutive pieces."""
    if len(sizes) == 1:
        return [array]
    ends = itertools.accumulate(sizes)
    return [array[end - size : end] for end, size in zip(ends, sizes, strict=True)]


def _numbers(arrived: jax.Array) -> jax.Array:
    """Restores the argument of `_as_bytes`."""
    scale = np.array([1 << 8 * place for place in range(arrived.shape[1])], np.int64)
    return jnp.sum(arrived.astype(np.int64) * scale, axis=1)


def _bags_of(counts: jax.Array, places: int) -> jax.Array:
    """Returns the bag number of each id of a part, in ascending order, ``[places]``. Unused places get the number of
    bags."""
    return jnp.searchsorted(jnp.cumsum(_numbers(counts)), jnp.arange(places), side="right")


def _times(rows: jax.Array, factors: jax.Array) -> jax.Array:
    """Multiplies rows by their weights, if any."""
    return rows * _wide(factors, rows) if factors.shape[0] == rows.shape[0] else rows


def _wide(numbers: jax.Array, rows: jax.Array) -> jax.Array:
    """Reshapes a vector with one number per row so that it broadcasts with ``rows``."""
    return numbers.reshape(-1, *[1] * (rows.ndim - 1))


def _part_spec(inference: Inference) -> Sequence[Spec]:
    params = inference.inputs[0]
    tail = None if params.dims is None else (None, *params.dims[1:])
    return [Spec(bfloat16 if inference.attrs.get("halves") else params.dtype.base_dtype, tail)]


@pure(
    "GatherBags",
    inputs="params:T, routed:Tids|index, numbers:uint8, counts:uint8, weights:float32",
    infer=_part_spec,
)
def gather_bags(
    params: jax.Array,
    routed: jax.Array,
    numbers: jax.Array,
    counts: jax.Array,
    weights: jax.Array,
    *,
    halves: bool = False,
) -> jax.Array:
    """Returns the rows of one part that ``RouteBags`` requests, or their sum for each bag; bfloat16 with ``halves``."""
    rows = take_rows(params, routed, nearest=True)
    if bags := counts.shape[0]:
        chosen = _times(take_rows(rows, _numbers(numbers)), weights)
        rows = add_rows(jnp.zeros((bags, *rows.shape[1:]), rows.dtype), _bags_of(counts, len(chosen)), chosen)
    return rows.astype(jnp.bfloat16) if halves else rows


def _joined_spec(inference: Inference) -> Sequence[Spec]:
    divisors, found = inference.inputs[3], inference.inputs[5]
    known = None if found.dims is None or divisors.dims is None else (*divisors.dims, *found.dims[1:])
    return [Spec(float32, known)]


_OF_IDS: Final = "places:int32, of:int32, factors:float32, divisors:float32"


@pure("JoinBags", inputs=f"{_OF_IDS}, counts:uint8, found:T*", infer=_joined_spec)
def join_bags(
    places: jax.Array,
    of: jax.Array,
    factors: jax.Array,
    divisors: jax.Array,
    counts: jax.Array,
    *found: jax.Array,
    combiner: str,
    weighted: bool,
) -> jax.Array:
    """Returns the bags, float32 ``[bags, …]``, from the results of ``GatherBags`` of each part."""
    del combiner, weighted  # only the gradient function reads these attributes
    rows = [part.astype(np.float32) for part in found]
    if counts.shape[0]:
        total = sum(rows[1:], rows[0])
    else:
        chosen = _times(take_rows(jnp.concatenate(rows), places), factors)
        total = add_rows(jnp.zeros((len(divisors), *chosen.shape[1:]), np.float32), of, chosen)
    return total / _wide(divisors, total)


def _split_spec(inference: Inference) -> Sequence[Spec]:
    grad, routed = inference.inputs[0], inference.inputs[6:]
    return [Spec(float32, None if grad.dims is None else (None, *grad.dims[1:]))] * len(routed)


@pure("SplitBags", inputs=f"grad:T, {_OF_IDS}, counts:uint8, routed:Tids*", infer=_split_spec)
def split_bags(
    grad: jax.Array,
    places: jax.Array,
    of: jax.Array,
    factors: jax.Array,
    divisors: jax.Array,
    counts: jax.Array,
    *routed: Any,
    of_rows: bool = False,
) -> tuple[jax.Array, ...]:
    """Returns, for each part, the gradient of the result of ``GatherBags``; with ``of_rows``, always a gradient of
    rows."""
    share = grad / _wide(divisors, grad)
    if counts.shape[0] and not of_rows:
        return (share,) * len(routed)
    sizes = [part.shape[0] for part in routed]
    chosen = _times(take_rows(share, of), factors)
    rows = add_rows(jnp.zeros((sum(sizes), *grad.shape[1:]), grad.dtype), places, chosen)
    return tuple(jnp.split(rows, np.cumsum(sizes)[:-1]))


def _spread_spec(inference: Inference) -> Sequence[Spec]:
    grad, routed = inference.inputs[:2]
    return [Spec(float32, None if grad.dims is None or routed.dims is None else (*routed.dims, *grad.dims[1:]))]


@pure(
    "SpreadBags",
    inputs="grad:T, routed:Tids|index, numbers:uint8, counts:uint8, weights:float32",
    infer=_spread_spec,
)
def spread_bags(
    grad: jax.Array, routed: jax.Array, numbers: jax.Array, counts: jax.Array, weights: jax.Array
) -> jax.Array:
    """Returns the gradients, float32, of the rows requested from a part, given the gradient of the result of
    ``GatherBags``."""
    grad = grad.astype(np.float32)
    if not counts.shape[0]:
        return grad
    chosen = _times(take_rows(grad, _bags_of(counts, len(numbers))), weights)
    return add_rows(jnp.zeros((len(routed), *grad.shape[1:]), grad.dtype), _numbers(numbers), chosen)


@pure(
    "GradientOfBagWeights",
    inputs=f"grad:T, pooled:T, {_OF_IDS}, found:T*",
    infer=lambda inference: [Spec(float32, inference.inputs[4].dims)],
)
def gradient_of_weights(
    grad: jax.Array,
    pooled: jax.Array,
    places: jax.Array,
    of: jax.Array,
    factors: jax.Array,
    divisors: jax.Array,
    *found: jax.Array,
    combiner: str,
) -> jax.Array:
    """Returns the gradient of the weights of ids, in the order of places.

    With out = s / d:  ∂L/∂w[i] = g[b]·(row[i] − out[b] ∂d/∂w[i]) / d[b], where d is Σ w or the root of Σ w².

    Args:
      grad: the gradient of the bags.
      pooled: the bags.
      found: the rows requested from each part.
    """

    def flat(rows: jax.Array) -> jax.Array:
        return rows.reshape(rows.shape[0], -1)

    slope = take_rows(flat(grad / _wide(divisors, grad)), of)
    rows = take_rows(flat(jnp.concatenate(found)), places)
    if combiner == "sum":
        return jnp.sum(slope * rows, axis=1)
    bag, divisor = take_rows(flat(pooled), of), take_rows(divisors[:, np.newaxis], of)
    more = jnp.ones_like(divisor) if combiner == "mean" else factors[:, np.newaxis] / jnp.where(divisor > 0, divisor, 1)
    return jnp.sum(slope * (rows - bag * more), axis=1)
