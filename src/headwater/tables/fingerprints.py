"""Compiled FarmHash ``Fingerprint64`` of many strings, and of many integers written in decimal digits.

`headwater.graph.ops.fingerprints` computes the same fingerprints with NumPy, and describes the arithmetic.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from headwater.tables.compiled import U64, Words, compiled, trailing_zeros_of

Bytes = NDArray[np.uint8]

LONGEST: Final = 64
"""The size of the longest string, in bytes."""
_DIGITS: Final = 20
"""Number of characters of the longest 64-bit integer, with its sign."""
_WORD: Final = 8
_K0: Final[np.uint64] = np.uint64(0xC3A5C85C97CB3127)
_K1: Final[np.uint64] = np.uint64(0xB492B66FBE98F273)
_K2: Final[np.uint64] = np.uint64(0x9AE16A3B2F90404F)


@compiled
def _half(data: Bytes, at: int) -> np.uint64:
    """Returns the four bytes at a position as a little-endian number."""
    first = U64(at)  # unsigned, as numba would check each signed index
    return (
        U64(data[first])
        | U64(data[first + U64(1)]) << U64(8)
        | U64(data[first + U64(2)]) << U64(16)
        | U64(data[first + U64(3)]) << U64(24)
    )


@compiled
def _word(data: Bytes, at: int) -> np.uint64:
    """Returns the eight bytes at a position as a little-endian number."""
    return _half(data, at) | _half(data, at + 4) << U64(32)


@compiled
def _turned(value: np.uint64, by: int) -> np.uint64:
    return value >> U64(by) | value << U64(64 - by)


@compiled
def _mixed(value: np.uint64) -> np.uint64:
    return value ^ value >> U64(47)


@compiled
def _pair(first: np.uint64, second: np.uint64, factor: np.uint64) -> np.uint64:
    a = _mixed((first ^ second) * factor)
    return _mixed((second ^ a) * factor) * factor


@compiled
def _short_fingerprint(text: np.uint64, size: int) -> np.uint64:
    """Returns the fingerprint of a text of at most eight bytes, given as a little-endian number."""
    length = U64(size)
    factor = _K2 + length * U64(2)
    if size >= 8:
        a = text + _K2
        return _pair(_turned(text, 37) * factor + a, (_turned(a, 25) + text) * factor, factor)
    if size >= 4:
        first, last = text & U64(0xFFFFFFFF), text >> U64(8 * (size - 4))
        return _pair(length + (first << U64(3)), last, factor)
    if size > 0:
        first, middle, last = text & U64(0xFF), text >> U64(8 * (size >> 1)) & U64(0xFF), text >> U64(8 * (size - 1))
        return _mixed((first + (middle << U64(8))) * _K2 ^ (length + (last << U64(2))) * _K0) * _K2
    return _K2


@compiled
def _short_decimal(number: np.uint64) -> tuple[np.uint64, Any]:
    """Returns the decimal digits of a number below 10**8, as a little-endian number of characters; and their count.

    All digits are computed at once: the number is divided into two halves, then into four pairs, then into eight
    digits, each in its own part of a word. A multiplication and a shift divide each part by 100, or by 10.
    """
    halves = number // U64(10_000) | (number % U64(10_000)) << U64(32)
    hundreds = (halves * U64(10_486)) >> U64(20) & U64(0x7F0000007F)
    pairs = hundreds | (halves - hundreds * U64(100)) << U64(16)
    tens = (pairs * U64(103)) >> U64(10) & U64(0x000F000F000F000F)
    digits = tens | (pairs - tens * U64(10)) << U64(8)
    absent = np.int64(trailing_zeros_of(digits)) >> 3 if digits else 7
    return (digits | U64(0x3030303030303030)) >> U64(8 * absent), 8 - absent


@compiled
def _fingerprint(data: Bytes, at: int, size: int) -> np.uint64:
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
    text = U64(0)
    if size >= 4:
        text = _half(data, at) | _half(data, end - 4) << U64(8 * (size - 4))
    else:
        for place in range(size):
            text |= U64(data[at + place]) << U64(8 * place)
    return _short_fingerprint(text, size)


@compiled
def of_texts(data: Bytes, ends: Words, fingerprints: NDArray[np.uint64]) -> None:
    """Computes the fingerprint of each string; strings longer than `LONGEST` are skipped.

    Args:
      data: the concatenated strings.
      ends: the end of each string, ``[n]``.
      fingerprints: receives the fingerprints, ``[n]``.
    """
    at = 0
    for row in range(len(ends)):
        end = ends[row]
        if end - at <= LONGEST:
            fingerprints[row] = _fingerprint(data, at, end - at)
        at = end


@compiled
def buckets_of_numbers(numbers: Words, buckets: int) -> Words:
    """Returns the fingerprint of each number's decimal digits, modulo ``buckets``."""
    digits = np.empty(_DIGITS + _WORD, np.uint8)
    chosen = np.empty(len(numbers), np.int64)
    for row in range(len(numbers)):
        number = numbers[row]
        if 0 <= number < 100_000_000:
            text, size = _short_decimal(U64(number))
            chosen[row] = np.int64(_short_fingerprint(text, size) % U64(buckets))
            continue
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
        chosen[row] = np.int64(_fingerprint(digits, at, _DIGITS - at) % U64(buckets))
    return chosen
