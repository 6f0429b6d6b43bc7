"""Special functions, and polynomials."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional import arrays, math, reductions
from headwater.tf1.functional.apply import one
from headwater.tf1.functional.math import of_x

lgamma: Callable[..., Tensor] = of_x("Lgamma", "log |Γ(x)|")
digamma: Callable[..., Tensor] = of_x("Digamma", "The derivative of log Γ(x)")
erf: Callable[..., Tensor] = of_x("Erf", "The error function", sparse=True)
erfc: Callable[..., Tensor] = of_x("Erfc", "1 - erf(x)")
erfinv: Callable[..., Tensor] = of_x("Erfinv", "The inverse of the error function")
ndtri: Callable[..., Tensor] = of_x("Ndtri", "The quantile function of the standard normal distribution")
bessel_i0e: Callable[..., Tensor] = of_x("BesselI0e", "e^-|x| times the modified Bessel function of order 0")
bessel_i1e: Callable[..., Tensor] = of_x("BesselI1e", "e^-|x| times the modified Bessel function of order 1")

bessel_j0: Callable[..., Tensor] = of_x("BesselJ0", "The Bessel function of the first kind of order 0")
bessel_j1: Callable[..., Tensor] = of_x("BesselJ1", "The Bessel function of the first kind of order 1")
bessel_y0: Callable[..., Tensor] = of_x("BesselY0", "The Bessel function of the second kind of order 0")
bessel_y1: Callable[..., Tensor] = of_x("BesselY1", "The Bessel function of the second kind of order 1")
bessel_k0: Callable[..., Tensor] = of_x("BesselK0", "The modified Bessel function of the second kind of order 0")
bessel_k0e: Callable[..., Tensor] = of_x("BesselK0e", "e^x times `bessel_k0`")
bessel_k1: Callable[..., Tensor] = of_x("BesselK1", "The modified Bessel function of the second kind of order 1")
bessel_k1e: Callable[..., Tensor] = of_x("BesselK1e", "e^x times `bessel_k1`")
dawsn: Callable[..., Tensor] = of_x("Dawsn", "Dawson's integral")
expint: Callable[..., Tensor] = of_x("Expint", "The exponential integral; NaN for negative numbers, as in TensorFlow")
fresnel_cos: Callable[..., Tensor] = of_x("FresnelCos", "Fresnel's integral of the cosine")
fresnel_sin: Callable[..., Tensor] = of_x("FresnelSin", "Fresnel's integral of the sine")
spence: Callable[..., Tensor] = of_x("Spence", "Spence's integral, the dilogarithm of 1 - x")


def erfcinv(x: TensorLike, name: str | None = None) -> Tensor:
    """The inverse of `erfc` of every element."""
    with name_scope(name, "erfcinv", [x]):
        x = convert_to_tensor(x, name="x")
        return ndtri(0.5 * x) * -np.sqrt(0.5)


def bessel_i0(x: TensorLike, name: str | None = None) -> Tensor:
    """The modified Bessel function of order 0 of every element."""
    with name_scope(name, "bessel_i0", [x]):
        x = convert_to_tensor(x, name="x")
        return math.exp(math.abs(x)) * bessel_i0e(x)


def bessel_i1(x: TensorLike, name: str | None = None) -> Tensor:
    """The modified Bessel function of order 1 of every element."""
    with name_scope(name, "bessel_i1", [x]):
        x = convert_to_tensor(x, name="x")
        return math.exp(math.abs(x)) * bessel_i1e(x)


def xlog1py(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """x log(1 + y) of every element, and 0 where x is 0."""
    with name_scope(name, "xlog1py", [x]):
        x = convert_to_tensor(x, name="x")
        return math.xlogy(x, convert_to_tensor(y, x.dtype, name="y") + 1)


def nextafter(x1: TensorLike, x2: TensorLike, name: str | None = None) -> Tensor:
    """The next float after ``x1`` towards ``x2``."""
    return one("NextAfter", x1, x2, name=name)


def cumulative_logsumexp(
    x: TensorLike, axis: int = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """The logarithms of sums of powers of e up to each place along a dimension; see `tf.cumsum`."""
    return one("CumulativeLogsumexp", x, axis, exclusive=exclusive, reverse=reverse, name=name)


def zeta(x: TensorLike, q: TensorLike, name: str | None = None) -> Tensor:
    """The Hurwitz zeta function Σₙ (n + q)⁻ˣ."""
    return one("Zeta", x, q, name=name)


def igamma(a: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """The lower regularised incomplete gamma function P(a, x)."""
    return one("Igamma", a, x, name=name)


def igammac(a: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """The upper regularised incomplete gamma function Q(a, x)."""
    return one("Igammac", a, x, name=name)


def polygamma(a: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """The a-th derivative of the digamma function."""
    return one("Polygamma", a, x, name=name)


def betainc(a: TensorLike, b: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """The regularised incomplete beta function I_x(a, b)."""
    return one("Betainc", a, b, x, name=name)


def polyval(coeffs: Sequence[TensorLike], x: TensorLike, name: str | None = None) -> Tensor:
    """Evaluates a polynomial at x; the coefficient of the highest power is first. Without coefficients, it is 0."""
    with name_scope(name, "polyval", [*coeffs, x]):
        x = convert_to_tensor(x, name="x")
        if not coeffs:
            return arrays.zeros_like(x)
        result, *rest = (convert_to_tensor(c, name=f"coeff_{i}") for i, c in enumerate(coeffs))
        for coefficient in rest:
            result = coefficient + result * x
        return result


def lbeta(x: TensorLike, name: str | None = None) -> Tensor:
    """Σ log Γ(xᵢ) - log Γ(Σ xᵢ) along the last dimension: the logarithm of the beta function."""
    with name_scope(name, "lbeta", [x]):
        x = convert_to_tensor(x, name="x")
        return reductions.reduce_sum(lgamma(x), [-1]) - lgamma(reductions.reduce_sum(x, [-1]))
