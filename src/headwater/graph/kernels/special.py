"""Special functions and their gradients, by SciPy, which is loaded at the first call."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from headwater.graph.kernels.common import Arrays, Needed
from headwater.graph.kernels.registry import NoKernel, gradient_kernel, kernel

if TYPE_CHECKING:
    from headwater.graph.registry import Attrs, HostArray

_FUNCTIONS: Final = {
    "BesselI0e": "i0e",
    "BesselI1e": "i1e",
    "Betainc": "betainc",
    "Erf": "erf",
    "Erfc": "erfc",
    "Igamma": "gammainc",
    "Igammac": "gammaincc",
    "LogNdtr": "log_ndtr",
    "Ndtri": "ndtri",
    "Zeta": "zeta",
}


def _computed(name: str, *inputs: HostArray) -> HostArray:
    from scipy import special  # noqa: PLC0415  loading takes 0.1 s, and few programs need it

    if inputs[0].dtype not in (np.float32, np.float64):
        raise NoKernel
    function: Callable[..., Any] = getattr(special, name)
    return function(*inputs).astype(inputs[0].dtype, copy=False)


def _register(op_type: str, name: str) -> None:
    kernel(op_type)(lambda *inputs: _computed(name, *inputs))


for _type, _name in _FUNCTIONS.items():
    _register(_type, _name)


@kernel("Lgamma")
def lgamma(x: HostArray) -> HostArray:
    """The logarithm of the absolute value of the gamma function; infinite at both infinities."""
    return np.where(np.isneginf(x), x.dtype.type(np.inf), _computed("gammaln", x))


@kernel("Digamma")
def digamma(x: HostArray) -> HostArray:
    """The derivative of the logarithm of the gamma function; infinite at 0, -1, -2, …, as in TensorFlow."""
    return np.where((x <= 0) & (x == np.floor(x)), x.dtype.type(np.inf), _computed("digamma", x))


def _slope(op_type: str, slope: Callable[[Any, Any], Any]) -> None:
    """``slope`` is the derivative, a function of x and of the result."""

    @gradient_kernel(op_type, outputs=True)
    def gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs, outputs: Arrays) -> Arrays:  # pyright: ignore[reportUnusedFunction]
        x = inputs[0]
        return (grads[0] * slope(x, outputs[0]).astype(x.dtype, copy=False),)


_slope("Lgamma", lambda x, y: digamma(x))
_slope("Digamma", lambda x, y: _computed("zeta", np.full_like(x, 2), x))
_slope("Erf", lambda x, y: 2 / math.sqrt(math.pi) * np.exp(-x * x))
_slope("Erfc", lambda x, y: -2 / math.sqrt(math.pi) * np.exp(-x * x))
_slope("LogNdtr", lambda x, y: np.exp(-x * x / 2 - y) / math.sqrt(2 * math.pi))
_slope("BesselI0e", lambda x, y: _computed("i1e", x) - np.sign(x) * y)
_slope("Ndtri", lambda x, y: math.sqrt(2 * math.pi) * np.exp(y * y / 2))
