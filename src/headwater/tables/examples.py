"""Compiled parser of many serialized ``Example`` messages at once.

The parser reads messages in the usual encoding: all features in one piece, one list for each feature, packed numbers.
The protobuf library parses messages in other encodings and damaged messages, and reports errors.

One pass over the messages finds the lists of the features, and a second pass decodes the lists. Compiled functions get
addresses of bytes instead of arrays, because numba counts references to each array that is passed from function to
function.

Source: https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from headwater import dtypes
from headwater.cores import usable_cores
from headwater.data.io.example import Column
from headwater.dtypes import DType
from headwater.tables.compiled import byte_at, compiled, inlined, ones_of, trailing_zeros_of, word_at
from headwater.tables.hashing import U64, Reals, Words

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
_DIVIDED_ROWS: Final = 128
"""Minimum number of messages that two threads parse; fewer take less time than the start of the second thread."""
_CORES: Final = usable_cores()
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
    ends = np.fromiter(itertools.accumulate(map(len, serialized)), np.int64, n)
    starts = np.empty((n, len(wanted)), np.int64)
    counts = np.empty(starts.shape, np.int64)
    cuts = [0, n // 2, n] if n >= _DIVIDED_ROWS and _CORES > 1 else [0, n]
    kinds = request.kinds
    found = request.keys.ctypes.data, request.key_ends, kinds, starts, counts
    if not _for_parts(cuts, lambda _, first, last: find(data, ends, first, last, *found)):
        return None
    table, places, sizes = arrange(counts, kinds, request.sparse, np.array(cuts))
    texts, reals, integers, indexed = sizes.tolist()
    arrays: dict[DType, NDArray[Any]] = {
        dtypes.string: np.empty((texts, 2), np.int64),
        dtypes.float32: np.empty(reals, np.float32),
        dtypes.int64: np.empty(integers, np.int64),
    }
    indices = np.empty((indexed, 2), np.int64)
    into = (*arrays.values(), indices)
    if not _for_parts(cuts, lambda part, first, last: decode(starts, counts, kinds, first, last, places[part], *into)):
        return None
    arrays[dtypes.string] = _texts(joined, arrays[dtypes.string] - data)
    by_feature = counts.T
    return {
        name: Column(
            arrays[dtype][offset : offset + total],
            by_feature[number],
            least,
            most,
            indices[place : place + total] if place >= 0 else None,
        )
        for number, ((name, dtype), total, least, most, offset, place) in enumerate(
            zip(wanted.items(), *table.tolist(), *places[0].tolist(), strict=True)
        )
    }


def _for_parts(cuts: Sequence[int], run: Callable[[int, int, int], bool]) -> bool:
    """Calls ``run`` with the number, the first row and the end of each of one or two parts of a batch.

    The second part runs in another thread at the same time. Returns whether all calls returned True.
    """
    rest = [_helper().submit(run, 1, cuts[1], cuts[2])] if len(cuts) > 2 else []
    done = run(0, cuts[0], cuts[1])
    return all([done, *(each.result() for each in rest)])


@lru_cache(maxsize=1)
def _helper() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_CORES, "headwater-parse")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Request:
    """Features to read from messages, as arguments of the compiled functions.

    Attributes:
      keys: the concatenated names, with padding.
      key_ends: the end of each name, ``[k]``.
      kinds: the tag of each feature's list, ``[k]``.
      sparse: which features have indices in the result, ``[k]``.
    """

    keys: NDArray[np.uint8]
    key_ends: Words
    kinds: Words
    sparse: NDArray[np.bool_]


@lru_cache(maxsize=64)
def _request(wanted: tuple[tuple[str, DType], ...], sparse: frozenset[str]) -> _Request:
    names = [name.encode() for name, _ in wanted]
    return _Request(
        keys=np.frombuffer(b"".join((*names, _PADDING)), np.uint8),
        key_ends=np.cumsum(np.array([len(name) for name in names], np.int64)),
        kinds=np.array([_KINDS[dtype] for _, dtype in wanted], np.int64),
        sparse=np.array([name in sparse for name, _ in wanted], np.bool_),
    )


def _texts(joined: bytes, bounds: Words) -> NDArray[Any]:
    """Returns the pieces of ``joined`` with these starts and ends."""
    values = np.empty(len(bounds), object)
    values[:] = [joined[begin:end] for begin, end in bounds.tolist()]
    return values


# Compiled functions. Positions are addresses of bytes; eight bytes from each position on must be readable. ------------


@inlined
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


@inlined
def _low(size: int) -> Any:
    """Returns the mask of the first ``size`` bytes of a word; 0 <= size < 8."""
    return (U64(1) << U64(8 * size)) - U64(1)


@inlined
def _head(at: int, size: int) -> Any:
    """Returns the first eight bytes of a name, or fewer, as one number."""
    return word_at(at) if size >= _WORD else word_at(at) & _low(size)


@inlined
def _same(one: int, other: int, size: int) -> bool:
    """Whether two names of the same size are equal."""
    if size < _WORD:
        return (word_at(one) ^ word_at(other)) & _low(size) == U64(0)
    at = 0
    while at + _WORD < size:
        if word_at(one + at) != word_at(other + at):
            return False
        at += _WORD
    return word_at(one + size - _WORD) == word_at(other + size - _WORD)


@inlined
def _place(word: object, size: int, last: int) -> Any:
    """Returns the first slot of a name in a hash table with the last slot ``last``."""
    mixed = (word + U64(size)) * U64(0x9E3779B97F4A7C15)
    return np.int64(mixed >> U64(40)) & last


@inlined
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


@inlined
def _is_ascii(at: int, size: int) -> bool:
    for index in range(size):  # noqa: SIM110 - numba compiles no `all`
        if byte_at(at + index) >= 0x80:
            return False
    return True


@inlined
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


@inlined
def _integers_in(at: int, end: int) -> Any:
    """Returns the number of integers in these bytes; -1 if the last is truncated."""
    if byte_at(end - 1) >= 0x80:
        return -1
    count = U64(0)
    while end - at >= _WORD:
        count += ones_of(~word_at(at) & _TOP)
        at += _WORD
    return np.int64(count + ones_of(~word_at(at) & _TOP & _low(end - at)))


@inlined
def _short_list(at: int, end: int, name: int, size: int, kind: int) -> tuple[Any, Any]:
    """Reads a feature with a list of numbers in its usual form, whose lengths take one byte each, with few branches.

    Args:
      at: position of the feature's tag.
      end: end of the message.
      name: position of the expected name.
      size: its size.
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
def find(
    data: int,
    ends: Words,
    first_row: int,
    end_row: int,
    keys: int,
    key_ends: Words,
    kinds: Words,
    starts: Words,
    counts: Words,
) -> bool:
    """Finds features in messages ``first_row`` to ``end_row`` - 1.

    Most messages have their features in the same order as the preceding message. So each name is first compared with
    the next two names in that order; the second of these matches if a feature is missing.

    Args:
      data: position of the concatenated messages.
      ends: the end of each message from ``data``, ``[n]``.
      keys: position of the concatenated names of the features.
      key_ends: the end of each name from ``keys``, ``[k]``.
      kinds: the tag of each feature's list, ``[k]``.
      starts: set to the position of the values of each feature in each message, ``[n, k]``. Bytes of numbers hold only
        the numbers; each string has its tag and its length before it.
      counts: set to the number of values, or -1 where a message lacks the feature, ``[n, k]``.

    Returns:
      Whether all messages could be parsed; otherwise the other results are meaningless.
    """
    counts[first_row:end_row] = -1
    places, words = _table(keys, key_ends)
    last = len(places) - 1
    # For each position in the order: position of the name, its size (-1: none), and the number of the key, or -1.
    order = np.full((_ORDER + 2, 3), -1, np.int64)
    end = data + (ends[first_row - 1] if first_row else 0)
    for row in range(first_row, end_row):
        at, end = end, data + ends[row]
        if at == end:
            continue
        if byte_at(at) != _FIRST:
            return False
        size, at = _length(at + 1, end)
        if size != end - at:
            return False
        turn = 0
        while at < end:
            key = order[turn, 2]
            if key >= 0 and kinds[key] != _FIRST:
                at_list, stop = _short_list(at, end, order[turn, 0], order[turn, 1], kinds[key])
                if stop and counts[row, key] < 0:
                    count = 0
                    if kinds[key] == _SECOND:
                        count = (stop - at_list) >> 2 if (stop - at_list) & 3 == 0 else -1
                    elif at_list < stop:
                        count = _integers_in(at_list, stop)
                    if count < 0:
                        return False
                    starts[row, key], counts[row, key] = at_list, count
                    turn, at = min(turn + 1, _ORDER), stop
                    continue
            if byte_at(at) != _FIRST:
                return False
            size, at = _length(at + 1, end)
            if size < 0:
                return False
            stop = at + size
            if at >= stop or byte_at(at) != _FIRST:
                return False
            size, at = _length(at + 1, stop)
            if size < 0:
                return False
            if order[turn, 1] == size and _same(order[turn, 0], at, size):
                key = order[turn, 2]
            elif order[turn + 1, 1] == size and _same(order[turn + 1, 0], at, size):
                turn += 1
                key = order[turn, 2]
            else:
                word, key = _head(at, size), -1
                place = _place(word, size, last)
                while places[place] >= 0:
                    tried = places[place]
                    first = key_ends[tried - 1] if tried else 0
                    if words[tried] == word and key_ends[tried] - first == size and _same(keys + first, at, size):
                        key = tried
                        break
                    place = (place + 1) & last
                # Another name may be invalid UTF-8, which only the protobuf library checks.
                if key < 0 and not _is_ascii(at, size):
                    return False
                order[turn, 0], order[turn, 1], order[turn, 2] = at, size, key
            turn = min(turn + 1, _ORDER)
            at += size
            if at >= stop or byte_at(at) != _SECOND:
                return False
            size, at = _length(at + 1, stop)
            if size != stop - at or (key >= 0 and counts[row, key] >= 0):  # of several values, the last would be valid
                return False
            if at == stop:  # a feature without a list counts as missing
                continue
            kind = byte_at(at)
            if kind != _FIRST and kind != _SECOND and kind != _THIRD:
                return False
            size, at = _length(at + 1, stop)
            if size != stop - at or (key >= 0 and kind != kinds[key]):
                return False
            count = 0
            if kind == _FIRST:
                count = _texts_in(at, stop)
            elif key >= 0 and at < stop:
                if byte_at(at) != _FIRST:
                    return False
                size, at = _length(at + 1, stop)
                if size != stop - at:
                    return False
                if kind == _SECOND:
                    count = -1 if size % 4 else size // 4
                elif size:
                    count = _integers_in(at, stop)
            if count < 0:
                return False
            if key >= 0:
                starts[row, key], counts[row, key] = at, count
            at = stop
    return True


@compiled
def arrange(counts: Words, kinds: Words, sparse: Any, cuts: Words) -> Any:
    """Determines the places of the features' values in the arrays that `decode` writes.

    Args:
      counts, kinds: as of `find`.
      sparse: which features have indices, ``[k]``.
      cuts: the first message of each part, and the number of messages, ``[parts + 1]``.

    Returns:
      For each feature the number of values, and its least and greatest count in a message (-1: absent), ``[3, k]``. For
      each part and feature, the index of the first value among the values of its kind, and the index of the first value
      in ``indices``, or -1, ``[parts, 2, k]``. The numbers of strings, floats, integers and indices.
    """
    n, k = counts.shape
    before = np.zeros((len(cuts), k), np.int64)
    least, most = np.zeros(k, np.int64), np.zeros(k, np.int64)
    if n:
        least[:] = counts[0]
    for part in range(len(cuts) - 1):
        totals = before[part + 1]
        totals[:] = before[part]
        for row in range(cuts[part], cuts[part + 1]):
            for key in range(k):
                count = counts[row, key]
                totals[key] += max(count, 0)
                least[key] = min(least[key], count)
                most[key] = max(most[key], count)
    table, places, sizes = np.empty((3, k), np.int64), np.empty((len(cuts) - 1, 2, k), np.int64), np.zeros(4, np.int64)
    table[0], table[1], table[2] = before[-1], least, most
    for key in range(k):
        kind = 2 if kinds[key] == _THIRD else 1 if kinds[key] == _SECOND else 0
        for part in range(len(places)):
            places[part, 0, key] = sizes[kind] + before[part, key]
            places[part, 1, key] = sizes[3] + before[part, key] if sparse[key] else -1
        sizes[kind] += before[-1, key]
        if sparse[key]:
            sizes[3] += before[-1, key]
    return table, places, sizes


@inlined
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
def decode(
    starts: Words,
    counts: Words,
    kinds: Words,
    first_row: int,
    end_row: int,
    places: Words,
    texts: Words,
    reals: Reals,
    integers: Words,
    indices: Words,
) -> bool:
    """Decodes the lists that `find` has found in messages ``first_row`` to ``end_row`` - 1; returns False if an integer
    is too long.

    Args:
      starts, counts, kinds: as of `find`.
      places: for each feature, the index of these messages' first value among the values of its kind, and the index of
        its first value in ``indices``, or -1, ``[2, k]``.
      texts: set to the start and the end of each string, ``[values, 2]``.
      reals, integers: set to the numbers.
      indices: set to the message of each value, and to its position in its list, ``[values, 2]``.
    """
    bits, offsets, into_indices = reals.view(np.uint32), places[0].copy(), places[1].copy()
    for row in range(first_row, end_row):
        for key in range(counts.shape[1]):
            count = counts[row, key]
            if count <= 0:
                continue
            at, into, kind, place = starts[row, key], offsets[key], kinds[key], into_indices[key]
            offsets[key] = into + count
            if place >= 0:
                into_indices[key] = place + count
            # Indices of arrays are unsigned, because numba would check each signed one.
            if kind == _THIRD:
                if place >= 0:
                    for index in range(count):
                        integers[U64(into + index)], at = _integer(at)
                        indices[U64(place + index), 0], indices[U64(place + index), 1] = row, index
                        if at == 0:
                            return False
                    continue
                for index in range(count):
                    integers[U64(into + index)], at = _integer(at)
                    if at == 0:
                        return False
            elif kind == _SECOND:
                for index in range(count):
                    bits[U64(into + index)] = np.uint32(word_at(at + 4 * index))
            else:
                for index in range(into, into + count):
                    size, at = _length(at + 1, at + (1 << 40))  # `find` has checked it
                    texts[index, 0], texts[index, 1] = at, at + size
                    at += size
            if place >= 0:
                for index in range(count):
                    indices[U64(place + index), 0], indices[U64(place + index), 1] = row, index
    return True
