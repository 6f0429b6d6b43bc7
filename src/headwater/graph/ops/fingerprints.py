"""Fingerprints of strings: the 64-bit fingerprint of FarmHash, and others derived from it.

Everything here is arithmetic modulo 2⁶⁴ on little-endian words, as G. Pike's FarmHash defines ``Fingerprint64``. The
numbers are the same on every machine and in every process: hash buckets of a model rely on it.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from headwater.tables import fingerprints

_Part = Callable[[Any], Any]
"""A function of a position. It returns the little-endian number at that position of a string, or for many strings an
array of such numbers."""
_MASK = 0xFFFFFFFFFFFFFFFF
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
_CAT = 0xC6A4A7935BD1E995


def _word(text: bytes, place: int) -> int:
    return struct.unpack_from("<Q", text, place)[0]


def _turned(value: Any, by: int) -> Any:
    value = value & _MASK
    return (value >> by | value << (64 - by)) & _MASK


def _mixed(value: Any) -> Any:
    value = value & _MASK
    return value ^ value >> 47


def _pair(first: Any, second: Any, factor: Any) -> Any:
    a = _mixed((first ^ second) * factor)
    return _mixed((second ^ a) * factor) * factor & _MASK


def _to_3(size: Any, byte: _Part) -> Any:
    y = byte(0) + (byte(size >> 1) << 8)
    z = size + (byte(size - 1) << 2)
    return _mixed(y * _K2 ^ z * _K0) * _K2 & _MASK


def _to_7(size: Any, half: _Part) -> Any:
    return _pair(size + (half(0) << 3) & _MASK, half(size - 4), _K2 + size * 2)


def _to_16(size: Any, word: _Part) -> Any:
    factor = _K2 + size * 2
    a, b = word(0) + _K2, word(size - 8)
    return _pair((_turned(b, 37) * factor + a) & _MASK, (_turned(a, 25) + b) * factor & _MASK, factor)


def _to_32(size: Any, word: _Part) -> Any:
    factor = _K2 + size * 2
    a, b = word(0) * _K1, word(8)
    c, d = word(size - 8) * factor, word(size - 16) * _K2
    return _pair((_turned(a + b, 43) + _turned(c, 30) + d) & _MASK, (a + _turned(b + _K2, 18) + c) & _MASK, factor)


def _to_64(size: Any, word: _Part) -> Any:
    factor = _K2 + size * 2
    a, b = word(0) * _K2, word(8)
    c, d = word(size - 8) * factor, word(size - 16) * _K2
    y = (_turned(a + b, 43) + _turned(c, 30) + d) & _MASK
    z = _pair(y, (a + _turned(b + _K2, 18) + c) & _MASK, factor)
    e, f = word(16) * factor, word(24)
    g, h = (y + word(size - 32)) * factor, (z + word(size - 24)) * factor
    return _pair((_turned(e + f, 43) + _turned(g, 30) + h) & _MASK, (e + _turned(f + a, 18) + g) & _MASK, factor)


_SIZES: Final = (1, 4, 8, 17, 33, 65)
"""The smallest text size of each group, from group 1 on. Group 0 has only the empty string."""
_BY_SIZE: Final = ((_to_3, "<u1"), (_to_7, "<u4"), (_to_16, "<u8"), (_to_32, "<u8"), (_to_64, "<u8"))
"""For groups 1 to 5: the function that hashes one string, or arrays of many strings, and the type of the words that it
reads."""


def _weak(text: bytes, place: int, a: int, b: int) -> tuple[int, int]:
    w, x, y, z = struct.unpack_from("<4Q", text, place)
    a += w
    b = _turned(b + a + z, 21)
    kept = a
    a += x + y
    return (a + z) & _MASK, (b + _turned(a, 44) + kept) & _MASK


def _stirred(
    text: bytes, place: int, x: int, y: int, z: int, v: tuple[int, int], w: tuple[int, int]
) -> tuple[int, int, int, tuple[int, int], tuple[int, int]]:
    """The state after the 64 bytes at ``place``."""
    x = _turned(x + y + v[0] + _word(text, place + 8), 37) * _K1 & _MASK
    y = _turned(y + v[1] + _word(text, place + 48), 42) * _K1 & _MASK
    x ^= w[1]
    y = y + v[0] + _word(text, place + 40) & _MASK
    z = _turned(z + w[0], 33) * _K1 & _MASK
    v = _weak(text, place, v[1] * _K1, x + w[0])
    w = _weak(text, place + 32, z + w[1], y + _word(text, place + 16))
    return z, y, x, v, w


def _long(text: bytes) -> int:
    size = len(text)
    seed = 81
    x, y = seed, seed * _K1 + 113 & _MASK
    z = _mixed(y * _K2 + 113) * _K2 & _MASK
    v, w = (0, 0), (0, 0)
    x = x * _K2 + _word(text, 0) & _MASK
    end = (size - 1) // 64 * 64
    last = size - 64
    for place in range(0, end, 64):
        x, y, z, v, w = _stirred(text, place, x, y, z, v, w)
    factor = _K1 + ((z & 0xFF) << 1)
    w = (w[0] + (size - 1 & 63), w[1])
    v = (v[0] + w[0], v[1])
    w = (w[0] + v[0], w[1])
    x = _turned(x + y + v[0] + _word(text, last + 8), 37) * factor & _MASK
    y = _turned(y + v[1] + _word(text, last + 48), 42) * factor & _MASK
    x ^= w[1] * 9 & _MASK
    y = y + v[0] * 9 + _word(text, last + 40) & _MASK
    z = _turned(z + w[0], 33) * factor & _MASK
    v = _weak(text, last, v[1] * factor, x + w[0])
    w = _weak(text, last + 32, z + w[1], y + _word(text, last + 16))
    z, x = x, z
    first = _pair(v[0], w[0], factor) + _mixed(y) * _K0 + z
    return _pair(first & _MASK, _pair(v[1], w[1], factor) + x & _MASK, factor)


def fingerprint64(text: bytes) -> int:
    """FarmHash's ``Fingerprint64`` of ``text``: below 2⁶⁴."""
    size = len(text)
    if size > 64:
        return _long(text)
    if size >= 8:
        return (_to_16 if size <= 16 else _to_32 if size <= 32 else _to_64)(size, partial(_word, text))
    if size >= 4:
        return _to_7(size, lambda place: struct.unpack_from("<I", text, place)[0])
    return _to_3(size, text.__getitem__) if size else _K2


_TEXT_NS: Final = 200
"""Average time in which NumPy hashes one of many strings."""


def fingerprints64(texts: Sequence[bytes]) -> NDArray[np.uint64]:
    """Returns `fingerprint64` of each string, by a compiled loop or for all strings of similar sizes at once."""
    found = np.full(len(texts), _K2, np.uint64)
    sizes = np.fromiter(map(len, texts), np.uint64, len(texts))
    joined = b"".join(texts)
    if fingerprints.of_texts.pays(_TEXT_NS * len(texts)):
        fingerprints.of_texts(np.frombuffer(joined, np.uint8), np.cumsum(sizes, dtype=np.int64), found)
        for row in np.flatnonzero(sizes > fingerprints.LONGEST).tolist():
            found[row] = _long(texts[row])
        return found
    starts = np.cumsum(sizes, dtype=np.uint64) - sizes
    groups = np.searchsorted(_SIZES, sizes, side="right")
    for group in np.unique(groups[groups > 0]).tolist():
        rows = np.flatnonzero(groups == group)
        if group == len(_SIZES):
            found[rows] = [_long(texts[row]) for row in rows.tolist()]
            continue
        compute, kind = _BY_SIZE[group - 1]
        found[rows] = compute(sizes[rows], partial(_parts, joined, np.dtype(kind), starts[rows]))
    return found


def _parts(joined: bytes, kind: np.dtype[Any], starts: NDArray[np.uint64], place: Any) -> NDArray[np.uint64]:
    """Returns the number at ``place`` of each of the strings that begin at ``starts``."""
    count = len(joined) - kind.itemsize + 1
    return np.ndarray((count,), kind, joined, strides=(1,))[starts + np.uint64(place)].astype(np.uint64)


def fingerprint128(text: bytes) -> tuple[int, int]:
    """FarmHash's ``Fingerprint128`` of ``text``, which is CityHash's: two numbers below 2⁶⁴, the low one first."""
    if len(text) < 16:
        return _murmur(text, _K0, _K1)
    rest, first, second = text[16:], _word(text, 0), _word(text, 8) + _K0 & _MASK
    return (_murmur if len(rest) < 128 else _city)(rest, first, second)


def _hash_pair(first: int, second: int) -> int:
    return _pair(first & _MASK, second & _MASK, 0x9DDFEA08EB382D69)


def _murmur(text: bytes, a: int, b: int) -> tuple[int, int]:
    size = len(text)
    if size <= 16:
        a = _mixed(a * _K1) * _K1 & _MASK
        c = b * _K1 + fingerprint64(text) & _MASK
        d = _mixed(a + (_word(text, 0) if size >= 8 else c))
    else:
        c = _hash_pair(_word(text, size - 8) + _K1, a)
        d = _hash_pair(b + size, c + _word(text, size - 16))
        a = a + d & _MASK
        for place in range(0, size - 16, 16):
            a = (a ^ _mixed(_word(text, place) * _K1) * _K1) * _K1 & _MASK
            b ^= a
            c = (c ^ _mixed(_word(text, place + 8) * _K1) * _K1) * _K1 & _MASK
            d ^= c
    a, b = _hash_pair(a, c), _hash_pair(d, b)
    return a ^ b, _hash_pair(b, a)


def _city(text: bytes, x: int, y: int) -> tuple[int, int]:
    size = len(text)
    z = size * _K1 & _MASK
    first = _turned(y ^ _K1, 49) * _K1 + _word(text, 0) & _MASK
    v = first, _turned(first, 42) * _K1 + _word(text, 8) & _MASK
    w = _turned(y + z, 35) * _K1 + x & _MASK, _turned(x + _word(text, 88), 53) * _K1 & _MASK
    end = size // 128 * 128
    for place in range(0, end, 64):
        x, y, z, v, w = _stirred(text, place, x, y, z, v, w)
    x += _turned(v[0] + z, 49) * _K0
    y = y * _K0 + _turned(w[1], 37)
    z = z * _K0 + _turned(w[0], 27)
    w, v = (w[0] * 9, w[1]), (v[0] * _K0, v[1])
    for done in range(32, size - end + 32, 32):
        place = size - done
        y = _turned(x + y, 42) * _K0 + v[1]
        w = w[0] + _word(text, place + 16), w[1]
        x = x * _K0 + w[0]
        z += w[1] + _word(text, place)
        w = w[0], w[1] + v[0]
        v = _weak(text, place, v[0] + z, v[1])
        v = v[0] * _K0, v[1]
    x, y = _hash_pair(x, v[0]), _hash_pair(y + z, w[0])
    return _hash_pair(x + v[1], w[1]) + y & _MASK, _hash_pair(x + w[1], y + v[1])


def concatenated(first: int, second: int) -> int:
    """The fingerprint of two fingerprints in this order."""
    result = first ^ _CAT
    result ^= _mixed(second * _CAT) * _CAT & _MASK
    result = _mixed(result * _CAT) * _CAT & _MASK
    return _mixed(result)


def keyed(text: bytes, key: tuple[int, int]) -> int:
    """Returns a keyed hash below 2⁶⁴: a string with a chosen hash cannot be found without ``key``."""
    secret = struct.pack("<2Q", *(part & _MASK for part in key))
    return int.from_bytes(hashlib.blake2b(text, digest_size=8, key=secret).digest(), "little")


def sip_hash(text: bytes, first: int, second: int) -> int:
    """SipHash-2-4 of ``text`` with a key of two 64-bit words (Aumasson and Bernstein, 2012)."""
    a, b = first ^ 0x736F6D6570736575, second ^ 0x646F72616E646F6D
    c, d = first ^ 0x6C7967656E657261, second ^ 0x7465646279746573

    def rounds(count: int) -> None:
        nonlocal a, b, c, d
        for _ in range(count):
            a, c = (a + b) & _MASK, (c + d) & _MASK
            b, d = _left(b, 13) ^ a, _left(d, 16) ^ c
            a = _left(a, 32)
            c, a = (c + b) & _MASK, (a + d) & _MASK
            b, d = _left(b, 17) ^ c, _left(d, 21) ^ a
            c = _left(c, 32)

    whole = len(text) // 8 * 8
    last = text[whole:].ljust(7, b"\0") + bytes([len(text) & 0xFF])
    for (word,) in struct.iter_unpack("<Q", text[:whole] + last):
        d ^= word
        rounds(2)
        a ^= word
    c ^= 0xFF
    rounds(4)
    return a ^ b ^ c ^ d


def _left(value: int, by: int) -> int:
    return (value << by | value >> (64 - by)) & _MASK


def old_hash(text: bytes) -> int:
    """TensorFlow's first hash of strings, MurmurHash64A with a fixed seed; `tf.string_to_hash_bucket` uses it."""
    factor, size = _CAT, len(text)
    found = 0xDECAFCAFFE ^ size * factor & _MASK
    whole = size // 8 * 8
    for (word,) in struct.iter_unpack("<Q", text[:whole]):
        word = word * factor & _MASK
        word = (word ^ word >> 47) * factor & _MASK
        found = (found ^ word) * factor & _MASK
    if size > whole:
        found = (found ^ int.from_bytes(text[whole:], "little")) * factor & _MASK
    found = (found ^ found >> 47) * factor & _MASK
    return found ^ found >> 47
