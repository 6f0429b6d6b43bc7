"""Compiled routing of ids to the parts of divided tables, with one request for each distinct row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headwater.tables.compiled import U64, Matrix, Words, compiled
from headwater.tables.hashing import mix, slots_for


@compiled
def route(
    ids: Words, ends: Words, sizes: Matrix[np.int64], by_ranges: NDArray[np.bool_], room: Matrix[np.int64], none: int
) -> tuple[int, Matrix[np.int64], Words, NDArray[np.int32]]:
    """Divides the ids of lookups in several tables among the tables' parts. Equal ids of a lookup are one request.

    Args:
      ids: row numbers in the whole tables, lookup by lookup, ``[n]``.
      ends: the end of each lookup's ids, ``[lookups]``.
      sizes: the number of rows of each part of the lookup's table, ``[lookups, parts]``.
      by_ranges: whether a table's parts are consecutive ranges, of which the first are one row longer if the rows
        cannot be divided equally; otherwise row i is in part i mod the number of parts.
      room: the number of slots for requests of each part, ``[lookups, parts]``.
      none: the value of unused slots.

    Returns:
      The index of the first id outside all parts, or -1; the number of requests of each part, ``[lookups, parts]``; the
      requested rows, by part and then by lookup; and for each id its slot among its lookup's slots, which are ordered
      by part. The last two are meaningless if a part has more requests than slots.
    """
    lookups, parts = sizes.shape
    n = len(ids)
    largest = 0
    for lookup in range(lookups):
        largest = max(largest, ends[lookup] - (ends[lookup - 1] if lookup else 0))
    slots = np.empty(slots_for(largest), np.int32)
    keys, placed = np.empty(largest, np.int64), np.empty(largest, np.int32)
    counts = np.zeros((lookups, parts), np.int64)
    routed, places = np.full(np.sum(room), none, np.int64), np.empty(n, np.int32)
    to, within = np.empty(parts, np.int64), np.empty(parts, np.int64)
    first = 0
    for lookup in range(lookups):
        total, before = 0, 0
        for part in range(parts):
            within[part] = before
            before += room[lookup, part]
            total += sizes[lookup, part]
            to[part] = 0
            for other in range(lookups):
                for earlier in range(part):
                    to[part] += room[other, earlier]
                if other < lookup:
                    to[part] += room[other, part]
        short, longer = total // parts, total % parts
        less = max(short, 1)
        size = slots_for(ends[lookup] - first)
        slots[:size] = -1
        requests = 0
        for i in range(first, ends[lookup]):
            key = ids[i]
            at = np.int64(mix(key) & U64(size - 1))
            while slots[at] >= 0 and keys[slots[at]] != key:
                at = (at + 1) & (size - 1)
            if slots[at] >= 0:
                places[i] = placed[slots[at]]
                continue
            # The first `longer` ranges have `short + 1` rows, later ranges `short`. Each of these groups has its own
            # formula for the part. The maximum of both is the part, because the formula of the other group never gives
            # a higher number.
            if by_ranges[lookup]:
                part = max(key // (short + 1), (key - longer) // less)
                row = key % (short + 1) if part < longer else (key - longer) % less
            else:
                part, row = key % parts, key // parts
            if key < 0 or part >= parts or row >= sizes[lookup, part]:
                return i, counts, routed, places
            rank = counts[lookup, part]
            # Count requests beyond the room, too: the caller needs their number to provide more slots.
            if rank < room[lookup, part]:
                routed[to[part] + rank] = row
            counts[lookup, part] = rank + 1
            slots[at], keys[requests], placed[requests] = requests, key, within[part] + rank
            places[i] = within[part] + rank
            requests += 1
        first = ends[lookup]
    return -1, counts, routed, places
