"""Slopes of functions, given their results, and products with incoming gradients, as in TensorFlow's kernels."""

from __future__ import annotations

from headwater.lazy_jax import jax, jnp


def sqrt_slope(y: jax.Array) -> jax.Array:
    """1 / (2 y̅), the slope of y = √x."""
    return 0.5 / jnp.conj(y)


def rsqrt_slope(y: jax.Array) -> jax.Array:
    """-y̅³ / 2, the slope of y = 1 / √x."""
    y = jnp.conj(y)
    return -0.5 * (y * y * y)


def reciprocal_slope(y: jax.Array) -> jax.Array:
    """-y̅², the slope of y = 1 / x."""
    y = jnp.conj(y)
    return -(y * y)


def masked_product(gradient: jax.Array, slope: jax.Array) -> jax.Array:
    """``gradient · slope``, and 0 where the gradient is 0, however large the slope."""
    dead = (gradient == 0) & ~jnp.isfinite(slope)
    return (gradient * jnp.where(dead, 0, slope)).astype(gradient.dtype)
