"""`tf.random` of TensorFlow 2: random numbers that follow from a seed, two integers."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater import dtypes
from headwater.dtypes import DTypeLike, as_dtype
from headwater.errors import InvalidArgumentError
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional import arrays, math, random
from headwater.tf1.functional.apply import one
from headwater.tf1.functional.random import shape_tensor

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray


class Algorithm(Enum):
    """Algorithms of random numbers; Headwater has Philox, as TensorFlow on CPUs and GPUs."""

    PHILOX = 1
    THREEFRY = 2
    AUTO_SELECT = 3


def algorithm_number(alg: object) -> int:
    """Returns the number of an algorithm, given as a number, a name or an `Algorithm`.

    Raises:
      InvalidArgumentError: the algorithm is not supported.
      ValueError: there is no such algorithm.
    """
    numbers = {each.name.lower(): each.value for each in Algorithm}
    number = alg.value if isinstance(alg, Algorithm) else numbers.get(alg.lower()) if isinstance(alg, str) else alg
    if number not in numbers.values():
        raise ValueError(f"Argument `alg` got unsupported value {alg}. Supported values are {', '.join(numbers)}.")
    if number == Algorithm.THREEFRY.value:
        raise InvalidArgumentError("ThreeFry needs XLA's generator; use alg='philox'")
    return Algorithm.PHILOX.value


def uniform(
    shape: TensorLike,
    seed: TensorLike,
    minval: TensorLike | None = 0,
    maxval: TensorLike | None = None,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
    alg: object = "auto_select",
) -> Tensor:
    """Numbers in [minval, maxval); integers over the full range of their type if both are None."""
    algorithm_number(alg)
    kind = as_dtype(dtype)
    if kind.is_integer:
        if (minval is None) != (maxval is None):
            raise ValueError(
                f"For integer `dtype` argument {kind!r}, argument `minval` and `maxval` must be both None or not None. "
                f"Got `minval`={minval} and `maxval`={maxval}."
            )
        if minval is None:
            return one("StatelessRandomUniformFullInt", shape_tensor(shape), seed, dtype=kind, name=name)
        if kind not in (dtypes.int32, dtypes.int64):
            raise ValueError(f"Argument `dtype` got invalid value {kind!r} when argument `minval` is not None.")
    return random.stateless_random_uniform(shape, seed, 0 if minval is None else minval, maxval, dtype, name)


def normal(
    shape: TensorLike,
    seed: TensorLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
    alg: object = "auto_select",
) -> Tensor:
    """Normal numbers."""
    algorithm_number(alg)
    return random.stateless_random_normal(shape, seed, mean, stddev, dtype, name)


def truncated_normal(
    shape: TensorLike,
    seed: TensorLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
    alg: object = "auto_select",
) -> Tensor:
    """Normal numbers within two standard deviations."""
    algorithm_number(alg)
    return random.stateless_truncated_normal(shape, seed, mean, stddev, dtype, name)


def split(seed: TensorLike, num: TensorLike = 2, alg: object = "auto_select") -> Tensor:
    """Returns ``num`` new seeds that follow from a seed: [num, 2], of the seed's type."""
    given = convert_to_tensor(seed)
    return uniform(arrays.stack([num, 2]), given, None, None, given.dtype, alg=alg)


def fold_in(seed: TensorLike, data: TensorLike, alg: object = "auto_select") -> Tensor:
    """Returns a seed that follows from a seed and an integer, of the integer's type."""
    number = convert_to_tensor(data)
    return arrays.stack([uniform([], seed, None, None, number.dtype, alg=alg), number])


def gamma(
    shape: TensorLike,
    seed: TensorLike,
    alpha: TensorLike,
    beta: TensorLike | None = None,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Gamma numbers with shape parameter ``alpha`` and rate ``beta``; ``shape`` ends with their shape."""
    with name_scope(name, "stateless_random_gamma", [shape, seed, alpha, beta]):
        wanted = as_dtype(dtype)
        alpha = convert_to_tensor(alpha, wanted, name="alpha")
        rate = convert_to_tensor(1 if beta is None else beta, wanted, name="beta")
        drawn = one("StatelessRandomGammaV2", shape_tensor(shape), seed, alpha + arrays.zeros_like(rate), dtype=wanted)
        return math.maximum(np.finfo(wanted.numpy_dtype).tiny, drawn / rate)


def poisson(
    shape: TensorLike, seed: TensorLike, lam: TensorLike, dtype: DTypeLike = dtypes.int32, name: str | None = None
) -> Tensor:
    """Poisson numbers with rate ``lam``; ``shape`` ends with its shape."""
    with name_scope(name, "stateless_random_poisson", [shape, seed, lam]) as scope:
        return one("StatelessRandomPoisson", shape_tensor(shape), seed, lam, dtype=as_dtype(dtype), name=scope)


def binomial(
    shape: TensorLike,
    seed: TensorLike,
    counts: TensorLike,
    probs: TensorLike,
    output_dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Numbers of successes of ``counts`` trials with probability ``probs``; ``shape`` ends with their shape."""
    with name_scope(name, "stateless_random_binomial", [shape, seed, counts, probs]) as scope:
        chance = convert_to_tensor(probs, preferred_dtype=dtypes.float32, name="probs")
        number = convert_to_tensor(counts, preferred_dtype=chance.dtype, name="counts")
        wanted = as_dtype(output_dtype)
        return one("StatelessRandomBinomial", shape_tensor(shape), seed, number, chance, dtype=wanted, name=scope)


def parameterized_truncated_normal(
    shape: TensorLike,
    seed: TensorLike,
    means: TensorLike = 0.0,
    stddevs: TensorLike = 1.0,
    minvals: TensorLike = -2.0,
    maxvals: TensorLike = 2.0,
    name: str | None = None,
) -> Tensor:
    """Normal numbers between bounds; ``shape`` ends with the parameters' shape."""
    with name_scope(name, "stateless_parameterized_truncated_normal", [shape, means, stddevs, minvals, maxvals]) as own:
        given: list[Any] = [convert_to_tensor(each) for each in (means, stddevs, minvals, maxvals)]
        return one("StatelessParameterizedTruncatedNormal", shape_tensor(shape), seed, *given, name=own)


def create_rng_state(seed: TensorLike, alg: object) -> HostArray:
    """Returns the state of a `tf.random.Generator`, three int64, for a seed of up to 192 bits or a list of integers."""
    algorithm_number(alg)
    if isinstance(seed, int):
        parts = [(seed >> (64 * at)) & 0xFFFFFFFFFFFFFFFF for at in range(3)]
    else:
        parts = [int(each) & 0xFFFFFFFFFFFFFFFF for each in np.ravel(np.asarray(seed))][:3]
        parts += [0] * (3 - len(parts))
    return np.array(parts, np.uint64).view(np.int64)
