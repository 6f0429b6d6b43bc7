"""Compiled operations on a whole shard: its lock, its index, removal of rows, saving of rows."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from headwater.tables import fields as f
from headwater.tables.compiled import (
    U64,
    Matrix,
    Words,
    add,
    compiled,
    numbers_at,
    prefetch,
    reals_at,
    try_lock,
    unlock,
    words_at,
)
from headwater.tables.hashing import mix, share
from headwater.tables.policies import admitted_by_chance
from headwater.tables.row_access import (
    ADMISSION,
    CHANCE,
    ROW_WORD_BYTES,
    SEED,
    SHARDS,
    SIGHTINGS,
    WIDTH,
    WORD,
    WORDS,
    count_in,
    find,
    keep_old,
    record,
    record_bytes,
    row_in,
    shard_of,
    sightings_of,
    slot_of,
    tag_of,
)

#: The number of slots after a removed row's slot that are usually examined.
_EXAMINED_SLOTS: Final = 6


@compiled
def lock_shard(directory: Matrix[np.int64], s: int) -> bool:
    """Acquires a shard's lock; returns False if it is held."""
    return try_lock(directory.ctypes.data + s * f.FIELDS * WORD)


@compiled
def unlock_shard(directory: Matrix[np.int64], s: int) -> None:
    """Releases a shard's lock."""
    unlock(directory.ctypes.data + s * f.FIELDS * WORD)


@compiled
def reindex(d: Words, words: int, old: int, old_slots: int, old_shift: int) -> None:
    """Fills a new, empty index from the old one. The shard must be locked."""
    before = numbers_at(old, old_slots)
    slots, shift = d[f.SLOTS], d[f.SHIFT]
    index = numbers_at(d[f.INDEX], slots)
    meta = words_at(d[f.META], d[f.CAPACITY] * words)
    mask = U64((1 << old_shift) - 1)
    for i in range(old_slots):
        if before[i] != 0:
            row = np.int64(U64(before[i]) & mask) - 1
            hashed = mix(meta[row * words])
            at = share(hashed, slots)
            # All keys are distinct, so the first free slot is right, without a comparison of keys.
            while index[at] != 0:
                at = at + 1 if at + 1 < slots else 0
            index[at] = np.uint32((tag_of(hashed, shift) << U64(shift)) | U64(row + 1))


@compiled
def remove(directory: Matrix[np.int64], s: int, shape: Words, rows: Words) -> None:
    """Frees rows of a shard, which must be locked; its log and its list of removed keys must have room for all."""
    words, width = shape[WORDS], shape[WIDTH]
    d = directory[s]
    meta = words_at(d[f.META], d[f.CAPACITY] * words)
    slots = d[f.SLOTS]
    index = numbers_at(d[f.INDEX], slots)
    mask = U64((1 << d[f.SHIFT]) - 1)
    # Each pass prefetches the memory whose addresses the next pass reads, so that the cache misses of all rows overlap.
    for row in rows:
        prefetch(d[f.META] + row * words * WORD)
    for row in rows:
        prefetch(d[f.INDEX] + share(mix(meta[row * words]), slots) * ROW_WORD_BYTES)
    for row in rows:  # also prefetch the rows of the following slots, which will be examined
        at = share(mix(meta[row * words]), slots)
        for _ in range(_EXAMINED_SLOTS):
            if index[at] == 0:
                break
            prefetch(d[f.META] + (np.int64(U64(index[at]) & mask) - 1) * words * WORD)
            at = at + 1 if at + 1 < slots else 0
    for row in rows:
        keep_old(d, row, words, width)
        if d[f.REMOVED] != 0:
            gone = words_at(d[f.REMOVED] + d[f.REMOVED_USED] * 2 * WORD, 2)
            gone[0] = meta[row * words]
            gone[1] = meta[row * words + 2] if words == 3 else 0
            d[f.REMOVED_USED] += 1
        hole = slot_of(d, row, words)
        at = hole
        # Close the hole that the removed entry leaves, because searches for later entries would end there. A later
        # entry may move into the hole unless the hole is before the first slot of that entry, where searches for it
        # begin.
        while True:
            at = at + 1 if at + 1 < slots else 0
            if index[at] == 0:
                break
            home = share(mix(meta[row_in(d, at) * words]), slots)
            if (at - home + slots) % slots >= (at - hole + slots) % slots:
                index[hole] = index[at]
                hole = at
        index[hole] = 0
        # Free rows are a linked list: the first word of each is the next free row.
        meta[row * words] = d[f.FREE]
        meta[row * words + 1] = 0
        d[f.FREE] = row
        d[f.LIVE] -= 1
        d[f.EVICTED] += 1
    add(directory.ctypes.data + shape[SHARDS] * f.FIELDS * WORD, -len(rows))


@compiled
def read_keys(d: Words, words: int, rows: Words) -> Matrix[np.int64]:
    """Returns the keys of rows of a locked shard, [n, 2]; second words are 0 where keys have one word."""
    meta = words_at(d[f.META], d[f.CAPACITY] * words)
    out = np.zeros((len(rows), 2), np.int64)
    for i in range(len(rows)):
        out[i, 0] = meta[rows[i] * words]
        if words == 3:
            out[i, 1] = meta[rows[i] * words + 2]
    return out


@compiled
def rows_to_make(
    directory: Matrix[np.int64],
    shape: Words,
    reals: NDArray[np.float64],
    keys: Words,
    checks: Words,
    step: int,
    looks_up: bool,
) -> tuple[int, int]:
    """Returns the maximum number of rows that a call makes, and the index of the key of the first one.

    No other thread may make or remove rows.

    Args:
      directory: the table's directory.
      shape: the table's integer parameters.
      reals: the table's real parameters.
      keys: the keys of the call.
      checks: the second words of the keys.
      step: the step of the call.
      looks_up: whether keys are admitted as in a lookup for training; otherwise all are.
    """
    # The result is an upper bound, because equal keys are counted more than once.
    words, count, first = shape[WORDS], 0, -1
    for i in range(len(keys)):
        key, hashed = keys[i], mix(keys[i])
        check = checks[i] if words == 3 else 0
        d = directory[shard_of(hashed, shape[SHARDS])]
        if find(d, words, hashed, key, check) >= 0:
            continue
        if looks_up and shape[ADMISSION] == 1:
            seen = sightings_of(d, key ^ np.int64(mix(check)) if words == 3 else key)
            if seen + 1 < shape[SIGHTINGS]:
                continue
        elif looks_up and shape[ADMISSION] == 2 and not admitted_by_chance(shape[SEED], key, step, reals[CHANCE]):
            continue
        count += 1
        if first < 0:
            first = i
    return count, first


@compiled
def save_rows(
    d: Words, shape: Words, first: int, last: int, meta_out: Matrix[np.int64], values_out: Matrix[np.float32]
) -> tuple[int, int]:
    """Copies rows that are still to be saved, from row ``first`` on. The shard must be locked.

    Args:
      d: the shard's entry.
      shape: the table's integer parameters.
      first: the first row.
      last: the row after the last one.
      meta_out: filled with the rows' words, [n, words].
      values_out: filled with the rows' values, [n, width].

    Returns:
      The number of copied rows, at most n; and the row at which to continue.
    """
    words, width = shape[WORDS], shape[WIDTH]
    meta = words_at(d[f.META], d[f.CAPACITY] * words)
    count = 0
    row = first
    while row < last and count < len(meta_out):
        use = meta[row * words + 1]
        if count_in(use) > 0 and (use & f.SAVED_BIT) != d[f.PARITY]:
            if d[f.SAVING] == f.ALL or (use & f.CHANGED_BIT) != 0:
                values = record(d, row, width)
                for i in range(words):
                    meta_out[count, i] = meta[row * words + i]
                for j in range(width):
                    values_out[count, j] = values[j]
                count += 1
            meta[row * words + 1] = (use ^ f.SAVED_BIT) & ~np.int64(f.CHANGED_BIT)
        row += 1
    return count, row


@compiled
def read_log(d: Words, shape: Words, first: int, meta_out: Matrix[np.int64], values_out: Matrix[np.float32]) -> int:
    """Copies records of the log from number ``first`` on; returns how many. The shard must be locked."""
    words, width = shape[WORDS], shape[WIDTH]
    size = record_bytes(words, width)
    count = min(len(meta_out), d[f.LOG_USED] - first)
    for k in range(count):
        at = d[f.LOG] + (first + k) * size
        meta = words_at(at, words)
        values = reals_at(at + words * WORD, width)
        for i in range(words):
            meta_out[k, i] = meta[i]
        for j in range(width):
            values_out[k, j] = values[j]
    return count


@compiled
def read_meta(d: Words, words: int, rows: int) -> Matrix[np.int64]:
    """Returns a copy of the words of a locked shard's first rows, [rows, words]."""
    out = np.empty((rows, words), np.int64)
    meta = words_at(d[f.META], rows * words)
    for i in range(rows):
        for j in range(words):
            out[i, j] = meta[i * words + j]
    return out


@compiled
def read_uses(d: Words, words: int, rows: Words) -> Words:
    """Returns the use words of rows of a locked shard, [n]."""
    meta = words_at(d[f.META], d[f.CAPACITY] * words)
    out = np.empty(len(rows), np.int64)
    for i in range(len(rows)):
        out[i] = meta[rows[i] * words + 1]
    return out


@compiled
def read_gone(d: Words) -> Matrix[np.int64]:
    """Returns a copy of the removed keys, [n, 2]."""
    count = d[f.REMOVED_USED]
    out = np.empty((count, 2), np.int64)
    gone = words_at(d[f.REMOVED], 2 * count)
    for i in range(count):
        out[i, 0] = gone[2 * i]
        out[i, 1] = gone[2 * i + 1]
    return out


@compiled
def rows_of(directory: Matrix[np.int64], s: int, shape: Words, keys: Words, checks: Words) -> Words:
    """Returns the rows of keys in a locked shard; missing keys are skipped."""
    rows = np.empty(len(keys), np.int64)
    count = 0
    words = shape[WORDS]
    d = directory[s]
    for i in range(len(keys)):
        hashed = mix(keys[i])
        if shard_of(hashed, shape[SHARDS]) == s:
            at = find(d, words, hashed, keys[i], checks[i] if words == 3 else 0)
            if at >= 0:
                rows[count] = row_in(d, at)
                count += 1
    return rows[:count].copy()
