"""Random numbers of float32 in NumPy, bit for bit equal to the compiled forms in `headwater.graph.ops.random`.

The generator is Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011), as
in JAX: element ``i`` of a draw is the exclusive or of the two words that the generator computes from the key and the
counter ``i``. Its upper 23 bits give a number in [0, 1); the inverse error function of such a number gives a normal
number (Giles, "Approximating the erfinv function", 2012). In the polynomials of that function, XLA rounds a product and
a sum once (fused multiply-add); here they are computed in float64, and then rounded to float32.

There is no compilation per shape, so the first draw of a shape takes no longer than later draws.
"""

from __future__ import annotations

import math
import threading
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np

from headwater.cores import usable_cores
from headwater.tables.random_loops import threefry

Array = np.ndarray[Any, Any]
Key = tuple[int, int]
Keys = Key | tuple[Array, Array]
"""The two words of a key; or two arrays with the words of several keys, ``[keys, 1]``."""

#: Number of elements computed at once: three arrays of this size fit into the cache of a core.
_BLOCK: Final = 32_768
#: Draws of at least this many elements are divided among threads.
_LARGE: Final = 1 << 18
#: After this many normal numbers, computing a table of all 2²³ possible values takes less time than computing further
#: numbers one by one.
_TABLE_FROM_NUMBERS: Final = 1 << 22
#: Time that NumPy takes to compute the words of a draw, in nanoseconds: fixed, and per element.
_DRAW_NS: Final = 50_000
_WORD_NS: Final = 15
_WORD: Final = 0xFFFFFFFF
_PARITY: Final = 0x1BD11BDA
_ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
# Arrays instead of numbers, because NumPy takes longer to convert a number than to compute a small array.
_SHIFTS: Final = [
    [(np.array(left, np.uint32), np.array(32 - left, np.uint32)) for left in group] for group in _ROTATIONS
]
_NUMBERS: Final = [np.array(number, np.uint32) for number in range(1, 6)]
_MANTISSA_BITS: Final = 23

# Keys --------------------------------------------------------------------------------------------------------------


def seed_key(seed: int) -> tuple[int, int]:
    """The key of a seed of 64 bits."""
    return seed >> 32 & _WORD, seed & _WORD


def seeds_of(attrs: Mapping[str, Any], name: str, seed: int) -> tuple[int, int]:
    """Returns the two seeds of a random operation: its attributes, or else ``seed`` and a hash of its name."""
    first, second = int(attrs.get("seed") or 0), int(attrs.get("seed2") or 0)
    return (first, second) if first or second else (seed, zlib.crc32(name.encode()))


def fold_in(key: tuple[int, int], number: int) -> tuple[int, int]:
    """Derives a key from a key and a 32-bit number: the two random words for the number as counter, see `words`."""
    words = key[0], key[1], key[0] ^ key[1] ^ _PARITY
    first, second = words[0], (number & _WORD) + words[1] & _WORD
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            first = first + second & _WORD
            second = (second << rotation | second >> 32 - rotation) & _WORD ^ first
        first = first + words[(group + 1) % 3] & _WORD
        second = second + words[(group + 2) % 3] + group + 1 & _WORD
    return first, second


def _threefry(key: Keys, first: Array, second: Array, spare: Array) -> None:
    """Replaces counters, as two arrays of uint32, by random words; ``spare`` is an array of the same size."""
    if threefry.pays(_DRAW_NS + _WORD_NS * first.size):
        keys = [np.broadcast_to(np.asarray(word, np.uint32), (*first.shape[:-1], 1)).reshape(-1) for word in key]
        rows = len(keys[0]), first.shape[-1]
        for one, other, ones, others in zip(*keys, first.reshape(rows), second.reshape(rows), strict=True):
            threefry(one, other, ones, others)
        return
    words = [np.asarray(word, np.uint32) for word in (*key, key[0] ^ key[1] ^ _PARITY)]
    np.add(first, words[0], first)
    np.add(second, words[1], second)
    for group in range(5):
        for left, right in _SHIFTS[group % 2]:
            np.add(first, second, first)
            np.right_shift(second, right, spare)
            np.left_shift(second, left, second)
            np.bitwise_or(second, spare, second)
            np.bitwise_xor(second, first, second)
        np.add(first, words[(group + 1) % 3], first)
        np.add(second, words[(group + 2) % 3], second)
        np.add(second, _NUMBERS[group], second)


def words(key: Keys, count: int) -> tuple[Array, Array]:
    """Returns both words, of uint32, for the counters 0, 1 … ``count`` - 1 with a key. If the words of the key are
    columns of several keys, the result has one row for each key."""
    places = np.arange(count, dtype=np.uint64)
    shape = np.broadcast_shapes(np.shape(key[0]), (count,))
    first, second = np.empty(shape, np.uint32), np.empty(shape, np.uint32)
    first[...], second[...] = places >> np.uint64(32), places & np.uint64(_WORD)
    _threefry(key, first, second, np.empty(shape, np.uint32))
    return first, second


# Draws -------------------------------------------------------------------------------------------------------------


def uniform(key: Key, shape: Sequence[int]) -> Array:
    """Numbers in [0, 1), of float32."""
    return _drawn(key, shape, _fractions)


def normal(key: Key, shape: Sequence[int]) -> Array:
    """Normal numbers of mean 0 and standard deviation 1, of float32."""
    return _drawn(key, shape, _normals.finish(math.prod(shape)))


def truncated_normal(key: Key, shape: Sequence[int]) -> Array:
    """Like `normal`, within two standard deviations."""
    return _drawn(key, shape, _truncated_normals.finish(math.prod(shape)))


def _drawn(key: Key, shape: Sequence[int], finish: Callable[[Array, Array], None]) -> Array:
    """Returns an array of random numbers, which ``finish`` computes from 23 random bits each."""
    drawn = np.empty(tuple(shape), np.float32)
    flat = drawn.reshape(-1)

    def fill(begin: int, end: int) -> None:
        first, second, spare = (np.empty(min(_BLOCK, end - begin), np.uint32) for _ in range(3))
        places = np.arange(len(first), dtype=np.uint64)
        for at in range(begin, end, _BLOCK):
            size = min(_BLOCK, end - at)
            one, other, rest = first[:size], second[:size], spare[:size]
            one.fill(at >> 32)  # equal for the whole block, because block size and 2**32 are powers of two
            np.add(places[:size], np.uint64(at & _WORD), other, casting="unsafe")
            _threefry(key, one, other, rest)
            np.bitwise_xor(one, other, one)
            np.right_shift(one, np.uint32(32 - _MANTISSA_BITS), one)
            finish(one, flat[at : at + size])

    _shared_out(fill, flat.size)
    return drawn


def _shared_out(fill: Callable[[int, int], None], size: int) -> None:
    """Calls ``fill(begin, end)`` for parts of the range 0 … ``size``, aligned to blocks; uses several threads if the
    range is large."""
    threads = usable_cores()
    if size < _LARGE or threads == 1:
        fill(0, size)
        return
    part = -(-size // threads // _BLOCK) * _BLOCK
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(fill, at, min(size, at + part)) for at in range(0, size, part)]:
            done.result()


def scaled(x: Array, factor: object, term: object, into: Array) -> Array:
    """Puts ``x * factor + term`` of float32, rounded once, into an array of the same shape, which may be ``x``."""
    source, target = x.reshape(-1), into.reshape(-1)

    def fill(begin: int, end: int) -> None:
        for at in range(begin, end, _BLOCK):
            part = slice(at, min(end, at + _BLOCK))
            target[part] = multiply_add(source[part], factor, term)

    _shared_out(fill, source.size)
    return into


# From bits to numbers ----------------------------------------------------------------------------------------------


def _fractions(bits: Array, drawn: Array) -> None:
    np.bitwise_or(bits, np.uint32(0x3F800000), bits)  # interpreted as floats, the bits are numbers in [1, 2)
    np.subtract(bits.view(np.float32), np.float32(1), drawn)


_LOW: Final = np.nextafter(np.float32(-1), np.float32(0))
_LIMIT: Final = np.float32(0.9544997)
_ROOT: Final = np.float32(math.sqrt(2))


def _normal(bits: Array, drawn: Array) -> None:
    _fractions(bits, drawn)
    np.multiply(drawn, np.float32(2), drawn)
    np.add(drawn, _LOW, drawn)
    np.maximum(drawn, _LOW, out=drawn)
    drawn[...] = _ROOT * _inverse_error(drawn)


def _truncated(bits: Array, drawn: Array) -> None:
    """Computes truncated normal numbers by the inverse error function, from uniform numbers between the error
    function's values at -2 and 2 standard deviations."""
    _fractions(bits, drawn)
    drawn[...] = np.maximum(multiply_add(drawn, _LIMIT + _LIMIT, -_LIMIT), -_LIMIT)
    below = np.nextafter(np.float32(2), np.float32(0))
    np.clip(_ROOT * _inverse_error(drawn), -below, below, out=drawn)


class _Tabulated:
    """A function of 23 bits. After many calls, values are looked up in a table, which takes a third of the time."""

    def __init__(self, function: Callable[[Array, Array], None]) -> None:
        self._function = function
        self._drawn = 0
        self._table: Array | None = None
        self._lock = threading.Lock()

    def finish(self, count: int) -> Callable[[Array, Array], None]:
        """Returns the function to use for ``count`` more numbers: the function itself, or the lookup in the table."""
        with self._lock:
            self._drawn += count
            if self._drawn < _TABLE_FROM_NUMBERS:
                return self._function
            if self._table is None:
                self._table = np.empty(1 << _MANTISSA_BITS, np.float32)
                _shared_out(self._fill, self._table.size)
        return self._fill_from_table

    def _fill(self, begin: int, end: int) -> None:
        assert self._table is not None
        for at in range(begin, end, _BLOCK):
            self._function(np.arange(at, at + _BLOCK, dtype=np.uint32), self._table[at : at + _BLOCK])

    def _fill_from_table(self, bits: Array, drawn: Array) -> None:
        assert self._table is not None
        np.take(self._table, bits, out=drawn, mode="clip")


_normals: Final = _Tabulated(_normal)
_truncated_normals: Final = _Tabulated(_truncated)


def multiply_add(x: Array, factor: Any, term: object) -> Array:
    """``x * factor + term`` of float32, rounded once."""
    found = np.multiply(x, factor, dtype=np.float64)
    found += term
    return found.astype(np.float32)


def _polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    """Evaluates a polynomial by Horner's rule, with the highest power's coefficient first; rounds each step once."""
    exact = x.astype(np.float64)
    value = multiply_add(exact, np.float32(coefficients[0]), np.float32(coefficients[1]))
    for coefficient in coefficients[2:]:
        value = multiply_add(exact, value, np.float32(coefficient))
    return value


#: Coefficients of the inverse error function, in w - 2.5 and √w - 3 for w = -log(1 - x²) (Giles, table 5).
_CENTRE: Final = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164,
    0.246640727, 1.50140941,
)  # fmt: skip
_TAIL: Final = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
    1.00167406, 2.83297682,
)  # fmt: skip


def _inverse_error(x: Array) -> Array:
    w = -_log1p(-(x * x))
    value = _polynomial(w - np.float32(2.5), _CENTRE)
    tail = np.flatnonzero(w >= np.float32(5))
    if tail.size:
        value[tail] = _polynomial(np.sqrt(w[tail]) - np.float32(3), _TAIL)
    return value * x


#: Coefficients of (log(1 + x) - x + x²/2) / x³ as a quotient of polynomials (Cephes, log1p).
_NUMERATOR: Final = (
    4.5270000862445199635215e-5, 4.9854102823193375972212e-1, 6.5787325942061044846969, 2.9911919328553073277375e1,
    6.0949667980987787057556e1, 5.7112963590585538103336e1, 2.0039553499201281259648e1,
)  # fmt: skip
_DENOMINATOR: Final = (
    1.0, 1.5062909083469192043167e1, 8.3047565967967209469434e1, 2.2176239823732856465394e2,
    3.0909872225312059774938e2, 2.1642788614495947685003e2, 6.0118660497603843919306e1,
)  # fmt: skip


def _log1p(x: Array) -> Array:
    """log(1 + x) of numbers in (-1, 0]."""
    found = np.empty_like(x)
    large = np.flatnonzero(x <= np.float32(1 - math.sqrt(2)))
    small = np.flatnonzero(x > np.float32(1 - math.sqrt(2)))
    if large.size:
        found[large] = _log(x[large] + np.float32(1))
    near = x[small]
    square = near * near
    rest = near * square * (_polynomial(near, _NUMERATOR) / _polynomial(near, _DENOMINATOR))
    found[small] = near + multiply_add(square, np.float32(-0.5), rest)
    return found


#: Coefficients of (log(1 + x) - x + x²/2) / x³ for 1 + x between √½ and √2 (Cephes, logf), in groups of three.
_LOG: Final = (
    (7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1),
    (-1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1),
    (2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1),
)


def _log(x: Array) -> Array:
    """The logarithm of positive numbers that are not subnormal."""
    bits = x.view(np.uint32)
    exponent = ((bits >> np.uint32(23)).astype(np.int32) - 126).astype(np.float32)
    part = (bits & np.uint32(0x007FFFFF) | np.uint32(0x3F000000)).view(np.float32)
    low = part < np.float32(math.sqrt(0.5))
    part = part - np.float32(1) + np.where(low, part, np.float32(0))
    exponent -= low
    square = part * part
    cube = square * part
    first, second, third = (_polynomial(part, coefficients) for coefficients in _LOG)
    value = multiply_add(multiply_add(first, cube, second), cube, third)
    # log 2 is 0.693359375 - 2.12194440e-4.
    value = multiply_add(value, cube, exponent * np.float32(-2.12194440e-4))
    value = multiply_add(square, np.float32(-0.5), part) + value
    return multiply_add(exponent, np.float32(0.693359375), value)
