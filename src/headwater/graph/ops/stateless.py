"""Random numbers that a seed determines: TensorFlow's, computed by Philox from a counter for each number.

Integers and uniform numbers are bitwise equal to TensorFlow's. Numbers computed by logarithms, sines and cosines agree
up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from headwater.dtypes import DType, float32, float64, int32, int64
from headwater.errors import InvalidArgumentError
from headwater.graph.kernels.registry import kernel
from headwater.graph.ops import philox
from headwater.graph.ops.common import AnyArray, array_module, as_ints, constant_int, output
from headwater.graph.ops.define import pure
from headwater.graph.registry import HostArray, Inference, Spec
from headwater.lazy_jax import custom_jvp, jax, jnp, lax, special

_LOW: Final = np.uint64(0xFFFFFFFF)
_HALF: Final = np.uint64(32)
_SCRAMBLING: Final = (np.uint64(0x3EC8F720), np.uint64(0x02461E29))
"""The key with which TensorFlow makes a key and a counter from a seed."""
_INVERSION: Final = 42
"""Number of counters of each binomial number with a mean below 10."""


@dataclass(frozen=True, kw_only=True)
class Stream:
    """Counters and the key of a seed.

    Attributes:
      key: its two words.
      high: the two upper words of each counter; the lower two count from 0.
    """

    key: Sequence[AnyArray]
    high: Sequence[AnyArray]

    def block(self, index: AnyArray) -> Any:
        """Returns the four words of the counter number ``index``, uint64, in a further last dimension."""
        return philox.rounds([index & _LOW, index >> _HALF, *self.high], self.key)

    def words(self, count: int) -> AnyArray:
        """Returns the words of as many counters as ``count`` words need."""
        xp = array_module(*self.key)
        return self.block(xp.arange(-(-count // 4), dtype=np.uint64))


def stream(seed: Any) -> Stream:
    """Returns the stream of a seed, two integers."""
    first, second = (seed[at].astype(np.int64).astype(np.uint64) for at in (0, 1))
    words = philox.rounds([first & _LOW, first >> _HALF, second & _LOW, second >> _HALF], _SCRAMBLING)
    return Stream(key=(words[..., 0], words[..., 1]), high=(words[..., 2], words[..., 3]))


def _repeat(xp: Any, going: Callable[[Any], Any], step: Callable[[Any], Any], state: tuple[AnyArray, ...]) -> Any:
    """Repeats ``step`` while ``going``."""
    if xp is not np:
        return lax.while_loop(going, step, state)
    while going(state):
        state = step(state)
    return state


# Numbers of a given shape -----------------------------------------------------------------------------------------


def _of_shape(inference: Inference) -> Sequence[Spec]:
    if inference.inputs[1].dims not in (None, (2,), (None,)):
        raise InvalidArgumentError(f"seed must have shape [2], not {list(inference.inputs[1].dims or ())}")
    return [Spec(inference.attrs.get("dtype", float32), inference.partial(0))]


_SHAPE_AND_SEED: Final = "shape:T|index=int32, seed:Tseed|index=int64"


def _size(dtype: DType) -> int:
    """The number of words of each number."""
    return 2 if dtype.numpy_dtype.itemsize == 8 else 1


def _define(op_type: str, draw: Callable[..., AnyArray], inputs: str = "", default: DType = float32) -> None:
    """Defines an operation type; ``draw`` returns at least as many numbers as required, in the order of a result."""

    def lower(shape: HostArray, seed: Any, *others: Any, dtype: DType = default) -> AnyArray:
        sizes = as_ints(shape)
        count = math.prod(sizes)
        return draw(stream(seed), count, dtype, *others).reshape(-1)[:count].reshape(sizes)

    pure(op_type, inputs=_SHAPE_AND_SEED + inputs, static=(0,), infer=_of_shape, differentiable=False)(lower)
    kernel(op_type)(lower)


def _uniform(drawn: Stream, count: int, dtype: DType) -> AnyArray:
    return philox.units(drawn.words(count * _size(dtype)), dtype)


def _normal(drawn: Stream, count: int, dtype: DType) -> AnyArray:
    return philox.normals(drawn.words(count * _size(dtype)), dtype)


def _truncated(drawn: Stream, count: int, dtype: DType) -> AnyArray:
    """Draws normal numbers below 2 in magnitude: each group has the first such numbers of blocks of its own."""
    xp = array_module(*drawn.key)
    group = 4 // _size(dtype)
    groups = -(-count // group)
    first = xp.arange(groups, dtype=np.uint64) * np.uint64(group * philox.STRIDE // 4)

    def step(state: tuple[AnyArray, ...]) -> tuple[AnyArray, ...]:
        found, number, turn = state
        for each in xp.moveaxis(philox.normals(drawn.block(first + turn), dtype), -1, 0):
            good = xp.abs(each) < 2
            here = good[:, None] & (number[:, None] == xp.arange(group))
            found, number = xp.where(here, each[:, None], found), number + good
        return found, number, turn + np.uint64(1)

    state = xp.zeros((groups, group), dtype.numpy_dtype), xp.zeros(groups, np.int64), xp.asarray(0, np.uint64)
    return _repeat(xp, lambda state: (state[1] < group).any(), step, state)[0]


def _integers(drawn: Stream, count: int, dtype: DType) -> AnyArray:
    words = drawn.words(count * _size(dtype))
    whole = philox.pairs(words) if _size(dtype) == 2 else words.astype(np.uint32)
    return whole.astype(dtype.numpy_dtype)


def _integers_between(drawn: Stream, count: int, dtype: DType, low: AnyArray, high: AnyArray) -> AnyArray:
    unsigned = np.dtype(f"u{dtype.numpy_dtype.itemsize}")
    whole = _integers(drawn, count, dtype).astype(unsigned)
    span = high.astype(unsigned) - low.astype(unsigned)
    return (whole % span + low.astype(unsigned)).astype(dtype.numpy_dtype)


_define("StatelessRandomUniform", _uniform)
_define("StatelessRandomNormal", _normal)
_define("StatelessTruncatedNormal", _truncated)
_define("StatelessRandomUniformFullInt", _integers, default=int32)
_define("StatelessRandomUniformInt", _integers_between, ", minval:dtype|index, maxval:dtype", int32)


# Classes ----------------------------------------------------------------------------------------------------------


def _classes_spec(inference: Inference) -> Sequence[Spec]:
    dims = inference.inputs[0].dims or (None, None)
    if len(dims) != 2:
        raise ValueError(f"Shape must be rank 2 but is rank {len(dims)}")
    return [Spec(inference.attrs.get("output_dtype", int64), (dims[0], constant_int(inference, 1)))]


@kernel("StatelessMultinomial")
@pure(
    "StatelessMultinomial",
    inputs="logits:T|real, num_samples:int32, seed:Tseed|index=int64",
    static=(1,),
    infer=_classes_spec,
    differentiable=False,
)
def multinomial(logits: AnyArray, num_samples: HostArray, seed: AnyArray, *, output_dtype: DType = int64) -> AnyArray:
    """Draws classes for each row, with probabilities softmax(logits), by inverting the distribution function."""
    xp = array_module(logits, seed)
    rows, count = logits.shape[0], int(num_samples)
    finite = xp.isfinite(logits)
    largest = xp.max(xp.where(finite, logits, -xp.inf), axis=1, keepdims=True).astype(np.float64)
    weights = xp.where(finite, xp.exp(logits.astype(np.float64) - largest), 0)
    sums = xp.cumsum(weights, axis=1)
    drawn = _uniform(stream(seed), rows * count, float64).reshape(-1)[: rows * count].reshape(rows, count)
    found = drawn * sums[:, -1:]
    return xp.sum(sums[:, None, :] <= found[:, :, None], axis=-1).astype(output_dtype.numpy_dtype)


# Numbers of distributions with parameters: each is computed from counters of its own ---------------------------------


def _ends_with(inference: Inference) -> Sequence[Spec]:
    (spec,) = _of_shape(inference)
    return [Spec(inference.attrs.get("dtype", spec.dtype), spec.dims)]


class _Buffer:
    """Numbers of each sample that are drawn in pairs and used in reverse order.

    Attributes:
      values: two numbers for each sample.
      left: how many of them are left.
    """

    def __init__(self, values: jax.Array, left: jax.Array) -> None:
        self.values, self.left = values, left

    def take(self, used: jax.Array, at: jax.Array, draw: Callable[[jax.Array], jax.Array]) -> tuple[Any, jax.Array]:
        """Returns a number for each sample where ``used``, and the number of the next counter, which was ``at``."""
        empty = used & (self.left == 0)
        self.values = jnp.where(empty[:, None], draw(at), self.values)
        self.left = jnp.where(empty, 2, self.left) - used
        return jnp.where(self.left == 1, self.values[:, 1], self.values[:, 0]), at + empty.astype(np.uint64)


def _sampled(sizes: tuple[int, ...], *parameters: jax.Array) -> tuple[HostArray, list[jax.Array]]:
    """Returns the number of each sample in TensorFlow's order, and the parameters of each sample.

    TensorFlow draws all samples of the first parameter first.

    Raises:
      InvalidArgumentError: the shape does not end with the parameters' shape.
    """
    inner = np.broadcast_shapes(*(each.shape for each in parameters))
    if sizes[len(sizes) - len(inner) :] != inner:
        raise InvalidArgumentError("Shape passed in must end with broadcasted shape.")
    batch = math.prod(inner)
    samples = math.prod(sizes[: len(sizes) - len(inner)])
    number = np.arange(batch) * samples + np.arange(samples)[:, None]
    every = [jnp.broadcast_to(each, sizes).reshape(-1) for each in parameters]
    return number.reshape(-1).astype(np.uint64), every


def _doubles(drawn: Stream, at: jax.Array) -> Any:
    return philox.units(drawn.block(at), float64)


def _nth(drawn: Stream, start: jax.Array, number: jax.Array | int) -> jax.Array:
    """Returns uniform number ``number`` of each sample whose counters begin at ``start``."""
    number = jnp.asarray(number, np.uint64)
    both = _doubles(drawn, start + number // np.uint64(2))
    return jnp.where(number % np.uint64(2) == 0, both[:, 1], both[:, 0])


def _gamma(sizes: tuple[int, ...], seed: jax.Array, alpha: jax.Array) -> jax.Array:
    number, (every,) = _sampled(sizes, alpha)
    drawn, every = stream(seed), every.astype(np.float64)
    start = jnp.asarray(number * np.uint64(philox.STRIDE))
    small = every < 1
    d = every + jnp.where(small, 2 / 3, -1 / 3)
    c = 1 / 3 / jnp.sqrt(d)

    def step(state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        found, done, at, *buffers = state
        normal, uniform = _Buffer(*buffers[:2]), _Buffer(*buffers[2:])
        x, at = normal.take(~done, at, lambda at: philox.normals(drawn.block(at), float64))
        cube = (1 + c * x) ** 3
        possible = ~done & (cube > 0)
        u, at = uniform.take(possible, at, lambda at: _doubles(drawn, at))
        surely = u < 1 - 0.0331 * (x * x) * (x * x)
        good = possible & (surely | (jnp.log(u) < 0.5 * x * x + d * (1 - cube + jnp.log(cube))))
        last, at = uniform.take(good & small, at, lambda at: _doubles(drawn, at))
        value = d * cube * jnp.where(small, last ** (1 / every), 1)
        return (
            jnp.where(good, value, found),
            done | good,
            at,
            normal.values,
            normal.left,
            uniform.values,
            uniform.left,
        )

    exponential = every == 1
    empty = jnp.zeros((len(number), 2)), jnp.zeros(len(number), np.int64)
    state = -jnp.log1p(-_nth(drawn, start, 0)), exponential, start, *empty, *empty
    found = _repeat(jnp, lambda state: ~state[1].all(), step, state)[0]
    return found.astype(alpha.dtype).reshape(sizes)


_gamma_numbers = custom_jvp(_gamma, (0,))


@_gamma_numbers.defjvp
def _gamma_jvp(
    shape: tuple[int, ...], primals: tuple[jax.Array, jax.Array], tangents: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    # The implicit derivative of gamma numbers by alpha (Figurnov et al., 2018).
    drawn = _gamma_numbers(shape, *primals)
    alpha, change = (jnp.broadcast_to(each, drawn.shape) for each in (primals[1], tangents[1]))
    return drawn, lax.random_gamma_grad(alpha, drawn) * change  # pyright: ignore[reportCallIssue]


@pure("StatelessRandomGammaV2", inputs=_SHAPE_AND_SEED + ", alpha:dtype|floating", static=(0,), infer=_ends_with)
def gamma(shape: HostArray, seed: jax.Array, alpha: jax.Array, *, dtype: DType = float32) -> jax.Array:
    """Gamma numbers with rate 1: G. Marsaglia and W. Tsang, "A simple method for generating gamma variables" (2000)."""
    del dtype  # the type of alpha
    return _gamma_numbers(as_ints(shape), jnp.asarray(seed), alpha)


def _counted(start: jax.Array, going: jax.Array, limit: Callable[[jax.Array, jax.Array], tuple[Any, Any]]) -> Any:
    """Counts the numbers of each sample before ``limit`` of a sum and the number's index holds."""

    def step(state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        total, count, going, turn = state
        total, reached = limit(total, turn)
        going = going & ~reached
        return total, count + going, going, turn + np.uint64(1)

    zeros = jnp.zeros(len(start))
    return _repeat(jnp, lambda state: state[2].any(), step, (zeros, zeros, going, jnp.asarray(0, np.uint64)))[1]


def _rejected(drawn: Stream, start: jax.Array, going: jax.Array, accept: Callable[..., tuple[Any, Any]]) -> Any:
    """Draws pairs of uniform numbers until ``accept``, which returns candidates and whether each is accepted."""

    def step(state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        found, going, turn = state
        value, good = accept(_nth(drawn, start, turn) - 0.5, _nth(drawn, start, turn + np.uint64(1)))
        return jnp.where(going & good, value, found), going & ~good, turn + np.uint64(2)

    return _repeat(jnp, lambda state: state[1].any(), step, (jnp.zeros(len(start)), going, jnp.asarray(0, np.uint64)))[
        0
    ]


@pure(
    "StatelessRandomPoisson",
    inputs=_SHAPE_AND_SEED + ", lam:Rtype|real",
    static=(0,),
    infer=_ends_with,
    differentiable=False,
)
def poisson(shape: HostArray, seed: jax.Array, lam: jax.Array, *, dtype: DType = int32) -> jax.Array:
    """Poisson numbers. For rates below 10 a product of uniform numbers (D. Knuth, "The art of computer programming",
    volume 2), else W. Hörmann, "The transformed rejection method for generating Poisson random variables" (1993)."""
    sizes = as_ints(shape)
    number, (rate,) = _sampled(sizes, lam)
    drawn, rate = stream(seed), rate.astype(np.float64)
    start = jnp.asarray(number * np.uint64(philox.STRIDE))
    few = rate < 10
    floor = jnp.exp(-rate)

    def product(total: jax.Array, turn: jax.Array) -> tuple[jax.Array, jax.Array]:
        result = jnp.where(turn == 0, 1, total) * _nth(drawn, start, turn)
        return result, result <= floor

    b = 0.931 + 2.53 * jnp.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse = 1.1239 + 1.1328 / (b - 3.4)
    most = np.inf if dtype.is_floating else np.iinfo(dtype.numpy_dtype).max

    def accept(u: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
        us = 0.5 - jnp.abs(u)
        k = jnp.floor((2 * a / us + b) * u + rate + 0.43)
        surely = (us >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))
        never = (k < 0) | ((us < 0.013) & (v > us))
        ratio = jnp.log(v * inverse / (a / (us * us) + b))
        return k, (k <= most) & (surely | (~never & (ratio <= -rate + k * jnp.log(rate) - special.gammaln(k + 1))))

    found = jnp.where(few, _counted(start, few, product), _rejected(drawn, start, ~few, accept))
    return found.astype(dtype.numpy_dtype).reshape(sizes)


_TAILS: Final = (
    *(0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211),
    *(0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287),
)
"""Errors of Stirling's approximation of log k! for k = 0 … 9, as in Hörmann's paper."""


def _tail(k: jax.Array) -> jax.Array:
    square = (k + 1) ** 2
    far = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)
    return jnp.where(k <= 9, jnp.asarray(_TAILS)[jnp.clip(k, 0, 9).astype(np.int64)], far)


@pure(
    "StatelessRandomBinomial",
    inputs=_SHAPE_AND_SEED + ", counts:T2|real, probs:T2",
    static=(0,),
    infer=_ends_with,
    differentiable=False,
)
def binomial(
    shape: HostArray, seed: jax.Array, counts: jax.Array, probs: jax.Array, *, dtype: DType = int64
) -> jax.Array:
    """Binomial numbers. For means below 10 a sum of geometric numbers, else W. Hörmann, "The generation of binomial
    random variates" (1993)."""
    sizes = as_ints(shape)
    number, (every, chance) = _sampled(sizes, counts, probs)
    drawn = stream(seed)
    mirrored = chance > 0.5
    low = jnp.where(mirrored, 1 - chance, chance)
    many = every * low >= 10
    n, p = every.astype(np.float64), low.astype(np.float64)
    possible = (n > 0) & (p > 0)
    start = jnp.asarray(number) * jnp.where(many, np.uint64(philox.STRIDE), np.uint64(_INVERSION))

    def geometric(total: jax.Array, turn: jax.Array) -> tuple[jax.Array, jax.Array]:
        result = total + jnp.ceil(jnp.log(_nth(drawn, start, turn)) / jnp.log1p(-p))
        return result, result > n

    deviation = jnp.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    odds, scale, m = p / (1 - p), (2.83 + 5.1 / b) * deviation, jnp.floor((n + 1) * p)

    def accept(u: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
        us = 0.5 - jnp.abs(u)
        k = jnp.floor((2 * a / us + b) * u + n * p + 0.5)
        surely = (us >= 0.07) & (v <= 0.92 - 4.2 / b)
        never = (k < 0) | (k > n)
        bound = (
            (m + 0.5) * jnp.log((m + 1) / (odds * (n - m + 1)))
            + (n + 1) * jnp.log((n - m + 1) / (n - k + 1))
            + (k + 0.5) * jnp.log(odds * (n - k + 1) / (k + 1))
            + (_tail(m) + _tail(n - m) - _tail(k) - _tail(n - k))
        )
        return k, surely | (~never & (jnp.log(v * scale / (a / (us * us) + b)) <= bound))

    few = _counted(start, possible & ~many, geometric)
    found = jnp.where(many, _rejected(drawn, start, possible & many, accept), few)
    found = jnp.where(mirrored, n - found, found)
    return jnp.where(jnp.isnan(p), p, found).astype(dtype.numpy_dtype).reshape(sizes)


@pure(
    "StatelessParameterizedTruncatedNormal",
    inputs=_SHAPE_AND_SEED + ", means:dtype|floating, stddevs:dtype, minvals:dtype, maxvals:dtype",
    static=(0,),
    infer=lambda inference: output(inference, inference.partial(0), 2),
    differentiable=False,
)
def parameterized_truncated_normal(
    shape: HostArray, seed: jax.Array, means: jax.Array, stddevs: jax.Array, minvals: jax.Array, maxvals: jax.Array
) -> jax.Array:
    """Normal numbers between bounds, by inverting the distribution function.

    TensorFlow's numbers are not reproducible: they depend on the number of its threads.
    """
    sizes = as_ints(shape)
    number, every = _sampled(sizes, means, stddevs, minvals, maxvals)
    mean, deviation, low, high = (each.astype(np.float64) for each in every)
    u = _nth(stream(seed), jnp.asarray(number), 0)
    # Below the mean, small probabilities are exact.
    sign = jnp.where(low > mean, -1, 1)
    first, last = (sign * (each - mean) / deviation for each in (low, high))
    below, above = special.ndtr(first), special.ndtr(last)
    found = sign * special.ndtri(below + u * (above - below)) * deviation + mean
    valid = (deviation > 0) & (low < high) & (jnp.isfinite(low) | jnp.isfinite(high))
    found = jnp.where(valid, jnp.clip(found, low, high), jnp.nan)
    return found.astype(means.dtype).reshape(sizes)
