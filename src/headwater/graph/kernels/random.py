"""Random numbers, bit for bit equal to `headwater.graph.ops.random`. A key is two numbers of 32 bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from headwater.dtypes import DType, int64
from headwater.graph.kernels.common import ints
from headwater.graph.kernels.generator import (
    Key,
    Keys,
    fold_in,
    normal,
    scaled,
    truncated_normal,
    uniform,
    words,
)
from headwater.graph.kernels.registry import NoKernel, kernel

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray


def _draw(op_type: str, draw: Callable[[Key, tuple[int, ...]], Any]) -> None:
    @kernel(op_type)
    def drawn(key: Key, shape: HostArray, *, dtype: DType, seed: int = 0, seed2: int = 0) -> HostArray:  # pyright: ignore[reportUnusedFunction]
        del seed, seed2
        if dtype.numpy_dtype != np.float32:
            raise NoKernel
        return draw(key, ints(shape))


#: Operation types that draw real numbers of a given shape.
DRAWS: Final = frozenset({"RandomStandardNormal", "RandomUniform", "TruncatedNormal"})

_draw("RandomStandardNormal", normal)
_draw("RandomUniform", uniform)
_draw("TruncatedNormal", truncated_normal)


def scaled_draw(x: HostArray, factor: HostArray, term: HostArray, *, spare: bool) -> HostArray:
    """Returns ``x * factor + term`` for random numbers ``x``, rounded only once, because XLA does not round the product
    before the addition.

    Args:
      spare: whether the memory of ``x`` may be reused.
    """
    if x.dtype != np.float32 or factor.ndim or term.ndim:
        return x * factor + term
    return scaled(x, factor, term, into=x if spare else np.empty_like(x))


def body_key(key: HostArray, name_hash: int, turn: int | None) -> Key:
    """Returns the key of an operation in a body, given the body's key, a hash of the operation's name, and the
    iteration of the loop, if it is in one; see `headwater.graph.ops.bodies.evaluate`."""
    first, second = key.tolist()
    found = fold_in((first, second), name_hash)
    return found if turn is None else fold_in(found, turn)


@kernel("RandomKey")
def random_key(key: Key, *, seed: int = 0, seed2: int = 0) -> HostArray:
    """A key for the random numbers of a body."""
    del seed, seed2
    return np.array(key, np.uint32)


def _bits(key: Keys, count: int, unsigned: np.dtype[Any]) -> HostArray:
    first, second = words(key, count)
    if unsigned.itemsize == 4:
        return first ^ second
    return first.astype(np.uint64) << np.uint64(32) | second


def uniform_float64(key: Keys, count: int) -> HostArray:
    """Draws numbers in [0, 1), of float64."""
    bits = _bits(key, count, np.dtype(np.uint64)) >> np.uint64(12) | np.float64(1).view(np.uint64)
    return bits.view(np.float64) - 1


@kernel("RandomUniformInt")
def uniform_int(
    key: Keys, shape: HostArray, minval: HostArray, maxval: HostArray, *, seed: int = 0, seed2: int = 0
) -> HostArray:
    """Draws integers in [minval, maxval) as the remainder of random numbers with twice as many bits."""
    del seed, seed2
    sizes = ints(shape)
    unsigned = np.dtype(f"u{minval.dtype.itemsize}")
    if unsigned.itemsize < 4 or minval.ndim or maxval.ndim:
        raise NoKernel
    low, high = minval.item(), maxval.item()
    span = unsigned.type(max(high - low, 1))
    first, second = words(key, 2)  # two derived keys, as `fold_in` returns
    bits = _bits((first[..., np.newaxis], second[..., np.newaxis]), math.prod(sizes), unsigned)
    upper, lower = bits[..., 0, :], bits[..., 1, :]
    half = unsigned.type(1 << 4 * unsigned.itemsize) % span
    offset = (upper % span) * (half * half % span) + lower % span
    drawn = (minval + (offset % span).astype(minval.dtype)).astype(minval.dtype)
    return drawn.reshape((*drawn.shape[:-1], *sizes))


@kernel("RandomShuffle")
def shuffle(key: Key, value: HostArray, *, seed: int = 0, seed2: int = 0) -> HostArray:
    """Returns the slices along the first dimension in random order. The slices are sorted by random numbers, several
    times, so that equal random numbers do not bias the order."""
    del seed, seed2
    order = np.arange(len(value))
    for _ in range(math.ceil(3 * math.log(max(1, len(value))) / math.log(np.iinfo(np.uint32).max))):
        key, drawn = fold_in(key, 0), fold_in(key, 1)
        order = order[np.argsort(_bits(drawn, len(value), np.dtype(np.uint32)), kind="stable")]
    return value[order]


@kernel("Multinomial")
def multinomial(
    key: Key, logits: HostArray, num_samples: HostArray, *, output_dtype: DType = int64, seed: int = 0, seed2: int = 0
) -> HostArray:
    """Draws classes for each row with probabilities softmax(logits): the class with the largest sum of its logit and a
    Gumbel-distributed number."""
    del seed, seed2
    if logits.dtype != np.float32 or not logits.size:
        raise NoKernel
    drawn = uniform(key, (len(logits), int(num_samples), logits.shape[1]))
    gumbel = -np.log(-np.log(np.maximum(drawn, np.finfo(np.float32).tiny)))
    return np.argmax(gumbel + logits[:, None, :], -1).astype(output_dtype.numpy_dtype)
