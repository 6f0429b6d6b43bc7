"""Distributions of real numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.dtypes import int32
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional import arrays, indexing, math, random, special
from headwater.tf1.functional.apply import one
from headwater.tf1.functional.checks import assert_less, assert_positive
from headwater.tf1.functional.control_flow import with_dependencies
from headwater.tf1.functional.distributions import validation
from headwater.tf1.functional.distributions.base import (
    FULLY_REPARAMETERIZED,
    Distribution,
    broadcast_shape,
    broadcast_shape_tensor,
    float_parameters,
)

if TYPE_CHECKING:
    from headwater.shapes import TensorShape

_LOG_2PI = float(np.log(2 * np.pi))


class OfScalars(Distribution):
    """Base of distributions of scalars with broadcast parameters, listed in `_parameter_names`.

    Args:
      arguments: the arguments of the class, which `copy` uses.
      parameters: its parameters as tensors.
    """

    _parameter_names: tuple[str, ...] = ()

    @classmethod
    def _param_shapes(cls, sample_shape: Any) -> dict[str, Tensor]:
        return dict.fromkeys(cls._parameter_names, convert_to_tensor(sample_shape, int32))

    def __init__(
        self,
        arguments: Mapping[str, object],
        validate_args: bool,
        allow_nan_stats: bool,
        name: str,
        *parameters: Tensor,
    ) -> None:
        self._tensors = parameters
        super().__init__(
            parameters[0].dtype.base_dtype,
            FULLY_REPARAMETERIZED,
            validate_args,
            allow_nan_stats,
            arguments,
            parameters,
            name,
        )

    def _batch_shape(self) -> TensorShape:
        return broadcast_shape(*self._tensors)

    def _batch_shape_tensor(self) -> Tensor:
        return broadcast_shape_tensor(*self._tensors)

    def _sizes(self, n: object) -> Tensor:
        return arrays.concat([arrays.stack([n]), self.batch_shape_tensor()], 0)

    def _spread(self, value: Tensor) -> Tensor:
        """Broadcasts a parameter to the shape of the batch."""
        return value + arrays.zeros(self.batch_shape_tensor(), self.dtype)

    def _checked(self, wrong: Tensor, value: Tensor, message: str) -> Tensor:
        """Returns ``value`` with NaN (or an error) where it is undefined."""
        if self.allow_nan_stats:
            nan = arrays.fill(arrays.shape(value), convert_to_tensor(np.array(np.nan, self.dtype.as_numpy_dtype)))
            return indexing.where_v2(wrong, nan, value)
        right = math.cast(wrong, int32)
        return with_dependencies([assert_less(right, 1, message=message)], value)


class LocationScale(OfScalars):
    """Base of location-scale distributions."""

    _loc: Tensor
    _scale: Tensor

    @property
    def loc(self) -> Tensor:
        """The mean, if it exists."""
        return self._loc

    @property
    def scale(self) -> Tensor:
        """The scale parameter."""
        return self._scale

    def _z(self, x: Tensor) -> Tensor:
        return (x - self._loc) / self._scale


class Normal(LocationScale):
    """The normal distribution.

    Args:
      loc: the mean.
      scale: the standard deviation.
      validate_args: whether a step checks that the scale is positive.
      allow_nan_stats: whether undefined statistics are NaN.
    """

    _parameter_names = ("loc", "scale")

    def __init__(
        self,
        loc: TensorLike,
        scale: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Normal",
    ) -> None:
        arguments = dict(locals())
        self._loc, self._scale = float_parameters(name, loc=loc, scale=scale)
        if validate_args:
            check = assert_positive(self._scale)
            self._loc, self._scale = (with_dependencies([check], each) for each in (self._loc, self._scale))
        super().__init__(arguments, validate_args, allow_nan_stats, name, self._loc, self._scale)

    def _sample_n(self, n: object, seed: int | None) -> Tensor:
        drawn = random.random_normal(self._sizes(n), dtype=self.dtype, seed=seed)
        return drawn * self._scale + self._loc

    def _log_prob(self, x: Tensor) -> Tensor:
        return -0.5 * math.square(self._z(x)) - (0.5 * _LOG_2PI + math.log(self._scale))

    def _cdf(self, x: Tensor) -> Tensor:
        return 0.5 * special.erfc(-self._z(x) * float(np.sqrt(0.5)))

    def _log_cdf(self, x: Tensor) -> Tensor:
        return one("LogNdtr", self._z(x))

    def _survival_function(self, x: Tensor) -> Tensor:
        return 0.5 * special.erfc(self._z(x) * float(np.sqrt(0.5)))

    def _log_survival_function(self, x: Tensor) -> Tensor:
        return one("LogNdtr", -self._z(x))

    def _quantile(self, p: Tensor) -> Tensor:
        return one("Ndtri", p) * self._scale + self._loc

    def _entropy(self) -> Tensor:
        return 0.5 * (1.0 + _LOG_2PI) + math.log(self._spread(self._scale))

    def _mean(self) -> Tensor:
        return self._spread(self._loc)

    def _stddev(self) -> Tensor:
        return self._spread(self._scale)

    _mode = _mean


class Laplace(LocationScale):
    """The distribution with the density ``exp(-|x - loc| / scale) / (2 scale)``.

    Args:
      loc: the mean.
      scale: how wide it is.
      validate_args: whether a step checks that the scale is positive.
      allow_nan_stats: whether undefined statistics are NaN.
    """

    _parameter_names = ("loc", "scale")

    def __init__(
        self,
        loc: TensorLike,
        scale: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Laplace",
    ) -> None:
        arguments = dict(locals())
        self._loc, self._scale = float_parameters(name, loc=loc, scale=scale)
        if validate_args:
            check = assert_positive(self._scale)
            self._loc, self._scale = (with_dependencies([check], each) for each in (self._loc, self._scale))
        super().__init__(arguments, validate_args, allow_nan_stats, name, self._loc, self._scale)

    def _sample_n(self, n: object, seed: int | None) -> Tensor:
        least = float(np.nextafter(np.array(-1.0, self.dtype.as_numpy_dtype), np.array(0.0, self.dtype.as_numpy_dtype)))
        drawn = random.random_uniform(self._sizes(n), minval=least, maxval=1.0, dtype=self.dtype, seed=seed)
        return self._loc - self._scale * math.sign(drawn) * math.log1p(-math.abs(drawn))

    def _log_prob(self, x: Tensor) -> Tensor:
        return -math.abs(self._z(x)) - float(np.log(2.0)) - math.log(self._scale)

    def _cdf(self, x: Tensor) -> Tensor:
        z = self._z(x)
        return 0.5 + 0.5 * math.sign(z) * (1.0 - math.exp(-math.abs(z)))

    def _log_cdf(self, x: Tensor) -> Tensor:
        return _log_cdf_of_laplace(self._z(x))

    def _log_survival_function(self, x: Tensor) -> Tensor:
        return _log_cdf_of_laplace(-self._z(x))

    def _entropy(self) -> Tensor:
        return float(np.log(2.0)) + 1.0 + math.log(self._spread(self._scale))

    def _mean(self) -> Tensor:
        return self._spread(self._loc)

    def _stddev(self) -> Tensor:
        return float(np.sqrt(2.0)) * self._spread(self._scale)

    _mode = _mean


def _log_cdf_of_laplace(z: Tensor) -> Tensor:
    below = float(np.log(0.5)) + z
    return indexing.where_v2(z < 0.0, below, math.log1p(-0.5 * math.exp(-math.abs(z))))


class Uniform(OfScalars):
    """The uniform distribution over ``low <= x < high``.

    Args:
      low: its lower bound.
      high: its upper bound.
      validate_args: whether a step checks that ``low < high``.
      allow_nan_stats: whether undefined statistics are NaN.

    Attributes:
      low: the lower bound.
      high: the upper bound.
    """

    _parameter_names = ("low", "high")

    def __init__(
        self,
        low: TensorLike = 0.0,
        high: TensorLike = 1.0,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Uniform",
    ) -> None:
        arguments = dict(locals())
        self.low, self.high = float_parameters(name, low=low, high=high)
        if validate_args:
            check = assert_less(self.low, self.high, message="uniform not defined when low >= high.")
            self.high: Tensor = with_dependencies([check], self.high)
        super().__init__(arguments, validate_args, allow_nan_stats, name, self.low, self.high)

    def range(self, name: str = "range") -> Tensor:
        """``high - low``."""
        with name_scope(f"{self.name}{name}/", ""):
            return self.high - self.low

    def _sample_n(self, n: object, seed: int | None) -> Tensor:
        return self.low + self.range() * random.random_uniform(self._sizes(n), dtype=self.dtype, seed=seed)

    def _prob(self, x: Tensor) -> Tensor:
        density = arrays.zeros_like(x) + 1.0 / self.range()
        outside = math.logical_or(x < self.low, x >= self.high)
        found = indexing.where_v2(outside, arrays.zeros_like(density), density)
        return indexing.where_v2(math.is_nan(x), x, found)

    def _cdf(self, x: Tensor) -> Tensor:
        inside = (x - self.low) / self.range()
        found = indexing.where_v2(x < self.low, arrays.zeros_like(inside), inside)
        return indexing.where_v2(x >= self.high, arrays.ones_like(inside), found)

    def _entropy(self) -> Tensor:
        return math.log(self.range())

    def _mean(self) -> Tensor:
        return (self.low + self.high) / 2.0

    def _variance(self) -> Tensor:
        return math.square(self.range()) / 12.0

    def _stddev(self) -> Tensor:
        return self.range() / float(np.sqrt(12.0))


class StudentT(LocationScale):
    """Student's t-distribution with location and scale.

    Args:
      df: degrees of freedom.
      loc: the mean, if it exists.
      scale: how wide it is.
      validate_args: whether a step checks that degrees are positive.
      allow_nan_stats: whether undefined statistics are NaN.

    Attributes:
      df: degrees of freedom.
    """

    _parameter_names = ("df", "loc", "scale")

    def __init__(
        self,
        df: TensorLike,
        loc: TensorLike,
        scale: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "StudentT",
    ) -> None:
        arguments = dict(locals())
        self.df, self._loc, self._scale = float_parameters(name, df=df, loc=loc, scale=scale)
        if validate_args:
            self.df: Tensor = with_dependencies([assert_positive(self.df)], self.df)
        super().__init__(arguments, validate_args, allow_nan_stats, name, self.df, self._loc, self._scale)

    def _sample_n(self, n: TensorLike, seed: int | None) -> Tensor:
        normal = random.random_normal(self._sizes(n), dtype=self.dtype, seed=seed)
        half = 0.5 * self._spread(self.df)
        chi = random.random_gamma(arrays.stack([n]), half, 0.5, self.dtype, None if seed is None else seed + 1)
        return normal * math.rsqrt(chi / self.df) * self._scale + self._loc

    def _log_prob(self, x: Tensor) -> Tensor:
        unnormalised = -0.5 * (self.df + 1.0) * math.log1p(math.square(self._z(x)) / self.df)
        return unnormalised - (
            math.log(math.abs(self._scale))
            + 0.5 * math.log(self.df)
            + 0.5 * float(np.log(np.pi))
            + special.lgamma(0.5 * self.df)
            - special.lgamma(0.5 * (self.df + 1.0))
        )

    def _cdf(self, x: Tensor) -> Tensor:
        z = self._z(x) * math.sign(self._scale)
        tail = 0.5 * special.betainc(*_same(0.5 * self.df, 0.5, self.df / (math.square(z) + self.df)))
        return indexing.where_v2(z < 0.0, tail, 1.0 - tail)

    def _entropy(self) -> Tensor:
        df = self._spread(self.df)
        half, more = 0.5 * df, 0.5 * (df + 1.0)
        beta = (
            special.lgamma(half) + special.lgamma(arrays.fill(arrays.shape(half), _half(self))) - special.lgamma(more)
        )
        return (
            math.log(math.abs(self._scale))
            + 0.5 * math.log(df)
            + beta
            + more * (special.digamma(more) - special.digamma(half))
        )

    def _mean(self) -> Tensor:
        return self._checked(self._spread(self.df) <= 1.0, self._spread(self._loc), "mean not defined for df <= 1")

    def _variance(self) -> Tensor:
        df = self._spread(self.df)
        lower = indexing.where_v2(df > 2.0, df - 2.0, arrays.ones_like(df))
        variance = math.square(self._scale) * df / lower
        infinite = arrays.fill(arrays.shape(df), convert_to_tensor(np.array(np.inf, self.dtype.as_numpy_dtype)))
        variance = indexing.where_v2(df > 2.0, variance, infinite)
        return self._checked(df <= 1.0, variance, "variance not defined for df <= 1")

    def _mode(self) -> Tensor:
        return arrays.identity(self._loc)


def _half(distribution: Distribution) -> Tensor:
    return convert_to_tensor(np.array(0.5, distribution.dtype.as_numpy_dtype))


def _same(first: Tensor, second: float, third: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Broadcasts three values to a common shape."""
    zero = arrays.zeros_like(first + third)
    return first + zero, zero + second, third + zero


class Gamma(OfScalars):
    """The gamma distribution.

    Args:
      concentration: its shape.
      rate: the inverse of its scale.
      validate_args: whether a step checks that both are positive.
      allow_nan_stats: whether undefined statistics are NaN.

    Attributes:
      concentration: the shape parameter.
      rate: the inverse of its scale.
    """

    _parameter_names = ("concentration", "rate")

    def __init__(
        self,
        concentration: TensorLike,
        rate: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Gamma",
    ) -> None:
        arguments = dict(locals())
        found = float_parameters(name, concentration=concentration, rate=rate)
        if validate_args:
            found = validation.all_positive(found)
        self.concentration, self.rate = found
        super().__init__(arguments, validate_args, allow_nan_stats, name, *found)

    def _sample_n(self, n: object, seed: int | None) -> Tensor:
        return random.random_gamma(arrays.stack([n]), self.concentration, self.rate, self.dtype, seed)

    def _validated(self, value: Tensor) -> Tensor:
        return validation.all_positive([value])[0]

    def _log_prob(self, x: Tensor) -> Tensor:
        x = self._valid(x)
        return (
            _xlogy(self.concentration - 1.0, x)
            - self.rate * x
            - (special.lgamma(self.concentration) - self.concentration * math.log(self.rate))
        )

    def _cdf(self, x: Tensor) -> Tensor:
        x = self._valid(x)
        zero = arrays.zeros_like(self.concentration + x * self.rate)
        return special.igamma(self.concentration + zero, self.rate * x + zero)

    def _entropy(self) -> Tensor:
        shape = self._spread(self.concentration)
        return shape - math.log(self.rate) + special.lgamma(shape) + (1.0 - shape) * special.digamma(shape)

    def _mean(self) -> Tensor:
        return self.concentration / self.rate

    def _variance(self) -> Tensor:
        return self.concentration / math.square(self.rate)

    def _stddev(self) -> Tensor:
        return math.sqrt(self.concentration) / self.rate

    def _mode(self) -> Tensor:
        mode = (self.concentration - 1.0) / self.rate
        wrong = self._spread(self.concentration) <= 1.0
        return self._checked(wrong, mode, "mode not defined when any concentration <= 1")


def _xlogy(x: Tensor, y: Tensor) -> Tensor:
    """``x log y``, 0 where x is 0."""
    return one("Xlogy", x + arrays.zeros_like(y), y + arrays.zeros_like(x))


class Exponential(Gamma):
    """The exponential distribution.

    Args:
      rate: the inverse of the mean.
      validate_args: whether a step checks that it is positive.
      allow_nan_stats: whether undefined statistics are NaN.
    """

    _parameter_names = ("rate",)

    def __init__(
        self, rate: TensorLike, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Exponential"
    ) -> None:
        arguments = dict(locals())
        (tensor,) = float_parameters(name, rate=rate)
        super().__init__(arrays.ones_like(tensor), tensor, validate_args, allow_nan_stats, name)
        self._parameters = {key: value for key, value in arguments.items() if key not in ("self", "__class__")}

    def _sample_n(self, n: object, seed: int | None) -> Tensor:
        least = float(np.finfo(self.dtype.as_numpy_dtype).tiny)
        drawn = random.random_uniform(self._sizes(n), minval=least, maxval=1.0, dtype=self.dtype, seed=seed)
        return -math.log(drawn) / self.rate


class Beta(OfScalars):
    """The beta distribution over ``0 < x < 1``.

    Args:
      concentration1: the weight of 1.
      concentration0: the weight of 0.
      validate_args: whether a step checks that both are positive.
      allow_nan_stats: whether undefined statistics are NaN.

    Attributes:
      concentration1: the weight of 1.
      concentration0: the weight of 0.
      total_concentration: the sum of both.
    """

    _parameter_names = ("concentration1", "concentration0")

    def __init__(
        self,
        concentration1: TensorLike | None = None,
        concentration0: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Beta",
    ) -> None:
        arguments = dict(locals())
        found = float_parameters(name, concentration1=concentration1, concentration0=concentration0)
        if validate_args:
            found = validation.all_positive(found, "Concentration parameter must be positive.")
        self.concentration1, self.concentration0 = found
        self.total_concentration: Tensor = self.concentration1 + self.concentration0
        super().__init__(arguments, validate_args, allow_nan_stats, name, *found)

    def _log_beta(self) -> Tensor:
        return (
            special.lgamma(self.concentration1)
            + special.lgamma(self.concentration0)
            - special.lgamma(self.total_concentration)
        )

    def _sample_n(self, n: object, seed: int | None) -> Tensor:
        shape = arrays.stack([n])
        ones = random.random_gamma(shape, self._spread(self.concentration1), dtype=self.dtype, seed=seed)
        other = None if seed is None else seed + 1
        zeros = random.random_gamma(shape, self._spread(self.concentration0), dtype=self.dtype, seed=other)
        return ones / (ones + zeros)

    def _validated(self, value: Tensor) -> Tensor:
        (value,) = validation.all_positive([value], "sample must be positive")
        return with_dependencies([assert_less(value, 1.0, message="sample must be less than `1`.")], value)

    def _log_prob(self, x: Tensor) -> Tensor:
        x = self._valid(x)
        return _xlogy(self.concentration1 - 1.0, x) + (self.concentration0 - 1.0) * math.log1p(-x) - self._log_beta()

    def _cdf(self, x: Tensor) -> Tensor:
        zero = arrays.zeros_like(self.total_concentration + x)
        return special.betainc(self.concentration1 + zero, self.concentration0 + zero, x + zero)

    def _entropy(self) -> Tensor:
        return (
            self._log_beta()
            - (self.concentration1 - 1.0) * special.digamma(self.concentration1)
            - (self.concentration0 - 1.0) * special.digamma(self.concentration0)
            + (self.total_concentration - 2.0) * special.digamma(self.total_concentration)
        )

    def _mean(self) -> Tensor:
        return self.concentration1 / self.total_concentration

    def _variance(self) -> Tensor:
        return self._mean() * (1.0 - self._mean()) / (1.0 + self.total_concentration)

    def _mode(self) -> Tensor:
        wrong = math.logical_or(self._spread(self.concentration1) <= 1.0, self._spread(self.concentration0) <= 1.0)
        mode = (self.concentration1 - 1.0) / (self.total_concentration - 2.0)
        return self._checked(wrong, mode, "Mode undefined for concentration1 <= 1 or concentration0 <= 1.")
