"""Distributions of classes, counts, and of weights that sum to one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.dtypes import as_dtype, bool_, int32, int64
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional import arrays, indexing, linalg, losses, math, nn, random, reductions, special
from headwater.tf1.functional.checks import assert_equal, assert_near
from headwater.tf1.functional.control_flow import with_dependencies
from headwater.tf1.functional.distributions import validation
from headwater.tf1.functional.distributions.base import (
    FULLY_REPARAMETERIZED,
    NOT_REPARAMETERIZED,
    Distribution,
    float_parameters,
)

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.shapes import TensorShape


def logits_and_probs(
    name: str, logits: Any, probs: Any, several: bool, validate_args: bool = False
) -> tuple[Tensor, Tensor]:
    """Returns logits and probabilities, computing one from the other.

    Raises:
      ValueError: neither is given, or both are.
      TypeError: the type is not floating.
    """
    if (probs is None) == (logits is None):
        raise ValueError("Must pass probs or logits, but not both.")
    with name_scope(f"{name}_parameters", "", [probs, logits]):
        kind = "logits" if probs is None else "probs"
        known = convert_to_tensor(logits if probs is None else probs, name=kind)
        if not known.dtype.is_floating:
            raise TypeError(f"{kind} must having floating type.")
        if probs is None:
            if several and validate_args:
                known = validation.class_weights(known)
            return known, nn.softmax(known) if several else math.sigmoid(known)
        if validate_args:
            known = validation.probabilities(known, several)
        return math.log(known) - (0.0 if several else math.log1p(-1.0 * known)), known


class OfLogits(Distribution):
    """Base of distributions with the parameters ``logits`` or ``probs``."""

    _logits: Tensor
    _probs: Tensor

    @property
    def logits(self) -> Tensor:
        """Logarithms of the weights of the classes; for a truth value, the logarithm of the odds of 1."""
        return self._logits

    @property
    def probs(self) -> Tensor:
        """The probabilities of the classes; for a truth value, the probability of 1."""
        return self._probs


class Bernoulli(OfLogits):
    """Bernoulli distribution: 1 with a given probability, else 0.

    Args:
      logits: the logarithm of the odds of 1.
      probs: the probability of 1, in place of ``logits``.
      dtype: type of samples.
      validate_args: whether a step checks values.
      allow_nan_stats: whether undefined statistics are NaN.

    Raises:
      ValueError: neither is given, or both are.
    """

    def __init__(
        self,
        logits: object = None,
        probs: TensorLike | None = None,
        dtype: DTypeLike = int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Bernoulli",
    ) -> None:
        arguments = dict(locals())
        self._logits, self._probs = logits_and_probs(name, logits, probs, False, validate_args)
        super().__init__(
            dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, arguments, [self._logits, self._probs], name
        )

    @classmethod
    def _param_shapes(cls, sample_shape: Any) -> dict[str, Tensor]:
        return {"logits": convert_to_tensor(sample_shape, int32)}

    def _batch_shape(self) -> TensorShape:
        return self._logits.shape

    def _batch_shape_tensor(self) -> Tensor:
        return arrays.shape(self._logits)

    def _sample_n(self, n: TensorLike, seed: int | None) -> Tensor:
        shape = arrays.concat([arrays.stack([n]), arrays.shape(self._probs)], 0)
        drawn = random.random_uniform(shape, dtype=self._probs.dtype, seed=seed)
        return math.cast(drawn < self._probs, self.dtype)

    def _validated(self, value: Tensor) -> Tensor:
        return validation.of_type(value, bool_)

    def _log_prob(self, event: Tensor) -> Tensor:
        event = math.cast(self._valid(event), self._logits.dtype)
        zero = arrays.zeros_like(event + self._logits)
        return -losses.sigmoid_cross_entropy_with_logits(labels=event + zero, logits=self._logits + zero)

    def _entropy(self) -> Tensor:
        return -self._logits * (math.sigmoid(self._logits) - 1.0) + nn.softplus(-self._logits)

    def _mean(self) -> Tensor:
        return arrays.identity(self._probs)

    def _variance(self) -> Tensor:
        return self._probs * (1.0 - self._probs)

    def _mode(self) -> Tensor:
        return math.cast(self._probs > 0.5, self.dtype)


class Categorical(OfLogits):
    """Categorical distribution over class indices.

    Args:
      logits: logarithms of the weights of the classes, [..., classes].
      probs: probabilities of the classes, in place of ``logits``.
      dtype: type of samples.
      validate_args: whether a step checks values.
      allow_nan_stats: whether undefined statistics are NaN.

    Raises:
      ValueError: neither is given, or both are.
    """

    def __init__(
        self,
        logits: object = None,
        probs: TensorLike | None = None,
        dtype: DTypeLike = int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Categorical",
    ) -> None:
        arguments = dict(locals())
        self._logits, self._probs = logits_and_probs(name, logits, probs, True, validate_args)
        if self._logits.dims == ():
            raise ValueError("A categorical-distribution parameter must have at least 1 dimension.")
        super().__init__(
            as_dtype(dtype),
            NOT_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            arguments,
            [self._logits, self._probs],
            name,
        )

    @property
    def event_size(self) -> Tensor:
        """The number of classes."""
        return arrays.shape(self._logits)[-1]

    def _batch_shape(self) -> TensorShape:
        return self._logits.shape[:-1]

    def _batch_shape_tensor(self) -> Tensor:
        return arrays.shape(self._logits)[:-1]

    def _sample_n(self, n: TensorLike, seed: int | None) -> Tensor:
        rows = arrays.reshape(self._logits, arrays.stack([-1, self.event_size]))
        kind = int64 if self.dtype == int64 else int32
        drawn = arrays.transpose(random.multinomial(rows, n, seed=seed, output_dtype=kind))
        shape = arrays.concat([arrays.stack([n]), self.batch_shape_tensor()], 0)
        return math.cast(arrays.reshape(drawn, shape), self.dtype)

    def _both(self, event: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Broadcasts events and rows of values to a common shape."""
        shape = arrays.broadcast_dynamic_shape(arrays.shape(event), arrays.shape(values)[:-1])
        static = arrays.broadcast_static_shape(event.shape, values.shape[:-1])
        spread = arrays.broadcast_to(event, shape)
        spread.set_shape(static)
        rows = arrays.broadcast_to(values, arrays.concat([shape, arrays.shape(values)[-1:]], 0))
        rows.set_shape(static.concatenate(values.shape[-1:]))
        return spread, rows

    def _validated(self, value: Tensor) -> Tensor:
        return validation.of_type(value, int32)

    def _log_prob(self, k: Tensor) -> Tensor:
        k = self._valid(k)
        k = k if k.dtype.is_integer else math.cast(k, int32)
        events, rows = self._both(k, self._logits)
        return -losses.sparse_softmax_cross_entropy_with_logits(labels=events, logits=rows)

    def _cdf(self, k: Tensor) -> Tensor:
        events, rows = self._both(self._valid(k), self._probs)
        below = indexing.sequence_mask(math.cast(events, int32), self.event_size, self._probs.dtype)
        return reductions.reduce_sum(rows * below, -1)

    def _entropy(self) -> Tensor:
        return -reductions.reduce_sum(nn.log_softmax(self._logits) * self._probs, -1)

    def _mode(self) -> Tensor:
        return math.cast(reductions.argmax(self._logits, -1), self.dtype)


class _OfCounts(Distribution):
    """Base of distributions of count vectors, with a mean proportional to weights."""

    _total: Tensor

    def _weights(self) -> Tensor:
        """[..., classes]."""
        raise NotImplementedError

    def _batch_shape(self) -> TensorShape:
        return arrays.broadcast_static_shape(self._total.shape, self._weights().shape[:-1])

    def _batch_shape_tensor(self) -> Tensor:
        return arrays.broadcast_dynamic_shape(arrays.shape(self._total), arrays.shape(self._weights())[:-1])

    def _event_shape(self) -> TensorShape:
        return self._weights().shape[-1:]

    def _event_shape_tensor(self) -> Tensor:
        return arrays.shape(self._weights())[-1:]

    def _drawn(self, n: object, log_weights: Tensor, seed: int | None) -> Tensor:
        """Draws the counts of classes in ``total`` draws of each vector; ``log_weights`` is [n, batch, classes]."""
        classes = arrays.shape(log_weights)[-1]
        shape = self.batch_shape_tensor()
        totals = arrays.broadcast_to(self._total, arrays.concat([arrays.stack([n]), shape], 0))
        counts = arrays.reshape(math.cast(totals, int32), [-1])
        most = reductions.reduce_max(counts)
        rows = arrays.broadcast_to(log_weights, arrays.concat([arrays.stack([n]), shape, arrays.stack([classes])], 0))
        drawn = random.multinomial(arrays.reshape(rows, arrays.stack([-1, classes])), most, seed=seed)
        wanted = indexing.sequence_mask(counts, most, self.dtype)
        hits = indexing.one_hot(drawn, classes, dtype=self.dtype) * arrays.expand_dims(wanted, -1)
        found = reductions.reduce_sum(hits, -2)
        return arrays.reshape(found, arrays.concat([arrays.stack([n]), shape, arrays.stack([classes])], 0))


def log_combinations(total: Tensor, counts: Tensor) -> Tensor:
    """Returns the logarithm of the number of sequences of draws with these counts."""
    return special.lgamma(total + 1.0) - reductions.reduce_sum(special.lgamma(counts + 1.0), -1)


class Multinomial(_OfCounts, OfLogits):
    """Multinomial distribution: counts of classes in ``total_count`` draws.

    Args:
      total_count: number of draws.
      logits: logarithms of the weights of the classes, [..., classes].
      probs: probabilities of the classes, in place of ``logits``.
      validate_args: whether a step checks values.
      allow_nan_stats: whether undefined statistics are NaN.

    Raises:
      ValueError: neither logits nor probabilities are given, or both are.
    """

    def __init__(
        self,
        total_count: TensorLike,
        logits: object = None,
        probs: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Multinomial",
    ) -> None:
        arguments = dict(locals())
        self._logits, self._probs = logits_and_probs(name, logits, probs, True, validate_args)
        self._total = convert_to_tensor(total_count, self._probs.dtype, name="total_count")
        if validate_args:
            self._total = validation.counts(self._total)
        tensors = [self._total, self._logits, self._probs]
        super().__init__(
            self._probs.dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, arguments, tensors, name
        )

    @property
    def total_count(self) -> Tensor:
        """The number of draws."""
        return self._total

    def _weights(self) -> Tensor:
        return self._probs

    def _sample_n(self, n: object, seed: int | None) -> Tensor:
        return self._drawn(n, self._logits, seed)

    def _validated(self, value: Tensor) -> Tensor:
        return validation.counts_with_sum(value, self._total, "counts must sum to `self.total_count`")

    def _log_prob(self, counts: Tensor) -> Tensor:
        counts = self._valid(counts)
        likely = reductions.reduce_sum(counts * nn.log_softmax(self._logits), -1)
        return likely + log_combinations(self._total, counts)

    def _expected(self) -> Tensor:
        return self._probs * arrays.expand_dims(self._total, -1)

    def _mean(self) -> Tensor:
        return arrays.identity(self._expected())

    def _covariance(self) -> Tensor:
        weights = self._probs * arrays.ones_like(arrays.expand_dims(self._total, -1))
        product = -linalg.matmul(arrays.expand_dims(self._expected(), -1), arrays.expand_dims(weights, -2))
        return linalg.matrix_set_diag(product, self._variance())

    def _variance(self) -> Tensor:
        return self._expected() - self._expected() * self._probs


class _Concentrated(Distribution):
    """Base of distributions with the parameter of a Dirichlet distribution."""

    _concentration: Tensor
    _sum: Tensor

    @property
    def concentration(self) -> Tensor:
        """The concentration of each class."""
        return self._concentration

    @property
    def total_concentration(self) -> Tensor:
        """The sum of the concentrations of all classes."""
        return self._sum

    def _roots(self) -> Tensor:
        """Returns vectors with products equal to the negative covariances of different classes: [..., classes]."""
        raise NotImplementedError

    def _variance(self) -> Tensor:
        """[..., classes]."""
        raise NotImplementedError

    def _covariance(self) -> Tensor:
        x = self._roots()
        product = -linalg.matmul(arrays.expand_dims(x, -1), arrays.expand_dims(x, -2))
        return linalg.matrix_set_diag(product, self._variance())


class Dirichlet(_Concentrated):
    """The Dirichlet distribution, of weights that sum to one.

    Args:
      concentration: [..., classes], positive.
      validate_args: whether a step checks it.
      allow_nan_stats: whether undefined statistics are NaN.
    """

    def __init__(
        self,
        concentration: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Dirichlet",
    ) -> None:
        arguments = dict(locals())
        (self._concentration,) = float_parameters(name, concentration=concentration)
        if validate_args:
            self._concentration = validation.concentrations(self._concentration)
        self._sum = reductions.reduce_sum(self._concentration, -1)
        super().__init__(
            self._concentration.dtype,
            FULLY_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            arguments,
            [self._concentration, self._sum],
            name,
        )

    def _batch_shape(self) -> TensorShape:
        return self._sum.shape

    def _batch_shape_tensor(self) -> Tensor:
        return arrays.shape(self._sum)

    def _event_shape(self) -> TensorShape:
        return self._concentration.shape[-1:]

    def _event_shape_tensor(self) -> Tensor:
        return arrays.shape(self._concentration)[-1:]

    def _sample_n(self, n: object, seed: int | None) -> Tensor:
        drawn = random.random_gamma(arrays.stack([n]), self._concentration, dtype=self.dtype, seed=seed)
        return drawn / reductions.reduce_sum(drawn, -1, keepdims=True)

    def _validated(self, value: Tensor) -> Tensor:
        (value,) = validation.all_positive([value], "samples must be positive")
        total = reductions.reduce_sum(value, -1)
        return with_dependencies([assert_near(1.0, total, message="sample last-dimension must sum to `1`")], value)

    def _log_prob(self, x: Tensor) -> Tensor:
        x = self._valid(x)
        return reductions.reduce_sum((self._concentration - 1.0) * math.log(x), -1) - special.lbeta(self._concentration)

    def _entropy(self) -> Tensor:
        classes = math.cast(self.event_shape_tensor()[0], self.dtype)
        return (
            special.lbeta(self._concentration)
            + (self._sum - classes) * special.digamma(self._sum)
            - reductions.reduce_sum((self._concentration - 1.0) * special.digamma(self._concentration), -1)
        )

    def _mean(self) -> Tensor:
        return self._concentration / arrays.expand_dims(self._sum, -1)

    def _roots(self) -> Tensor:
        """The mean, divided by the root of the total concentration plus one."""
        return self._mean() * math.rsqrt(1.0 + arrays.expand_dims(self._sum, -1))

    def _variance(self) -> Tensor:
        scale = math.rsqrt(1.0 + arrays.expand_dims(self._sum, -1))
        return self._roots() * (scale - self._roots())

    def _mode(self) -> Tensor:
        classes = math.cast(self.event_shape_tensor()[0], self.dtype)
        mode = (self._concentration - 1.0) / (arrays.expand_dims(self._sum, -1) - classes)
        wrong = reductions.reduce_any(self._concentration <= 1.0, -1, keepdims=True)
        if not self.allow_nan_stats:
            right = math.cast(wrong, int32)
            return with_dependencies(
                [assert_equal(right, 0, message="Mode undefined when any concentration <= 1")], mode
            )
        nan = arrays.fill(arrays.shape(mode), convert_to_tensor(np.array(np.nan, self.dtype.as_numpy_dtype)))
        return indexing.where_v2(wrong, nan, mode)


class DirichletMultinomial(_Concentrated, _OfCounts):
    """Dirichlet-multinomial distribution: counts of classes with weights from a Dirichlet distribution.

    Args:
      total_count: number of draws.
      concentration: [..., classes], positive.
      validate_args: whether a step checks values.
      allow_nan_stats: whether undefined statistics are NaN.
    """

    def __init__(
        self,
        total_count: TensorLike,
        concentration: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "DirichletMultinomial",
    ) -> None:
        arguments = dict(locals())
        (self._concentration,) = float_parameters(name, concentration=concentration)
        self._total = convert_to_tensor(total_count, self._concentration.dtype, name="total_count")
        if validate_args:
            self._total = validation.counts(self._total)
            self._concentration = validation.concentrations(self._concentration)
        self._sum = reductions.reduce_sum(self._concentration, -1)
        super().__init__(
            self._concentration.dtype,
            NOT_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            arguments,
            [self._total, self._concentration],
            name,
        )

    @property
    def total_count(self) -> Tensor:
        """The number of draws."""
        return self._total

    def _weights(self) -> Tensor:
        return self._concentration

    def _sample_n(self, n: TensorLike, seed: int | None) -> Tensor:
        shape = arrays.concat([self.batch_shape_tensor(), self.event_shape_tensor()], 0)
        spread = arrays.broadcast_to(self._concentration, shape)
        weights = random.random_gamma(arrays.stack([n]), spread, dtype=self.dtype, seed=seed)
        return self._drawn(n, math.log(weights), None if seed is None else seed + 1)

    def _validated(self, value: Tensor) -> Tensor:
        message = "counts last-dimension must sum to `self.total_count`"
        return validation.counts_with_sum(value, self._total, message)

    def _log_prob(self, counts: Tensor) -> Tensor:
        counts = self._valid(counts)
        ordered = special.lbeta(self._concentration + counts) - special.lbeta(self._concentration)
        return ordered + log_combinations(self._total, counts)

    def _mean(self) -> Tensor:
        return arrays.expand_dims(self._total / self._sum, -1) * self._concentration

    def _scale(self) -> Tensor:
        """Returns the root of the variance's factor relative to a multinomial distribution of the same mean."""
        total = arrays.expand_dims(self._sum, -1)
        return math.sqrt((1.0 + total / arrays.expand_dims(self._total, -1)) / (1.0 + total))

    def _variance(self) -> Tensor:
        x = self._roots()
        return x * (self._scale() * arrays.expand_dims(self._total, -1) - x)

    def _roots(self) -> Tensor:
        return self._scale() * self._mean()
