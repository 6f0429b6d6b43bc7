"""Compiled parser of many serialized ``Example`` messages at once.

The parser reads messages in the usual encoding: all features in one piece, one list for each feature, packed numbers.
The protobuf library parses messages in other encodings and damaged messages, and reports errors.

One pass over the messages finds the features and decodes their values. Compiled functions get addresses of bytes
instead of arrays, because numba counts references to each array that is passed from function to function.

Source: https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from headwater import dtypes
from headwater.data.io.example import Column
from headwater.dtypes import DType
from headwater.tables.compiled import U64, Matrix, Reals, Words, byte_at, compiled, trailing_zeros_of, word_at

_FIRST: Final = 0x0A
"""Tag of field 1 with a length: of ``Example.features``, ``Features.feature``, a key, a list's values, and of bytes."""
_SECOND: Final = 0x12
"""Tag of field 2 with a length: of a feature's value, and of a list of floats."""
_THIRD: Final = 0x1A
"""Tag of field 3 with a length: of a list of integers."""
_KINDS: Final = {dtypes.string: _FIRST, dtypes.float32: _SECOND, dtypes.int64: _THIRD}
_WORD: Final = 8
_PADDING: Final = bytes(_WORD)
"""Padding after messages and names, which are read by words."""
_ORDER: Final = 1024
"""Maximum number of features of a message whose order is remembered for the next message."""
_SLACK: Final = 256
"""Number of values for which there is memory in addition: a list of integers needs memory for a value per byte."""
_MOST: Final = 1 << 62
_MALFORMED: Final = -2
"""Result of `parse` for messages that the protobuf library has to parse."""
_TOP: Final[Any] = np.uint64(0x8080808080808080)
"""The highest bit of each byte of a word. It is 0 in the last byte of an encoded number."""


def columns_of(
    serialized: Sequence[bytes], wanted: Mapping[str, DType], sparse: Collection[str] = ()
) -> dict[str, Column] | None:
    """Parses features of serialized examples; returns None if the protobuf library has to parse them.

    Args:
      serialized: the ``Example`` messages.
      wanted: the type of each feature: float32, int64 or string.
      sparse: the features with indices in the result.
    """
    if sys.byteorder == "big" or any(dtype not in _KINDS for dtype in wanted.values()):
        return None
    request = _request(tuple(wanted.items()), frozenset(sparse))
    joined = b"".join((*serialized, _PADDING))
    data = np.frombuffer(joined, np.uint8).ctypes.data
    n = len(serialized)
    ends = np.cumsum(np.fromiter(map(len, serialized), np.int64, n))
    counts = np.empty((n, len(wanted)), np.int64)
    keys, key_ends, kinds, rates = request.keys.ctypes.data, request.key_ends, request.kinds, request.rates
    while True:
        places, sizes = lay_out(n, kinds, request.sparse, rates)
        texts, reals, integers, indexed = sizes.tolist()
        bounds, indices = np.empty((texts, 2), np.int64), np.empty((indexed, 2), np.int64)
        arrays: dict[DType, NDArray[Any]] = {
            dtypes.float32: np.empty(reals, np.float32),
            dtypes.int64: np.empty(integers, np.int64),
        }
        full = parse(data, ends, keys, key_ends, kinds, places, counts, bounds, *arrays.values(), indices)
        if full < 0:
            break
        rates[full] *= 2
    if full == _MALFORMED:
        return None
    columns: dict[str, Column] = {}
    for each, (first, _, end, place, least, most, _), name in zip(counts.T, places.tolist(), wanted, strict=True):
        values = (
            _texts(joined, bounds[first:end] - data)
            if wanted[name] == dtypes.string
            else arrays[wanted[name]][first:end]
        )
        pairs = indices[place : place + end - first] if place >= 0 else None
        columns[name] = Column(values, each, least if n else 0, most, pairs)
    return columns


@dataclass(frozen=True, kw_only=True, slots=True)
class _Request:
    """Features to read from messages, as arguments of the compiled functions.

    Attributes:
      keys: the concatenated names, with padding.
      key_ends: the end of each name, ``[k]``.
      kinds: the tag of each feature's list, ``[k]``.
      sparse: which features have indices in the result, ``[k]``.
      rates: values of each feature in a message for which `columns_of` allocates memory, ``[k]``; doubled if too few.
    """

    keys: NDArray[np.uint8]
    key_ends: Words
    kinds: Words
    sparse: NDArray[np.bool_]
    rates: Words


@lru_cache(maxsize=64)
def _request(wanted: tuple[tuple[str, DType], ...], sparse: frozenset[str]) -> _Request:
    names = [name.encode() for name, _ in wanted]
    return _Request(
        keys=np.frombuffer(b"".join((*names, _PADDING)), np.uint8),
        key_ends=np.cumsum(np.array([len(name) for name in names], np.int64)),
        kinds=np.array([_KINDS[dtype] for _, dtype in wanted], np.int64),
        sparse=np.array([name in sparse for name, _ in wanted], np.bool_),
        rates=np.ones(len(wanted), np.int64),
    )


def _texts(joined: bytes, bounds: Words) -> NDArray[Any]:
    """Returns the pieces of ``joined`` with these starts and ends."""
    values = np.empty(len(bounds), object)
    values[:] = [joined[begin:end] for begin, end in bounds.tolist()]
    return values


# Compiled functions. Positions are addresses of bytes; eight bytes from each position on must be readable. ------------


@compiled
def _length(at: int, end: int) -> tuple[Any, int]:
    """Returns the length encoded at a position, and the position after it; -1 for a length beyond ``end``."""
    value, shift = 0, 0
    while at < end and shift < 35:  # a length has at most 5 bytes
        byte = byte_at(at)
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (value, at) if value <= end - at else (-1, at)
    return -1, at


@compiled
def _low(size: int) -> Any:
    """Returns the mask of the first ``size`` bytes of a word; 0 <= size < 8."""
    return (U64(1) << U64(8 * size)) - U64(1)


@compiled
def _head(at: int, size: int) -> Any:
    """Returns the first eight bytes of a name, or fewer, as one number."""
    return word_at(at) if size >= _WORD else word_at(at) & _low(size)


@compiled
def _same(one: int, other: int, size: int) -> bool:
    """Returns whether two names of the same size are equal."""
    if size < _WORD:
        return (word_at(one) ^ word_at(other)) & _low(size) == U64(0)
    at = 0
    while at + _WORD < size:
        if word_at(one + at) != word_at(other + at):
            return False
        at += _WORD
    return word_at(one + size - _WORD) == word_at(other + size - _WORD)


@compiled
def _place(word: object, size: int, last: int) -> Any:
    """Returns the first slot of a name in a hash table with the last slot ``last``."""
    mixed = (word + U64(size)) * U64(0x9E3779B97F4A7C15)
    return np.int64(mixed >> U64(40)) & last


@compiled
def _table(keys: int, key_ends: Words) -> tuple[Words, Any]:
    """Returns a hash table of the keys with linear probing: the number of the key in each slot, or -1; and their words.

    Keys with equal first words have consecutive slots, so that `find` can compare the rest of each.
    """
    count = 4
    while count < 4 * len(key_ends):
        count *= 2
    places, words = np.full(count, -1, np.int64), np.empty(len(key_ends), np.uint64)
    first = 0
    for key in range(len(key_ends)):
        words[key] = _head(keys + first, key_ends[key] - first)
        place = _place(words[key], key_ends[key] - first, count - 1)
        while places[place] >= 0:
            place = (place + 1) & (count - 1)
        places[place] = key
        first = key_ends[key]
    return places, words


@compiled
def _is_ascii(at: int, size: int) -> bool:
    for index in range(size):  # noqa: SIM110 - numba compiles no `all`
        if byte_at(at + index) >= 0x80:
            return False
    return True


@compiled
def _texts_in(at: int, end: int) -> int:
    """Returns the number of strings in a list of bytes; -1 if it is malformed."""
    count = 0
    while at < end:
        if byte_at(at) != _FIRST:
            return -1
        size, at = _length(at + 1, end)
        if size < 0:
            return -1
        at += size
        count += 1
    return count


@compiled
def _short_list(at: int, end: int, name: int, size: int, kind: int) -> tuple[Any, Any]:
    """Reads a feature with a list of numbers in its usual form, whose lengths take one byte each, with few branches.

    Args:
      at: position of the feature's tag.
      end: end of the message.
      name: position of the expected name.
      kind: expected tag of the list.

    Returns:
      The positions of the numbers and after these; 0 and 0 if the feature has another name or form.
    """
    head = word_at(at)
    in_feature = np.int64(head >> U64(8) & U64(0xFF))
    stop = at + 2 + in_feature
    if head & U64(0xFFFF00FF) != U64(_FIRST | _FIRST << 16) | U64(size) << U64(24):
        return 0, 0
    if in_feature >= 0x80 or stop > end or in_feature < size + 4 or not _same(name, at + 4, size):
        return 0, 0
    lists = word_at(at + 4 + size)
    in_value, in_list = np.int64(lists >> U64(8) & U64(0xFF)), np.int64(lists >> U64(24) & U64(0xFF))
    in_numbers = np.int64(lists >> U64(40) & U64(0xFF))
    if lists & U64(0xFF00FF) != U64(_SECOND) | U64(kind) << U64(16):
        return 0, 0
    if in_feature != size + 4 + in_value or in_value != in_list + 2:
        return 0, 0
    if in_list == 0:
        return stop, stop
    if lists & U64(0xFF00000000) != U64(_FIRST << 32) or in_list != in_numbers + 2:
        return 0, 0
    return stop - in_numbers, stop


@compiled
def _integer(at: int) -> tuple[Any, Any]:
    """Returns the integer encoded at a position, and the position after it; position 0 if it is too long."""
    word = word_at(at)
    if word & U64(0x8080) != U64(0x8080):  # the common case: one or two bytes, without a branch between these
        longer = (word >> U64(7)) & U64(1)
        return np.int64((word & U64(0x7F)) | ((word >> U64(1)) & U64(0x3F80)) * longer), at + 1 + np.int64(longer)
    tops = ~word & _TOP
    if tops != U64(0):
        top = trailing_zeros_of(tops)
        word &= (U64(2) << top) - U64(1)
        size = np.int64(top >> U64(3)) + 1
    else:
        size = _WORD
    # Seven bits of each byte: join pairs of bytes, then pairs of pairs, and so on.
    word = ((word & U64(0x7F007F007F007F00)) >> U64(1)) | (word & U64(0x007F007F007F007F))
    word = ((word & U64(0x3FFF00003FFF0000)) >> U64(2)) | (word & U64(0x00003FFF00003FFF))
    word = ((word & U64(0x0FFFFFFF00000000)) >> U64(4)) | (word & U64(0x000000000FFFFFFF))
    if tops == U64(0):
        ninth, tenth = byte_at(at + _WORD), byte_at(at + _WORD + 1)
        word |= U64(ninth & 0x7F) << U64(56)
        size += 1
        if ninth >= 0x80:
            word |= U64(tenth) << U64(63)
            size += 1
            if tenth >= 0x80:
                return np.int64(word), 0
    return np.int64(word), at + size


@compiled
def lay_out(n: int, kinds: Words, sparse: NDArray[np.bool_], rates: Words) -> tuple[Matrix[np.int64], Words]:
    """Divides the arrays that `parse` writes among the features.

    Args:
      n: number of messages.
      kinds: the tag of each feature's list, ``[k]``.
      sparse: which features have indices, ``[k]``.
      rates: values in a message for which there is to be memory, ``[k]``.

    Returns:
      For each feature the first place of its values in the array of its kind, the end of its room, the next free place,
      the first place of its indices or -1, the least and the greatest number of values in a message, and the number of
      messages that have it, ``[k, 7]``. The sizes of the arrays of strings, floats, integers and indices.
    """
    places, sizes = np.zeros((len(kinds), 7), np.int64), np.zeros(4, np.int64)
    for key in range(len(kinds)):
        kind = 2 if kinds[key] == _THIRD else 1 if kinds[key] == _SECOND else 0
        room = n * rates[key] + _SLACK
        places[key, 0], places[key, 1], places[key, 2] = sizes[kind], sizes[kind] + room, sizes[kind]
        places[key, 3], places[key, 4] = sizes[3] if sparse[key] else -1, _MOST
        sizes[kind] += room
        if sparse[key]:
            sizes[3] += room
    return places, sizes


@compiled
def parse(
    data: int,
    ends: Words,
    keys: int,
    key_ends: Words,
    kinds: Words,
    places: Matrix[np.int64],
    counts: Matrix[np.int64],
    texts: Matrix[np.int64],
    reals: Reals,
    integers: Words,
    indices: Matrix[np.int64],
) -> int:
    """Finds features in messages, and decodes their values.

    Most messages have their features in the same order as the preceding message. So each name is first compared with
    the next two names in that order; the second of these matches if a feature is missing.

    Args:
      data: position of the concatenated messages.
      ends: the end of each message from ``data``, ``[n]``.
      keys: position of the concatenated names of the features.
      key_ends: the end of each name from ``keys``, ``[k]``.
      kinds: the tag of each feature's list, ``[k]``.
      places: result of `lay_out`; its last four columns are updated.
      counts: set to the number of values, or -1 where a message lacks the feature, ``[n, k]``.
      texts: set to the start and the end of each string, ``[values, 2]``.
      reals, integers: set to the numbers.
      indices: set to the message of each value, and to its position in its list, ``[values, 2]``.

    Returns:
      -1 if all messages could be parsed; the number of a feature with too little room; or `_MALFORMED`. In the two
      last cases the other results are meaningless.
    """
    counts[:] = -1
    bits = reals.view(np.uint32)
    slots, words = _table(keys, key_ends)
    last = len(slots) - 1
    # For each position in the order: position of the name, its size (-1: none), and the number of the key, or -1.
    order = np.full((_ORDER + 2, 3), -1, np.int64)
    end = data
    for row in range(len(ends)):
        at, end = end, data + ends[row]
        if at == end:
            continue
        if byte_at(at) != _FIRST:
            return _MALFORMED
        size, at = _length(at + 1, end)
        if size != end - at:
            return _MALFORMED
        turn = 0
        while at < end:
            # Indices of arrays are unsigned, because numba would check each signed one.
            key, begin, stop, kind = order[U64(turn), 2], 0, 0, 0
            if key >= 0:
                kind = kinds[U64(key)]
                if kind != _FIRST:
                    begin, stop = _short_list(at, end, order[U64(turn), 0], order[U64(turn), 1], kind)
            if stop:
                at = begin
            else:
                if byte_at(at) != _FIRST:
                    return _MALFORMED
                size, at = _length(at + 1, end)
                if size < 0:
                    return _MALFORMED
                stop = at + size
                if at >= stop or byte_at(at) != _FIRST:
                    return _MALFORMED
                size, at = _length(at + 1, stop)
                if size < 0:
                    return _MALFORMED
                if order[turn, 1] == size and _same(order[turn, 0], at, size):
                    key = order[turn, 2]
                elif order[turn + 1, 1] == size and _same(order[turn + 1, 0], at, size):
                    turn += 1
                    key = order[turn, 2]
                else:
                    word, key = _head(at, size), -1
                    slot = _place(word, size, last)
                    while slots[slot] >= 0:
                        tried = slots[slot]
                        first = key_ends[tried - 1] if tried else 0
                        if words[tried] == word and key_ends[tried] - first == size and _same(keys + first, at, size):
                            key = tried
                            break
                        slot = (slot + 1) & last
                    # Another name may be invalid UTF-8, which only the protobuf library checks.
                    if key < 0 and not _is_ascii(at, size):
                        return _MALFORMED
                    order[turn, 0], order[turn, 1], order[turn, 2] = at, size, key
                at += size
                if at >= stop or byte_at(at) != _SECOND:
                    return _MALFORMED
                size, at = _length(at + 1, stop)
                if size != stop - at:
                    return _MALFORMED
                kind = 0
                if at < stop:  # a feature without a list counts as missing
                    kind = byte_at(at)
                    if kind != _FIRST and kind != _SECOND and kind != _THIRD:
                        return _MALFORMED
                    size, at = _length(at + 1, stop)
                    if size != stop - at or (key >= 0 and kind != kinds[key]):
                        return _MALFORMED
                    if kind != _FIRST and key >= 0 and at < stop:
                        if byte_at(at) != _FIRST:
                            return _MALFORMED
                        size, at = _length(at + 1, stop)
                        if size != stop - at:
                            return _MALFORMED
            turn = min(turn + 1, _ORDER)
            if key < 0:
                if kind == _FIRST and _texts_in(at, stop) < 0:
                    return _MALFORMED
                at = stop
                continue
            column = U64(key)
            if counts[U64(row), column] >= 0:  # of several values, the last would be valid
                return _MALFORMED
            if kind == 0:
                continue
            place = places[column, 2]
            room = places[column, 1] - place
            count = 0
            if kind == _THIRD:
                if stop - at > room:
                    return key
                while at < stop:
                    integers[U64(place + count)], at = _integer(at)
                    if at == 0:
                        return _MALFORMED
                    count += 1
                if at != stop:
                    return _MALFORMED
            elif kind == _SECOND:
                count = (stop - at) >> 2
                if count << 2 != stop - at:
                    return _MALFORMED
                if count > room:
                    return key
                for index in range(count):
                    bits[U64(place + index)] = np.uint32(word_at(at + 4 * index))
            else:
                while at < stop:
                    if byte_at(at) != _FIRST:
                        return _MALFORMED
                    size, at = _length(at + 1, stop)
                    if size < 0:
                        return _MALFORMED
                    if count == room:
                        return key
                    texts[U64(place + count), 0], texts[U64(place + count), 1] = at, at + size
                    at += size
                    count += 1
            at = stop
            counts[U64(row), column] = count
            place_of_indices = places[column, 3]
            if place_of_indices >= 0:
                place_of_indices += place - places[column, 0]
                for index in range(count):
                    indices[U64(place_of_indices + index), 0] = row
                    indices[U64(place_of_indices + index), 1] = index
            places[column, 2] = place + count
            places[column, 4] = min(places[column, 4], count)
            places[column, 5] = max(places[column, 5], count)
            places[column, 6] += 1
    for key in range(len(kinds)):
        if places[key, 6] < len(ends):
            places[key, 4] = -1
    return -1
