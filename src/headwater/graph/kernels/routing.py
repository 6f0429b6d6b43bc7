"""Kernels for tables whose rows are divided among tasks, and for bags of rows; see `headwater.graph.ops.routing` and
`headwater.graph.ops.bags`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import ml_dtypes
import numpy as np

from headwater.graph.kernels.common import cut
from headwater.graph.kernels.registry import kernel
from headwater.graph.kernels.rows import add_rows, take, take_nearest
from headwater.tables import bag_loops
from headwater.tables.row_loops import flat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.graph.registry import HostArray

#: The index of an unused place, as in `headwater.graph.ops.routing`.
_NO_ROW: Final = -1
_REAL: Final = np.float32


def _halved(rows: HostArray, halves: bool) -> HostArray:
    return rows.astype(ml_dtypes.bfloat16) if halves else rows


@kernel("GatherRouted")
def gather_routed(params: HostArray, routed: HostArray, *, halves: bool = False) -> HostArray:
    """Returns the rows requested from one part by ``RouteIds``; the first row for unused places."""
    return _halved(take_nearest(params, routed), halves)


@kernel("UpdateRows")
def update_rows(indices: HostArray) -> HostArray:
    """Marks the indices of an update that includes padding."""
    return indices


@kernel("JoinRouted")
def join_routed(places: HostArray, *found: HostArray, halves: bool = False) -> HostArray:
    """Joins the rows of all parts in the order of the ids, with the shape of ``places`` and of a row."""
    every = found[0] if len(found) == 1 else np.concatenate(found)
    return take(every, places).astype(np.float32 if halves else every.dtype, copy=False)


@kernel("SplitRouted")
def split_routed(grad: HostArray, places: HostArray, *routed: HostArray, halves: bool = False) -> tuple[HostArray, ...]:
    """Returns the gradients of `join_routed` for each part's rows; gradients of the same place are added up."""
    sizes = [len(each) for each in routed]
    rows = np.zeros((sum(sizes), *grad.shape[places.ndim :]), grad.dtype)
    add_rows(rows, places.reshape(-1), grad.reshape((places.size, *rows.shape[1:])))
    return cut(_halved(rows, halves), sizes)


@kernel("RowsOfPart")
def rows_of_part(grad: HostArray, places: HostArray, *routed: HostArray, part: int) -> tuple[HostArray, HostArray]:
    """The gradients of one part before equal ids are added up, and the rows of the part; zeros for ids of others."""
    sizes = [len(each) for each in routed]
    place = places.reshape(-1) - sum(sizes[:part])
    values = grad.reshape((places.size, *grad.shape[places.ndim :])).copy()
    outside = (place < 0) | (place >= sizes[part])
    values[outside] = 0
    if not sizes[part]:
        return values, np.full(place.shape, _NO_ROW, routed[part].dtype)
    return values, np.where(outside, routed[part].dtype.type(_NO_ROW), take_nearest(routed[part], place))


@kernel("PackRows")
def pack_rows(*tensors: HostArray) -> HostArray:
    """Concatenates the rows of several tensors."""
    return np.concatenate(tensors)


@kernel("UnpackRows")
def unpack_rows(
    packed: HostArray, sizes: HostArray, *, numbers: Sequence[int], columns: Sequence[int] = (0,)
) -> tuple[HostArray, ...]:
    """Unpacks the tensors packed by ``PackRows``; see `headwater.graph.ops.routing.unpack_rows`."""
    counts = sizes[:, columns[0]].tolist()
    if len(columns) == 1:
        return cut(packed, [counts[number] for number in numbers])
    widths = sizes[:, columns[1]].tolist()
    shapes = [(counts[number], widths[number]) for number in numbers]
    found = cut(packed, [rows * width for rows, width in shapes])
    return tuple([each.reshape(shape) for each, shape in zip(found, shapes, strict=True)])


# Bags -------------------------------------------------------------------------------------------------------------


def _wide(numbers: HostArray, rows: HostArray) -> HostArray:
    """Reshapes a vector with one number per row so that it broadcasts with ``rows``."""
    return numbers.reshape(-1, *[1] * (rows.ndim - 1))


def _rows(numbers: HostArray, like: HostArray) -> HostArray:
    """Reshapes a flat array of numbers to rows with the shape of the rows of ``like``."""
    width = math.prod(like.shape[1:])
    return numbers.reshape(len(numbers) // width if width else 0, *like.shape[1:])


@kernel("GatherBags")
def gather_bags(
    params: HostArray,
    routed: HostArray,
    numbers: HostArray,
    counts: HostArray,
    weights: HostArray,
    *,
    halves: bool = False,
) -> HostArray:
    """Returns the rows of one part that ``RouteBags`` requests, or their sum for each bag; bfloat16 with ``halves``."""
    if not len(counts):
        return _halved(take_nearest(params, routed), halves)
    bag_arrays = _flat_bags(numbers, counts, weights)
    found = bag_loops.gather_bags(flat(params, _REAL), flat(routed, np.int64), *bag_arrays, math.prod(params.shape[1:]))
    return _halved(_rows(found, params), halves)


def _flat_bags(numbers: HostArray, counts: HostArray, weights: HostArray) -> tuple[Any, ...]:
    widths = np.array([numbers.shape[1], counts.shape[1]])
    return flat(numbers, np.uint8), flat(counts, np.uint8), widths, flat(weights, _REAL)


@kernel("JoinBags")
def join_bags(
    places: HostArray,
    of: HostArray,
    factors: HostArray,
    divisors: HostArray,
    counts: HostArray,
    *found: HostArray,
    combiner: str,
    weighted: bool,
) -> HostArray:
    """Returns the bags, float32 ``[bags, …]``, from the results of ``GatherBags`` of each part."""
    del combiner, weighted
    rows = [part.astype(np.float32, copy=False) for part in found]
    if len(counts):
        total = sum(rows[1:], rows[0])
        return total / _wide(divisors, total)
    every = rows[0] if len(rows) == 1 else np.concatenate(rows)
    of_ids = _flat_ids(places, of, factors, divisors)
    total = bag_loops.join_bags(flat(every, _REAL), *of_ids, math.prod(every.shape[1:]))
    return _rows(total, every)


def _flat_ids(places: HostArray, of: HostArray, *reals: HostArray) -> tuple[HostArray, ...]:
    return flat(places, np.int32), flat(of, np.int32), *(flat(each, _REAL) for each in reals)


@kernel("SplitBags")
def split_bags(
    grad: HostArray,
    places: HostArray,
    of: HostArray,
    factors: HostArray,
    divisors: HostArray,
    counts: HostArray,
    *routed: HostArray,
    of_rows: bool = False,
) -> tuple[HostArray, ...]:
    """Returns, for each part, the gradient of the result of ``GatherBags``; with ``of_rows``, always a gradient of
    rows."""
    if len(counts) and not of_rows:
        return (grad / _wide(divisors, grad),) * len(routed)
    sizes = [len(part) for part in routed]
    of_ids = _flat_ids(places, of, factors, divisors)
    found = _rows(bag_loops.split_bags(flat(grad, _REAL), *of_ids, sum(sizes), math.prod(grad.shape[1:])), grad)
    return cut(found, sizes)


@kernel("SpreadBags")
def spread_bags(
    grad: HostArray, routed: HostArray, numbers: HostArray, counts: HostArray, weights: HostArray
) -> HostArray:
    """Returns the gradients, float32, of the rows requested from a part, given the gradient of the result of
    ``GatherBags``."""
    grad = grad.astype(np.float32, copy=False)
    if not counts.size:
        return grad
    bag_arrays = _flat_bags(numbers, counts, weights)
    return _rows(bag_loops.spread_bags(flat(grad, _REAL), len(routed), *bag_arrays, math.prod(grad.shape[1:])), grad)


@kernel("GradientOfBagWeights")
def gradient_of_weights(
    grad: HostArray,
    pooled: HostArray,
    places: HostArray,
    of: HostArray,
    factors: HostArray,
    divisors: HostArray,
    *found: HostArray,
    combiner: str,
) -> HostArray:
    """Returns the gradient of the weights of ids, in the order of places; see
    `headwater.graph.ops.bags.gradient_of_weights`."""

    def by_row(rows: HostArray) -> HostArray:
        return rows.reshape(rows.shape[0], -1)

    slope = take(by_row(grad / _wide(divisors, grad)), of)
    rows = take(by_row(np.concatenate(found)), places)
    if combiner == "sum":
        return np.add.reduce(slope * rows, axis=1)
    bag, divisor = take(by_row(pooled), of), take(divisors[:, np.newaxis], of)
    more: Any = np.float32(1)
    if combiner != "mean":
        more = factors[:, np.newaxis] / np.where(divisor > 0, divisor, np.float32(1))
    return np.add.reduce(slope * (rows - bag * more), axis=1)
