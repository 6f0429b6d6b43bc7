"""Compiled loops over bags of ids of tables on other tasks; see `headwater.graph.ops.bags`.

Operations on float32 are the same, in the same order, as in `headwater.graph.kernels.routing`, so that results are bit
for bit equal. An id whose bag or place is out of range is skipped.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from headwater.tables.compiled import U64, Matrix, Reals, Words, compiled
from headwater.tables.hashing import mix, slots_for

Bytes = NDArray[np.uint8]
Places = NDArray[np.int32]

SUM: Final = 0
MEAN: Final = 1
ORDERS: Final = 66
"""Number of size classes of lookups: lookups are grouped by the number of bits of their number of ids."""


@compiled
def _bits(number: int) -> int:
    bits = 0
    while number > 0:
        bits += 1
        number >>= 1
    return bits


@compiled
def _width(numbers: int) -> int:
    """Returns the number of bytes of a field for any of the numbers 0 to ``numbers`` - 1."""
    return max(1, (_bits(numbers - 1) + 7) // 8)


@compiled
def _roomy(needed: int, total: int, headroom: float) -> Any:
    return min(total, (np.int64(needed * headroom) + 7) // 8 * 8)


@compiled
def _fit(room: Words, needed: Any, total: int, headroom: float) -> Words:
    """Raises ``room``, the number of places of each part, to at least ``needed``, by the rules of
    `headwater.graph.ops.routing.Capacities`. Returns a copy, which no other thread changes."""
    fitted, is_set, most = room.copy(), False, np.int64(0)
    for part in range(len(needed)):
        is_set, most = is_set or fitted[part] != 0, max(most, needed[part])
    for part in range(len(needed)):
        if not is_set:
            fitted[part] = _roomy(most, total, headroom)
        if needed[part] > fitted[part]:
            fitted[part] = _roomy(needed[part], total, headroom)
        room[part] = fitted[part]
    return fitted


@compiled
def _used_ids(ids: Words, indices: Words, rank: int, weights: Reals, bags: int, skips_weights: bool, safe: bool) -> Any:
    """Returns the position of the first id whose bag is out of order, or -1; for each id, whether it is used; and for
    each bag, the number of used ids."""
    sizes, is_used = np.zeros(max(bags, 0), np.int64), np.ones(len(ids), np.bool_)
    before = 0
    for i in range(len(ids)):
        bag = indices[i * rank]
        if safe:
            is_used[i] = ids[i] >= 0 and bag < bags and not (skips_weights and not weights[i] > np.float32(0))
            if not is_used[i]:
                continue
        if bag < before or bag >= bags:
            return i, is_used, sizes
        before = 0 if safe else bag
        sizes[bag] += 1
    return -1, is_used, sizes


@compiled
def _requests(ids: Words, is_used: Any, sizes: Words, by_ranges: bool) -> Any:
    """Finds the distinct ids and their rows.

    Returns:
      The position of the first used id without a row, or -1; for each id, the index of its request, or -1; for each
      request, the part and the row; for each part, the number of its requests.
    """
    n, parts = len(ids), len(sizes)
    numbers, counts, count = np.full(n, -1, np.int32), np.zeros(parts, np.int64), 0
    slots = np.full(slots_for(n), -1, np.int32)
    keys, rows, owners = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int32)
    all_rows = np.sum(sizes)
    short, longer = all_rows // parts, all_rows % parts
    less = max(short, 1)
    for i in range(n):
        if not is_used[i]:
            continue
        key = ids[i]
        at = np.int64(mix(key) & U64(len(slots) - 1))
        while slots[at] >= 0 and keys[slots[at]] != key:
            at = (at + 1) & (len(slots) - 1)
        if slots[at] < 0:
            if by_ranges:  # as in `headwater.tables.routing.route`
                part = max(key // (short + 1), (key - longer) // less)
                row = key % (short + 1) if part < longer else (key - longer) % less
            else:
                part, row = key % parts, key // parts
            if key < 0 or part >= parts or row >= sizes[part]:
                return i, numbers, owners, rows, counts
            slots[at], keys[count], owners[count], rows[count] = count, key, part, row
            counts[part] += 1
            count += 1
        numbers[i] = slots[at]
    return -1, numbers, owners[:count], rows[:count], counts


@compiled
def divisors_of(of: Places, factors: Reals, sizes: Words, combiner: int, safe: bool) -> Reals:
    """Returns the divisor of each bag's sum, ``[bags]``; 1 for an empty bag, except with weights that are not ``safe``.

    Args:
      of: the bag of each id, ``[n]``.
      factors: the weight of each id, ``[n]``; empty without weights.
      sizes: the number of ids in each bag, ``[bags]``.
      combiner: `SUM`, `MEAN`, or another number for ``sqrtn``.
    """
    divisors = np.ones(len(sizes), np.float32)
    if combiner == SUM:
        return divisors
    norms = sizes.astype(np.float64)
    if len(factors):
        norms[:] = 0
        for i in range(len(of)):
            if of[i] < len(norms):
                factor = np.float64(factors[i])
                norms[of[i]] += factor if combiner == MEAN else factor * factor
    for bag in range(len(sizes)):
        if sizes[bag] > 0 or (len(factors) and not safe):
            divisors[bag] = norms[bag] if combiner == MEAN else np.sqrt(norms[bag])
    return divisors


@compiled
def route_bags(
    ids: Words,
    indices: Words,
    rank: int,
    bags: int,
    weights: Reals,
    sizes: Words,
    by_ranges: bool,
    weighted: bool,
    skips_weights: bool,
    safe: bool,
    fills: bool,
    default: int,
    row_bytes: int,
    rooms: Matrix[np.int64],
    headroom: float,
    none: int,
) -> tuple[int, int, Words, Places, Places, Reals, Words, Bytes, Bytes, Reals, Matrix[np.int64]]:
    """Divides ids in bags among the parts of a table; see the operation ``RouteBags``.

    Args:
      ids: ``[n]``.
      indices: the places of the ids in a sparse tensor, ``[n * rank]``.
      rank: the rank of the sparse tensor.
      bags: the number of bags, if ``safe``; otherwise the last id has the last bag.
      weights: ``[n]``; empty if ``weighted`` is false.
      sizes: the number of rows of each part, ``[parts]``.
      by_ranges: as for `headwater.tables.routing.route`.
      skips_weights: whether to skip ids with weights of 0 or less, if ``safe``.
      fills: whether an empty bag gets the id ``default``.
      rooms: for each size class, the number of places for rows of each part, for ids of each part, and for all ids,
        ``[ORDERS, 2 * parts + 1]``. Updated in place.
      headroom: as for `headwater.graph.ops.routing.Capacities`.
      none: the value of unused places for rows.

    Returns:
      In this order:

      - The position of the first id whose bag is out of order, or -1, and of the first id without a row, or -1.
      - The requested rows of all parts.
      - The place, the bag and the weight of each id; the number of ids in each bag.
      - For all parts, if bags are pooled (otherwise empty): the indices of rows, as bytes; the number of ids of each
        bag, as bytes; and the weights.
      - The sizes of the arrays by part, ``[parts, 7]``: the number of rows; the number of indices, and the bytes of an
        index; the number of bags, and the bytes of a number of ids; the number of weights; the number of rows in the
        answer.
    """
    n, parts = len(ids), len(sizes)
    layout = np.zeros((parts, 7), np.int64)
    if not safe:
        bags = indices[(n - 1) * rank] + 1 if n else 0
    unordered, is_used, in_bag = _used_ids(ids, indices, rank, weights, bags, skips_weights, safe)
    empty, total = np.empty(len(in_bag), np.int64), n
    if fills and unordered < 0:
        for bag in range(len(in_bag)):
            if in_bag[bag] == 0:
                in_bag[bag], empty[total - n] = 1, bag
                total += 1
    all_ids, all_used = np.full(total, default), np.ones(total, np.bool_)
    for i in range(n):
        all_ids[i], all_used[i] = ids[i], is_used[i]
    bad, numbers, owners, rows, counts = _requests(all_ids, all_used, sizes, by_ranges)
    if unordered >= 0 or bad >= 0:
        bags = total = 0
        counts[:], numbers, owners = 0, numbers[:0], owners[:0]
    used: Any = in_bag.sum()
    rows_of: Words = _fit(rooms[_bits(used), :parts], counts, used, headroom)
    ends, next_place, end = np.empty(parts, np.int64), np.empty(parts, np.int64), np.int64(0)
    for part in range(parts):
        layout[part, 0], layout[part, 2], layout[part, 4], layout[part, 6] = rows_of[part], 1, 1, rows_of[part]
        next_place[part] = end
        end += rows_of[part]
        ends[part] = end
    routed, place_of = np.full(end, none), np.empty(len(owners), np.int32)
    for key in range(len(owners)):
        place = next_place[owners[key]]
        next_place[owners[key]] += 1
        routed[place], place_of[key] = rows[key], place
    most = 1 << _bits(total)
    room: Any = _fit(rooms[_bits(most), 2 * parts :], np.full(1, total), most, headroom)[0]
    places, of = np.zeros(room, np.int32), np.full(room, bags, np.int32)
    factors = np.zeros(room if weighted else 0, np.float32)
    for i in range(total):
        if all_used[i]:
            places[i], of[i] = place_of[numbers[i]], indices[i * rank] if i < n else empty[i - n]
            if weighted:
                factors[i] = weights[i] if i < n else np.float32(1)
    pooled_parts = _pooled(numbers, owners, places, of, factors, ends, bags, row_bytes, rooms, headroom, layout)
    return unordered, bad, routed, places, of, factors, in_bag[:bags], *pooled_parts, layout


@compiled
def _pooled(
    numbers: Places,
    owners: Places,
    places: Places,
    of: Places,
    factors: Reals,
    ends: Words,
    bags: int,
    row_bytes: int,
    rooms: Words,
    headroom: float,
    layout: Words,
) -> Any:
    """Returns the additional results of `route_bags` for pooled bags, and completes ``layout``."""
    parts, requests = len(ends), len(owners)
    pooled_parts, sizes, shares = np.empty(0, np.uint8), np.empty(0, np.uint8), np.empty(0, np.float32)
    if not bags or bags * parts >= requests:
        return pooled_parts, sizes, shares
    # Element p * bags + b is first the number of ids of bag b in part p, and later the index of that bag's next id in
    # the part.
    counts, of_part = np.zeros(parts * bags, np.int64), np.zeros(parts, np.int64)
    for i in range(len(numbers)):
        if numbers[i] >= 0:
            counts[owners[numbers[i]] * bags + of[i]] += 1
            of_part[owners[numbers[i]]] += 1
    size = row_bytes * bags * parts
    for part in range(parts):
        layout[part, 2] = _width(layout[part, 0])
        most = np.int64(0)
        for bag in range(part * bags, (part + 1) * bags):
            most = max(most, counts[bag])
        layout[part, 4] = _width(most + 1)
        size += of_part[part] * (layout[part, 2] + (4 if len(factors) else 0)) + bags * layout[part, 4]
    if size >= row_bytes * requests:
        layout[:, 2], layout[:, 4] = 1, 1
        return pooled_parts, sizes, shares
    most = 1 << _bits(np.sum(of_part))
    indices_of: Words = _fit(rooms[_bits(most), parts : 2 * parts], of_part, most, headroom)
    for part in range(parts):
        layout[part, 1], layout[part, 3], layout[part, 6] = indices_of[part], bags, bags
        layout[part, 5] = indices_of[part] if len(factors) else 0
    # The start of each part's indices of rows, as bytes, and of its weights.
    starts, firsts, size_bytes = np.zeros(parts + 1, np.int64), np.zeros(parts + 1, np.int64), 0
    for part in range(parts):
        starts[part + 1] = starts[part] + indices_of[part] * layout[part, 2]
        firsts[part + 1] = firsts[part] + indices_of[part]
        size_bytes += layout[part, 4]
    pooled_parts, sizes = np.zeros(starts[parts], np.uint8), np.empty(bags * size_bytes, np.uint8)
    shares = np.zeros(firsts[parts] if len(factors) else 0, np.float32)
    at = 0
    for part in range(parts):
        first = 0
        for bag in range(part * bags, (part + 1) * bags):
            for place in range(layout[part, 4]):  # the lowest byte first
                sizes[at + place] = (counts[bag] >> 8 * place) & 255
            at += layout[part, 4]
            counts[bag], first = first, first + counts[bag]
    for i in range(len(numbers)):
        if numbers[i] >= 0:
            part = owners[numbers[i]]
            index = counts[part * bags + of[i]]
            counts[part * bags + of[i]] += 1
            row, width = places[i] - (ends[part] - layout[part, 0]), layout[part, 2]
            for place in range(width):
                pooled_parts[starts[part] + index * width + place] = (row >> 8 * place) & 255
            if len(factors):
                shares[firsts[part] + index] = factors[i]
    return pooled_parts, sizes, shares


@compiled
def _divide(rows: Reals, divisors: Reals, width: int) -> None:
    for bag in range(len(divisors)):
        if divisors[bag] != np.float32(1):
            for j in range(bag * width, (bag + 1) * width):
                rows[j] /= divisors[bag]


@compiled
def _add(into: Reals, places: Any, rows: Reals, chosen: Any, width: int, factors: Reals) -> None:
    """Adds row ``chosen[i]`` of ``rows``, times ``factors[i]`` if there are factors, to row ``places[i]`` of ``into``.
    Skips row numbers that are out of range."""
    last_place, last_row = len(into) - width, len(rows) - width
    for i in range(len(places)):
        at, start = np.int64(places[i]) * width, np.int64(chosen[i]) * width
        if at < 0 or at > last_place or start < 0 or start > last_row:
            continue
        if len(factors):
            for j in range(width):
                into[at + j] += rows[start + j] * factors[i]
        else:
            for j in range(width):
                into[at + j] += rows[start + j]


@compiled
def join_bags(rows: Reals, places: Places, of: Places, factors: Reals, divisors: Reals, width: int) -> Reals:
    """Adds the row of each id, times its weight if any, to the id's bag, and divides each bag's sum; see ``JoinBags``.

    Args:
      rows: the rows of all parts, of ``width`` numbers.
      places: the row of each id, ``[n]``.
      of: the bag of each id, ``[n]``.
      factors: the weight of each id, ``[n]``; empty without weights.
      divisors: the divisor of each bag's sum, ``[bags]``.
      width: the numbers of a row.

    Returns:
      ``[bags * width]``.
    """
    pooled = np.zeros(len(divisors) * width, np.float32)
    _add(pooled, of, rows, places, width, factors)
    _divide(pooled, divisors, width)
    return pooled


@compiled
def split_bags(
    grad: Reals, places: Places, of: Places, factors: Reals, divisors: Reals, count: int, width: int
) -> Reals:
    """Returns the gradient of the ``rows`` of `join_bags`, ``[count * width]``, given the gradient of its result."""
    gradients, shares = np.zeros(count * width, np.float32), grad.copy()
    _divide(shares, divisors, width)
    _add(gradients, places, shares, of, width, factors)
    return gradients


@compiled
def _decoded(numbers: Bytes, counts: Bytes, widths: Any) -> Any:
    """Decodes the bags of one part.

    Args:
      numbers: the index of the row of each id, bag by bag, as bytes.
      counts: the number of ids of each bag, as bytes.
      widths: the bytes of an index and of a number.

    Returns:
      For each id, the index of its row, and its bag.
    """
    of_number, of_count = widths
    rows, bags = np.zeros(len(numbers) // of_number, np.int64), np.empty(len(numbers) // of_number, np.int64)
    at = 0
    for bag in range(len(counts) // of_count):
        count = 0
        for place in range(of_count):
            count |= np.int64(counts[bag * of_count + place]) << 8 * place
        for _ in range(min(count, len(rows) - at)):
            for place in range(of_number):
                rows[at] |= np.int64(numbers[at * of_number + place]) << 8 * place
            bags[at] = bag
            at += 1
    return rows[:at], bags[:at]


@compiled
def gather_bags(
    params: Reals, routed: Words, numbers: Bytes, counts: Bytes, widths: Words, weights: Reals, width: int
) -> Reals:
    """Adds up rows of a part by bag; see ``GatherBags``.

    Args:
      params: the rows of the part, of ``width`` numbers.
      routed: the requested rows; a row number out of range stands for the nearest row.
      numbers, counts, widths: as for `_decoded`.
      weights: the weight of each id; empty without weights.

    Returns:
      ``[bags * width]``.
    """
    pooled = np.zeros(len(counts) // widths[1] * width, np.float32)
    rows, bags = _decoded(numbers, counts, widths)
    last = len(params) // width - 1
    for i in range(len(rows)):
        rows[i] = min(max(routed[rows[i]], 0), last) if rows[i] < len(routed) else -1
    _add(pooled, bags, params, rows, width, weights)
    return pooled


@compiled
def spread_bags(
    grad: Reals, count: int, numbers: Bytes, counts: Bytes, widths: Words, weights: Reals, width: int
) -> Reals:
    """Returns the gradient of the ``count`` rows requested from a part, ``[count * width]``, given the gradient of the
    result of `gather_bags`, to which the other arguments belong."""
    gradients = np.zeros(count * width, np.float32)
    rows, bags = _decoded(numbers, counts, widths)
    _add(gradients, rows, grad, bags, width, weights)
    return gradients
