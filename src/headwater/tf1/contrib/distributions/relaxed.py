"""Classes as one-hot vectors, their continuous relaxations, and other distributions of one parameter or two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.dtypes import float32, int32
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional import arrays, indexing, linalg, math, nn, random, reductions, special
from headwater.tf1.functional.distributions.base import (
    FULLY_REPARAMETERIZED,
    NOT_REPARAMETERIZED,
    Distribution,
    broadcast_shape,
    broadcast_shape_tensor,
    float_parameters,
)
from headwater.tf1.functional.distributions.continuous import Gamma, LocationScale, OfScalars
from headwater.tf1.functional.distributions.discrete import Categorical, OfLogits, logits_and_probs
from headwater.tf1.functional.distributions.divergence import RegisterKL

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.shapes import TensorShape


def _uniform(sizes: Tensor, kind: Any, seed: int | None) -> Tensor:
    """Draws numbers between 0 and 1, both excluded."""
    return random.random_uniform(sizes, float(np.finfo(kind.as_numpy_dtype).tiny), 1.0, kind, seed)


class _OfClasses(OfLogits):
    """Base of distributions of vectors with one element for each class, [..., classes]."""

    @property
    def event_size(self) -> Tensor:
        """The number of classes."""
        return arrays.shape(self._logits)[-1]

    def _batch_shape(self) -> TensorShape:
        return self._logits.shape[:-1]

    def _batch_shape_tensor(self) -> Tensor:
        return arrays.shape(self._logits)[:-1]

    def _event_shape(self) -> TensorShape:
        return self._logits.shape[-1:]

    def _event_shape_tensor(self) -> Tensor:
        return arrays.shape(self._logits)[-1:]


class OneHotCategorical(_OfClasses):
    """Categorical distribution of one-hot vectors.

    Args:
      logits: logarithms of the weights of the classes, [..., classes].
      probs: their probabilities, in place of ``logits``.
      dtype: type of samples.
      validate_args: accepted.
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
        name: str = "OneHotCategorical",
    ) -> None:
        arguments = dict(locals())
        self._logits, self._probs = logits_and_probs(name, logits, probs, True, validate_args)
        parents = [self._logits, self._probs]
        super().__init__(dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, arguments, parents, name)

    def _sample_n(self, n: Any, seed: int | None) -> Tensor:
        drawn = Categorical(logits=self._logits).sample(n, seed)
        return indexing.one_hot(drawn, self.event_size, dtype=self.dtype)

    def _log_prob(self, x: Tensor) -> Tensor:
        return reductions.reduce_sum(math.cast(x, self._logits.dtype) * nn.log_softmax(self._logits), -1)

    def _entropy(self) -> Tensor:
        return -reductions.reduce_sum(nn.log_softmax(self._logits) * self._probs, -1)

    def _variance(self) -> Tensor:
        return self._probs * (1.0 - self._probs)

    def _covariance(self) -> Tensor:
        outer = -linalg.matmul(arrays.expand_dims(self._probs, -1), arrays.expand_dims(self._probs, -2))
        return linalg.matrix_set_diag(outer, self._variance())

    def _mode(self) -> Tensor:
        return indexing.one_hot(reductions.argmax(self._logits, -1), self.event_size, dtype=self.dtype)


@RegisterKL(OneHotCategorical, OneHotCategorical)
def _of_one_hots(a: OneHotCategorical, b: OneHotCategorical, name: str | None = None) -> Tensor:
    del name
    apart = nn.log_softmax(a.logits) - nn.log_softmax(b.logits)
    return reductions.reduce_sum(nn.softmax(a.logits) * apart, -1)


class ExpRelaxedOneHotCategorical(_OfClasses):
    """The logarithms of samples of `RelaxedOneHotCategorical`, with the same arguments."""

    def __init__(
        self,
        temperature: TensorLike,
        logits: object = None,
        probs: TensorLike | None = None,
        dtype: DTypeLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "ExpRelaxedOneHotCategorical",
    ) -> None:
        arguments = dict(locals())
        self._logits, self._probs = logits_and_probs(name, logits, probs, True, validate_args)
        kind = self._logits.dtype.base_dtype if dtype is None else dtype
        self._temperature = convert_to_tensor(temperature, kind, name="temperature")
        parents = [self._logits, self._probs, self._temperature]
        super().__init__(kind, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, arguments, parents, name)

    @property
    def temperature(self) -> Tensor:
        """The temperature: samples near zero are almost one-hot."""
        return self._temperature

    def _warm(self) -> Tensor:
        """The temperature, with a dimension for the classes."""
        return self._temperature if self._temperature.dims == () else arrays.expand_dims(self._temperature, -1)

    def _sample_n(self, n: object, seed: int | None) -> Tensor:
        sizes = arrays.concat([arrays.stack([n]), arrays.shape(self._logits)], 0)
        gumbel = -math.log(-math.log(_uniform(sizes, self.dtype, seed)))
        return nn.log_softmax((gumbel + self._logits) / self._warm())

    def _log_prob(self, x: Tensor) -> Tensor:
        classes = math.cast(self.event_size, self.dtype)
        norm = special.lgamma(classes) + (classes - 1.0) * math.log(self._temperature)
        return reductions.reduce_sum(nn.log_softmax(self._logits - x * self._warm()), -1) + norm


class RelaxedOneHotCategorical(ExpRelaxedOneHotCategorical):
    """Continuous relaxation of `OneHotCategorical` (Maddison, Mnih and Teh, 2017; Jang, Gu and Poole, 2017).

    Args:
      temperature: positive; samples near zero are almost one-hot. [...].
      logits: logarithms of the weights of the classes, [..., classes].
      probs: their probabilities, in place of ``logits``.
      dtype: type of samples; the logits' if None.
      validate_args: accepted.
      allow_nan_stats: whether undefined statistics are NaN.

    Raises:
      ValueError: neither logits nor probabilities are given, or both are.
    """

    def __init__(
        self,
        temperature: TensorLike,
        logits: object = None,
        probs: TensorLike | None = None,
        dtype: DTypeLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "RelaxedOneHotCategorical",
    ) -> None:
        super().__init__(temperature, logits, probs, dtype, validate_args, allow_nan_stats, name)

    def _sample_n(self, n: object, seed: int | None) -> Tensor:
        return math.exp(super()._sample_n(n, seed))

    def _log_prob(self, x: Tensor) -> Tensor:
        logs = math.log(x)
        return super()._log_prob(logs) - reductions.reduce_sum(logs, -1)


class RelaxedBernoulli(OfLogits):
    """Continuous relaxation of `Bernoulli`: the sigmoid of a logistic number.

    Args:
      temperature: positive; samples near zero are almost 0 or 1.
      logits: the logarithm of the odds of 1.
      probs: the probability of 1, in place of ``logits``.
      validate_args: accepted.
      allow_nan_stats: whether undefined statistics are NaN.

    Raises:
      ValueError: neither logits nor probabilities are given, or both are.

    Attributes:
      temperature: the temperature.
    """

    def __init__(
        self,
        temperature: TensorLike,
        logits: object = None,
        probs: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "RelaxedBernoulli",
    ) -> None:
        arguments = dict(locals())
        self._logits, self._probs = logits_and_probs(name, logits, probs, False, validate_args)
        kind = self._logits.dtype.base_dtype
        self.temperature: Tensor = convert_to_tensor(temperature, kind, name="temperature")
        self._of = Logistic(self._logits / self.temperature, 1.0 / self.temperature)
        parents = [self._logits, self._probs, self.temperature]
        super().__init__(kind, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, arguments, parents, name)

    def _batch_shape(self) -> TensorShape:
        return self._of.batch_shape

    def _batch_shape_tensor(self) -> Tensor:
        return self._of.batch_shape_tensor()

    def _sample_n(self, n: Any, seed: int | None) -> Tensor:
        return math.sigmoid(self._of.sample(n, seed))

    def _log_prob(self, x: Tensor) -> Tensor:
        yes, no = math.log(x), math.log1p(-x)
        return self._of.log_prob(yes - no) - yes - no

    def _cdf(self, x: Tensor) -> Tensor:
        return self._of.cdf(math.log(x) - math.log1p(-x))


class Logistic(LocationScale):
    """Logistic distribution.

    Args:
      loc: the mean.
      scale: the scale, positive.
      validate_args: accepted.
      allow_nan_stats: whether undefined statistics are NaN.
    """

    _parameter_names = ("loc", "scale")

    def __init__(
        self,
        loc: TensorLike,
        scale: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Logistic",
    ) -> None:
        arguments = dict(locals())
        self._loc, self._scale = float_parameters(name, loc=loc, scale=scale)
        super().__init__(arguments, validate_args, allow_nan_stats, name, self._loc, self._scale)

    def _sample_n(self, n: object, seed: int | None) -> Tensor:
        drawn = _uniform(self._sizes(n), self.dtype, seed)
        return (math.log(drawn) - math.log1p(-drawn)) * self._scale + self._loc

    def _log_prob(self, x: Tensor) -> Tensor:
        z = self._z(x)
        return -z - 2.0 * nn.softplus(-z) - math.log(self._scale)

    def _cdf(self, x: Tensor) -> Tensor:
        return math.sigmoid(self._z(x))

    def _log_cdf(self, x: Tensor) -> Tensor:
        return -nn.softplus(-self._z(x))

    def _survival_function(self, x: Tensor) -> Tensor:
        return math.sigmoid(-self._z(x))

    def _log_survival_function(self, x: Tensor) -> Tensor:
        return -nn.softplus(self._z(x))

    def _entropy(self) -> Tensor:
        return 2.0 + math.log(self._spread(self._scale))

    def _mean(self) -> Tensor:
        return self._spread(self._loc)

    _mode = _mean

    def _stddev(self) -> Tensor:
        return self._spread(self._scale) * float(np.pi / np.sqrt(3.0))


class Poisson(OfScalars):
    """Poisson distribution of counts.

    Args:
      rate: the mean, positive.
      log_rate: its logarithm, in place of ``rate``.
      validate_args: accepted.
      allow_nan_stats: whether undefined statistics are NaN.

    Raises:
      ValueError: neither is given, or both are.

    Attributes:
      rate: the mean.
      log_rate: the logarithm of the mean.
    """

    def __init__(
        self,
        rate: TensorLike | None = None,
        log_rate: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Poisson",
    ) -> None:
        arguments = dict(locals())
        if rate is not None and log_rate is None:
            self.rate: Tensor = convert_to_tensor(rate, name="rate", preferred_dtype=float32)
            self.log_rate: Tensor = math.log(self.rate)
        elif rate is None and log_rate is not None:
            self.log_rate = convert_to_tensor(log_rate, name="log_rate", preferred_dtype=float32)
            self.rate = math.exp(self.log_rate)
        else:
            raise ValueError("Must specify exactly one of `rate` and `log_rate`.")
        super().__init__(arguments, validate_args, allow_nan_stats, name, self.rate)
        self.reparameterization_type = NOT_REPARAMETERIZED

    def _sample_n(self, n: Any, seed: int | None) -> Tensor:
        return random.random_poisson(self.rate, [n], self.dtype, seed)

    def _log_prob(self, x: Tensor) -> Tensor:
        return x * self.log_rate - special.lgamma(1.0 + x) - self.rate

    def _cdf(self, x: Tensor) -> Tensor:
        zero = arrays.zeros_like(x + self.rate)
        return special.igammac(1.0 + math.floor(x) + zero, self.rate + zero)

    def _mean(self) -> Tensor:
        return arrays.identity(self.rate)

    _variance = _mean

    def _mode(self) -> Tensor:
        return math.floor(self.rate)


class Chi2(Gamma):
    """Chi-squared distribution: `Gamma` with the shape ``df`` / 2 and the rate 1/2.

    Args:
      df: degrees of freedom, positive.
      validate_args: whether a step checks parameters and values.
      allow_nan_stats: whether undefined statistics are NaN.

    Attributes:
      df: the degrees of freedom.
    """

    def __init__(
        self, df: TensorLike, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Chi2"
    ) -> None:
        arguments = dict(locals())
        (self.df,) = float_parameters(name, df=df)
        half = convert_to_tensor(0.5, self.df.dtype)
        super().__init__(half * self.df, half, validate_args, allow_nan_stats, name)
        self._parameters = {key: value for key, value in arguments.items() if key not in ("self", "__class__")}


class Deterministic(Distribution):
    """Distribution with one possible value.

    Args:
      loc: the value.
      atol, rtol: values apart by at most ``atol + rtol |loc|`` are equal to it; 0 if None.
      validate_args: accepted.
      allow_nan_stats: whether undefined statistics are NaN.

    Attributes:
      loc: the value.
    """

    def __init__(
        self,
        loc: TensorLike,
        atol: TensorLike | None = None,
        rtol: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Deterministic",
    ) -> None:
        arguments = dict(locals())
        self.loc: Tensor = convert_to_tensor(loc, name="loc")
        kind = self.loc.dtype.base_dtype
        self._slack = convert_to_tensor(0 if atol is None else atol, kind)
        if rtol is not None:
            self._slack += convert_to_tensor(rtol, kind) * math.abs(self.loc)
        parents = [self.loc, self._slack]
        super().__init__(kind, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, arguments, parents, name)

    def _batch_shape(self) -> TensorShape:
        return broadcast_shape(self.loc, self._slack)

    def _batch_shape_tensor(self) -> Tensor:
        return broadcast_shape_tensor(self.loc, self._slack)

    def _sample_n(self, n: object, seed: int | None) -> Tensor:
        del seed
        return arrays.broadcast_to(self.loc, arrays.concat([arrays.stack([n]), self.batch_shape_tensor()], 0))

    def _prob(self, x: Tensor) -> Tensor:
        return math.cast(math.abs(x - self.loc) <= self._slack, self.dtype)

    def _cdf(self, x: Tensor) -> Tensor:
        return math.cast(x >= self.loc - self._slack, self.dtype)

    def _entropy(self) -> Tensor:
        return arrays.zeros(self.batch_shape_tensor(), self.dtype)

    _variance = _entropy

    def _mean(self) -> Tensor:
        return arrays.identity(self.loc)

    _mode = _mean
