"""Functions with a separate implementation for CPUs.

XLA's code for GPUs calls libraries for convolutions and windows; its code for CPUs has naive loops for some of them.
The implementation is selected when an executable is lowered for its device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.lazy_jax import jax

# Pyright finds the types of these functions of JAX in part only.
_jax: Any = jax

Function = Callable[..., Any]


def by_platform(plain: Function, on_cpus: Function, pull: Function | None = None) -> Function:
    """Returns a differentiable function that is ``on_cpus`` in an executable for a CPU, and ``plain`` elsewhere.

    Args:
      plain: a function of arrays.
      on_cpus: another implementation of the same function.
      pull: ``(inputs, slope) -> slopes of the inputs`` on CPUs; by default derived from ``on_cpus``.
    """

    def derived(function: Function) -> Function:
        return lambda inputs, slope: _jax.vjp(function, *inputs)[1](slope)

    @_jax.custom_vjp
    def chosen(*inputs: object) -> Any:
        return _jax.lax.platform_dependent(*inputs, cpu=on_cpus, default=plain)

    def forward(*inputs: object) -> object:
        return chosen(*inputs), inputs

    def backward(inputs: object, slope: object) -> object:
        return _jax.lax.platform_dependent(inputs, slope, cpu=pull or derived(on_cpus), default=derived(plain))

    chosen.defvjp(forward, backward)
    return chosen
