"""Keys: hashing of 64-bit integers and of strings, and the distinct keys of many ids.

An integer is its own key. A string's key is two words, 128 bits of SipHash-2-4 (Aumasson and Bernstein, 2012): the
first one is hashed, and the second one is compared as well, so that two strings with the same first word are two keys.
The probability that any two of a billion strings agree in both words is 1.5e-21.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from headwater.tables.compiled import U64, Matrix, Words, compiled

_GOLDEN: Final[Any] = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final[Any] = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final[Any] = np.uint64(0x94D049BB133111EB)
_LOW: Final[object] = np.uint64(0xFFFFFFFF)
#: Makes the hash that selects the task of a key independent of the hash that selects its slot in the index. With the
#: same hash, the keys of one task would use only a part of the slots.
_OWNER: Final[Any] = np.uint64(0xD6E8FEB86659FD93)


@compiled
def mix(word: int) -> np.uint64:
    """Mixes a word, one to one: each bit depends on every bit of ``word`` (SplitMix64, Steele and others, 2014)."""
    x = U64(word) + _GOLDEN
    x = (x ^ (x >> U64(30))) * _FIRST
    x = (x ^ (x >> U64(27))) * _SECOND
    return x ^ (x >> U64(31))


@compiled
def share(word: object, parts: int) -> Any:
    """Maps the low half of ``word``, a hash, to a number below ``parts``, evenly."""
    # A multiplication and a shift, which are faster than a remainder.
    return np.int64(((U64(word) & _LOW) * U64(parts)) >> U64(32))


@compiled
def slots_for(count: int) -> int:
    """Returns the size of an open-addressing index for ``count`` keys: a power of two, of which the keys fill at most
    half."""
    size = 4
    while size < 2 * count:
        size *= 2
    return size


@compiled
def owner_of(key: int, tasks: int) -> Any:
    """Returns the task, of ``tasks``, that owns a key."""
    return share(mix(np.int64(U64(key) ^ _OWNER)), tasks)


@compiled
def owners(keys: Words, tasks: int) -> Words:
    """Returns the task, of ``tasks``, that owns each key."""
    tasks_of_keys = np.empty(len(keys), np.int64)
    for i in range(len(keys)):
        tasks_of_keys[i] = owner_of(keys[i], tasks)
    return tasks_of_keys


@compiled
def distinct(keys: Words, checks: Words) -> tuple[Words, Words]:
    """Finds the distinct keys, in the order of their first occurrences.

    Args:
      keys: shape [n].
      checks: second words, shape [n], or [0] where keys have one word.

    Returns:
      The index of the first occurrence of each distinct key, [m]; for every key its number among these, [n].
    """
    n = len(keys)
    two = len(checks) > 0
    size = slots_for(n)
    slots = np.full(size, -1, np.int32)
    first = np.empty(n, np.int64)
    inverse = np.empty(n, np.int64)
    count = 0
    for i in range(n):
        at = np.int64(mix(keys[i]) & U64(size - 1))
        while True:
            number = slots[at]
            if number < 0:
                slots[at] = count
                first[count] = i
                inverse[i] = count
                count += 1
                break
            other = first[number]
            if keys[other] == keys[i] and (not two or checks[other] == checks[i]):
                inverse[i] = number
                break
            at = (at + 1) & (size - 1)
    return first[:count].copy(), inverse


@compiled
def extent(numbers: Words) -> tuple[int, int]:
    """Returns the minimum and maximum of some numbers; 0 and 0 if there are none."""
    if len(numbers) == 0:
        return 0, 0
    least = most = numbers[0]
    for number in numbers:
        least = min(least, number)
        most = max(most, number)
    return least, most


@compiled
def add_up(rows: Matrix[np.float32], inverse: Words, count: int) -> Matrix[np.float32]:
    """Sums the rows [n, dim] with equal numbers in ``inverse``, in order; returns [count, dim]."""
    total = np.zeros((count, rows.shape[1]), np.float32)
    for i in range(len(inverse)):
        into = U64(inverse[i])
        for j in range(rows.shape[1]):
            total[into, j] += rows[i, j]
    return total


@compiled
def _left(x: int, bits: int) -> int:
    return (x << U64(bits)) | (x >> U64(64 - bits))


@compiled
def _round(a: Any, b: object, c: Any, d: Any) -> object:
    a = a + b
    c = c + d
    b = _left(b, 13) ^ a
    d = _left(d, 16) ^ c
    a = _left(a, 32)
    a = a + d
    c = c + b
    d = _left(d, 21) ^ a
    b = _left(b, 17) ^ c
    return a, b, _left(c, 32), d


@compiled
def siphash(data: NDArray[np.uint8], ends: Words, low: int, high: int, words: Matrix[np.int64]) -> None:
    """Hashes consecutive pieces of ``data`` with 128-bit SipHash-2-4.

    Args:
      data: all bytes.
      ends: the end of each piece, [n].
      low, high: the two halves of the hash's key.
      words: filled with the result, [n, 2].
    """
    start = 0
    for i in range(len(ends)):
        end = ends[i]
        length = end - start
        a = U64(low) ^ U64(0x736F6D6570736575)
        b = U64(high) ^ U64(0x646F72616E646F6D) ^ U64(0xEE)
        c = U64(low) ^ U64(0x6C7967656E657261)
        d = U64(high) ^ U64(0x7465646279746573)
        at = start
        last = False
        while not last:
            last = at + 8 > end
            word = U64(0)
            for j in range(min(8, end - at)):
                word |= U64(data[at + j]) << U64(8 * j)
            if last:
                word |= U64(length & 255) << U64(56)
            d ^= word
            a, b, c, d = _round(a, b, c, d)
            a, b, c, d = _round(a, b, c, d)
            a ^= word
            at += 8
        c ^= U64(0xEE)
        for _ in range(4):
            a, b, c, d = _round(a, b, c, d)
        words[i, 0] = np.int64(a ^ b ^ c ^ d)
        b ^= U64(0xDD)
        for _ in range(4):
            a, b, c, d = _round(a, b, c, d)
        words[i, 1] = np.int64(a ^ b ^ c ^ d)
        start = end


def string_keys(strings: Sequence[str | bytes] | NDArray[Any]) -> Words:
    """Returns the keys of strings (text as UTF-8), shape [n, 2]. The keys are the same in every process."""
    pieces: list[bytes] = []
    for piece in cast(Sequence[object], np.asarray(strings, object).reshape(-1).tolist()):
        if not isinstance(piece, str | bytes):
            raise TypeError(f"a key is of type {type(piece).__name__}, not text")
        pieces.append(piece.encode() if isinstance(piece, str) else piece)
    words = np.empty((len(pieces), 2), np.int64)
    ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64)
    siphash(np.frombuffer(b"".join(pieces), np.uint8), ends, 0x0706050403020100, 0x0F0E0D0C0B0A0908, words)
    return words
