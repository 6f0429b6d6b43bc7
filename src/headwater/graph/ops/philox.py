"""Random numbers computed from a counter and a key; bit for bit the numbers of TensorFlow's Philox generator.

Philox 4x32-10 is J. Salmon and others, "Parallel random numbers: as easy as 1, 2, 3" (2011). A state is three int64:
128 bits of the counter, low first, and the key. 256 counters are reserved for each number of a result. Most
distributions use a quarter of one counter; distributions sampled by rejection use more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from headwater.dtypes import DType, bfloat16, float16, float32, float64, int64, uint32, uint64
from headwater.errors import FailedPreconditionError, InvalidArgumentError
from headwater.graph.ops.common import AnyArray, array_module, as_ints
from headwater.graph.ops.define import host
from headwater.graph.registry import HostArray, Inference, Spec
from headwater.graph.resources.host_context import HostContext
from headwater.lazy_jax import jnp

#: Number of counters by which each number of a result advances the state.
STRIDE: Final = 256

_MULTIPLIERS: Final = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL: Final = (np.uint64(0x9E3779B9), np.uint64(0xBB67AE85))
_LOW: Final = np.uint64(0xFFFFFFFF)
_HALF: Final = np.uint64(32)
_64: Final = (1 << 64) - 1
_MANTISSAS: Final = {bfloat16: 7, float16: 10, float32: 23, float64: 52}


def rounds(parts: Sequence[Any], key: Sequence[Any]) -> Any:
    """Returns the four random words of counters: arrays of uint64 below 2³², stacked in a last dimension.

    Args:
      parts: the four words of each counter, low first.
      key: the two words of the key.
    """
    xp = array_module(*parts, *key)
    first, second, third, fourth = parts
    keys = list(key)
    for _ in range(10):
        one, other = first * _MULTIPLIERS[0], third * _MULTIPLIERS[1]
        first, second = (other >> _HALF) ^ second ^ keys[0], other & _LOW
        third, fourth = (one >> _HALF) ^ fourth ^ keys[1], one & _LOW
        keys = [(each + weyl) & _LOW for each, weyl in zip(keys, _WEYL, strict=True)]
    return xp.stack(xp.broadcast_arrays(first, second, third, fourth), -1)


def blocks(counters: Sequence[int], key: int) -> HostArray:
    """Returns four 32-bit numbers for each 128-bit counter, as uint64 of shape (counters, 4)."""
    parts = [
        np.array([(counter >> shift) & 0xFFFFFFFF for counter in counters], np.uint64) for shift in (0, 32, 64, 96)
    ]
    return rounds(parts, [np.uint64(key & 0xFFFFFFFF), np.uint64((key >> 32) & 0xFFFFFFFF)])


def pairs(words: AnyArray) -> Any:
    """Returns numbers of 64 bits, each combined from two numbers of 32 bits, the low half first."""
    return words[..., 0::2] | (words[..., 1::2] << _HALF)


def units(words: AnyArray, dtype: DType) -> Any:
    """Returns numbers in [0, 1): mantissas, which are the low bits of a word, or of the first word of two."""
    kind = dtype.numpy_dtype
    bits = _MANTISSAS[dtype]
    if dtype == float64:
        whole = ((words[..., 0::2] & np.uint64(0xFFFFF)) << _HALF) | words[..., 1::2]
    else:
        whole = words & np.uint64((1 << bits) - 1)
    return (whole.astype(np.promote_types(kind, np.float32)) * kind.type(2.0**-bits)).astype(kind)


def normals(words: AnyArray, dtype: DType) -> Any:
    """Returns normally distributed numbers, computed from pairs of uniform numbers by the Box-Muller transform."""
    xp = array_module(words)
    wide = float64 if dtype == float64 else float32
    kind = wide.numpy_dtype.type
    drawn = units(words, wide)
    angle = kind(2 * np.pi) * drawn[..., 1::2]
    radius = xp.sqrt(kind(-2) * xp.log(xp.maximum(drawn[..., 0::2], kind(1e-7))))
    both = xp.stack([xp.sin(angle) * radius, xp.cos(angle) * radius], -1)
    return both.reshape(*drawn.shape).astype(dtype.numpy_dtype)


def _truncated(start: int, key: int, count: int, dtype: DType) -> HostArray:
    """Draws normally distributed numbers of magnitude below 2: from each group of a block, the first numbers in this
    range."""
    group = 4 if dtype == float32 else 2
    found: list[HostArray] = []
    for at in range(-(-count // group)):
        counter, kept = start + at * group * STRIDE // 4, np.zeros(0, dtype.numpy_dtype)
        while len(kept) < group:
            drawn = normals(blocks([counter], key), dtype)[0]
            kept = np.concatenate([kept, drawn[np.abs(drawn) < 2]])
            counter += 1
        found.append(kept[:group])
    return np.concatenate(found)[:count] if found else np.zeros(0, dtype.numpy_dtype)


def _given(inference: Inference) -> Sequence[Spec]:
    return [Spec(inference.attrs["dtype"], inference.partial(1))]


def _taken(context: HostContext, ref: Any, algorithm: int, count: int) -> tuple[int, int]:
    """Returns the counter and the key of a variable, and advances it by the maximum that ``count`` numbers need."""
    if algorithm != 1:
        raise InvalidArgumentError(f"Unsupported algorithm id: {algorithm}")
    with context.resources.lock:
        if not ref.initialized:
            raise FailedPreconditionError(f"Attempting to use uninitialized value {ref.name}")
        low, high, key = (int(each) & _64 for each in np.asarray(ref.value))
        start = low | (high << 64)
        after = (start + count * STRIDE) & ((1 << 128) - 1)
        moved = np.array([after & _64, after >> 64, key], np.uint64).view(np.int64)
        ref.value = jnp.asarray(moved, dtype=moved.dtype)
        ref.counts[ref.slot] += 1
    return start, key


def _words(start: int, key: int, count: int, bits: int) -> HostArray:
    return blocks([start + at for at in range(-(-count * bits // 128))], key)


def _bits(dtype: DType) -> int:
    return dtype.numpy_dtype.itemsize * 8


@host("PhiloxUniform", inputs="state:int64, shape:S|int32_or_64=int32", infer=_given, refs=(0,))
def uniform(
    context: HostContext, state: HostArray, shape: HostArray, *, dtype: DType = float32, algorithm: int = 1
) -> HostArray:
    """Draws uniform numbers in [0, 1)."""
    wanted = as_ints(shape)
    count = math.prod(wanted)
    start, key = _taken(context, state, algorithm, count)
    return units(_words(start, key, count, _bits(dtype)), dtype).reshape(-1)[:count].reshape(wanted)


@host("PhiloxNormal", inputs="state:int64, shape:S|int32_or_64=int32", infer=_given, refs=(0,))
def normal(
    context: HostContext,
    state: HostArray,
    shape: HostArray,
    *,
    dtype: DType = float32,
    algorithm: int = 1,
    truncated: bool = False,
) -> HostArray:
    """Draws normally distributed numbers; with ``truncated``, only numbers within two standard deviations of the
    mean."""
    wanted = as_ints(shape)
    count = math.prod(wanted)
    start, key = _taken(context, state, algorithm, count)
    if truncated:
        return _truncated(start, key, count, dtype).reshape(wanted)
    return normals(_words(start, key, count, _bits(dtype)), dtype).reshape(-1)[:count].reshape(wanted)


@host("PhiloxIntegers", inputs="state:int64, shape:S|int32_or_64=int32", infer=_given, refs=(0,))
def integers(
    context: HostContext, state: HostArray, shape: HostArray, *, dtype: DType = uint64, algorithm: int = 1
) -> HostArray:
    """Draws integers, uniform over all values of their type."""
    wanted = as_ints(shape)
    count = math.prod(wanted)
    start, key = _taken(context, state, algorithm, count)
    words = _words(start, key, count, _bits(dtype))
    found = pairs(words) if _bits(dtype) == 64 else words.astype(np.uint32)
    return found.reshape(-1)[:count].view(dtype.numpy_dtype).reshape(wanted)


@host(
    "PhiloxIntegersBetween",
    inputs="state:int64, shape:S|int32_or_64=int32, low:dtype, high:dtype",
    infer=_given,
    refs=(0,),
)
def integers_between(
    context: HostContext,
    state: HostArray,
    shape: HostArray,
    low: HostArray,
    high: HostArray,
    *,
    dtype: DType = int64,
    algorithm: int = 1,
) -> HostArray:
    """Draws integers in [low, high).

    Raises:
      InvalidArgumentError: the interval is empty.
    """
    if int(low) >= int(high):
        raise InvalidArgumentError(f"Need minval < maxval, got {int(low)} >= {int(high)}")
    wide = integers(context, state, shape, dtype=uint64 if _bits(dtype) == 64 else uint32, algorithm=algorithm)
    span = wide.dtype.type(int(high) - int(low))
    with np.errstate(over="ignore"):
        return ((wide % span) + np.asarray(low).astype(wide.dtype)).view(dtype.numpy_dtype)


@host("PhiloxSkip", inputs="state:int64, delta:int64", infer=lambda inference: [Spec(int64, ())], refs=(0,))
def skip(context: HostContext, state: HostArray, delta: HostArray, *, algorithm: int = 1) -> HostArray:
    """Advances a state by the maximum that ``delta`` numbers need; returns ``delta``."""
    _taken(context, state, algorithm, int(delta))
    return delta
