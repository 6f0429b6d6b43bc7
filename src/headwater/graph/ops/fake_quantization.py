"""Numbers rounded to low-bit values, for quantization-aware training (Jacob and others, 2017)."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from headwater.errors import InvalidArgumentError
from headwater.graph.ops.define import pure
from headwater.graph.registry import Inference, Spec
from headwater.lazy_jax import custom_vjp, jax, jnp


def _nudged(low: jax.Array, high: jax.Array, bits: int, narrow: bool) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Returns the bounds, shifted so that zero can be represented exactly, and the distance between consecutive
    numbers."""
    _check(bits)
    least, most = float(narrow), float(2**bits - 1)
    scale = (high - low) / (most - least)
    zero = jnp.clip(jnp.floor(least - low / scale + 0.5), least, most)
    return (least - zero) * scale, (most - zero) * scale, scale


@functools.partial(custom_vjp, nondiff_argnums=(3, 4))
def _rounded(x: jax.Array, low: jax.Array, high: jax.Array, bits: int, narrow: bool) -> jax.Array:
    bottom, top, scale = _nudged(low, high, bits, narrow)
    found = jnp.floor((jnp.clip(x, bottom, top) - bottom) * (1 / scale) + 0.5) * scale + bottom
    return jnp.where((low == 0) & (high == 0), jnp.zeros_like(x), found)


def _forward(
    x: jax.Array, low: jax.Array, high: jax.Array, bits: int, narrow: bool
) -> tuple[jax.Array, tuple[jax.Array, jax.Array, jax.Array]]:
    return _rounded(x, low, high, bits, narrow), (x, low, high)


def _backward(
    bits: int, narrow: bool, kept: tuple[jax.Array, jax.Array, jax.Array], grad: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Returns the gradients. The incoming gradient of an element within the bounds is passed to the element; otherwise
    it is added to the gradient of the exceeded bound."""
    x, low, high = kept
    bottom, top, _ = _nudged(low, high, bits, narrow)
    none = (low == 0) & (high == 0)
    below, above = (x < bottom) & ~none, (x > top) & ~none
    axes = tuple(range(x.ndim - jnp.ndim(low)))
    zero = jnp.zeros_like(grad)
    return (
        jnp.where(below | above, zero, grad),
        jnp.sum(jnp.where(below, grad, zero), axes),
        jnp.sum(jnp.where(above, grad, zero), axes),
    )


_rounded.defvjp(_forward, _backward)


def _check(bits: int) -> None:
    if not 2 <= bits <= 16:
        raise InvalidArgumentError(f"num_bits must be between 2 and 16, inclusive: {bits}")


def _like_inputs(inference: Inference) -> Sequence[Spec]:
    return [Spec(inference.inputs[0].dtype.base_dtype, inference.inputs[0].dims)]


def _like_all(inference: Inference) -> Sequence[Spec]:
    return [Spec(spec.dtype.base_dtype, spec.dims) for spec in inference.inputs[1:]]


def _vars(op_type: str) -> None:
    @pure(op_type, inputs="inputs:float32, min:float32, max:float32", infer=_like_inputs)
    def rounded(
        inputs: jax.Array, min: jax.Array, max: jax.Array, *, num_bits: int = 8, narrow_range: bool = False
    ) -> jax.Array:
        return _rounded(jnp.asarray(inputs), jnp.asarray(min), jnp.asarray(max), num_bits, narrow_range)

    @pure(f"{op_type}Gradient", inputs="gradients:float32, inputs:float32, min:float32, max:float32", infer=_like_all)
    def gradient(
        gradients: jax.Array,
        inputs: jax.Array,
        min: jax.Array,
        max: jax.Array,
        *,
        num_bits: int = 8,
        narrow_range: bool = False,
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        kept = (jnp.asarray(inputs), jnp.asarray(min), jnp.asarray(max))
        return _backward(num_bits, narrow_range, kept, jnp.asarray(gradients))


_vars("FakeQuantWithMinMaxVars")
_vars("FakeQuantWithMinMaxVarsPerChannel")


@pure("FakeQuantWithMinMaxArgs", inputs="inputs:float32", infer=_like_inputs)
def fake_quant_with_min_max_args(
    inputs: jax.Array, *, min: float = -6.0, max: float = 6.0, num_bits: int = 8, narrow_range: bool = False
) -> jax.Array:
    """Rounds inputs to the numbers that ``num_bits`` bits can represent between two bounds."""
    return _rounded(jnp.asarray(inputs), jnp.float32(min), jnp.float32(max), num_bits, narrow_range)


@pure("FakeQuantWithMinMaxArgsGradient", inputs="gradients:float32, inputs:float32", infer=_like_inputs)
def fake_quant_with_min_max_args_gradient(
    gradients: jax.Array,
    inputs: jax.Array,
    *,
    min: float = -6.0,
    max: float = 6.0,
    num_bits: int = 8,
    narrow_range: bool = False,
) -> jax.Array:
    """The gradient of `fake_quant_with_min_max_args` for its inputs."""
    kept = (jnp.asarray(inputs), jnp.float32(min), jnp.float32(max))
    return _backward(num_bits, narrow_range, kept, jnp.asarray(gradients))[0]
