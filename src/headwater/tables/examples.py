"""Serialized ``Example`` messages, many at once, compiled: where each feature lies, and what is there.

A message is read as writers make it today: features in one piece, each with one list, numbers packed. Anything else,
and anything that is damaged, is left to the protobuf library, which also says what is wrong with it.

Source: https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from headwater import dtypes
from headwater.data.io.example import Column
from headwater.dtypes import DType
from headwater.tables.compiled import compiled, inlined
from headwater.tables.hashing import U64, Words

Bytes = NDArray[np.uint8]

_FIRST: Final = 0x0A
"""Tag of field 1 with a length: of ``Example.features``, ``Features.feature``, a key, a list's values, and of bytes."""
_SECOND: Final = 0x12
"""Tag of field 2 with a length: of a feature's value, and of a list of floats."""
_THIRD: Final = 0x1A
"""Tag of field 3 with a length: of a list of integers."""
_KINDS: Final = {dtypes.string: _FIRST, dtypes.float32: _SECOND, dtypes.int64: _THIRD}
_LONGEST: Final = 10


def columns_of(serialized: Sequence[bytes], wanted: Mapping[str, DType]) -> dict[str, Column] | None:
    """Features of serialized examples; None where the protobuf library has to read them.

    Args:
      serialized: the ``Example`` messages.
      wanted: for each feature its type: float32, int64 or string.
    """
    if any(dtype not in _KINDS for dtype in wanted.values()):
        return None
    joined = b"".join(serialized)
    data = np.frombuffer(joined, np.uint8)
    ends = np.cumsum(np.fromiter(map(len, serialized), np.int64, len(serialized)))
    names = [name.encode() for name in wanted]
    keys = np.frombuffer(b"".join(names), np.uint8)
    key_ends = np.cumsum(np.array([len(name) for name in names], np.int64))
    kinds = np.array([_KINDS[dtype] for dtype in wanted.values()], np.int64)
    sound, found, starts, sizes, counts = find(data, ends, keys, key_ends, kinds)
    if not sound:
        return None
    columns: dict[str, Column] = {}
    for place, (name, dtype) in enumerate(wanted.items()):
        total = int(counts[place].sum())
        values: NDArray[Any]
        if dtype == dtypes.string:
            begins, stops = texts(data, starts[place], sizes[place], total)
            values = np.empty(total, object)
            values[:] = [joined[begin:stop] for begin, stop in zip(begins.tolist(), stops.tolist(), strict=True)]
        elif dtype == dtypes.float32:
            values = gathered(data, starts[place], sizes[place], 4 * total).view("<f4").astype(np.float32, copy=False)
        else:
            values = integers(data, starts[place], sizes[place], total)
        columns[name] = Column(values=values, counts=counts[place], present=found[place])
    return columns


@inlined
def _length(data: Bytes, at: int, end: int) -> tuple[Any, int]:
    """The length that is written at a place, and the place behind it; -1 for one that goes beyond ``end``."""
    value = 0
    for index in range(5):
        if at >= end:
            return -1, at
        byte = np.int64(data[at])
        at += 1
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return (value, at) if value <= end - at else (-1, at)
    return -1, at


@inlined
def _same(data: Bytes, at: int, size: int, keys: Bytes, first: int, last: int) -> bool:
    if last - first != size:
        return False
    for index in range(size):  # noqa: SIM110 - numba compiles no `all`
        if data[at + index] != keys[first + index]:
            return False
    return True


@inlined
def _key(data: Bytes, at: int, size: int, keys: Bytes, key_ends: Words, guess: int) -> int:
    """Which key stands at a place; -1 for none of them, -2 where only the protobuf library can tell."""
    if guess >= 0 and _same(data, at, size, keys, key_ends[guess - 1] if guess else 0, key_ends[guess]):
        return guess
    for key in range(len(key_ends)):
        if _same(data, at, size, keys, key_ends[key - 1] if key else 0, key_ends[key]):
            return key
    for index in range(size):
        if data[at + index] >= 0x80:  # it may be no text at all
            return -2
    return -1


@inlined
def _texts_in(data: Bytes, at: int, end: int) -> int:
    """How many texts a list of bytes has; -1 where it is something else."""
    count = 0
    while at < end:
        if data[at] != _FIRST:
            return -1
        size, at = _length(data, at + 1, end)
        if size < 0:
            return -1
        at += size
        count += 1
    return count


@inlined
def _integers_in(data: Bytes, at: int, end: int) -> int:
    """How many integers stand in these bytes; -1 where one does not end, or is too long."""
    count, length = 0, 0
    for index in range(at, end):
        length += 1
        if length > _LONGEST:
            return -1
        if data[index] < 0x80:
            count += 1
            length = 0
    return -1 if length else count


@compiled
def find(
    data: Bytes, ends: Words, keys: Bytes, key_ends: Words, kinds: Words
) -> tuple[bool, NDArray[np.bool_], Words, Words, Words]:
    """Finds features in messages.

    Args:
      data: the messages, one after the other.
      ends: where each one ends, ``[n]``.
      keys: the features' names, one after the other.
      key_ends: where each name ends, ``[k]``.
      kinds: the tag of each feature's list, ``[k]``.

    Returns:
      Whether all is as expected, otherwise the rest is worth nothing; which message has which feature, where its
      values begin, how many bytes they are, and how many values, each ``[k, n]``. Of numbers, these bytes are nothing
      but the numbers; of texts there is a length before each.
    """
    n, k = len(ends), len(key_ends)
    found = np.zeros((k, n), np.bool_)
    starts, sizes, counts = np.zeros((k, n), np.int64), np.zeros((k, n), np.int64), np.zeros((k, n), np.int64)
    seen = np.full(k, -1, np.int64)
    # Messages of one writer mostly have their features in the same order: which one to expect after which.
    after = np.full(k + 1, -1, np.int64)
    bad = (False, found, starts, sizes, counts)
    end = 0
    for row in range(n):
        at, end = end, ends[row]
        if at == end:
            continue
        if data[at] != _FIRST:
            return bad
        size, at = _length(data, at + 1, end)
        if size != end - at:
            return bad
        before = k
        while at < end:
            if data[at] != _FIRST:
                return bad
            size, at = _length(data, at + 1, end)
            if size < 0:
                return bad
            stop = at + size
            if at >= stop or data[at] != _FIRST:
                return bad
            size, at = _length(data, at + 1, stop)
            if size < 0:
                return bad
            key = _key(data, at, size, keys, key_ends, after[before])
            if key == -2 or (key >= 0 and seen[key] == row):
                return bad
            at += size
            if at >= stop or data[at] != _SECOND:
                return bad
            size, at = _length(data, at + 1, stop)
            if size != stop - at:
                return bad
            if key >= 0:
                seen[key] = row
                after[before] = key
                before = key
            if at == stop:  # a feature without a list counts as none
                continue
            kind = np.int64(data[at])
            if kind != _FIRST and kind != _SECOND and kind != _THIRD:
                return bad
            size, at = _length(data, at + 1, stop)
            if size != stop - at or (key >= 0 and kind != kinds[key]):
                return bad
            count = 0
            if kind == _FIRST:
                count = _texts_in(data, at, stop)
            elif key >= 0 and at < stop:
                if data[at] != _FIRST:
                    return bad
                size, at = _length(data, at + 1, stop)
                if size != stop - at:
                    return bad
                count = size // 4 if kind == _SECOND else _integers_in(data, at, stop)
                if kind == _SECOND and size % 4:
                    return bad
            if count < 0:
                return bad
            if key >= 0:
                found[key, row] = True
                starts[key, row], sizes[key, row], counts[key, row] = at, stop - at, count
            at = stop
    return True, found, starts, sizes, counts


@compiled
def texts(data: Bytes, starts: Words, sizes: Words, total: int) -> tuple[Words, Words]:
    """Where the texts of lists that `find` has found begin and end."""
    begins, stops = np.empty(total, np.int64), np.empty(total, np.int64)
    count = 0
    for row in range(len(starts)):
        at, end = starts[row], starts[row] + sizes[row]
        while at < end:
            size, at = _length(data, at + 1, end)
            begins[count] = at
            at += size
            stops[count] = at
            count += 1
    return begins, stops


@compiled
def integers(data: Bytes, starts: Words, sizes: Words, total: int) -> Words:
    """The numbers of lists of integers that `find` has found."""
    values = np.empty(total, np.int64)
    count = 0
    for row in range(len(starts)):
        value, shift = U64(0), U64(0)
        for at in range(starts[row], starts[row] + sizes[row]):
            byte = U64(data[at])
            value |= (byte & U64(0x7F)) << shift
            shift += U64(7)
            if byte < U64(0x80):
                values[count] = np.int64(value)
                count += 1
                value, shift = U64(0), U64(0)
    return values


@compiled
def gathered(data: Bytes, starts: Words, sizes: Words, total: int) -> Bytes:
    """The bytes of lists of floats that `find` has found."""
    values = np.empty(total, np.uint8)
    count = 0
    for row in range(len(starts)):
        values[count : count + sizes[row]] = data[starts[row] : starts[row] + sizes[row]]
        count += sizes[row]
    return values
