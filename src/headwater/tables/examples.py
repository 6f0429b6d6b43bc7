"""Compiled parser of many serialized ``Example`` messages at once.

The parser reads messages in the usual encoding: all features in one piece, one list for each feature, packed numbers.
The protobuf library parses messages in other encodings and damaged messages, and reports errors.

Source: https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
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
_WORD: Final = 8
_PADDING: Final = bytes(_WORD)
"""Padding after messages and names, which are read by words."""


def columns_of(
    serialized: Sequence[bytes], wanted: Mapping[str, DType], sparse: Collection[str] = ()
) -> dict[str, Column] | None:
    """Parses features of serialized examples; returns None where the protobuf library has to parse them.

    Args:
      serialized: the ``Example`` messages.
      wanted: the type of each feature: float32, int64 or string.
      sparse: the features with indices in the result.
    """
    if any(dtype not in _KINDS for dtype in wanted.values()):
        return None
    joined = b"".join((*serialized, _PADDING))
    data = np.frombuffer(joined, np.uint8)
    ends = np.cumsum(np.fromiter(map(len, serialized), np.int64, len(serialized)))
    names = [name.encode() for name in wanted]
    keys = np.frombuffer(b"".join((*names, _PADDING)), np.uint8)
    key_ends = np.cumsum(np.array([len(name) for name in names], np.int64))
    kinds = np.array([_KINDS[dtype] for dtype in wanted.values()], np.int64)
    sound, found, starts, sizes, counts = find(data, ends, keys, key_ends, kinds)
    if not sound:
        return None
    found, starts, sizes, counts = (np.ascontiguousarray(part.T) for part in (found, starts, sizes, counts))
    totals = counts.sum(axis=1)
    numbers = {
        dtypes.int64: _of_kind(kinds == _THIRD, totals, np.int64),
        dtypes.float32: _of_kind(kinds == _SECOND, totals, np.float32),
    }
    integers(data, starts, sizes, *numbers[dtypes.int64])
    chosen, offsets, floats = numbers[dtypes.float32]
    gathered(data, starts, sizes, chosen, 4 * offsets, floats.view(np.uint8))
    if sys.byteorder == "big":
        floats.byteswap(inplace=True)
    ahead = {dtype: np.split(values, offsets[1:-1])[::-1] for dtype, (_, offsets, values) in numbers.items()}
    which = np.array([name in sparse for name in wanted], np.bool_)
    places = np.split(positions(counts, which), np.cumsum(totals[which])[:-1])[::-1]
    columns: dict[str, Column] = {}
    for place, (name, dtype) in enumerate(wanted.items()):
        if dtype == dtypes.string:
            begins, stops = texts(data, starts[place], sizes[place], int(totals[place]))
            values = np.empty(len(begins), object)
            values[:] = [joined[begin:stop] for begin, stop in zip(begins.tolist(), stops.tolist(), strict=True)]
        else:
            values = ahead[dtype].pop()
        indices = places.pop() if which[place] else None
        columns[name] = Column(values=values, counts=counts[place], present=found[place], indices=indices)
    return columns


def _of_kind(chosen: NDArray[np.bool_], totals: Words, dtype: Any) -> tuple[Words, Words, NDArray[Any]]:
    """Returns the indices of the features of one kind, the bounds of each one's values, and an array for all values."""
    which = np.flatnonzero(chosen)
    offsets = np.concatenate([[0], np.cumsum(totals[which])]).astype(np.int64)
    return which, offsets, np.empty(int(offsets[-1]), dtype)


@inlined
def _length(data: Bytes, at: int, end: int) -> tuple[Any, int]:
    """Returns the length encoded at a position, and the position after it; -1 for a length beyond ``end``."""
    if at < end and data[at] < 0x80:  # the common case: one byte
        value = np.int64(data[at])
        return (value, at + 1) if value < end - at else (-1, at)
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
def _word(data: Bytes, at: int, size: int) -> Any:
    """Returns the first eight bytes of a name, or fewer, as one number. Eight bytes must be readable."""
    first = U64(at)  # unsigned, as numba would check each signed index
    found = (
        U64(data[first])
        | U64(data[first + U64(1)]) << U64(8)
        | U64(data[first + U64(2)]) << U64(16)
        | U64(data[first + U64(3)]) << U64(24)
        | U64(data[first + U64(4)]) << U64(32)
        | U64(data[first + U64(5)]) << U64(40)
        | U64(data[first + U64(6)]) << U64(48)
        | U64(data[first + U64(7)]) << U64(56)
    )
    return found if size >= _WORD else found & ((U64(1) << (U64(8) * U64(size))) - U64(1))


@inlined
def _place(word: object, size: int, last: int) -> Any:
    """Returns the first slot of a name in a hash table with the last slot ``last``."""
    mixed = (word + U64(size)) * U64(0x9E3779B97F4A7C15)
    return np.int64(mixed >> U64(40)) & last


@inlined
def _table(keys: Bytes, key_ends: Words) -> tuple[Words, Any]:
    """Returns a hash table of the keys with linear probing: the number of the key in each slot, or -1; and their words.

    Keys with equal first words have consecutive slots, so that `find` can compare the rest of each.
    """
    count = 4
    while count < 4 * len(key_ends):
        count *= 2
    places, words = np.full(count, -1, np.int64), np.empty(len(key_ends), np.uint64)
    first = 0
    for key in range(len(key_ends)):
        words[key] = _word(keys, first, key_ends[key] - first)
        place = _place(words[key], key_ends[key] - first, count - 1)
        while places[place] >= 0:
            place = (place + 1) & (count - 1)
        places[place] = key
        first = key_ends[key]
    return places, words


@inlined
def _is_ascii(data: Bytes, at: int, size: int) -> bool:
    for index in range(size):  # noqa: SIM110 - numba compiles no `all`
        if data[at + index] >= 0x80:
            return False
    return True


@inlined
def _texts_in(data: Bytes, at: int, end: int) -> int:
    """Returns the number of strings in a list of bytes; -1 where it is malformed."""
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
    """Returns the number of integers in these bytes; -1 where one is truncated or too long."""
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
      data: the concatenated messages, and eight bytes of padding.
      ends: the end of each message, ``[n]``.
      keys: the concatenated names of the features, and eight bytes of padding.
      key_ends: the end of each name, ``[k]``.
      kinds: the tag of each feature's list, ``[k]``.

    Returns:
      Whether all messages could be parsed (otherwise the other results are meaningless); whether each message has each
      feature, the start of its values, their size in bytes, and their number, each ``[n, k]``. Bytes of numbers hold
      only the numbers; each string has its length before it.
    """
    n, k = len(ends), len(key_ends)
    # Use one row for each message, so that the results for a message are adjacent. With one row for each feature, they
    # would be at equal distances in memory, and compete for the same cache lines.
    found = np.zeros((n, k), np.bool_)
    starts, sizes, counts = np.zeros((n, k), np.int64), np.zeros((n, k), np.int64), np.zeros((n, k), np.int64)
    seen = np.full(k, -1, np.int64)
    places, words = _table(keys, key_ends)
    last = len(places) - 1
    lengths = key_ends.copy()
    lengths[1:] -= key_ends[:-1]
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
            # Inline, not in a function: numba counts references to each array argument.
            word, key = _word(data, at, size), -1
            place = _place(word, size, last)
            while places[place] >= 0:
                tried = places[place]
                if (
                    words[tried] == word
                    and lengths[tried] == size
                    and (size <= _WORD or _same(data, at, size, keys, key_ends[tried] - size, key_ends[tried]))
                ):
                    key = tried
                    break
                place = (place + 1) & last
            # Another name may be invalid UTF-8, which only the protobuf library checks.
            if seen[key] == row if key >= 0 else not _is_ascii(data, at, size):
                return bad
            at += size
            if at >= stop or data[at] != _SECOND:
                return bad
            size, at = _length(data, at + 1, stop)
            if size != stop - at:
                return bad
            if key >= 0:
                seen[key] = row
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
                found[row, key] = True
                starts[row, key], sizes[row, key], counts[row, key] = at, stop - at, count
            at = stop
    return True, found, starts, sizes, counts


@compiled
def texts(data: Bytes, starts: Words, sizes: Words, total: int) -> tuple[Words, Words]:
    """Returns the starts and ends of the strings in lists that `find` has found."""
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
def positions(counts: Words, which: NDArray[np.bool_]) -> Words:
    """Returns the message, and the position in its list, of each value of some features, ``[values, 2]``.

    Args:
      counts: number of values of each feature in each message, ``[k, n]``.
      which: whether each feature is one of these, ``[k]``.
    """
    total = 0
    for key in range(len(which)):
        if which[key]:
            total += counts[key].sum()
    found = np.empty((total, 2), np.int64)
    at = 0
    for key in range(len(which)):
        if which[key]:
            for row in range(counts.shape[1]):
                for place in range(counts[key, row]):
                    found[at, 0], found[at, 1] = row, place
                    at += 1
    return found


@compiled
def integers(data: Bytes, starts: Words, sizes: Words, chosen: Words, offsets: Words, values: Words) -> None:
    """Writes the integers of lists that `find` has found, for each chosen feature at its offset."""
    for index in range(len(chosen)):
        key, count = chosen[index], offsets[index]
        for row in range(starts.shape[1]):
            at = starts[key, row]
            end = at + sizes[key, row]
            while at < end:
                byte = U64(data[at])
                at += 1
                value, shift = byte & U64(0x7F), U64(7)
                while byte >= U64(0x80):
                    byte = U64(data[at])
                    at += 1
                    value |= (byte & U64(0x7F)) << shift
                    shift += U64(7)
                values[count] = np.int64(value)
                count += 1


@compiled
def gathered(data: Bytes, starts: Words, sizes: Words, chosen: Words, offsets: Words, values: Bytes) -> None:
    """Copies the bytes of lists of floats that `find` has found, as `integers` does."""
    for index in range(len(chosen)):
        key, count = chosen[index], offsets[index]
        for row in range(starts.shape[1]):
            first = starts[key, row]
            for at in range(first, first + sizes[key, row]):
                values[count] = data[at]
                count += 1
