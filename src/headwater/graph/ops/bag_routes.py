"""Division of the ids of bags among the parts of tables; see `headwater.graph.ops.bags`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from headwater.dtypes import float32, int32, int64, uint8
from headwater.errors import InvalidArgumentError
from headwater.graph.kernels.common import cut
from headwater.graph.ops.define import host
from headwater.graph.ops.routing import NO_ROW, refuse
from headwater.graph.ops.segments import disorder
from headwater.graph.registry import HostArray, Inference, Spec
from headwater.graph.resources.host_context import HostContext
from headwater.tables import bag_loops
from headwater.tables.row_loops import flat

if TYPE_CHECKING:
    from headwater.graph.operation import Operation, Tensor

#: As for `headwater.graph.ops.routing.Capacities`. The value is close to 1, because unused places are also sent.
_HEADROOM: Final = 1.03
#: ``RouteBags`` first has this many outputs for each part. The outputs for the whole table follow; among these, the
#: weights have index `_WEIGHTS`.
_OUTPUTS_PER_PART: Final = 4
_WEIGHTS: Final = 2
_INPUTS: Final = "ids:Tids|index, indices:int64, dense_shape:int64, weights:float32, sizes:int64"


@dataclass(frozen=True, slots=True)
class _Capacities:
    """The numbers of places in the arrays of lookups, see `headwater.tables.bag_loops.route_bags`.

    Attributes:
      places: by lookup.
    """

    places: HostArray

    @staticmethod
    def of(context: HostContext, lookups: int, parts: int) -> HostArray:
        """Returns the numbers of places of an operation's lookups."""
        shape = lookups, bag_loops.ORDERS, 2 * parts + 1
        return context.resource("", "", _Capacities, lambda: _Capacities(np.zeros(shape, np.int64))).places


@dataclass(frozen=True, slots=True)
class _Route:
    """Ids of one lookup, divided among the parts of a table.

    Attributes:
      routed: the requested rows of all parts.
      numbers: the index of each id's row, bag by bag, as bytes; empty if bags are not pooled.
      counts: the number of ids of each bag, as bytes; empty if bags are not pooled.
      weights: the weights of the ids of all parts; empty if bags are not pooled.
      layout: sizes of the arrays of each part, ``[parts, 7]``: numbers of rows; of indices, and bytes of each; of
        counts, and bytes of each; of weights; and of rows in the answer.
      of_ids: for each id, the place of its row among the places of all parts, its bag, and its weight.
      in_bag: the number of ids of each bag.
    """

    routed: HostArray
    numbers: HostArray
    counts: HostArray
    weights: HostArray
    layout: HostArray
    of_ids: Sequence[HostArray]
    in_bag: HostArray

    def divisors(self, combiner: str, safe: bool) -> HostArray:
        """Returns the divisor of each bag."""
        _, of, factors = self.of_ids
        kind = {"sum": bag_loops.SUM, "mean": bag_loops.MEAN}.get(combiner, -1)
        return bag_loops.divisors_of(of, factors, self.in_bag, kind, safe)

    def of_parts(self) -> list[tuple[HostArray, ...]]:
        """Returns the arrays for each part, as vectors: rows, indices, counts and weights."""
        if len(self.layout) == 1:
            return [(self.routed, self.numbers, self.counts, self.weights)]
        rows, indices, of_index, counts, of_count, weights, _ = self.layout.T
        pieces = (
            cut(self.routed, rows.tolist()),
            cut(self.numbers, (indices * of_index).tolist()),
            cut(self.counts, (counts * of_count).tolist()),
            cut(self.weights, weights.tolist()),
        )
        return list(zip(*pieces, strict=True))


def _route(
    room: HostArray,
    ids: HostArray,
    indices: HostArray,
    dense_shape: HostArray,
    weights: HostArray,
    sizes: HostArray,
    *,
    strategy: str,
    combiner: str,
    weighted: bool,
    safe: bool,
    row_bytes: int,
    small: bool,
    default_id: int | None,
) -> _Route:
    """Divides the ids of one lookup; the arguments are as for `route_bags`."""
    unordered, bad, routed, places, of, factors, in_bag, numbers, counts, shares, layout = bag_loops.route_bags(
        flat(ids, np.int64),
        flat(indices, np.int64),
        max(indices.shape[-1], 1),
        int(dense_shape[0]) if safe else 0,
        flat(weights, np.float32),
        flat(sizes, np.int64),
        strategy == "div",
        weighted,
        weighted and combiner != "sum",
        safe,
        safe and default_id is not None,
        default_id or 0,
        row_bytes,
        room,
        _HEADROOM,
        NO_ROW,
    )
    if unordered >= 0 and safe:
        raise ValueError(f"id {ids[unordered]} at position {unordered} is in bag {indices[unordered, 0]}")
    if unordered >= 0:
        raise ValueError(disorder(indices[:, 0].tolist()))
    if bad >= 0:
        refuse(ids if bad < len(ids) else np.array([default_id]), sizes, len(sizes), strategy)
    return _Route(
        routed.astype(np.int32 if small else ids.dtype, copy=False),
        numbers,
        counts,
        shares,
        layout,
        (places, of, factors),
        in_bag,
    )


def _specs(inference: Inference, first: int = 0) -> tuple[list[Spec], list[Spec], Spec]:
    """Returns the specs of the arrays for a part; of the arrays for ids; and of the divisors. Input ``first`` has the
    ids of the lookup."""
    row = int32 if inference.attrs["small"] else inference.inputs[first].dtype.base_dtype
    shape = inference.partial(first + 2)
    bags = shape[0] if shape and inference.attrs["safe"] else None
    of_part = [Spec(row, (None,)), Spec(uint8, (None, None)), Spec(uint8, (None, None)), Spec(float32, (None,))]
    return of_part, [Spec(int32, (None,)), Spec(int32, (None,)), Spec(float32, (None,))], Spec(float32, (bags,))


def _bags_spec(inference: Inference) -> Sequence[Spec]:
    of_part, of_ids, divisors = _specs(inference)
    return [*(spec for spec in of_part for _ in range(inference.attrs["parts"])), *of_ids, divisors]


def _weights_gradient(op: Operation, *grads: Tensor) -> Sequence[object]:
    """Returns the gradient of the ids' weights, in the order of the ids."""
    graph = op.graph
    first = graph.create_op("Const", [], {"value": np.zeros(1, np.int32), "dtype": int32}).outputs[0]
    count = graph.create_op("Shape", [op.inputs[3]], {"out_type": int32}).outputs[0]
    found = grads[_OUTPUTS_PER_PART * op.attrs["parts"] + _WEIGHTS]
    return [None, None, None, graph.create_op("Slice", [found, first, count]).outputs[0], None]


@host("RouteBags", inputs=_INPUTS, infer=_bags_spec, gradient=_weights_gradient)
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
    (room,) = _Capacities.of(context, 1, parts)
    route = _route(
        room,
        *(ids, indices, dense_shape, weights, sizes),
        strategy=strategy,
        combiner=combiner,
        weighted=weighted,
        safe=safe,
        row_bytes=row_bytes,
        small=small,
        default_id=default_id,
    )
    rows, numbers, counts, shares = zip(*route.of_parts(), strict=True)
    return (
        *rows,
        *(each.reshape(-1, width) for each, width in zip(numbers, route.layout[:, 2].tolist(), strict=True)),
        *(each.reshape(-1, width) for each, width in zip(counts, route.layout[:, 4].tolist(), strict=True)),
        *shares,
        *route.of_ids,
        route.divisors(combiner, safe),
    )


def _tables_spec(inference: Inference) -> Sequence[Spec]:
    groups: Sequence[int] = inference.attrs["groups"]
    count, parts = max(groups) + 1, inference.attrs["parts"]
    found = [_specs(inference, 5 * group) for group in range(count)]
    return [
        *(Spec(spec.dtype, (None,)) for spec in found[0][0] for _ in range(parts)),
        *[Spec(int64, (count, None))] * parts,
        *(spec for _, of_ids, _ in found for spec in of_ids),
        *(found[group][2] for group in groups),
    ]


@host("RouteBagsOfTables", infer=_tables_spec)
def route_bags_of_tables(
    context: HostContext,
    *inputs: HostArray,
    parts: int,
    groups: Sequence[int],
    names: Sequence[str],
    combiners: Sequence[str],
    row_bytes: Sequence[int],
    strategy: str,
    weighted: bool,
    safe: bool,
    small: bool,
    default_id: int | None = None,
) -> Sequence[HostArray]:
    """Runs several ``RouteBags`` at once, joined by `headwater.graph.passes.lookups`.

    Args:
      inputs: for each group of lookups with the same inputs, the inputs of ``RouteBags``.
      groups: the group of each lookup.
      names, combiners, row_bytes: of each lookup. Bags of a group are pooled if that takes fewer bytes for all of its
        tables.
      strategy, weighted, safe, small, default_id: as for ``RouteBags``; the same for all lookups.

    Returns:
      The rows requested from each part, group by group; for each part, the bytes of the indices; for each part, the
      bytes of the numbers of ids; for each part, the weights. For each part, the sizes of these, ``[groups, 7]``; see
      `_Route.layout`. For each group, the place of each id's row, its bag, and its weight. For each lookup, the
      divisors.

    Raises:
      InvalidArgumentError: as ``RouteBags`` raises an error; the message names the operation, too.
    """
    routes: list[_Route] = []
    rooms = _Capacities.of(context, len(inputs) // 5, parts)
    for group, room in enumerate(rooms):
        try:
            route = _route(
                room,
                *inputs[5 * group : 5 * group + 5],
                strategy=strategy,
                combiner=combiners[groups.index(group)],
                weighted=weighted,
                safe=safe,
                row_bytes=sum(size for size, its in zip(row_bytes, groups, strict=True) if its == group),
                small=small,
                default_id=default_id,
            )
        except (ValueError, IndexError) as error:
            name = names[groups.index(group)]
            raise InvalidArgumentError(f"{error} [in RouteBags operation {name!r}]") from error
        routes.append(route)
    of_parts = zip(*(route.of_parts() for route in routes), strict=True)
    packed = [[np.concatenate(arrays) for arrays in zip(*part, strict=True)] for part in of_parts]
    return [
        *(array for arrays in zip(*packed, strict=True) for array in arrays),
        *np.stack([route.layout for route in routes], axis=1),
        *(array for route in routes for array in route.of_ids),
        *(routes[group].divisors(combiner, safe) for group, combiner in zip(groups, combiners, strict=True)),
    ]
