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

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from headwater.dtypes import bfloat16, float32, int32, uint8
from headwater.graph.ops.define import host, pure
from headwater.graph.ops.routing import Capacities, refuse, route_once
from headwater.graph.ops.table_rows import add_rows, take_rows
from headwater.graph.registry import HostArray, Inference, Spec
from headwater.graph.resources.host_context import HostContext
from headwater.lazy_jax import jax, jnp

if TYPE_CHECKING:
    from headwater.graph.operation import Operation, Tensor

#: The factor ``headroom`` of `Capacities`. It is small, because unused places are sent, too.
_HEADROOM: Final = 1.03
#: ``RouteBags`` has this many outputs for each part. Of the outputs for all parts, which follow, the output at index
#: `_WEIGHTS` has the weights.
_OF_A_PART: Final = 4
_WEIGHTS: Final = 2


@dataclass(kw_only=True, slots=True)
class _Rooms:
    """The numbers of places in the arrays of one lookup: for rows and for ids of each part, and for all ids."""

    rows: Capacities
    numbers: Capacities
    ids: Capacities = field(default_factory=lambda: Capacities(1, _HEADROOM))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Bags:
    """Ids in bags.

    Attributes:
      ids: row numbers of the whole table, or places of rows, ``[n]``.
      of: bag of each id, ``[n]``; ``count`` for a skipped id.
      weights: weights of the ids, ``[n]``, or none.
      count: number of bags.
    """

    ids: HostArray
    of: HostArray
    weights: HostArray
    count: int

    def used(self, which: HostArray) -> _Bags:
        """Returns the selected ids, with their bags and weights."""
        weights = self.weights[which] if len(self.weights) else self.weights
        return _Bags(ids=self.ids[which], of=self.of[which], weights=weights, count=self.count)

    def sizes(self, weights: HostArray | None = None) -> HostArray:
        """Returns the number of ids of each bag, or the sum of their weights."""
        return np.bincount(self.of, weights, self.count + 1)[: self.count]

    def divisors(self, combiner: str, *, weighted: bool, safe: bool) -> HostArray:
        """Returns the divisor of each bag's sum, float32; 1 for an empty bag, which becomes zeros."""
        if combiner == "sum":
            return np.ones(self.count, np.float32)
        weights = self.weights.astype(np.float64)
        found = self.sizes((weights if combiner == "mean" else weights**2) if weighted else None)
        if safe or not weighted:
            found = np.where(self.sizes() > 0, found, 1)
        return (found if combiner == "mean" else np.sqrt(found)).astype(np.float32)


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
    bags = _Bags(ids=ids.astype(np.int64), of=indices[:, 0] if ids.size else indices.ravel(), weights=weights, count=0)
    bags = _safe(bags, int(dense_shape[0]), combiner, default_id) if safe else _ordered(bags)
    rooms = context.resource(
        "", "", _Rooms, lambda: _Rooms(rows=Capacities(parts, _HEADROOM), numbers=Capacities(parts, _HEADROOM))
    )
    which = np.flatnonzero(bags.of < bags.count)
    used = bags.used(which)
    bad, counts, room, routed, found = route_once(rooms.rows, [used.ids], [sizes], [strategy])
    if bad >= 0:
        # Position among all ids; undefined for skipped ids.
        refuse(np.where(bags.of < bags.count, bags.ids, 0)[: ids.size], sizes, parts, strategy)
    used = _Bags(ids=found, of=used.of, weights=used.weights, count=bags.count)
    told = _pooled(used, np.cumsum(room[0]), int(counts.sum()), row_bytes)
    places = np.zeros(_fitting(rooms.ids, [len(bags.ids)])[0], np.int32)
    of = np.full(len(places), bags.count, np.int32)
    factors = np.zeros(len(places) if weighted else 0, np.float32)
    places[which], of[which] = used.ids, used.of
    if weighted:
        factors[which] = used.weights
    return (
        *np.split(routed.astype(np.int32 if small else ids.dtype, copy=False), np.cumsum(room[0])[:-1]),
        *_as_told(rooms.numbers, told, room[0].tolist()),
        *(places, of, factors, bags.divisors(combiner, weighted=weighted, safe=safe)),
    )


def _ordered(bags: _Bags) -> _Bags:
    if np.any(bags.of[1:] < bags.of[:-1]) or np.any(bags.of[:1] < 0):
        raise ValueError(f"segment ids are not increasing: {bags.of.tolist()}")
    return _Bags(ids=bags.ids, of=bags.of, weights=bags.weights, count=int(bags.of[-1]) + 1 if len(bags.of) else 0)


def _safe(bags: _Bags, count: int, combiner: str, default_id: int | None) -> _Bags:
    """Drops invalid ids, and adds the default to empty bags."""
    good = bags.ids >= 0
    if len(bags.weights) and combiner != "sum":
        good &= bags.weights > 0
    found = _Bags(ids=bags.ids, of=np.where(good, bags.of, count), weights=bags.weights, count=count)
    if default_id is None:
        return found
    empty = np.flatnonzero(found.sizes() == 0)
    return _Bags(
        ids=np.append(found.ids, np.full(len(empty), default_id, np.int64)),
        of=np.append(found.of, empty),
        weights=np.append(bags.weights, np.ones(len(empty), np.float32)) if len(bags.weights) else bags.weights,
        count=count,
    )


def _pooled(bags: _Bags, ends: HostArray, keys: int, row_bytes: int) -> list[_Bags]:
    """Returns each part's ids in bags, numbered from the part's first place. Returns an empty list if sending rows
    takes fewer bytes than sending pooled bags.

    Args:
      bags: places of rows, in bags.
      ends: the ends of the parts' places.
      keys: number of distinct rows.
      row_bytes: bytes of a row when it is sent.
    """
    if not bags.count or bags.count * len(ends) >= keys:
        return []
    if np.any(bags.of[1:] < bags.of[:-1]):
        bags = bags.used(np.argsort(bags.of, kind="stable"))
    told: list[_Bags] = []
    first, size = 0, row_bytes * bags.count * len(ends)
    for end in ends.tolist():
        part = bags.used(np.flatnonzero((bags.ids >= first) & (bags.ids < end)))
        told.append(_Bags(ids=part.ids - first, of=part.of, weights=part.weights, count=part.count))
        numbers, counts = _width(end - first), _width(int(part.sizes().max()) + 1)
        size += len(part.ids) * numbers + bags.count * counts + part.weights.nbytes
        first = end
    return told if size < row_bytes * keys else []


def _as_told(capacities: Capacities, told: Sequence[_Bags], keys: Sequence[int]) -> list[HostArray]:
    """Returns the arrays to send for bags: numbers, counts and weights of all parts.

    Args:
      keys: number of places for rows of each part.
    """
    if not told:
        nothing = np.empty((0, 1), np.uint8)
        return [*[nothing] * (2 * len(keys)), *[np.empty(0, np.float32)] * len(keys)]
    room = _fitting(capacities, [len(part.ids) for part in told])
    numbers: list[HostArray] = []
    weights: list[HostArray] = []
    for part, places, rows in zip(told, room, keys, strict=True):
        padding = places - len(part.ids)
        numbers.append(_as_bytes(np.pad(part.ids, (0, padding)), _width(rows)))
        weights.append(np.pad(part.weights, (0, padding)) if len(part.weights) else part.weights)
    counts = [part.sizes() for part in told]
    return [*numbers, *(_as_bytes(each, _width(int(each.max()) + 1)) for each in counts), *weights]


def _fitting(capacities: Capacities, counts: Sequence[int]) -> list[int]:
    """Returns the number of places for each part. The total number of ids, which limits it, is rounded up to a power of
    two, because each change of a number of places compiles another executable."""
    most = [1 << sum(counts).bit_length()]
    room = capacities.of(most)
    if (np.array(counts) > room[0]).any():
        room = capacities.fitting(most, np.array([counts]))
    return room[0].tolist()


def _width(numbers: int) -> int:
    """Returns the number of bytes that each of the numbers 0 to ``numbers`` - 1 fits into."""
    return max(1, -(-(numbers - 1).bit_length() // 8))


def _as_bytes(numbers: HostArray, width: int) -> HostArray:
    """Encodes numbers of at least 0 as ``width`` bytes each, ``[n, width]``."""
    return np.ascontiguousarray(numbers.astype("<i8").view(np.uint8).reshape(-1, 8)[:, :width])


def _numbers(arrived: jax.Array) -> jax.Array:
    """Restores the argument of `_as_bytes`."""
    scale = np.array([1 << 8 * place for place in range(arrived.shape[1])], np.int64)
    return jnp.sum(arrived.astype(np.int64) * scale, axis=1)


def _bags_of(counts: jax.Array, places: int) -> jax.Array:
    """Returns the bag of each of a part's ids, bag by bag, ``[places]``; the number of bags for unused places."""
    return jnp.searchsorted(jnp.cumsum(_numbers(counts)), jnp.arange(places), side="right")


def _times(rows: jax.Array, factors: jax.Array) -> jax.Array:
    """Multiplies rows by their weights, if any."""
    return rows * _wide(factors, rows) if factors.shape[0] == rows.shape[0] else rows


def _wide(numbers: jax.Array, rows: jax.Array) -> jax.Array:
    """A number for each row, of the rows' rank."""
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
    del combiner, weighted  # of use to the gradient
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
    """Returns the gradients of the results of ``GatherBags`` of each part; with ``of_rows``, always of rows."""
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
