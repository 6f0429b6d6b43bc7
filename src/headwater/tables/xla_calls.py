"""XLA custom calls on rows of arrays: functions that an executable calls with the addresses of its buffers.

XLA's own code for CPUs updates rows one element at a time, and sorts by comparisons. These functions copy whole rows,
and find equal indices by hashing. They run in the executable's thread without the GIL, as handlers of XLA's foreign
function interface, version 0.3 (``xla/ffi/api/c_api.h``). A handler gets the address of a call frame; the constants
below name the words of frames and buffers that are used here. A handler reads the sizes from the buffers, so that one
compiled function serves all shapes.

Indices are int64. Copied rows have elements of 4 bytes; summed rows are float32. An index outside the array reads the
nearest row or zeros, by the handler's name, and updates nothing.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from headwater.tables.compiled import (
    U64,
    Callback,
    adagrad_reals,
    add_reals,
    compiled,
    copy_numbers,
    numbers_at,
    prefetch,
    reals_at,
    words_at,
)
from headwater.tables.hashing import mix, slots_for

#: Words of ``XLA_FFI_CallFrame``.
_EXTENSION: Final = 1
_ARGUMENTS: Final = 9
_RESULTS: Final = 14
_FRAME_WORDS: Final = 15
#: Words of ``XLA_FFI_Buffer``.
_TYPE: Final = 2
_DATA: Final = 3
_RANK: Final = 4
_DIMENSIONS: Final = 5
_BUFFER_WORDS: Final = 6
#: Type of the extension in the frame of a call that only queries the version; the handler writes its version there.
_METADATA: Final = 1
#: Version 0.3: the major version is the low half of the word, the minor version the high half.
_VERSION: Final = 3 << 32
_INT: Final = 0xFFFFFFFF
#: Numbers of ``XLA_FFI_DataType`` for elements of 8 bytes: S64, U64, F64, C64.
_EIGHT_BYTES: Final = (5, 9, 12, 15)

_MAX_INT64: Final = (1 << 63) - 1
_NUMBER_BYTES: Final = 4
#: Number of rows by which prefetching is ahead. Rows of a large table are usually not cached, and two rows are rarely
#: on one page of memory.
_AHEAD: Final = 8


@compiled
def _asks_for_version(frame: int) -> bool:
    """Returns whether the call only queries the version of the interface, after writing it."""
    extension = words_at(frame, _FRAME_WORDS)[_EXTENSION]
    if extension == 0 or (words_at(extension, 4)[1] & _INT) != _METADATA:
        return False
    words_at(words_at(extension, 4)[3], 4)[3] = _VERSION
    return True


@compiled
def _argument(frame: int, index: int) -> object:
    """Returns the words of an argument's buffer."""
    arguments = words_at(words_at(frame, _FRAME_WORDS)[_ARGUMENTS], index + 1)
    return words_at(arguments[index], _BUFFER_WORDS)


@compiled
def _result(frame: int, index: int) -> object:
    """Returns the words of a result's buffer."""
    results = words_at(words_at(frame, _FRAME_WORDS)[_RESULTS], index + 1)
    return words_at(results[index], _BUFFER_WORDS)


@compiled
def _length(buffer: Any) -> int:
    return words_at(buffer[_DIMENSIONS], 1)[0]


@compiled
def _elements_of_row(buffer: Any) -> int:
    count = 1
    dimensions = words_at(buffer[_DIMENSIONS], buffer[_RANK])
    for i in range(1, buffer[_RANK]):
        count *= dimensions[i]
    return count


@compiled
def _numbers_of_row(buffer: Any) -> int:
    """Returns the number of 4-byte elements of a row."""
    count = _elements_of_row(buffer)
    return 2 * count if (buffer[_TYPE] & _INT) in _EIGHT_BYTES else count


@compiled
def _gather_rows(frame: int, nearest: bool) -> None:
    source, places, target = _argument(frame, 0), _argument(frame, 1), _result(frame, 0)
    width, length, count = _numbers_of_row(source), _length(source), _length(places)
    rows, to, row_bytes = source[_DATA], target[_DATA], _NUMBER_BYTES * width
    indices = words_at(places[_DATA], count)
    for i in range(count):
        if i + _AHEAD < count and 0 <= indices[i + _AHEAD] < length:
            prefetch(rows + indices[i + _AHEAD] * row_bytes)
        index = indices[i]
        if nearest:
            index = min(max(index, 0), length - 1)
        if 0 <= index < length:
            copy_numbers(to + i * row_bytes, rows + index * row_bytes, width)
        else:
            numbers_at(to + i * row_bytes, width)[:] = 0


@Callback
def _gather_nearest(frame: int) -> int:
    """``rows, indices -> rows[indices]``; the nearest row for an index outside."""
    if not _asks_for_version(frame):
        _gather_rows(frame, True)
    return 0


@Callback
def _gather_or_zeros(frame: int) -> int:
    """``rows, indices -> rows[indices]``; zeros for an index outside."""
    if not _asks_for_version(frame):
        _gather_rows(frame, False)
    return 0


@compiled
def _change_rows(frame: int, width: int, change: Any) -> None:
    """Calls ``change`` for each index in order, with that row of the result and the row of values."""
    places, values, target = _argument(frame, 1), _argument(frame, 2), _result(frame, 0)
    length, count = _length(target), _length(places)
    indices, row_bytes = words_at(places[_DATA], count), _NUMBER_BYTES * width
    for i in range(count):
        if 0 <= indices[i] < length:
            change(target[_DATA] + indices[i] * row_bytes, values[_DATA] + i * row_bytes, width)


@Callback
def _put_rows(frame: int) -> int:
    """``rows, indices, values -> rows`` with ``rows[indices] = values``, in place; for equal indices the last wins."""
    if not _asks_for_version(frame):
        _change_rows(frame, _numbers_of_row(_result(frame, 0)), copy_numbers)
    return 0


@Callback
def _add_rows(frame: int) -> int:
    """``rows, indices, values -> rows`` with ``rows[indices] += values``, in place, one after the other."""
    if not _asks_for_version(frame):
        _change_rows(frame, _elements_of_row(_result(frame, 0)), add_reals)
    return 0


@Callback
def _sum_rows(frame: int) -> int:
    """``rows, indices -> sums, indices``: sums of rows with equal indices, in the order of first occurrences.

    Unused rows of the result are zeros, with the largest int64 as index.
    """
    if _asks_for_version(frame):
        return 0
    gradients, places = _argument(frame, 0), _argument(frame, 1)
    width, count = _elements_of_row(gradients), _length(places)
    rows, sums, row_bytes = gradients[_DATA], _result(frame, 0)[_DATA], _NUMBER_BYTES * width
    indices, distinct = words_at(places[_DATA], count), words_at(_result(frame, 1)[_DATA], count)
    size = slots_for(count)
    slots = np.full(size, -1, np.int32)
    distinct_count = 0
    for i in range(count):
        index, source = indices[i], rows + i * row_bytes
        at = np.int64(mix(index) & U64(size - 1))
        while slots[at] >= 0 and distinct[slots[at]] != index:
            at = (at + 1) & (size - 1)
        if slots[at] >= 0:
            add_reals(sums + slots[at] * row_bytes, source, width)
        else:
            copy_numbers(sums + distinct_count * row_bytes, source, width)
            slots[at], distinct[distinct_count] = distinct_count, index
            distinct_count += 1
    distinct[distinct_count:] = _MAX_INT64
    numbers_at(sums, count * width)[distinct_count * width :] = 0
    return 0


@Callback
def _adagrad(frame: int) -> int:
    """``rows, squares, rate, gradients, indices -> rows, squares``: an update by Adagrad, in place."""
    if _asks_for_version(frame):
        return 0
    gradients, places = _argument(frame, 3), _argument(frame, 4)
    target, state = _result(frame, 0), _result(frame, 1)
    width, length, count = _elements_of_row(target), _length(target), _length(places)
    rate = reals_at(_argument(frame, 2)[_DATA], 1)[0]
    indices, row_bytes = words_at(places[_DATA], count), _NUMBER_BYTES * width
    for i in range(count):
        if i + _AHEAD < count and 0 <= indices[i + _AHEAD] < length:
            prefetch(target[_DATA] + indices[i + _AHEAD] * row_bytes)
            prefetch(state[_DATA] + indices[i + _AHEAD] * row_bytes)
        if 0 <= indices[i] < length:
            at = indices[i] * row_bytes
            adagrad_reals(target[_DATA] + at, state[_DATA] + at, gradients[_DATA] + i * row_bytes, rate, width)
    return 0


_HANDLERS: Final = {
    "headwater_take_nearest": _gather_nearest,
    "headwater_take_or_zeros": _gather_or_zeros,
    "headwater_put_rows": _put_rows,
    "headwater_add_rows": _add_rows,
    "headwater_sum_rows": _sum_rows,
    "headwater_adagrad": _adagrad,
}


def address_of(name: str) -> int:
    """Returns the address of a handler, which stays valid until the process ends.

    The first call compiles the handler, or loads it from disk.
    """
    return _HANDLERS[name].address
