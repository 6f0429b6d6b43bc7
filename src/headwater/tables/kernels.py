"""Compiled kernels that read, make and update the rows of many keys.

The keys of a call are sorted by shard (`by_shard`). The call acquires the locks of the shards one at a time, and skips
a shard that another thread uses. It neither waits nor allocates memory: if a lock is held or memory is missing, it
returns a code for that need (see `needed`). The caller satisfies the need and repeats the same call, which continues at
the position that ``cursor`` has for each shard.

One call reads or updates rows of several tables, because the overhead of a call is as large as the work for a small
batch. Such a call gets the handles of the tables, ``[tables, HANDLE_SIZE]`` (see `headwater.tables.row_access`), and
returns the need of one of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headwater.tables import fields as f
from headwater.tables.compiled import (
    Matrix,
    Reals,
    Words,
    add,
    compiled,
    copy_numbers,
    grid_at,
    reals_at,
    try_lock,
    unlock,
    words_at,
)
from headwater.tables.hashing import mix
from headwater.tables.initializers import fill_row
from headwater.tables.optimizers import catch_up, update_row
from headwater.tables.policies import admitted_by_chance
from headwater.tables.row_access import (
    ADMISSION,
    CHANCE,
    DIM,
    DIRECTORY,
    EXACT,
    INITIAL_A,
    INITIAL_B,
    INITIALIZER,
    LIMIT,
    OPTIMIZER,
    PREFETCH_ROWS,
    ROW_WORD_BYTES,
    SEED,
    SHAPE,
    SHAPE_SIZE,
    SHARDS,
    SIGHTINGS,
    STEP,
    WIDTH,
    WORD,
    WORDS,
    bring_near,
    count_in,
    count_sighting,
    find,
    has_room,
    keep_old,
    log_has_room,
    make_row,
    parameters_of,
    promote,
    record,
    row_in,
    shard_of,
    step_in,
    use_of,
)


@compiled
def by_shard(keys: Words, ends: Words, shards: Words) -> tuple[Words, Words, Words]:
    """Sorts the keys of several tables by table and shard.

    Args:
      keys: the keys of all tables, table by table, [n].
      ends: the end of each table's keys, [tables].
      shards: the number of shards of each table, [tables].

    Returns:
      The sorted indices of the keys, [n], and the start and end of each shard in them, table by table.
    """
    # A counting sort: count the keys of each shard, compute the start of each shard, then place the keys. `stop` first
    # holds the counts, then the position of each shard's next key, and finally the end of each shard.
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


@compiled
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
    shape, reals, hyper, rates = parameters_of(handle)
    words, width, dim = shape[WORDS], shape[WIDTH], shape[DIM]
    exact = shape[EXACT] != 0
    total = base + shape[SHARDS] * f.FIELDS * WORD
    result = f.DONE
    for s in range(shape[SHARDS]):
        if cursor[s] == stop[s]:
            continue
        lock = base + s * f.FIELDS * WORD
        if not try_lock(lock):
            result = max(result, f.BUSY)
            continue
        d = words_at(lock, f.FIELDS)
        near = cursor[s]
        while cursor[s] < stop[s]:
            if cursor[s] == near:
                near = min(near + PREFETCH_ROWS, stop[s])
                bring_near(d, words, width, keys, order, cursor[s], near)
            i = order[cursor[s]]
            key = keys[i]
            check = checks[i] if words == 3 else 0
            hashed = mix(key)
            # Check this before any change, so that the key can be processed again after the log has grown.
            if not log_has_room(d):
                result = max(result, f.LOG_FULL)
                break
            at = find(d, words, hashed, key, check)
            row = -1
            if at >= 0:
                row = row_in(d, at)
                if training:
                    meta = words_at(d[f.META], d[f.CAPACITY] * words)
                    keep_old(d, row, words, width)  # copy the row before its use is counted, for a running save
                    use = meta[row * words + 1]
                    # Applying missed steps changes the row, so the next delta must include it.
                    if exact and step_in(use) < step:
                        use |= f.CHANGED_BIT
                        catch_up(record(d, row, width), 0, dim, shape[OPTIMIZER], hyper, rates, step_in(use), step)
                    meta[row * words + 1] = use_of(count_in(use) + 1, step, use & 3)
                    if row >= d[f.HOT]:
                        d[f.MISSES] += 1
                        row = promote(d, row, step_in(use), words, width)
                    else:
                        d[f.HITS] += 1
            elif training:
                if not has_room(d):
                    result = max(result, f.GROW)
                    break
                # Sightings are counted by one word, so combine the two words of a string's key.
                if shape[ADMISSION] == 1:
                    admitted = count_sighting(d, key ^ np.int64(mix(check)) if words == 3 else key) >= shape[SIGHTINGS]
                elif shape[ADMISSION] == 2:
                    admitted = admitted_by_chance(shape[SEED], key, step, reals[CHANCE])
                else:
                    admitted = True
                if admitted:
                    # Count the row first and undo that at the limit: other threads make rows in other shards meanwhile.
                    if add(total, 1) >= shape[LIMIT]:
                        add(total, -1)
                        result = max(result, f.FULL)
                        break
                    row = make_row(d, -1 - at, hashed, key, check, step, shape, reals)
                else:
                    d[f.REFUSED] += 1
            if row >= 0:
                values = record(d, row, width)
                # A lookup that is not for training returns the same values, but must not change the table.
                if exact and not training:
                    values = values.copy()
                    use = words_at(d[f.META], d[f.CAPACITY] * words)[row * words + 1]
                    catch_up(values, 0, dim, shape[OPTIMIZER], hyper, rates, step_in(use), step)
                copy_numbers(out + (i - first) * dim * ROW_WORD_BYTES, values.ctypes.data, dim)
            else:
                line = reals_at(out + (i - first) * dim * ROW_WORD_BYTES, dim)
                fill_row(line, 0, dim, shape[INITIALIZER], reals[INITIAL_A], reals[INITIAL_B], shape[SEED], key, check)
            cursor[s] += 1
        unlock(lock)
    return result


@compiled
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
    shape, reals, hyper, rates = parameters_of(handle)
    words, width, dim = shape[WORDS], shape[WIDTH], shape[DIM]
    slopes = grid_at(gradients, count, dim)
    exact = shape[EXACT] != 0
    total = base + shape[SHARDS] * f.FIELDS * WORD
    rate = rates[step & 4095]
    result = f.DONE
    for s in range(shape[SHARDS]):
        if cursor[s] == stop[s]:
            continue
        lock = base + s * f.FIELDS * WORD
        if not try_lock(lock):
            result = max(result, f.BUSY)
            continue
        d = words_at(lock, f.FIELDS)
        near = cursor[s]
        while cursor[s] < stop[s]:
            if cursor[s] == near:
                near = min(near + PREFETCH_ROWS, stop[s])
                bring_near(d, words, width, keys, order, cursor[s], near)
            i = order[cursor[s]]
            key = keys[i]
            check = checks[i] if words == 3 else 0
            hashed = mix(key)
            if not log_has_room(d):
                result = max(result, f.LOG_FULL)
                break
            at = find(d, words, hashed, key, check)
            # With an admission policy, only lookups create rows.
            if at < 0 and shape[ADMISSION] != 0:
                d[f.DROPPED] += 1
                cursor[s] += 1
                continue
            if at < 0:
                if not has_room(d):
                    result = max(result, f.GROW)
                    break
                if add(total, 1) >= shape[LIMIT]:
                    add(total, -1)
                    result = max(result, f.FULL)
                    break
                # Date the new row to the previous step, so that no missed step is applied to it below.
                row = make_row(d, -1 - at, hashed, key, check, step - 1, shape, reals)
            else:
                row = row_in(d, at)
            keep_old(d, row, words, width)
            values = record(d, row, width)
            meta = words_at(d[f.META], d[f.CAPACITY] * words)
            use = meta[row * words + 1]
            if exact:
                catch_up(values, 0, dim, shape[OPTIMIZER], hyper, rates, step_in(use), step - 1)
            update_row(values, 0, dim, shape[OPTIMIZER], hyper, rate, slopes, i - first)
            # Another thread may already have used the row in a later step: its step must not decrease.
            meta[row * words + 1] = use_of(count_in(use), max(step, step_in(use)), (use & 1) | f.CHANGED_BIT)
            cursor[s] += 1
        unlock(lock)
    return result


def needed(result: int) -> tuple[int, int]:
    """Decodes the result of a call that could not finish: the need, such as `f.BUSY`, and the index of the table."""
    return result & 255, result >> 8


@compiled
def look_up(
    handles: Matrix[np.int64],
    keys: Words,
    checks: Words,
    ends: Words,
    order: Words,
    cursor: Words,
    stop: Words,
    training: bool,
    out: Reals,
) -> int:
    """Reads rows of several tables into ``out``, one after the other.

    When ``training``, makes rows of admitted keys without one. See `by_shard` for ``ends``, ``order``, ``cursor`` and
    ``stop``.
    """
    result, first, slot, at = 0, 0, 0, np.int64(out.ctypes.data)
    for t in range(len(ends)):
        handle = handles[t]
        shape = words_at(handle[SHAPE], SHAPE_SIZE)
        to = slot + shape[SHARDS]
        status = _look_up_in(handle, keys, checks, order, cursor[slot:to], stop[slot:to], first, training, at)
        # Return only the greatest need: the caller provides it and repeats the call, which returns the next one.
        if status > result & 255:
            result = status | t << 8
        at += (ends[t] - first) * shape[DIM] * ROW_WORD_BYTES
        first, slot = ends[t], to
    return result


@compiled
def update(
    handles: Matrix[np.int64],
    keys: Words,
    checks: Words,
    ends: Words,
    order: Words,
    cursor: Words,
    stop: Words,
    gradients: Reals,
) -> int:
    """Updates rows of distinct keys of several tables once.

    The handles have the number of each table's update, from 1. ``gradients`` holds the gradients of all keys, one after
    the other. Keys that were never admitted are skipped.
    """
    result, first, slot, at = 0, 0, 0, np.int64(gradients.ctypes.data)
    for t in range(len(ends)):
        handle = handles[t]
        shape = words_at(handle[SHAPE], SHAPE_SIZE)
        to = slot + shape[SHARDS]
        status = _update_in(handle, keys, checks, order, cursor[slot:to], stop[slot:to], first, at, ends[t] - first)
        if status > result & 255:
            result = status | t << 8
        at += (ends[t] - first) * shape[DIM] * ROW_WORD_BYTES
        first, slot = ends[t], to
    return result


@compiled
def read_records(
    directory: Matrix[np.int64],
    shape: Words,
    keys: Words,
    checks: Words,
    order: Words,
    cursor: Words,
    stop: Words,
    out: Matrix[np.float32],
    known: NDArray[np.bool_],
) -> int:
    """Copies records (values and state) of keys to ``out`` [n, width]; sets ``known`` [n] to 1 where a row exists."""
    words, width = shape[WORDS], shape[WIDTH]
    base = directory.ctypes.data
    result = f.DONE
    for s in range(shape[SHARDS]):
        if cursor[s] == stop[s]:
            continue
        lock = base + s * f.FIELDS * WORD
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
    directory: Matrix[np.int64],
    shape: Words,
    reals: NDArray[np.float64],
    keys: Words,
    checks: Words,
    order: Words,
    cursor: Words,
    stop: Words,
    records: Matrix[np.float32],
    uses: Words,
    step: int,
) -> int:
    """Stores records [n, width]; makes missing rows. ``uses`` [n] are the rows' new uses, or [0] to keep them."""
    words, width = shape[WORDS], shape[WIDTH]
    base = directory.ctypes.data
    total = base + shape[SHARDS] * f.FIELDS * WORD
    result = f.DONE
    for s in range(shape[SHARDS]):
        if cursor[s] == stop[s]:
            continue
        lock = base + s * f.FIELDS * WORD
        if not try_lock(lock):
            result = max(result, f.BUSY)
            continue
        d = directory[s]
        near = cursor[s]
        while cursor[s] < stop[s]:
            if cursor[s] == near:
                near = min(near + PREFETCH_ROWS, stop[s])
                bring_near(d, words, width, keys, order, cursor[s], near)
            i = order[cursor[s]]
            key = keys[i]
            check = checks[i] if words == 3 else 0
            hashed = mix(key)
            if not log_has_room(d):
                result = max(result, f.LOG_FULL)
                break
            at = find(d, words, hashed, key, check)
            if at < 0:
                if not has_room(d):
                    result = max(result, f.GROW)
                    break
                if add(total, 1) >= shape[LIMIT]:
                    add(total, -1)
                    result = max(result, f.FULL)
                    break
                row = make_row(d, -1 - at, hashed, key, check, step, shape, reals)
            else:
                row = row_in(d, at)
            keep_old(d, row, words, width)
            meta = words_at(d[f.META], d[f.CAPACITY] * words)
            use = meta[row * words + 1]
            # The "saved" bit belongs to this table's saves, and not to the table from which the uses were read.
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
def all_finite(gradients: Matrix[np.float32]) -> int:
    """Returns the first row with a number that is not finite, or -1."""
    for i in range(gradients.shape[0]):
        # NaN · 0 and ∞ · 0 are NaN, and every other number times 0 is 0.
        total = np.float32(0.0)
        for j in range(gradients.shape[1]):
            total += gradients[i, j] * np.float32(0.0)
        if total != 0.0:
            return i
    return -1
