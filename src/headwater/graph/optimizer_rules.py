"""The rules of the less common optimizers, for NumPy and JAX. A rule takes the array module as its first argument, and
returns new values.

The order of operations is the same as in TensorFlow 1.15's CPU kernels, so that values agree almost to the last bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headwater.lazy_jax import lax

Array = Any
Module = Any
Arrays = tuple[Array, ...]


def _rsqrt(xp: Module, x: Array) -> Array:
    return 1 / np.sqrt(x) if xp is np else lax.rsqrt(x)


def _shrunk(xp: Module, x: Array, least: Array, l1: Array) -> Array:
    return xp.where(l1 > 0, xp.sign(x) * xp.maximum(xp.abs(x) - least, x.dtype.type(0)), x)


def adagrad_da(
    xp: Module,
    var: Array,
    gradient_accumulator: Array,
    gradient_squared_accumulator: Array,
    grad: Array,
    lr: Array,
    l1: Array,
    l2: Array,
    global_step: Array,
) -> Arrays:
    """Computes the variable from the sum of all gradients so far."""
    total = gradient_accumulator + grad
    squares = gradient_squared_accumulator + xp.square(grad)
    step = xp.asarray(global_step).astype(var.dtype)
    return -lr * _shrunk(xp, total, l1 * step, l1) / (l2 * step * lr + xp.sqrt(squares)), total, squares


def adadelta(
    xp: Module, var: Array, accum: Array, accum_update: Array, lr: Array, rho: Array, epsilon: Array, grad: Array
) -> Arrays:
    """Scales the gradient by the root mean square of earlier steps over the root mean square of gradients."""
    accum = accum * rho + xp.square(grad) * (1 - rho)
    update = xp.sqrt(accum_update + epsilon) * _rsqrt(xp, accum + epsilon) * grad
    return var - update * lr, accum, accum_update * rho + xp.square(update) * (1 - rho)


def rmsprop(
    xp: Module, var: Array, ms: Array, mom: Array, lr: Array, rho: Array, momentum: Array, epsilon: Array, grad: Array
) -> Arrays:
    """Steps by the gradient over the root of the mean of its squares."""
    ms = ms + (xp.square(grad) - ms) * (1 - rho)
    mom = mom * momentum + (grad * lr) / xp.sqrt(ms + epsilon)
    return var - mom, ms, mom


def centered_rmsprop(
    xp: Module,
    var: Array,
    mg: Array,
    ms: Array,
    mom: Array,
    lr: Array,
    rho: Array,
    momentum: Array,
    epsilon: Array,
    grad: Array,
) -> Arrays:
    """Like `rmsprop`, with the variance in place of the mean of squares."""
    ms = ms + (xp.square(grad) - ms) * (1 - rho)
    mg = mg + (grad - mg) * (1 - rho)
    mom = mom * momentum + (grad * lr) / xp.sqrt((ms - xp.square(mg)) + epsilon)
    return var - mom, mg, ms, mom


def ftrl(
    xp: Module, var: Array, accum: Array, linear: Array, grad: Array, lr: Array, l1: Array, l2: Array, lr_power: Array
) -> Arrays:
    """Follows the regularised leader."""
    return ftrl_v2(xp, var, accum, linear, grad, lr, l1, l2, None, lr_power)


def ftrl_v2(
    xp: Module,
    var: Array,
    accum: Array,
    linear: Array,
    grad: Array,
    lr: Array,
    l1: Array,
    l2: Array,
    l2_shrinkage: Array,
    lr_power: Array,
) -> Arrays:
    """Like `ftrl`, with a loss that shrinks variables."""

    def power(x: Array) -> Array:
        if xp is np:
            return np.sqrt(x) if lr_power == -0.5 else np.power(x, -lr_power)
        return xp.where(lr_power == -0.5, xp.sqrt(x), xp.power(x, -lr_power))

    total = accum + xp.square(grad)
    after = power(total)
    shrunk_grad = grad if l2_shrinkage is None else grad + 2 * l2_shrinkage * var
    linear = linear + (shrunk_grad - (after - power(accum)) / lr * var)
    moved = (l1 * xp.sign(linear) - linear) / (after / lr + 2 * l2)
    return xp.where(xp.abs(linear) > l1, moved, xp.zeros_like(var)), total, linear


def _proximal(xp: Module, moved: Array, rate: Array, l1: Array, l2: Array) -> Array:
    return _shrunk(xp, moved, rate * l1, l1) / (1 + l2 * rate)


def proximal_gradient_descent(xp: Module, var: Array, alpha: Array, l1: Array, l2: Array, grad: Array) -> Arrays:
    """A step of gradient descent, then of the regularisation."""
    return (_proximal(xp, var - alpha * grad, alpha, l1, l2),)


def proximal_adagrad(xp: Module, var: Array, accum: Array, lr: Array, l1: Array, l2: Array, grad: Array) -> Arrays:
    """Like `proximal_gradient_descent`, at the rates of Adagrad."""
    accum = accum + xp.square(grad)
    rate = lr * _rsqrt(xp, accum)
    return _proximal(xp, var - grad * rate, rate, l1, l2), accum


def keep_nan(xp: Module, var: Array, accum: Array, linear: Array) -> Arrays:
    """Sets elements to NaN where their linear terms are NaN, as TensorFlow's sparse version does; its dense version
    sets them to 0."""
    return xp.where(xp.isnan(linear), linear, var), accum, linear


#: By operation type: the rule, the number of variables that it updates, and a rule for rows that it has updated.
RULES = {
    "AdagradDA": (adagrad_da, 3, None),
    "Adadelta": (adadelta, 3, None),
    "RMSProp": (rmsprop, 3, None),
    "CenteredRMSProp": (centered_rmsprop, 4, None),
    "Ftrl": (ftrl, 3, keep_nan),
    "FtrlV2": (ftrl_v2, 3, keep_nan),
    "ProximalGradientDescent": (proximal_gradient_descent, 1, None),
    "ProximalAdagrad": (proximal_adagrad, 2, None),
}
