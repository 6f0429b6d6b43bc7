"""Rows of tables that are divided among tasks, and bags of them: see `headwater.graph.ops.routing`,
`headwater.graph.ops.bags`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import ml_dtypes
import numpy as np

from headwater.graph.kernels.registry import kernel
from headwater.graph.kernels.rows import add_rows, take, take_nearest

if TYPE_CHECKING:
    from headwater.graph.kernels.common import Arrays
    from headwater.graph.registry import HostArray

#: The index of an unused place, as in `headwater.graph.ops.routing`.
_NO_ROW: Final = -1


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


def _cut(rows: HostArray, sizes: list[int], halves: bool = False) -> tuple[HostArray, ...]:
    return tuple(np.split(_halved(rows, halves), np.cumsum(sizes)[:-1]))


@kernel("SplitRouted")
def split_routed(grad: HostArray, places: HostArray, *routed: HostArray, halves: bool = False) -> tuple[HostArray, ...]:
    """Returns the gradients of `join_routed` for each part's rows; gradients of the same place are added up."""
    sizes = [len(each) for each in routed]
    rows = np.zeros((sum(sizes), *grad.shape[places.ndim :]), grad.dtype)
    add_rows(rows, places.reshape(-1), grad.reshape((places.size, *rows.shape[1:])))
    return _cut(rows, sizes, halves)


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
    """The rows of several tensors, one after the other."""
    return np.concatenate(tensors)


@kernel("UnpackRows")
def unpack_rows(packed: HostArray, sizes: HostArray, *, numbers: Arrays) -> tuple[HostArray, ...]:
    """Unpacks the tensors packed by ``PackRows``; ``numbers`` are the indices of their ``sizes``."""
    return _cut(packed, [int(sizes[number]) for number in numbers])


# Bags -------------------------------------------------------------------------------------------------------------


def _numbers(arrived: HostArray) -> HostArray:
    """Decodes numbers from rows of bytes, the lowest byte first."""
    wide = np.zeros((len(arrived), 8), np.uint8)
    wide[:, : arrived.shape[1]] = arrived
    return wide.view("<i8")[:, 0]


def _bags_of(counts: HostArray, places: int) -> HostArray:
    """Returns the bag of each of a part's ids, bag by bag, ``[places]``; the number of bags for unused places."""
    return np.searchsorted(np.cumsum(_numbers(counts)), np.arange(places), side="right")


def _wide(numbers: HostArray, rows: HostArray) -> HostArray:
    """A number for each row, of the rows' rank."""
    return numbers.reshape(-1, *[1] * (rows.ndim - 1))


def _times(rows: HostArray, factors: HostArray) -> HostArray:
    """Multiplies rows by their weights, if any."""
    return rows * _wide(factors, rows) if len(factors) == len(rows) else rows


def _sums(count: int, places: HostArray, rows: HostArray) -> HostArray:
    total = np.zeros((count, *rows.shape[1:]), rows.dtype)
    add_rows(total, places, rows)
    return total


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
    rows = take_nearest(params, routed)
    if len(counts):
        chosen = _times(take(rows, _numbers(numbers)), weights)
        rows = _sums(len(counts), _bags_of(counts, len(chosen)), chosen)
    return _halved(rows, halves)


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
    else:
        chosen = _times(take(rows[0] if len(rows) == 1 else np.concatenate(rows), places), factors)
        total = _sums(len(divisors), of, chosen)
    return total / _wide(divisors, total)


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
    """Returns the gradients of the results of ``GatherBags`` of each part; with ``of_rows``, always of rows."""
    share = grad / _wide(divisors, grad)
    if len(counts) and not of_rows:
        return (share,) * len(routed)
    sizes = [len(part) for part in routed]
    return _cut(_sums(sum(sizes), places, _times(take(share, of), factors)), sizes)


@kernel("SpreadBags")
def spread_bags(
    grad: HostArray, routed: HostArray, numbers: HostArray, counts: HostArray, weights: HostArray
) -> HostArray:
    """Returns the gradients, float32, of the rows requested from a part, given the gradient of the result of
    ``GatherBags``."""
    grad = grad.astype(np.float32, copy=False)
    if not counts.size:
        return grad
    return _sums(len(routed), _numbers(numbers), _times(take(grad, _bags_of(counts, len(numbers))), weights))


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

    def flat(rows: HostArray) -> HostArray:
        return rows.reshape(rows.shape[0], -1)

    slope = take(flat(grad / _wide(divisors, grad)), of)
    rows = take(flat(np.concatenate(found)), places)
    if combiner == "sum":
        return np.add.reduce(slope * rows, axis=1)
    bag, divisor = take(flat(pooled), of), take(divisors[:, np.newaxis], of)
    more: Any = np.float32(1)
    if combiner != "mean":
        more = factors[:, np.newaxis] / np.where(divisor > 0, divisor, np.float32(1))
    return np.add.reduce(slope * (rows - bag * more), axis=1)
