"""Compiled operations of workers on ids, keys and rows of several tables, concatenated in flat arrays.

One call converts the ids and rows of all tables between the form of a worker's program and the form of its frames.
"""

from __future__ import annotations

import numpy as np

from headwater.tables.compiled import U64, Matrix, Reals, Words, add_reals, compiled, copy_numbers
from headwater.tables.hashing import mix, owner_of, slots_for

_REAL_BYTES = 4
_WORD_BYTES = 8


@compiled
def divide(ids: Words, checks: Words, ends: Words, tasks: int) -> tuple[Words, Words, Words, Matrix[np.int64]]:
    """Finds the distinct keys of ids, and sorts them by task.

    Args:
      ids: the ids of all tables, [n].
      checks: second words, [n], or [0] where keys have one word.
      ends: the end of each table's ids, [tables].
      tasks: the number of tasks.

    Returns:
      The distinct keys of each table, sorted by task and then by first occurrence; their second words; for every id the
      number of its key among its table's keys; and the bounds of each task's keys, [tables, tasks + 1].
    """
    n, two = len(ids), len(checks) > 0
    largest, first = 0, 0
    for t in range(len(ends)):
        largest = max(largest, ends[t] - first)
        first = ends[t]
    slots = np.empty(slots_for(largest), np.int32)
    words, seconds = np.empty(n, np.int64), np.empty(n if two else 0, np.int64)
    inverse = np.empty(n, np.int64)
    bounds = np.empty((len(ends), tasks + 1), np.int64)
    first, total = 0, 0
    for t in range(len(ends)):
        size = slots_for(ends[t] - first)
        slots[:size] = -1
        count = 0
        for i in range(first, ends[t]):
            at = np.int64(mix(ids[i]) & U64(size - 1))
            number = slots[at]
            while number >= 0 and (words[total + number] != ids[i] or (two and seconds[total + number] != checks[i])):
                at = (at + 1) & (size - 1)
                number = slots[at]
            if number < 0:
                number = count
                slots[at] = count
                words[total + count] = ids[i]
                if two:
                    seconds[total + count] = checks[i]
                count += 1
            inverse[i] = number
        if tasks > 1:
            _by_task(words[total : total + count], seconds[total : total + count], inverse[first : ends[t]], bounds[t])
        bounds[t, 0], bounds[t, tasks] = 0, count
        for task in range(tasks + 1):
            bounds[t, task] += total
        first, total = ends[t], total + count
    return words[:total].copy(), seconds[:total].copy(), inverse, bounds


@compiled
def _by_task(words: Words, seconds: Words, inverse: Words, bounds: Words) -> None:
    """Sorts the keys of one table by task."""
    tasks = len(bounds) - 1
    # A counting sort, which keeps the order of the keys of each task.
    owner, place = np.empty(len(words), np.int64), np.empty(len(words), np.int64)
    bounds[:] = 0
    for i in range(len(words)):
        owner[i] = owner_of(words[i], tasks)
        bounds[owner[i] + 1] += 1
    for task in range(tasks):
        bounds[task + 1] += bounds[task]
    to = bounds.copy()
    before, before_seconds = words.copy(), seconds.copy()
    for i in range(len(words)):
        place[i] = to[owner[i]]
        to[owner[i]] += 1
        words[place[i]] = before[i]
        if len(seconds) > 0:
            seconds[place[i]] = before_seconds[i]
    for i in range(len(inverse)):
        inverse[i] = place[inverse[i]]


@compiled
def _size_of(least: int, most: int) -> int:
    if least >= 0 and most < 1 << 8:
        return 1
    if least >= 0 and most < 1 << 16:
        return 2
    if least >= -(1 << 31) and most < 1 << 31:
        return 4
    return 8


@compiled
def pack_keys(words: Words, bounds: Matrix[np.int64], task: int) -> tuple[Words, Words]:
    """Packs a task's keys with as few bytes per key as each table's keys allow.

    Args:
      words: the keys of all tables; see `divide`.
      bounds: see `divide`.
      task: the number of the task.

    Returns:
      The bytes, as words: each table's keys begin at a new word. And the bytes per key of each table: 1 and 2
      (unsigned), 4 or 8.
    """
    tables = len(bounds)
    sizes = np.empty(tables, np.int64)
    room = 0
    for t in range(tables):
        least, most = np.int64(0), np.int64(0)
        for i in range(bounds[t, task], bounds[t, task + 1]):
            least, most = min(least, words[i]), max(most, words[i])
        sizes[t] = _size_of(least, most)
        room += _room(bounds[t, task + 1] - bounds[t, task], sizes[t])
    packed = np.zeros(room, np.int64)
    at = 0
    for t in range(tables):
        first, count = bounds[t, task], bounds[t, task + 1] - bounds[t, task]
        part = packed[at : at + _room(count, sizes[t])]
        if sizes[t] == 1:
            bytes_of = part.view(np.uint8)
            for i in range(count):
                bytes_of[i] = words[first + i]
        elif sizes[t] == 2:
            halves = part.view(np.uint16)
            for i in range(count):
                halves[i] = words[first + i]
        elif sizes[t] == 4:
            numbers = part.view(np.int32)
            for i in range(count):
                numbers[i] = words[first + i]
        else:
            for i in range(count):
                part[i] = words[first + i]
        at += len(part)
    return packed, sizes


@compiled
def _room(count: int, size: int) -> int:
    """Returns the number of words for ``count`` keys of ``size`` bytes."""
    return (count * size + _WORD_BYTES - 1) // _WORD_BYTES


@compiled
def unpack_keys(packed: Words, counts: Words, sizes: Words) -> Words:
    """Unpacks the output of `pack_keys`, [n]. Returns no keys if the length of ``packed`` does not match the counts."""
    room, total = 0, 0
    for t in range(len(counts)):
        room += _room(counts[t], sizes[t])
        total += counts[t]
    if room != len(packed):
        return np.empty(0, np.int64)
    words = np.empty(total, np.int64)
    at, first = 0, 0
    for t in range(len(counts)):
        part = packed[at : at + _room(counts[t], sizes[t])]
        if sizes[t] == 1:
            bytes_of = part.view(np.uint8)
            for i in range(counts[t]):
                words[first + i] = bytes_of[i]
        elif sizes[t] == 2:
            halves = part.view(np.uint16)
            for i in range(counts[t]):
                words[first + i] = halves[i]
        elif sizes[t] == 4:
            numbers = part.view(np.int32)
            for i in range(counts[t]):
                words[first + i] = numbers[i]
        else:
            for i in range(counts[t]):
                words[first + i] = part[i]
        at += len(part)
        first += counts[t]
    return words


@compiled
def _places(bounds: Words, dims: Words) -> Words:
    """Returns the start of each table's rows among each task's numbers, [tables, tasks]."""
    places = np.empty((len(bounds), bounds.shape[1] - 1), np.int64)
    for task in range(bounds.shape[1] - 1):
        total = 0
        for t in range(len(bounds)):
            places[t, task] = total
            total += (bounds[t, task + 1] - bounds[t, task]) * dims[t]
    return places


@compiled
def _task_of(bounds: Words, t: int, key: int) -> int:
    task = 0
    while bounds[t, task + 1] <= key:
        task += 1
    return task


@compiled
def gather(arrived: Words, bounds: Matrix[np.int64], dims: Words, inverse: Words, ends: Words, out: Reals) -> None:
    """Expands the rows of distinct keys, as received from the tasks, to the rows of all ids.

    Args:
      arrived: for each task the address of its rows' numbers, table by table.
      bounds, inverse, ends: see `divide`.
      dims: the length of a row of each table, [tables].
      out: filled with the numbers of all ids' rows, table by table.
    """
    places = _places(bounds, dims)
    to, first = np.int64(out.ctypes.data), 0
    for t in range(len(ends)):
        size = dims[t] * _REAL_BYTES
        for i in range(first, ends[t]):
            key = bounds[t, 0] + inverse[i]
            task = _task_of(bounds, t, key)
            row = arrived[task] + places[t, task] * _REAL_BYTES + (key - bounds[t, task]) * size
            copy_numbers(to, row, dims[t])
            to += size
        first = ends[t]


@compiled
def add_up(gradients: Words, bounds: Matrix[np.int64], dims: Words, inverse: Words, ends: Words) -> tuple[Reals, int]:
    """Sums the gradients of equal keys in the order of the ids, so that the result is reproducible.

    Args:
      gradients: for each table the address of its ids' gradients.
      bounds, inverse, ends: see `divide`.
      dims: see `gather`.

    Returns:
      The sums of all keys in a flat array, by task and then by table; and the first key with a sum that is not finite,
      or -1.
    """
    tasks = bounds.shape[1] - 1
    places, total = _places(bounds, dims), 0
    for task in range(tasks):
        before = total
        for t in range(len(dims)):
            places[t, task] += before
            total += (bounds[t, task + 1] - bounds[t, task]) * dims[t]
    sums = np.zeros(total, np.float32)
    base, first = np.int64(sums.ctypes.data), 0
    for t in range(len(ends)):
        size, source = dims[t] * _REAL_BYTES, gradients[t]
        for i in range(first, ends[t]):
            key = bounds[t, 0] + inverse[i]
            task = _task_of(bounds, t, key)
            add_reals(base + places[t, task] * _REAL_BYTES + (key - bounds[t, task]) * size, source, dims[t])
            source += size
        first = ends[t]
    for t in range(len(dims)):
        for task in range(tasks):
            for key in range(bounds[t, task], bounds[t, task + 1]):
                at = places[t, task] + (key - bounds[t, task]) * dims[t]
                # NaN · 0 and ∞ · 0 are NaN, see `headwater.tables.kernels.all_finite`.
                bad = np.float32(0.0)
                for j in range(at, at + dims[t]):
                    bad += sums[j] * np.float32(0.0)
                if bad != 0.0:
                    return sums, key
    return sums, -1
