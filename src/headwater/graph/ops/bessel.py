"""Bessel functions, Dawson's, exponential and Fresnel integrals, and dilogarithms.

The first use of a function computes Chebyshev series from SciPy's values of its smooth parts.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from headwater.graph.ops.define import pure, unary
from headwater.lazy_jax import custom_jvp, jnp, special

if TYPE_CHECKING:
    import jax

    from headwater.graph.registry import HostArray

_DEGREE: Final = 31
"""Degree of each series; the error is then below 1e-14."""
_FAR: Final = 8.0
"""Above it, J and Y are sums of a sine and a cosine with slowly changing factors."""
_FAR_K: Final = 2.0
_FAR_DAWSON: Final = 4.0


def _near(name: str, order: int, z: HostArray) -> HostArray:
    """Returns the smooth part of a function near 0, for z = x²."""
    from scipy import special as exact  # noqa: PLC0415  loading takes 0.1 s, and few programs need it

    x, log = np.sqrt(z), np.log(z) / 2
    match name:
        case "j":
            return exact.jv(order, x) / x**order
        case "y":
            return (exact.yv(order, x) - (log * exact.jv(order, x) - order / x) * 2 / np.pi) / x**order
        case "k":
            return (exact.kv(order, x) + (-1) ** order * (log - math.log(2)) * exact.iv(order, x)) * x**order
        case _:
            return exact.dawsn(x) / x


def _distant(name: str, order: int, t: HostArray) -> HostArray:
    """Returns the slowly changing factor of a function far from 0, for t in [0, 1]: a power of the ratio of the nearest
    x to x."""
    from scipy import special as exact  # noqa: PLC0415

    if name == "k":
        x = _FAR_K / t
        return exact.kve(order, x) * np.sqrt(x)
    if name == "dawson":
        x = _FAR_DAWSON / np.sqrt(t)
        return exact.dawsn(x) * 2 * x
    x = _FAR / np.sqrt(t)
    sine, cosine = np.sin(x - (2 * order + 1) * np.pi / 4), np.cos(x - (2 * order + 1) * np.pi / 4)
    j, y = exact.jv(order, x), exact.yv(order, x)
    scale = np.sqrt(np.pi * x / 2)
    return scale * (j * cosine + y * sine) if name == "even" else scale * (y * cosine - j * sine) * x


@functools.cache
def _coefficients(function: Callable[..., HostArray], name: str, order: int, high: float) -> list[float]:
    nodes = functools.partial(function, name, order)
    return np.polynomial.Chebyshev.interpolate(nodes, _DEGREE, [0, high]).coef.tolist()


def _series(function: Callable[..., HostArray], name: str, order: int, x: jax.Array, high: float) -> jax.Array:
    """Evaluates the Chebyshev series of a smooth function on [0, high], by Clenshaw's recurrence."""
    u = jnp.clip(x, 0, high) * (4 / high) - 2
    before, last = jnp.zeros_like(x), jnp.zeros_like(x)
    first, *others = _coefficients(function, name, order, high)
    for coefficient in reversed(others):
        before, last = last, u * last - before + coefficient
    return u / 2 * last - before + first


def _j_near(order: int, x: jax.Array) -> jax.Array:
    return _series(_near, "j", order, x * x, _FAR**2) * x**order


def _waves(order: int, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns J and Y for x above `_FAR`."""
    x = jnp.maximum(x, _FAR)
    t = (_FAR / x) ** 2
    even, odd = _series(_distant, "even", order, t, 1), _series(_distant, "odd", order, t, 1) / x
    # cos(x - 3π/4) etc. from sin(x) and cos(x): the difference would be rounded.
    sign = 1 - 2 * order
    sine, cosine = (sign * jnp.sin(x) - jnp.cos(x)), (sign * jnp.cos(x) + jnp.sin(x))
    scale = 1 / jnp.sqrt(np.pi * x)
    return scale * (even * cosine - odd * sine), scale * (even * sine + odd * cosine)


def _j(order: int, x: jax.Array) -> jax.Array:
    size = jnp.abs(x)
    value = jnp.where(size > _FAR, _waves(order, size)[0], _j_near(order, size))
    return value * jnp.sign(x) ** order


def _y(order: int, x: jax.Array) -> jax.Array:
    smooth = _series(_near, "y", order, x * x, _FAR**2) * x**order
    near = (jnp.log(x) * _j_near(order, x) - order / x) * (2 / np.pi) + smooth
    return jnp.where(x > 0, jnp.where(x > _FAR, _waves(order, x)[1], near), jnp.where(jnp.isnan(x), x, -jnp.inf))


def _k(order: int, x: jax.Array, scaled: bool) -> jax.Array:
    other = special.i0(x) if order == 0 else -special.i1(x)
    near = _series(_near, "k", order, x * x, _FAR_K**2) / x**order - jnp.log(x / 2) * other
    far = _series(_distant, "k", order, _FAR_K / x, 1) / jnp.sqrt(x)
    value = jnp.where(x > _FAR_K, far if scaled else far * jnp.exp(-x), near * jnp.exp(x) if scaled else near)
    return jnp.where(x > 0, value, jnp.where(jnp.isnan(x), x, jnp.inf))


def _dawson(x: jax.Array) -> jax.Array:
    near = _series(_near, "dawson", 0, x * x, _FAR_DAWSON**2) * x
    far = _series(_distant, "dawson", 0, (_FAR_DAWSON / x) ** 2, 1) / (2 * x)
    return jnp.where(jnp.abs(x) > _FAR_DAWSON, far, near)


def _exponential_integral(x: jax.Array) -> jax.Array:
    # TensorFlow gives no values for negative numbers.
    return jnp.where(x < 0, jnp.nan, special.expi(x))


def _spence_slope(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.where(x == 1, -1, jnp.log(x) / (1 - x))


def _j1_slope(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.where(x == 0, 0.5, j0(x) - y / x)


def _define(op_type: str, compute: Callable[..., Any], slope: Callable[..., Any]) -> Callable[..., Any]:
    """Defines an operation type for a function and its derivative, a function of x and of the result."""

    @custom_jvp
    def function(x: jax.Array) -> jax.Array:
        wide = x if x.dtype.itemsize > 2 else x.astype(np.float32)
        return compute(wide).astype(x.dtype)

    @function.defjvp
    def product(primals: Sequence[jax.Array], tangents: Sequence[jax.Array]) -> tuple[jax.Array, jax.Array]:  # pyright: ignore[reportUnusedFunction]
        y = function(*primals)
        return y, (tangents[0] * slope(primals[0], y)).astype(y.dtype)

    pure(op_type, inputs="x:T|floating", infer=unary)(lambda x: function(x))
    return function


j0 = _define("BesselJ0", functools.partial(_j, 0), lambda x, y: -j1(x))
j1 = _define("BesselJ1", functools.partial(_j, 1), _j1_slope)
y0 = _define("BesselY0", functools.partial(_y, 0), lambda x, y: -y1(x))
y1 = _define("BesselY1", functools.partial(_y, 1), lambda x, y: y0(x) - y / x)
k0 = _define("BesselK0", functools.partial(_k, 0, scaled=False), lambda x, y: -k1(x))
k1 = _define("BesselK1", functools.partial(_k, 1, scaled=False), lambda x, y: -k0(x) - y / x)
k0e = _define("BesselK0e", functools.partial(_k, 0, scaled=True), lambda x, y: y - k1e(x))
k1e = _define("BesselK1e", functools.partial(_k, 1, scaled=True), lambda x, y: y * (1 - 1 / x) - k0e(x))
_define("Dawsn", _dawson, lambda x, y: 1 - 2 * x * y)
_define("Expint", _exponential_integral, lambda x, y: jnp.exp(x) / x)
_define("FresnelCos", lambda x: special.fresnel(x)[1], lambda x, y: jnp.cos(np.pi / 2 * x * x))
_define("FresnelSin", lambda x: special.fresnel(x)[0], lambda x, y: jnp.sin(np.pi / 2 * x * x))
_define("Spence", lambda x: special.spence(x), _spence_slope)
