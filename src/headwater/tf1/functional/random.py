"""Tensors of random numbers.

Without a seed for the graph or the operation they differ in every session. The same seeds give the same sequence in
every session, but a different sequence than TensorFlow's. Stateless functions return TensorFlow's numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headwater import dtypes
from headwater.dtypes import DTypeLike, as_dtype
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.graph import seeds
from headwater.graph.operation import Operation, Tensor
from headwater.graph.registry import register_gradient
from headwater.graph.types import TensorLike
from headwater.tf1.functional import arrays, indexing, math, reductions
from headwater.tf1.functional.apply import one
from headwater.tf1.functional.checks import assert_that


def get_seed(op_seed: int | None) -> tuple[int | None, int | None]:
    """The pair of seeds of a random operation: the graph's and the operation's; None if both should be random."""
    return seeds(get_default_graph(), op_seed)


def set_random_seed(seed: int) -> None:
    """Sets the graph's seed, from which every random operation made later derives its own."""
    get_default_graph().seed = seed


def seed_attrs(op_seed: int | None) -> dict[str, Any]:
    """Returns the seeds as attributes of an operation; two zeros mean random seeds."""
    first, second = get_seed(op_seed)
    if (first, second) == (0, 0):
        # Two zeros would mean that there is no seed. TensorFlow uses this pair instead.
        second = 2**31 - 1
    return {"seed": first or 0, "seed2": second or 0}


def shape_tensor(shape: TensorLike) -> Tensor:
    """A shape as an integer vector."""
    if isinstance(shape, list | tuple) and not shape:
        return convert_to_tensor(np.zeros(0, np.int32), name="shape")
    return convert_to_tensor(shape, name="shape")


def random_normal(
    shape: Any,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normal numbers."""
    return _scaled("RandomStandardNormal", "random_normal", shape, mean, stddev, dtype, seed, name)


def truncated_normal(
    shape: Any,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normal numbers within two standard deviations of the mean."""
    return _scaled("TruncatedNormal", "truncated_normal", shape, mean, stddev, dtype, seed, name)


def _scaled(
    op_type: str,
    default: str,
    shape: TensorLike,
    mean: TensorLike,
    stddev: TensorLike,
    dtype: DTypeLike,
    seed: int | None,
    name: str | None,
) -> Tensor:
    wanted = as_dtype(dtype)
    with name_scope(name, default, [shape, mean, stddev]) as scope:
        sizes = shape_tensor(shape)
        mean = convert_to_tensor(mean, wanted, name="mean")
        stddev = convert_to_tensor(stddev, wanted, name="stddev")
        drawn = one(op_type, sizes, dtype=wanted, **seed_attrs(seed))
        return math.add(drawn * stddev, mean, name=scope)


def random_uniform(
    shape: TensorLike,
    minval: TensorLike = 0,
    maxval: TensorLike | None = None,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Returns uniform random numbers in [minval, maxval), by default in [0, 1).

    Raises:
      ValueError: integers without ``maxval``, or another type than numbers have.
    """
    wanted = as_dtype(dtype)
    if wanted not in (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64):
        raise ValueError(f"Invalid dtype {wanted!r}")
    if maxval is None:
        if wanted.is_integer:
            raise ValueError(f"Must specify maxval for integer dtype {wanted!r}")
        maxval = 1
    with name_scope(name, "random_uniform", [shape, minval, maxval]) as scope:
        sizes = shape_tensor(shape)
        low = convert_to_tensor(minval, wanted, name="min")
        high = convert_to_tensor(maxval, wanted, name="max")
        if wanted.is_integer:
            return one("RandomUniformInt", sizes, low, high, name=scope, **seed_attrs(seed))
        drawn = one("RandomUniform", sizes, dtype=wanted, **seed_attrs(seed))
        return math.add(drawn * (high - low), low, name=scope)


def random_shuffle(value: TensorLike, seed: int | None = None, name: str | None = None) -> Tensor:
    """The slices along the first dimension in random order."""
    return one("RandomShuffle", value, name=name, **seed_attrs(seed))


def random_crop(value: TensorLike, size: TensorLike, seed: int | None = None, name: str | None = None) -> Tensor:
    """Returns a part of shape ``size`` from a random place; a run fails if ``value`` is smaller."""
    with name_scope(name, "random_crop", [value, size]) as scope:
        value = convert_to_tensor(value, name="value")
        size = convert_to_tensor(size, dtypes.int32, name="size")
        sizes = arrays.shape(value)
        fits = reductions.reduce_all(sizes >= size)
        sizes = assert_that(fits, ["Need value.shape >= size, got ", sizes, size], sizes)
        limit = sizes - size + 1
        offset = random_uniform(arrays.shape(limit), dtype=dtypes.int32, maxval=dtypes.int32.max, seed=seed) % limit
        return indexing.slice(value, offset, size, name=scope)


def multinomial(
    logits: TensorLike,
    num_samples: TensorLike,
    seed: int | None = None,
    name: str | None = None,
    output_dtype: DTypeLike | None = None,
) -> Tensor:
    """Class numbers drawn for each row, with probabilities softmax(logits)."""
    with name_scope(name, "multinomial", [logits]):
        return _multinomial(logits, num_samples, seed, output_dtype)


def categorical(
    logits: TensorLike,
    num_samples: TensorLike,
    dtype: DTypeLike | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Same as `multinomial`."""
    with name_scope(name, "categorical", [logits]):
        return _multinomial(logits, num_samples, seed, dtype)


def _multinomial(logits: TensorLike, num_samples: TensorLike, seed: int | None, dtype: DTypeLike | None) -> Tensor:
    logits = convert_to_tensor(logits, name="logits")
    wanted = as_dtype(dtype or dtypes.int64)
    return one("Multinomial", logits, num_samples, output_dtype=wanted, **seed_attrs(seed))


def random_gamma(
    shape: TensorLike,
    alpha: TensorLike,
    beta: TensorLike | None = None,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draws gamma numbers with shape parameter ``alpha`` and rate ``beta``: ``shape`` numbers for each pair."""
    with name_scope(name, "random_gamma", [shape, alpha, beta]):
        wanted = as_dtype(dtype)
        alpha = convert_to_tensor(alpha, wanted, name="alpha")
        rate = convert_to_tensor(1 if beta is None else beta, wanted, name="beta")
        alpha = alpha + arrays.zeros_like(rate)
        drawn = one("RandomGamma", shape_tensor(shape), alpha, **seed_attrs(seed))
        return math.maximum(np.finfo(wanted.numpy_dtype).tiny, drawn / rate)


def _gamma_gradient(op: Operation, grad: Tensor) -> list[Tensor | None]:
    """The implicit derivative of gamma numbers by ``alpha`` (Figurnov et al., 2018)."""
    shape, alpha = op.inputs
    slope = one("RandomGammaGrad", alpha, op.outputs[0])
    axes = arrays.range(0, arrays.size(shape))
    return [None, reductions.reduce_sum(grad * slope, axes)]


register_gradient("RandomGamma", _gamma_gradient)


def random_poisson(
    lam: TensorLike,
    shape: TensorLike,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draws Poisson numbers with rate ``lam``: ``shape`` numbers for each rate."""
    with name_scope(name, "random_poisson", [lam, shape]):
        return one("RandomPoissonV2", shape_tensor(shape), lam, dtype=as_dtype(dtype), **seed_attrs(seed))


# Stateless: the same seed always returns the same numbers ----------------------------------------------------------


def stateless_random_normal(
    shape: TensorLike,
    seed: TensorLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Normal numbers that follow from ``seed``, two integers."""
    with name_scope(name, "stateless_random_normal", [shape, seed, mean, stddev]) as scope:
        drawn = one("StatelessRandomNormal", shape_tensor(shape), seed, dtype=as_dtype(dtype))
        return math.add(drawn * stddev, mean, name=scope)


def stateless_truncated_normal(
    shape: TensorLike,
    seed: TensorLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Normal numbers within two standard deviations, that follow from ``seed``, two integers."""
    with name_scope(name, "stateless_truncated_normal", [shape, seed, mean, stddev]) as scope:
        drawn = one("StatelessTruncatedNormal", shape_tensor(shape), seed, dtype=as_dtype(dtype))
        return math.add(drawn * stddev, mean, name=scope)


def stateless_random_uniform(
    shape: TensorLike,
    seed: TensorLike,
    minval: TensorLike = 0,
    maxval: TensorLike | None = None,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Numbers in [minval, maxval) that follow from ``seed``, two integers."""
    wanted = as_dtype(dtype)
    if wanted.is_integer and maxval is None:
        raise ValueError(f"Must specify maxval for integer dtype {wanted!r}")
    with name_scope(name, "stateless_random_uniform", [shape, seed, minval, maxval]) as scope:
        low = convert_to_tensor(minval, wanted, name="min")
        high = convert_to_tensor(1 if maxval is None else maxval, wanted, name="max")
        if wanted.is_integer:
            return one("StatelessRandomUniformInt", shape_tensor(shape), seed, low, high, dtype=wanted, name=scope)
        drawn = one("StatelessRandomUniform", shape_tensor(shape), seed, dtype=wanted)
        return math.add(drawn * (high - low), low, name=scope)


def stateless_multinomial(
    logits: TensorLike,
    num_samples: TensorLike,
    seed: TensorLike,
    output_dtype: DTypeLike = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """Like `multinomial`; the classes follow from ``seed``, two integers."""
    with name_scope(name, "stateless_multinomial", [logits, seed]):
        logits = convert_to_tensor(logits, name="logits")
        return one("StatelessMultinomial", logits, num_samples, seed, output_dtype=as_dtype(output_dtype))


def stateless_categorical(
    logits: TensorLike,
    num_samples: TensorLike,
    seed: TensorLike,
    dtype: DTypeLike = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """Like `categorical`; the classes follow from ``seed``, two integers."""
    with name_scope(name, "stateless_categorical", [logits, seed]):
        logits = convert_to_tensor(logits, name="logits")
        return one("StatelessMultinomial", logits, num_samples, seed, output_dtype=as_dtype(dtype))
