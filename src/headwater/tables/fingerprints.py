"""Compiled FarmHash ``Fingerprint64`` of many texts, and of many integers written in decimal digits.

`headwater.graph.ops.fingerprints` computes the same fingerprints with NumPy, and describes the arithmetic.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from headwater.tables.compiled import compiled, inlined
from headwater.tables.hashing import U64, Words

Bytes = NDArray[np.uint8]

LONGEST: Final = 64
"""The size of the longest text, in bytes."""
_DIGITS: Final = 20
"""Number of characters of the longest 64-bit integer, with its sign."""
_WORD: Final = 8
_K0: Final[Any] = np.uint64(0xC3A5C85C97CB3127)
_K1: Final[Any] = np.uint64(0xB492B66FBE98F273)
_K2: Final[Any] = np.uint64(0x9AE16A3B2F90404F)


@inlined
def _half(data: Bytes, at: int) -> Any:
    """Returns the four bytes at a position as a little-endian number."""
    first = U64(at)  # unsigned, as numba would check each signed index
    return (
        U64(data[first])
        | U64(data[first + U64(1)]) << U64(8)
        | U64(data[first + U64(2)]) << U64(16)
        | U64(data[first + U64(3)]) << U64(24)
    )


@inlined
def _word(data: Bytes, at: int) -> Any:
    """Returns the eight bytes at a position as a little-endian number."""
    return _half(data, at) | _half(data, at + 4) << U64(32)


@inlined
def _turned(value: object, by: int) -> Any:
    return value >> U64(by) | value << U64(64 - by)


@inlined
def _mixed(value: object) -> Any:
    return value ^ value >> U64(47)


@inlined
def _pair(first: Any, second: Any, factor: Any) -> Any:
    a = _mixed((first ^ second) * factor)
    return _mixed((second ^ a) * factor) * factor


@inlined
def _fingerprint(data: Bytes, at: int, size: int) -> Any:
    """Returns the fingerprint of the ``size`` bytes, of at most `LONGEST`, at a position."""
    length = U64(size)
    end = at + size
    factor = _K2 + length * U64(2)
    if size > 32:
        a, b = _word(data, at) * _K2, _word(data, at + 8)
        c, d = _word(data, end - 8) * factor, _word(data, end - 16) * _K2
        y = _turned(a + b, 43) + _turned(c, 30) + d
        z = _pair(y, a + _turned(b + _K2, 18) + c, factor)
        e, f = _word(data, at + 16) * factor, _word(data, at + 24)
        g, h = (y + _word(data, end - 32)) * factor, (z + _word(data, end - 24)) * factor
        return _pair(_turned(e + f, 43) + _turned(g, 30) + h, e + _turned(f + a, 18) + g, factor)
    if size > 16:
        a, b = _word(data, at) * _K1, _word(data, at + 8)
        c, d = _word(data, end - 8) * factor, _word(data, end - 16) * _K2
        return _pair(_turned(a + b, 43) + _turned(c, 30) + d, a + _turned(b + _K2, 18) + c, factor)
    if size >= 8:
        a, b = _word(data, at) + _K2, _word(data, end - 8)
        return _pair(_turned(b, 37) * factor + a, (_turned(a, 25) + b) * factor, factor)
    if size >= 4:
        return _pair(length + (_half(data, at) << U64(3)), _half(data, end - 4), factor)
    if size > 0:
        y = U64(data[at]) + (U64(data[at + (size >> 1)]) << U64(8))
        z = length + (U64(data[end - 1]) << U64(2))
        return _mixed(y * _K2 ^ z * _K0) * _K2
    return _K2


@compiled
def of_texts(data: Bytes, ends: Words, found: NDArray[np.uint64]) -> None:
    """Computes the fingerprint of each text; texts longer than `LONGEST` are skipped.

    Args:
      data: the concatenated texts.
      ends: the end of each text, ``[n]``.
      found: receives the fingerprints, ``[n]``.
    """
    at = 0
    for row in range(len(ends)):
        end = ends[row]
        if end - at <= LONGEST:
            found[row] = _fingerprint(data, at, end - at)
        at = end


@compiled
def buckets_of_numbers(numbers: Words, buckets: int) -> Words:
    """Returns the fingerprint of each number's decimal digits, modulo ``buckets``."""
    digits = np.empty(_DIGITS + _WORD, np.uint8)
    found = np.empty(len(numbers), np.int64)
    for row in range(len(numbers)):
        number = numbers[row]
        rest = U64(number) if number >= 0 else U64(0) - U64(number)
        at = _DIGITS
        while True:
            at -= 1
            digits[at] = 48 + rest % U64(10)
            rest //= U64(10)
            if rest == U64(0):
                break
        if number < 0:
            at -= 1
            digits[at] = 45
        found[row] = np.int64(_fingerprint(digits, at, _DIGITS - at) % U64(buckets))
    return found
