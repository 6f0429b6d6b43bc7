"""Compiled loops over rows of arrays that programs hold: sums of rows, updates by optimizers, and bags of ids.

Operations on float32 are the same, in the same order, as in `headwater.graph.kernels`, so that results are bit for bit
equal. Unless a function's description states otherwise, row numbers are not checked. Positions in rows that are not
checked are unsigned: numba tests whether a signed index is negative, and then does not vectorise the loop over a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwater.tables.compiled import U64, Reals, Words, compiled
from headwater.tables.hashing import mix, slots_for


def flat(array: Any, dtype: Any) -> Any:
    """Returns the elements as a contiguous vector, which shares memory with ``array`` if that is contiguous and of type
    ``dtype``."""
    return np.ascontiguousarray(array, dtype).reshape(-1)


@compiled
def add_rows(target: Reals, places: Words, rows: Reals, width: int) -> None:
    """Adds each of several rows of ``width`` numbers to the row of ``target`` at its place, one after the other."""
    for i in range(len(places)):
        into, start = U64(places[i] * width), U64(i * width)
        for j in range(U64(width)):
            target[into + j] += rows[start + j]


@compiled
def sum_segments(
    data: Reals, rows: int, width: int, chosen: Words, segments: Words, count: int, power: float
) -> tuple[bool, Reals]:
    """Adds up chosen rows by segment, and divides each sum by a power of the segment's number of rows.

    Args:
      data: ``rows`` rows of ``width`` numbers, one after the other.
      chosen: the number of each row to add, ``[n]``.
      segments: its segment, ascending, ``[n]``.
      count: number of segments; -1 for one more than the last of ``segments``.
      power: 0, 0.5 or 1.

    Returns:
      Whether all chosen rows and segments are in range and in order (otherwise the sums are meaningless); and the sums.
    """
    last = segments[-1] if len(segments) else -1
    if count < 0:
        count = last + 1
    sums, sizes = np.zeros(count * width, np.float32), np.zeros(count, np.int64)
    before = 0
    if last >= count:
        return False, sums
    for i in range(len(chosen)):
        segment = segments[i]
        if segment < before or segment > last or chosen[i] < 0 or chosen[i] >= rows:
            return False, sums
        before = segment
        sizes[segment] += 1
        into, start = U64(segment * width), U64(chosen[i] * width)
        for j in range(U64(width)):
            sums[into + j] += data[start + j]
    if power != 0:
        for segment in range(count):
            if sizes[segment] > 1:
                divisor = np.float32(np.sqrt(np.float64(sizes[segment])) if power < 1 else sizes[segment])
                for j in range(U64(segment * width), U64((segment + 1) * width)):
                    sums[j] /= divisor
    return True, sums


@compiled
def share_segments(
    grad: Reals, count: int, width: int, chosen: Words, segments: Words, rows: int, power: float
) -> tuple[bool, Reals]:
    """Returns the gradient of the ``data`` of `sum_segments`, after a boolean, whether all numbers are in range.

    Args:
      grad: the gradient of the sums: ``count`` rows of ``width`` numbers, one after the other.
      count, width, chosen, segments, rows, power: as for `sum_segments`.
    """
    shares, sizes = np.zeros(rows * width, np.float32), np.zeros(count, np.int64)
    for i in range(len(segments)):
        if segments[i] < 0 or segments[i] >= count or chosen[i] < 0 or chosen[i] >= rows:
            return False, shares
        sizes[segments[i]] += 1
    factors = np.ones(count, np.float32)
    if power != 0:
        for segment in range(count):
            if sizes[segment] > 1:
                size = np.float32(sizes[segment])
                factors[segment] = np.float32(1) / (np.sqrt(size) if power < 1 else size)
    for i in range(len(segments)):
        into, start, factor = U64(chosen[i] * width), U64(segments[i] * width), factors[segments[i]]
        for j in range(U64(width)):
            shares[into + j] += grad[start + j] * factor
    return True, shares


@compiled
def adagrad(var: Reals, accum: Reals, grad: Reals, places: Words, width: int, rate: np.float32) -> None:
    """Updates rows by Adagrad: a ← a + g², θ ← θ − g·η / √a.

    Args:
      var, accum: rows of θ and a, one after the other.
      grad: rows of g.
      places: the row of θ and a for each row of g; a place out of range updates nothing.
      width: numbers of a row.
      rate: η, float32.
    """
    for i in range(len(places)):
        into, start = places[i] * width, i * width
        if not 0 <= into <= len(var) - width:
            continue
        for j in range(width):
            slope = grad[start + j]
            total = accum[into + j] + slope * slope
            accum[into + j] = total
            var[into + j] -= slope * rate / np.sqrt(total)


@compiled
def adam(
    var: Reals,
    m: Reals,
    v: Reals,
    grad: Reals,
    rate: np.float32,
    rest1: np.float32,
    rest2: np.float32,
    epsilon: np.float32,
) -> None:
    """Updates all numbers by Adam: m ← m + (g − m)·(1 − β₁); v ← v + (g² − v)·(1 − β₂); θ ← θ − m·η / (√v + ε).

    Args:
      var, m, v: θ and both means.
      grad: g.
      rate: η with the bias correction, float32.
      rest1, rest2: 1 − β₁ and 1 − β₂, float32.
      epsilon: ε, float32.
    """
    for i in range(len(var)):
        slope = grad[i]
        first, second = m[i] + (slope - m[i]) * rest1, v[i] + (slope * slope - v[i]) * rest2
        m[i], v[i] = first, second
        var[i] -= first * rate / (np.sqrt(second) + epsilon)


@compiled
def adam_step(var: Reals, m: Reals, v: Reals, rate: np.float32, epsilon: np.float32) -> None:
    """Changes all numbers as `adam` does, with unchanged means m and v."""
    for i in range(len(var)):
        var[i] -= m[i] * rate / (np.sqrt(v[i]) + epsilon)


@compiled
def ftrl(
    var: Reals,
    accum: Reals,
    linear: Reals,
    grad: Reals,
    places: Words,
    width: int,
    rate: np.float32,
    l1: np.float32,
    l2: np.float32,
) -> None:
    """Updates rows by FTRL with a learning rate power of -0.5; arguments as for `adagrad`, with linear terms and
    regularisation."""
    twice = np.float32(2) * l2
    for i in range(len(places)):
        into, start = places[i] * width, i * width
        if not 0 <= into <= len(var) - width:
            continue
        for j in range(width):
            slope, before = grad[start + j], np.sqrt(accum[into + j])
            total = accum[into + j] + slope * slope
            accum[into + j] = total
            after = np.sqrt(total)
            term = linear[into + j] + (slope - (after - before) / rate * var[into + j])
            linear[into + j] = term
            if np.abs(term) <= l1:
                var[into + j] = np.float32(0)
            else:  # also for NaN
                var[into + j] = (l1 * np.sign(term) - term) / (after / rate + twice)


@compiled
def distinct_bags(
    ids: Words, indices: Words, rows: int, default: int, fills: bool
) -> tuple[Words, NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_], int]:
    """Sorts ids into bags by row, drops negative ids, adds an id to each empty bag, and finds the distinct ids.

    Args:
      ids: ``[n]``.
      indices: row and column of each, ``[2 n]``.
      rows: number of bags.
      default: the id for an empty bag.
      fills: whether the second and third result include the added ids.

    Returns:
      The distinct ids in order of first occurrence, int64; the number of each id among these, int32; the bag of each
      id, int32; which bags were empty; and the position of the first id with a row out of range, or -1.
    """
    sizes = np.zeros(rows + 1, np.int64)
    empty = np.zeros(rows, np.bool_)
    for i in range(len(ids)):
        if ids[i] >= 0:  # rows of dropped ids may be out of range
            row = indices[2 * i]
            if row < 0 or row >= rows:
                return ids[:0].copy(), np.empty(0, np.int32), np.empty(0, np.int32), empty, i
            sizes[row + 1] += 1
    for row in range(rows):
        empty[row] = sizes[row + 1] == 0
        sizes[row + 1] += sizes[row] + empty[row]
    ordered, bags = np.empty(sizes[rows], np.int64), np.empty(sizes[rows], np.int32)
    for row in range(rows):
        if empty[row]:
            ordered[sizes[row]], bags[sizes[row]] = default, row
    for i in range(len(ids)):
        if ids[i] >= 0:
            row = indices[2 * i]
            ordered[sizes[row]], bags[sizes[row]] = ids[i], row
            sizes[row] += 1
    distinct, numbers = _numbered(ordered)
    if not fills:
        count = 0
        for i in range(len(bags)):
            numbers[count], bags[count] = numbers[i], bags[i]
            count += not empty[bags[i]]
        numbers, bags = numbers[:count], bags[:count]
    return distinct, numbers, bags, empty, -1


@compiled
def _numbered(ids: Words) -> tuple[Words, NDArray[np.int32]]:
    """Returns the distinct ids in order of first occurrence, and the number of each id among these, int32."""
    size = slots_for(len(ids))
    slots = np.full(size, -1, np.int32)
    distinct, numbers = np.empty(len(ids), np.int64), np.empty(len(ids), np.int32)
    count = 0
    for i in range(len(ids)):
        at = np.int64(mix(ids[i]) & U64(size - 1))
        while slots[at] >= 0 and distinct[slots[at]] != ids[i]:
            at = (at + 1) & (size - 1)
        if slots[at] < 0:
            slots[at], distinct[count] = count, ids[i]
            count += 1
        numbers[i] = slots[at]
    return distinct[:count].copy(), numbers
