"""Access to the rows of one shard: functions that find, create, move and describe rows.

Compiled functions inline the functions of this module. The caller holds the shard's lock, and passes the shard's entry
of the directory as ``d``.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from headwater.tables import fields as f
from headwater.tables.compiled import U64, Reals, Words, compiled, doubles_at, numbers_at, prefetch, reals_at, words_at
from headwater.tables.hashing import mix, share
from headwater.tables.initializers import fill_row
from headwater.tables.policies import should_promote

#: Positions in ``shape``, the integer parameters of a table.
DIM: Final = 0
WIDTH: Final = 1
WORDS: Final = 2
SHARDS: Final = 3
LIMIT: Final = 4
SEED: Final = 5
INITIALIZER: Final = 6
ADMISSION: Final = 7
SIGHTINGS: Final = 8
OPTIMIZER: Final = 9
EXACT: Final = 10
SHAPE_SIZE: Final = 12

#: Positions in ``reals``, the real parameters of a table.
INITIAL_A: Final = 0
INITIAL_B: Final = 1
CHANCE: Final = 2
SLOTS: Final = 4

#: Positions in a table's handle: addresses of its directory and of its parameters; the step of a call.
DIRECTORY: Final = 0
SHAPE: Final = 1
REALS: Final = 2
HYPER: Final = 3
RATES: Final = 4
STEP: Final = 5
HANDLE_SIZE: Final = 6

WORD: Final = 8
ROW_WORD_BYTES: Final = 4
_LINE_BYTES: Final = 64
#: The number of rows whose memory is prefetched at a time: so few that all of them stay in the cache.
PREFETCH_ROWS: Final = 32


@compiled
def shard_of(hashed: int, shards: int) -> Any:
    """Returns the shard of a key, from the high bits of its hash; the low half selects the slot in the shard."""
    return np.int64(((U64(hashed) >> U64(40)) * U64(shards)) >> U64(24))


@compiled
def tag_of(hashed: int, shift: int) -> int:
    """Returns the bits of a key's hash that are stored in its slot. These bits exclude most other keys without reading
    the keys."""
    return (U64(hashed) >> U64(8)) & U64((1 << (32 - shift)) - 1)


@compiled
def find(d: Words, words: int, hashed: int, key: int, check: int) -> int:
    """Returns the slot of a key in a shard; for a missing key the free slot as a negative number, ``-1 - slot``."""
    slots = d[f.SLOTS]
    shift = d[f.SHIFT]
    index = numbers_at(d[f.INDEX], slots)
    meta = words_at(d[f.META], d[f.CAPACITY] * words)
    tag = tag_of(hashed, shift)
    mask = U64((1 << shift) - 1)
    at = share(hashed, slots)
    while True:
        slot = U64(index[at])
        if slot == U64(0):
            return -1 - at
        if (slot >> U64(shift)) == tag:
            row = np.int64(slot & mask) - 1
            if meta[row * words] == key and (words == 2 or meta[row * words + 2] == check):
                return at
        at += 1
        if at == slots:
            at = 0


@compiled
def row_in(d: Any, at: int) -> Any:
    """Returns the row in a slot."""
    index = numbers_at(d[f.INDEX], d[f.SLOTS])
    return np.int64(U64(index[at]) & U64((1 << d[f.SHIFT]) - 1)) - 1


@compiled
def record(d: Any, row: int, width: int) -> Any:
    """Returns a row's record: its values and its optimizer's state."""
    size = width * ROW_WORD_BYTES
    if row < d[f.HOT]:
        return reals_at(d[f.VALUES] + row * size, width)
    return reals_at(d[f.COLD] + (row - d[f.HOT]) * size, width)


@compiled
def bring_near(d: Words, words: int, width: int, keys: Words, order: Words, first: int, last: int) -> None:
    """Prefetches the memory of a shard's keys ``order[first:last]``.

    A row's data is in three places: the index, the words, the record. Prefetching overlaps their cache
    misses.
    """
    slots, shift, size = d[f.SLOTS], d[f.SHIFT], width * ROW_WORD_BYTES
    for c in range(first, last):
        prefetch(d[f.INDEX] + share(mix(keys[order[c]]), slots) * ROW_WORD_BYTES)
    index = numbers_at(d[f.INDEX], slots)
    mask = U64((1 << shift) - 1)
    for c in range(first, last):
        hashed = mix(keys[order[c]])
        tag = tag_of(hashed, shift)
        at = share(hashed, slots)
        while index[at] != 0 and (U64(index[at]) >> U64(shift)) != tag:
            at += 1
            if at == slots:
                at = 0
        row = np.int64(U64(index[at]) & mask) - 1
        if 0 <= row < d[f.HOT]:
            prefetch(d[f.META] + row * words * WORD)
            for place in range(0, size, _LINE_BYTES):
                prefetch(d[f.VALUES] + row * size + place)


@compiled
def record_bytes(words: int, width: int) -> int:
    """Returns the size of a record in the log, in bytes: the row's words, then its values, rounded up to words."""
    return words * WORD + (width * ROW_WORD_BYTES + 7) // 8 * 8


@compiled
def keep_old(d: Words, row: int, words: int, width: int) -> None:
    """Copies a row into the log before the row changes, if a running save still needs it. The log must have room."""
    meta = words_at(d[f.META], d[f.CAPACITY] * words)
    use = meta[row * words + 1]
    if d[f.SAVING] == 0 or (use & f.SAVED_BIT) == d[f.PARITY]:
        return
    meta[row * words + 1] = use ^ f.SAVED_BIT
    # A delta omits rows that were unchanged when the delta began. The bit that was set above excludes later changes
    # from it.
    if d[f.SAVING] == f.CHANGED and (use & f.CHANGED_BIT) == 0:
        return
    at = d[f.LOG] + d[f.LOG_USED] * record_bytes(words, width)
    to = words_at(at, words)
    for i in range(words):
        to[i] = meta[row * words + i]
    values = reals_at(at + words * WORD, width)
    source = record(d, row, width)
    for j in range(width):
        values[j] = source[j]
    d[f.LOG_USED] += 1


@compiled
def use_of(count: int, step: int, bits: int) -> int:
    """Returns the use word of a row that was used ``count`` times, last at ``step``."""
    return (step << f.STEP_SHIFT) | (min(count, f.COUNT_MASK) << f.COUNT_SHIFT) | bits


@compiled
def count_in(use: int) -> int:
    return (use >> f.COUNT_SHIFT) & f.COUNT_MASK


@compiled
def step_in(use: int) -> int:
    return (use >> f.STEP_SHIFT) & 0xFFFFFFFF


@compiled
def has_room(d: Words) -> bool:
    """Returns whether a row may be made: there is memory for it, and the index stays below four fifths full."""
    return (d[f.FREE] >= 0 or d[f.ROWS] < d[f.CAPACITY]) and 5 * (d[f.LIVE] + 1) <= 4 * d[f.SLOTS]


@compiled
def _allocate_row(d: Words, words: int) -> int:
    row = d[f.FREE]
    if row >= 0:
        d[f.FREE] = words_at(d[f.META], d[f.CAPACITY] * words)[row * words]
    else:
        row = d[f.ROWS]
        d[f.ROWS] += 1
    d[f.LIVE] += 1
    return row


@compiled
def make_row(d: Words, at: int, hashed: int, key: int, check: int, step: int, shape: Any, reals: Reals) -> int:
    """Creates the row of a key at a free slot, with initial values and no uses; returns the row."""
    words, width, dim = shape[WORDS], shape[WIDTH], shape[DIM]
    row = _allocate_row(d, words)
    shift = d[f.SHIFT]
    numbers_at(d[f.INDEX], d[f.SLOTS])[at] = np.uint32((tag_of(hashed, shift) << U64(shift)) | U64(row + 1))
    meta = words_at(d[f.META], d[f.CAPACITY] * words)
    meta[row * words] = key
    # The row counts as saved in a save that is running, because it did not exist when that save began.
    meta[row * words + 1] = use_of(1, step, d[f.PARITY] | f.CHANGED_BIT)
    if words == 3:
        meta[row * words + 2] = check
    values = record(d, row, width)
    fill_row(values, 0, dim, shape[INITIALIZER], reals[INITIAL_A], reals[INITIAL_B], shape[SEED], key, check)
    for j in range(dim, width):
        values[j] = reals[SLOTS + j // dim - 1]
    d[f.CREATED] += 1
    return row


@compiled
def count_sighting(d: Words, key: int) -> int:
    """Counts a sighting of a key without a row; returns the number of its sightings."""
    slots = d[f.CANDIDATE_SLOTS]
    seen = words_at(d[f.CANDIDATES], 2 * slots)
    if 4 * d[f.CANDIDATES_USED] >= 3 * slots:
        _forget(d, seen, slots)
    at = share(mix(key), slots)
    while seen[2 * at + 1] != 0 and seen[2 * at] != key:
        at = at + 1 if at + 1 < slots else 0
    if seen[2 * at + 1] == 0:
        seen[2 * at] = key
        d[f.CANDIDATES_USED] += 1
    seen[2 * at + 1] += 1
    return seen[2 * at + 1]


@compiled
def sightings_of(d: Words, key: int) -> int:
    """Returns the number of counted sightings of a key without a row."""
    slots = d[f.CANDIDATE_SLOTS]
    seen = words_at(d[f.CANDIDATES], 2 * slots)
    at = share(mix(key), slots)
    while seen[2 * at + 1] != 0 and seen[2 * at] != key:
        at = at + 1 if at + 1 < slots else 0
    return seen[2 * at + 1]


@compiled
def _forget(d: Words, seen: Words, slots: int) -> None:
    """Halves all counts until at most half of the slots are in use."""
    old = seen.copy()
    while 2 * d[f.CANDIDATES_USED] > slots:
        seen[:] = 0
        d[f.CANDIDATES_USED] = 0
        for i in range(slots):
            old[2 * i + 1] //= 2
            if old[2 * i + 1] > 0:
                at = share(mix(old[2 * i]), slots)
                while seen[2 * at + 1] != 0:
                    at = at + 1 if at + 1 < slots else 0
                seen[2 * at] = old[2 * i]
                seen[2 * at + 1] = old[2 * i + 1]
                d[f.CANDIDATES_USED] += 1


@compiled
def _swap(d: Words, row: int, other: int, words: int, width: int) -> None:
    """Swaps two rows."""
    keep_old(d, row, words, width)
    keep_old(d, other, words, width)
    meta = words_at(d[f.META], d[f.CAPACITY] * words)
    index = numbers_at(d[f.INDEX], d[f.SLOTS])
    # Find both slots before any change: a search compares keys through the index.
    first = slot_of(d, row, words)
    second = slot_of(d, other, words)
    mask = np.uint32((1 << d[f.SHIFT]) - 1)
    index[first] = np.uint32((index[first] & ~mask) | np.uint32(other + 1))
    index[second] = np.uint32((index[second] & ~mask) | np.uint32(row + 1))
    for i in range(words):
        word = meta[row * words + i]
        meta[row * words + i] = meta[other * words + i]
        meta[other * words + i] = word
    one = record(d, row, width)
    two = record(d, other, width)
    for j in range(width):
        value = one[j]
        one[j] = two[j]
        two[j] = value


@compiled
def slot_of(d: Words, row: int, words: int) -> int:
    meta = words_at(d[f.META], d[f.CAPACITY] * words)
    key = meta[row * words]
    check = meta[row * words + 2] if words == 3 else 0
    return find(d, words, mix(key), key, check)


@compiled
def promote(d: Words, row: int, used_before: int, words: int, width: int) -> int:
    """Moves a row from the file to memory if a row there is less recently used; returns its new number."""
    meta = words_at(d[f.META], d[f.CAPACITY] * words)
    hot = min(d[f.HOT], d[f.ROWS])
    chosen = -1
    least = used_before
    # Examine a sample of eight rows, as in the CLOCK algorithm, to limit the time of a lookup. The next search
    # continues after the sample.
    for _ in range(min(8, hot)):
        d[f.SEARCH_START] = d[f.SEARCH_START] + 1 if d[f.SEARCH_START] + 1 < hot else 0
        use = meta[d[f.SEARCH_START] * words + 1]
        if count_in(use) > 0 and should_promote(least, step_in(use)):
            chosen = d[f.SEARCH_START]
            least = step_in(use)
    if chosen < 0:
        return row
    _swap(d, row, chosen, words, width)
    return chosen


@compiled
def log_has_room(d: Words) -> bool:
    """Returns whether the log has room for one more key, or no save needs the log."""
    # For one key, up to three rows are copied: its own, and the two rows that `promote` swaps.
    return d[f.SAVING] == 0 or d[f.LOG_USED] + 3 <= d[f.LOG_ROOM]


@compiled
def parameters_of(handle: Words) -> Any:
    """Returns the parameters of a handle's table: integers, real numbers, hyperparameters, and rates by step."""
    shape = words_at(handle[SHAPE], SHAPE_SIZE)
    return (
        shape,
        doubles_at(handle[REALS], SLOTS + shape[WIDTH] // shape[DIM]),
        doubles_at(handle[HYPER], 8),
        doubles_at(handle[RATES], 4096),
    )
