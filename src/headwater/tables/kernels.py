"""What happens to rows, compiled: finding and making them, reading, updating, removing, saving.

A call gets keys that are sorted by shard (`by_shard`). It takes the shards' locks one at a time, and passes over a
shard that another thread uses; each shard's ``cursor`` says how far it came, so that the same call can be made again.
It never waits, and never asks for memory: it says what it needs instead.

Rows are read and updated for several tables in one call: a call's own price is that of the rows of a small batch. Such
a call gets addresses, ``[tables, HANDLE_SIZE]``, and answers what one of the tables needs, see `needed`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from headwater.tables import fields as f
from headwater.tables.compiled import (
    add,
    compiled,
    copy_numbers,
    doubles_at,
    grid_at,
    inlined,
    numbers_at,
    prefetch,
    reals_at,
    try_lock,
    unlock,
    words_at,
)
from headwater.tables.hashing import U64, Reals, Words, mix, share
from headwater.tables.initializers import fill_row
from headwater.tables.optimizers import catch_up, update_row
from headwater.tables.policies import admitted_by_chance, promoted

#: Positions in ``shape``, whole numbers that describe a table.
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

#: Positions in ``reals``, real numbers that describe a table.
INITIAL_A: Final = 0
INITIAL_B: Final = 1
CHANCE: Final = 2
SLOTS: Final = 4

#: Positions in a table's handle: addresses of its directory and of what describes it; rows' step of a call.
DIRECTORY: Final = 0
SHAPE: Final = 1
REALS: Final = 2
HYPER: Final = 3
RATES: Final = 4
STEP: Final = 5
HANDLE_SIZE: Final = 6

_WORD: Final = 8
_ROW_WORD_BYTES: Final = 4
_LINE_BYTES: Final = 64
#: Rows whose memory is brought near at a time: few enough that they stay near.
_NEAR: Final = 32
#: How many slots after that of a row that goes are likely to be looked at.
_AFTER: Final = 6


@inlined
def shard_of(hashed: int, shards: int) -> Any:
    """Which shard a key is in, by the high bits of its hash; slots within the shard go by the low half."""
    return np.int64(((U64(hashed) >> U64(40)) * U64(shards)) >> U64(24))


@compiled
def by_shard(keys: Words, ends: Words, shards: Words) -> tuple[Words, Words, Words]:
    """The places of several tables' keys, those of each table sorted by shard.

    Args:
      keys: of all tables, those of one table after those of the one before, [n].
      ends: where the keys of each table end, [tables].
      shards: how many shards each table has, [tables].

    Returns:
      The places, [n], and where those of each shard begin and end, all shards of one table after those of the other.
    """
    n = len(keys)
    of = np.empty(n, np.int16)
    cursor = np.empty(np.sum(shards), np.int64)
    stop = np.zeros(len(cursor), np.int64)
    order = np.empty(n, np.int64)
    first, slot = 0, 0
    for t in range(len(ends)):
        for i in range(first, ends[t]):
            s = shard_of(mix(keys[i]), shards[t])
            of[i] = s
            stop[slot + s] += 1
        total = first
        for s in range(slot, slot + shards[t]):
            cursor[s] = total
            total += stop[s]
            stop[s] = cursor[s]
        for i in range(first, ends[t]):
            order[stop[slot + of[i]]] = i
            stop[slot + of[i]] += 1
        first, slot = ends[t], slot + shards[t]
    return order, cursor, stop


@inlined
def _tag(hashed: int, shift: int) -> int:
    return (U64(hashed) >> U64(8)) & U64((1 << (32 - shift)) - 1)


@inlined
def find(d: Words, words: int, hashed: int, key: int, check: int) -> int:
    """The slot of a key in a shard, or -1 - the slot where it would go."""
    slots = d[f.SLOTS]
    shift = d[f.SHIFT]
    index = numbers_at(d[f.INDEX], slots)
    meta = words_at(d[f.META], d[f.CAPACITY] * words)
    tag = _tag(hashed, shift)
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


@inlined
def row_in(d: Any, at: int) -> Any:
    """The row that a slot names."""
    index = numbers_at(d[f.INDEX], d[f.SLOTS])
    return np.int64(U64(index[at]) & U64((1 << d[f.SHIFT]) - 1)) - 1


@inlined
def record(d: Any, row: int, width: int) -> Any:
    """A row's record: its values and its optimizer's state."""
    size = width * _ROW_WORD_BYTES
    if row < d[f.HOT]:
        return reals_at(d[f.VALUES] + row * size, width)
    return reals_at(d[f.COLD] + (row - d[f.HOT]) * size, width)


@inlined
def bring_near(d: Words, words: int, width: int, keys: Words, order: Words, first: int, last: int) -> None:
    """Has the memory of a shard's keys ``order[first:last]`` brought near, all of it at the same time.

    A row is in three places: the index, the words, the record. Without this each is waited for, one after the other.
    """
    slots, shift, size = d[f.SLOTS], d[f.SHIFT], width * _ROW_WORD_BYTES
    for c in range(first, last):
        prefetch(d[f.INDEX] + share(mix(keys[order[c]]), slots) * _ROW_WORD_BYTES)
    index = numbers_at(d[f.INDEX], slots)
    mask = U64((1 << shift) - 1)
    for c in range(first, last):
        hashed = mix(keys[order[c]])
        tag = _tag(hashed, shift)
        at = share(hashed, slots)
        while index[at] != 0 and (U64(index[at]) >> U64(shift)) != tag:
            at += 1
            if at == slots:
                at = 0
        row = np.int64(U64(index[at]) & mask) - 1
        if 0 <= row < d[f.HOT]:
            prefetch(d[f.META] + row * words * _WORD)
            for place in range(0, size, _LINE_BYTES):
                prefetch(d[f.VALUES] + row * size + place)


@inlined
def record_bytes(words: int, width: int) -> int:
    """The size of a record in the log: the row's words, then its values, in whole words."""
    return words * _WORD + (width * _ROW_WORD_BYTES + 7) // 8 * 8


@inlined
def keep_old(d: Words, row: int, words: int, width: int) -> None:
    """Before a row changes or goes: puts it into the log if it is still to be saved. There must be room."""
    meta = words_at(d[f.META], d[f.CAPACITY] * words)
    use = meta[row * words + 1]
    if d[f.SAVING] == 0 or (use & f.SAVED_BIT) == d[f.PARITY]:
        return
    meta[row * words + 1] = use ^ f.SAVED_BIT
    if d[f.SAVING] == f.CHANGED and (use & f.CHANGED_BIT) == 0:
        return
    at = d[f.LOG] + d[f.LOG_USED] * record_bytes(words, width)
    to = words_at(at, words)
    for i in range(words):
        to[i] = meta[row * words + i]
    values = reals_at(at + words * _WORD, width)
    source = record(d, row, width)
    for j in range(width):
        values[j] = source[j]
    d[f.LOG_USED] += 1


@inlined
def use_of(count: int, step: int, bits: int) -> int:
    """The word of a row that was used ``count`` times, last at ``step``."""
    return (step << f.STEP_SHIFT) | (min(count, f.COUNT_MASK) << f.COUNT_SHIFT) | bits


@inlined
def _count(use: int) -> int:
    return (use >> f.COUNT_SHIFT) & f.COUNT_MASK


@inlined
def _step(use: int) -> int:
    return (use >> f.STEP_SHIFT) & 0xFFFFFFFF


@inlined
def _has_room(d: Words) -> bool:
    """Whether a row may be made: there is memory for it, and the index stays below four fifths."""
    return (d[f.FREE] >= 0 or d[f.ROWS] < d[f.CAPACITY]) and 5 * (d[f.LIVE] + 1) <= 4 * d[f.SLOTS]


@inlined
def _take_row(d: Words, words: int) -> int:
    row = d[f.FREE]
    if row >= 0:
        d[f.FREE] = words_at(d[f.META], d[f.CAPACITY] * words)[row * words]
    else:
        row = d[f.ROWS]
        d[f.ROWS] += 1
    d[f.LIVE] += 1
    return row


@inlined
def _make(d: Words, at: int, hashed: int, key: int, check: int, step: int, shape: Any, reals: Reals) -> int:
    """Makes the row of a key at a free slot; as new, not yet used."""
    words, width, dim = shape[WORDS], shape[WIDTH], shape[DIM]
    row = _take_row(d, words)
    shift = d[f.SHIFT]
    numbers_at(d[f.INDEX], d[f.SLOTS])[at] = np.uint32((_tag(hashed, shift) << U64(shift)) | U64(row + 1))
    meta = words_at(d[f.META], d[f.CAPACITY] * words)
    meta[row * words] = key
    meta[row * words + 1] = use_of(1, step, d[f.PARITY] | f.CHANGED_BIT)
    if words == 3:
        meta[row * words + 2] = check
    values = record(d, row, width)
    fill_row(values, 0, dim, shape[INITIALIZER], reals[INITIAL_A], reals[INITIAL_B], shape[SEED], key, check)
    for j in range(dim, width):
        values[j] = reals[SLOTS + j // dim - 1]
    d[f.MADE] += 1
    return row


@inlined
def sighted(d: Words, key: int) -> int:
    """Counts a sighting of a key that has no row; how many there were."""
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


@inlined
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


@inlined
def _swap(d: Words, row: int, other: int, words: int, width: int) -> None:
    """Exchanges two rows' places."""
    keep_old(d, row, words, width)
    keep_old(d, other, words, width)
    meta = words_at(d[f.META], d[f.CAPACITY] * words)
    index = numbers_at(d[f.INDEX], d[f.SLOTS])
    first = _slot_of(d, row, words)
    second = _slot_of(d, other, words)
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


@inlined
def _slot_of(d: Words, row: int, words: int) -> int:
    meta = words_at(d[f.META], d[f.CAPACITY] * words)
    key = meta[row * words]
    check = meta[row * words + 2] if words == 3 else 0
    return find(d, words, mix(key), key, check)


@inlined
def _promote(d: Words, row: int, used_before: int, words: int, width: int) -> int:
    """Brings a row from the file into memory if another one there is used less; where the row is then."""
    meta = words_at(d[f.META], d[f.CAPACITY] * words)
    hot = min(d[f.HOT], d[f.ROWS])
    chosen = -1
    least = used_before
    for _ in range(min(8, hot)):
        d[f.HAND] = d[f.HAND] + 1 if d[f.HAND] + 1 < hot else 0
        use = meta[d[f.HAND] * words + 1]
        if _count(use) > 0 and promoted(least, _step(use)):
            chosen = d[f.HAND]
            least = _step(use)
    if chosen < 0:
        return row
    _swap(d, row, chosen, words, width)
    return chosen


@inlined
def _log_has_room(d: Words) -> bool:
    return d[f.SAVING] == 0 or d[f.LOG_USED] + 3 <= d[f.LOG_ROOM]


@inlined
def _described(handle: Words) -> Any:
    """What describes a handle's table: its shape, its real numbers, its optimizer's, and rates by step."""
    shape = words_at(handle[SHAPE], SHAPE_SIZE)
    return (
        shape,
        doubles_at(handle[REALS], SLOTS + shape[WIDTH] // shape[DIM]),
        doubles_at(handle[HYPER], 8),
        doubles_at(handle[RATES], 4096),
    )


@inlined
def _look_up_in(
    handle: Words,
    keys: Words,
    checks: Words,
    order: Words,
    cursor: Words,
    stop: Words,
    first: int,
    training: bool,
    out: int,
) -> int:
    base, step = handle[DIRECTORY], handle[STEP]
    shape, reals, hyper, rates = _described(handle)
    words, width, dim = shape[WORDS], shape[WIDTH], shape[DIM]
    exact = shape[EXACT] != 0
    total = base + shape[SHARDS] * f.FIELDS * _WORD
    result = f.DONE
    for s in range(shape[SHARDS]):
        if cursor[s] == stop[s]:
            continue
        lock = base + s * f.FIELDS * _WORD
        if not try_lock(lock):
            result = max(result, f.BUSY)
            continue
        d = words_at(lock, f.FIELDS)
        near = cursor[s]
        while cursor[s] < stop[s]:
            if cursor[s] == near:
                near = min(near + _NEAR, stop[s])
                bring_near(d, words, width, keys, order, cursor[s], near)
            i = order[cursor[s]]
            key = keys[i]
            check = checks[i] if words == 3 else 0
            hashed = mix(key)
            if not _log_has_room(d):
                result = max(result, f.LOG_FULL)
                break
            at = find(d, words, hashed, key, check)
            row = -1
            if at >= 0:
                row = row_in(d, at)
                if training:
                    meta = words_at(d[f.META], d[f.CAPACITY] * words)
                    use = meta[row * words + 1]
                    if exact and _step(use) < step:
                        keep_old(d, row, words, width)
                        use = meta[row * words + 1] | f.CHANGED_BIT
                        catch_up(record(d, row, width), 0, dim, shape[OPTIMIZER], hyper, rates, _step(use), step)
                    meta[row * words + 1] = use_of(_count(use) + 1, step, use & 3)
                    if row >= d[f.HOT]:
                        d[f.MISSES] += 1
                        row = _promote(d, row, _step(use), words, width)
                    else:
                        d[f.HITS] += 1
            elif training:
                if not _has_room(d):
                    result = max(result, f.GROW)
                    break
                if shape[ADMISSION] == 1:
                    admitted = sighted(d, key ^ np.int64(mix(check)) if words == 3 else key) >= shape[SIGHTINGS]
                elif shape[ADMISSION] == 2:
                    admitted = admitted_by_chance(shape[SEED], key, step, reals[CHANCE])
                else:
                    admitted = True
                if admitted:
                    if add(total, 1) >= shape[LIMIT]:
                        add(total, -1)
                        result = max(result, f.FULL)
                        break
                    row = _make(d, -1 - at, hashed, key, check, step, shape, reals)
                else:
                    d[f.REFUSED] += 1
            if row >= 0:
                values = record(d, row, width)
                if exact and not training:
                    values = values.copy()
                    use = words_at(d[f.META], d[f.CAPACITY] * words)[row * words + 1]
                    catch_up(values, 0, dim, shape[OPTIMIZER], hyper, rates, _step(use), step)
                copy_numbers(out + (i - first) * dim * _ROW_WORD_BYTES, values.ctypes.data, dim)
            else:
                line = reals_at(out + (i - first) * dim * _ROW_WORD_BYTES, dim)
                fill_row(line, 0, dim, shape[INITIALIZER], reals[INITIAL_A], reals[INITIAL_B], shape[SEED], key, check)
            cursor[s] += 1
        unlock(lock)
    return result


@inlined
def _update_in(
    handle: Words,
    keys: Words,
    checks: Words,
    order: Words,
    cursor: Words,
    stop: Words,
    first: int,
    gradients: int,
    count: int,
) -> int:
    base, step = handle[DIRECTORY], handle[STEP]
    shape, reals, hyper, rates = _described(handle)
    words, width, dim = shape[WORDS], shape[WIDTH], shape[DIM]
    slopes = grid_at(gradients, count, dim)
    exact = shape[EXACT] != 0
    total = base + shape[SHARDS] * f.FIELDS * _WORD
    rate = rates[step & 4095]
    result = f.DONE
    for s in range(shape[SHARDS]):
        if cursor[s] == stop[s]:
            continue
        lock = base + s * f.FIELDS * _WORD
        if not try_lock(lock):
            result = max(result, f.BUSY)
            continue
        d = words_at(lock, f.FIELDS)
        near = cursor[s]
        while cursor[s] < stop[s]:
            if cursor[s] == near:
                near = min(near + _NEAR, stop[s])
                bring_near(d, words, width, keys, order, cursor[s], near)
            i = order[cursor[s]]
            key = keys[i]
            check = checks[i] if words == 3 else 0
            hashed = mix(key)
            if not _log_has_room(d):
                result = max(result, f.LOG_FULL)
                break
            at = find(d, words, hashed, key, check)
            if at < 0 and shape[ADMISSION] != 0:
                d[f.DROPPED] += 1
                cursor[s] += 1
                continue
            if at < 0:
                if not _has_room(d):
                    result = max(result, f.GROW)
                    break
                if add(total, 1) >= shape[LIMIT]:
                    add(total, -1)
                    result = max(result, f.FULL)
                    break
                row = _make(d, -1 - at, hashed, key, check, step - 1, shape, reals)
            else:
                row = row_in(d, at)
            keep_old(d, row, words, width)
            values = record(d, row, width)
            meta = words_at(d[f.META], d[f.CAPACITY] * words)
            use = meta[row * words + 1]
            if exact:
                catch_up(values, 0, dim, shape[OPTIMIZER], hyper, rates, _step(use), step - 1)
            update_row(values, 0, dim, shape[OPTIMIZER], hyper, rate, slopes, i - first)
            meta[row * words + 1] = use_of(_count(use), max(step, _step(use)), (use & 1) | f.CHANGED_BIT)
            cursor[s] += 1
        unlock(lock)
    return result


def needed(result: int) -> tuple[int, int]:
    """What a call that could not finish needs, `f.BUSY` and so on, and which table does."""
    return result & 255, result >> 8


@compiled
def look_up(
    handles: Words,
    keys: Words,
    checks: Words,
    ends: Words,
    order: Words,
    cursor: Words,
    stop: Words,
    training: bool,
    out: Reals,
) -> int:
    """Reads rows of several tables into ``out``, one after the other; when ``training``, makes those of keys that have
    none and are admitted. ``ends`` says where the keys of each table end; see `by_shard`."""
    result, first, slot, at = 0, 0, 0, np.int64(out.ctypes.data)
    for t in range(len(ends)):
        handle = handles[t]
        shape = words_at(handle[SHAPE], SHAPE_SIZE)
        to = slot + shape[SHARDS]
        status = _look_up_in(handle, keys, checks, order, cursor[slot:to], stop[slot:to], first, training, at)
        if status > result & 255:
            result = status | t << 8
        at += (ends[t] - first) * shape[DIM] * _ROW_WORD_BYTES
        first, slot = ends[t], to
    return result


@compiled
def update(
    handles: Words,
    keys: Words,
    checks: Words,
    ends: Words,
    order: Words,
    cursor: Words,
    stop: Words,
    gradients: Reals,
) -> int:
    """Makes one update of several tables, of rows of distinct keys: the handles say the number of each table's update,
    from 1. ``gradients`` are those of all keys, one after the other. A key that was never admitted is passed over."""
    result, first, slot, at = 0, 0, 0, np.int64(gradients.ctypes.data)
    for t in range(len(ends)):
        handle = handles[t]
        shape = words_at(handle[SHAPE], SHAPE_SIZE)
        to = slot + shape[SHARDS]
        status = _update_in(handle, keys, checks, order, cursor[slot:to], stop[slot:to], first, at, ends[t] - first)
        if status > result & 255:
            result = status | t << 8
        at += (ends[t] - first) * shape[DIM] * _ROW_WORD_BYTES
        first, slot = ends[t], to
    return result


@compiled
def read_records(
    directory: Words,
    shape: Words,
    keys: Words,
    checks: Words,
    order: Words,
    cursor: Words,
    stop: Words,
    out: Reals,
    known: Words,
) -> int:
    """Copies whole records (values and state) of keys into ``out`` [n, width]; ``known`` [n] says which exist."""
    words, width = shape[WORDS], shape[WIDTH]
    base = directory.ctypes.data
    result = f.DONE
    for s in range(shape[SHARDS]):
        if cursor[s] == stop[s]:
            continue
        lock = base + s * f.FIELDS * _WORD
        if not try_lock(lock):
            result = max(result, f.BUSY)
            continue
        d = directory[s]
        while cursor[s] < stop[s]:
            i = order[cursor[s]]
            at = find(d, words, mix(keys[i]), keys[i], checks[i] if words == 3 else 0)
            known[i] = at >= 0
            if at >= 0:
                values = record(d, row_in(d, at), width)
                for j in range(width):
                    out[i, j] = values[j]
            cursor[s] += 1
        unlock(lock)
    return result


@compiled
def write_records(
    directory: Words,
    shape: Words,
    reals: Reals,
    keys: Words,
    checks: Words,
    order: Words,
    cursor: Words,
    stop: Words,
    records: Reals,
    uses: Words,
    step: int,
) -> int:
    """Stores records [n, width]; makes rows that do not exist. ``uses`` [n] are the rows' uses, or [0]: as before."""
    words, width = shape[WORDS], shape[WIDTH]
    base = directory.ctypes.data
    total = base + shape[SHARDS] * f.FIELDS * _WORD
    result = f.DONE
    for s in range(shape[SHARDS]):
        if cursor[s] == stop[s]:
            continue
        lock = base + s * f.FIELDS * _WORD
        if not try_lock(lock):
            result = max(result, f.BUSY)
            continue
        d = directory[s]
        near = cursor[s]
        while cursor[s] < stop[s]:
            if cursor[s] == near:
                near = min(near + _NEAR, stop[s])
                bring_near(d, words, width, keys, order, cursor[s], near)
            i = order[cursor[s]]
            key = keys[i]
            check = checks[i] if words == 3 else 0
            hashed = mix(key)
            if not _log_has_room(d):
                result = max(result, f.LOG_FULL)
                break
            at = find(d, words, hashed, key, check)
            if at < 0:
                if not _has_room(d):
                    result = max(result, f.GROW)
                    break
                if add(total, 1) >= shape[LIMIT]:
                    add(total, -1)
                    result = max(result, f.FULL)
                    break
                row = _make(d, -1 - at, hashed, key, check, step, shape, reals)
            else:
                row = row_in(d, at)
            keep_old(d, row, words, width)
            meta = words_at(d[f.META], d[f.CAPACITY] * words)
            use = meta[row * words + 1]
            if len(uses) > 0:
                use = (uses[i] & ~np.int64(1)) | (use & 1)
            meta[row * words + 1] = use | f.CHANGED_BIT
            values = record(d, row, width)
            for j in range(width):
                values[j] = records[i, j]
            cursor[s] += 1
        unlock(lock)
    return result


@compiled
def lock_shard(directory: Words, s: int) -> bool:
    """Takes a shard's lock; whether it was free."""
    return try_lock(directory.ctypes.data + s * f.FIELDS * _WORD)


@compiled
def unlock_shard(directory: Words, s: int) -> None:
    """Gives a shard's lock back."""
    unlock(directory.ctypes.data + s * f.FIELDS * _WORD)


@compiled
def reindex(d: Words, words: int, old: int, old_slots: int, old_shift: int) -> None:
    """Fills a new, empty index from the old one. The shard is locked."""
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
            while index[at] != 0:
                at = at + 1 if at + 1 < slots else 0
            index[at] = np.uint32((_tag(hashed, shift) << U64(shift)) | U64(row + 1))


@compiled
def remove(directory: Words, s: int, shape: Words, rows: Words) -> None:
    """Frees rows of a shard. It is locked, its log and its list of gone keys have room for all of them."""
    words, width = shape[WORDS], shape[WIDTH]
    d = directory[s]
    meta = words_at(d[f.META], d[f.CAPACITY] * words)
    slots = d[f.SLOTS]
    index = numbers_at(d[f.INDEX], slots)
    mask = U64((1 << d[f.SHIFT]) - 1)
    for row in rows:
        prefetch(d[f.META] + row * words * _WORD)
    for row in rows:
        prefetch(d[f.INDEX] + share(mix(meta[row * words]), slots) * _ROW_WORD_BYTES)
    for row in rows:  # what stands after a row's slot is looked at, too
        at = share(mix(meta[row * words]), slots)
        for _ in range(_AFTER):
            if index[at] == 0:
                break
            prefetch(d[f.META] + (np.int64(U64(index[at]) & mask) - 1) * words * _WORD)
            at = at + 1 if at + 1 < slots else 0
    for row in rows:
        keep_old(d, row, words, width)
        if d[f.GONE] != 0:
            gone = words_at(d[f.GONE] + d[f.GONE_USED] * 2 * _WORD, 2)
            gone[0] = meta[row * words]
            gone[1] = meta[row * words + 2] if words == 3 else 0
            d[f.GONE_USED] += 1
        hole = _slot_of(d, row, words)
        at = hole
        while True:  # what stands after the hole moves into it, unless that is before where it is looked for first
            at = at + 1 if at + 1 < slots else 0
            if index[at] == 0:
                break
            home = share(mix(meta[row_in(d, at) * words]), slots)
            if (at - home + slots) % slots >= (at - hole + slots) % slots:
                index[hole] = index[at]
                hole = at
        index[hole] = 0
        meta[row * words] = d[f.FREE]
        meta[row * words + 1] = 0
        d[f.FREE] = row
        d[f.LIVE] -= 1
        d[f.EVICTED] += 1
    add(directory.ctypes.data + shape[SHARDS] * f.FIELDS * _WORD, -len(rows))


@compiled
def save_rows(d: Words, shape: Words, first: int, last: int, meta_out: Words, values_out: Reals) -> tuple[int, int]:
    """Copies rows that are still to be saved, from row ``first`` on. The shard is locked.

    Args:
      d: the shard's entry.
      shape: of the table.
      first: row to begin with.
      last: row after the last.
      meta_out: [n, words].
      values_out: [n, width].

    Returns:
      How many were copied, at most n; the row to go on with.
    """
    words, width = shape[WORDS], shape[WIDTH]
    meta = words_at(d[f.META], d[f.CAPACITY] * words)
    count = 0
    row = first
    while row < last and count < len(meta_out):
        use = meta[row * words + 1]
        if _count(use) > 0 and (use & f.SAVED_BIT) != d[f.PARITY]:
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
def read_log(d: Words, shape: Words, first: int, meta_out: Words, values_out: Reals) -> int:
    """Copies records of the log, from number ``first`` on; how many. The shard is locked."""
    words, width = shape[WORDS], shape[WIDTH]
    size = record_bytes(words, width)
    count = min(len(meta_out), d[f.LOG_USED] - first)
    for k in range(count):
        at = d[f.LOG] + (first + k) * size
        meta = words_at(at, words)
        values = reals_at(at + words * _WORD, width)
        for i in range(words):
            meta_out[k, i] = meta[i]
        for j in range(width):
            values_out[k, j] = values[j]
    return count


@compiled
def all_finite(gradients: Reals) -> int:
    """The first row with a number that is not finite, or -1."""
    for i in range(gradients.shape[0]):
        total = np.float32(0.0)
        for j in range(gradients.shape[1]):
            total += gradients[i, j] * np.float32(0.0)
        if total != 0.0:
            return i
    return -1


@compiled
def read_meta(d: Words, words: int, rows: int) -> Words:
    """Copies the words of a locked shard's first rows, [rows, words]."""
    out = np.empty((rows, words), np.int64)
    meta = words_at(d[f.META], rows * words)
    for i in range(rows):
        for j in range(words):
            out[i, j] = meta[i * words + j]
    return out


@compiled
def read_uses(d: Words, words: int, rows: Words) -> Words:
    """The uses of rows of a locked shard, [n]."""
    meta = words_at(d[f.META], d[f.CAPACITY] * words)
    out = np.empty(len(rows), np.int64)
    for i in range(len(rows)):
        out[i] = meta[rows[i] * words + 1]
    return out


@compiled
def read_gone(d: Words) -> Words:
    """Copies the keys that went, [n, 2]."""
    count = d[f.GONE_USED]
    out = np.empty((count, 2), np.int64)
    gone = words_at(d[f.GONE], 2 * count)
    for i in range(count):
        out[i, 0] = gone[2 * i]
        out[i, 1] = gone[2 * i + 1]
    return out


@compiled
def rows_of(directory: Words, s: int, shape: Words, keys: Words, checks: Words) -> Words:
    """The rows of a locked shard that belong to keys; those that it does not have are left out."""
    found = np.empty(len(keys), np.int64)
    count = 0
    words = shape[WORDS]
    d = directory[s]
    for i in range(len(keys)):
        hashed = mix(keys[i])
        if shard_of(hashed, shape[SHARDS]) == s:
            at = find(d, words, hashed, keys[i], checks[i] if words == 3 else 0)
            if at >= 0:
                found[count] = row_in(d, at)
                count += 1
    return found[:count].copy()
