"""Random numbers. Equal seeds give equal numbers, but not the same numbers as in TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headwater.dtypes import DType, int64
from headwater.graph.ops.common import as_ints, constant_int, output
from headwater.graph.ops.define import random
from headwater.graph.registry import HostArray, Inference, Spec
from headwater.lazy_jax import jax, jnp


def _shaped(inference: Inference) -> Sequence[Spec]:
    return [Spec(inference.attrs["dtype"], inference.partial(0))]


@random("RandomStandardNormal", infer=_shaped)
def standard_normal(key: jax.Array, shape: HostArray, *, dtype: DType, seed: int = 0, seed2: int = 0) -> jax.Array:
    """Draws normally distributed numbers with mean 0 and standard deviation 1."""
    del seed, seed2
    return jax.random.normal(key, as_ints(shape), dtype.numpy_dtype)


@random("TruncatedNormal", infer=_shaped)
def truncated_normal(key: jax.Array, shape: HostArray, *, dtype: DType, seed: int = 0, seed2: int = 0) -> jax.Array:
    """Like `standard_normal`, restricted to two standard deviations."""
    del seed, seed2
    return jax.random.truncated_normal(key, -2.0, 2.0, as_ints(shape), dtype.numpy_dtype)


@random("RandomUniform", infer=_shaped)
def uniform(key: jax.Array, shape: HostArray, *, dtype: DType, seed: int = 0, seed2: int = 0) -> jax.Array:
    """Numbers in [0, 1)."""
    del seed, seed2
    return jax.random.uniform(key, as_ints(shape), dtype.numpy_dtype)


def _uniform_int_spec(inference: Inference) -> Sequence[Spec]:
    return output(inference, inference.partial(0), 1)


@random("RandomUniformInt", infer=_uniform_int_spec, inputs="shape:T|index=int32, minval:Tout|index, maxval:Tout")
def uniform_int(
    key: jax.Array, shape: HostArray, minval: jax.Array, maxval: jax.Array, *, seed: int = 0, seed2: int = 0
) -> jax.Array:
    """Integers in [minval, maxval)."""
    del seed, seed2
    return jax.random.randint(key, as_ints(shape), minval, maxval, minval.dtype)


def _like_input(inference: Inference) -> Sequence[Spec]:
    return output(inference, inference.inputs[0].dims)


def _shuffled_strings(generator: Any, value: jax.Array, *, seed: int = 0, seed2: int = 0) -> jax.Array:
    del seed, seed2
    return generator.permutation(value)


@random("RandomShuffle", infer=_like_input, static=(), inputs="value:T", string_lower=_shuffled_strings)
def shuffle(key: jax.Array, value: jax.Array, *, seed: int = 0, seed2: int = 0) -> jax.Array:
    """The slices along the first dimension in random order."""
    del seed, seed2
    return jax.random.permutation(key, jnp.asarray(value), axis=0)


def _multinomial_spec(inference: Inference) -> Sequence[Spec]:
    dims = inference.inputs[0].dims or (None, None)
    if len(dims) != 2:
        raise ValueError(f"Shape must be rank 2 but is rank {len(dims)}")
    return [Spec(inference.attrs.get("output_dtype", int64), (dims[0], constant_int(inference, 1)))]


@random("Multinomial", infer=_multinomial_spec, static=(1,), inputs="logits:T|numeric, num_samples:int32")
def multinomial(
    key: jax.Array,
    logits: jax.Array,
    num_samples: HostArray,
    *,
    output_dtype: DType = int64,
    seed: int = 0,
    seed2: int = 0,
) -> jax.Array:
    """Draws classes for each row, with probabilities softmax(logits)."""
    del seed, seed2
    count = int(num_samples)
    drawn = jax.random.categorical(key, jnp.asarray(logits)[:, None, :], axis=-1, shape=(logits.shape[0], count))
    return drawn.astype(output_dtype.numpy_dtype)


def _after_shape(inference: Inference) -> Sequence[Spec]:
    head, tail = inference.partial(0), inference.inputs[1].dims
    dtype = inference.attrs.get("dtype", inference.inputs[1].dtype.base_dtype)
    return [Spec(dtype, None if head is None or tail is None else head + tail)]


@random("RandomGamma", infer=_after_shape, inputs="shape:S|index=int32, alpha:T|floating")
def gamma(key: jax.Array, shape: HostArray, alpha: jax.Array, *, seed: int = 0, seed2: int = 0) -> jax.Array:
    """Draws from gamma distributions with shape parameter ``alpha`` and rate 1: an array of shape ``shape`` for each
    alpha."""
    del seed, seed2
    return jax.random.gamma(key, alpha, as_ints(shape) + alpha.shape, alpha.dtype)


@random("RandomPoissonV2", infer=_after_shape, inputs="shape:S|index=int32, rate:R|numeric=float64")
def poisson(
    key: jax.Array, shape: HostArray, rate: jax.Array, *, dtype: DType = int64, seed: int = 0, seed2: int = 0
) -> jax.Array:
    """Draws from Poisson distributions: an array of shape ``shape`` for each rate."""
    del seed, seed2
    return jax.random.poisson(key, rate, as_ints(shape) + rate.shape, np.int64).astype(dtype.numpy_dtype)
