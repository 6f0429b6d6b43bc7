r"""Optimizers that update rows in place, with their state beside each row.

:math:`w` is a row, :math:`g` its gradient, :math:`\eta` the learning rate, :math:`t` the number of the update (from 1):

- `SGD`: :math:`w \gets w - \eta g`.
- `Momentum`: :math:`m \gets \mu m - \eta g`, :math:`w \gets w + m` (Nesterov's: :math:`w \gets w + \mu m - \eta g`).
- `Adagrad`: :math:`a \gets a + g^2`, :math:`w \gets w - \eta g / \sqrt{a + \epsilon}`.
- `RMSProp`: :math:`v \gets \rho v + (1 - \rho) g^2`, :math:`m \gets \mu m + \eta g / \sqrt{v + \epsilon}`,
  :math:`w \gets w - m`.
- `Adam`: :math:`m \gets m + (1 - \beta_1)(g - m)`, :math:`v \gets v + (1 - \beta_2)(g^2 - v)`,
  :math:`w \gets w - \eta \frac{\sqrt{1 - \beta_2^t}}{1 - \beta_1^t} \frac{m}{\sqrt v + \epsilon}`.
- `FTRL`: McMahan and others, 2013, as in TensorFlow.

These are Keras 3's equations; TensorFlow 1.x has the same equations (Adagrad with ``epsilon=0``).

A step has gradients for a few rows only. `SGD`, `Adagrad` and `FTRL` do not change a row without a gradient, so the
result equals the result for a dense table. (For FTRL, this holds for a row after its first gradient, because a dense
table sets all rows to zero at its first step.) The other optimizers change a row of a dense table in every step,
because of its momentum. By default, updates are *lazy*: a row without a gradient stays unchanged until its next
gradient. With ``exact=True``, the missed steps are applied before a row is read or updated, so that the result equals a
dense table's up to rounding. The cost grows with the number of missed steps, but only up to about 200 steps for Adam
with ``beta_1=0.9``: after that, the remaining momentum no longer changes a 32-bit number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from headwater.tables.compiled import Reals, compiled, damped_adagrad_reals

_REAL_BYTES: Final = 4
#: The number of past steps for which Adam's rates are kept.
HISTORY: Final = 4096


def _check(owner: str, low: float, high: float, **values: float) -> None:
    for name, value in values.items():
        if not low <= value < high:
            raise ValueError(f"{owner}: {name} must be at least {low} and below {high}, not {value}")


@dataclass(frozen=True, kw_only=True, slots=True)
class RowOptimizer:
    """Parameters of the compiled update of a row.

    Attributes:
      kind: the number of the optimizer.
      slots: the initial value of each part of the state; every part has a row's size.
      learning_rate: η.
      hyper: the other hyperparameters.
      exact: whether steps without a gradient are applied to a row, too.
    """

    kind: int
    slots: tuple[float, ...]
    learning_rate: float
    hyper: tuple[float, ...] = (0.0,)
    exact: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.learning_rate) and self.learning_rate >= 0):
            raise ValueError(f"learning_rate must be a number from 0 on, not {self.learning_rate}")


def SGD(learning_rate: float = 0.01) -> RowOptimizer:
    """Gradient descent; see the module."""
    return RowOptimizer(kind=0, slots=(), learning_rate=learning_rate)


def Momentum(
    learning_rate: float = 0.01, momentum: float = 0.9, *, nesterov: bool = False, exact: bool = False
) -> RowOptimizer:
    """Gradient descent with momentum; see the module."""
    _check("Momentum", 0.0, 1.0, momentum=momentum)
    hyper = (momentum, float(nesterov))
    return RowOptimizer(kind=1, slots=(0.0,), learning_rate=learning_rate, hyper=hyper, exact=exact)


def Adagrad(
    learning_rate: float = 0.001, initial_accumulator_value: float = 0.1, epsilon: float = 1e-7
) -> RowOptimizer:
    """Adagrad (Duchi and others, 2011); see the module."""
    return RowOptimizer(kind=2, slots=(initial_accumulator_value,), learning_rate=learning_rate, hyper=(epsilon,))


def RMSProp(
    learning_rate: float = 0.001, rho: float = 0.9, momentum: float = 0.0, epsilon: float = 1e-7, *, exact: bool = False
) -> RowOptimizer:
    """RMSProp (Hinton, 2012); see the module."""
    _check("RMSProp", 0.0, 1.0, rho=rho, momentum=momentum)
    slots = (0.0, 0.0) if momentum else (0.0,)
    hyper = (rho, momentum, epsilon)
    return RowOptimizer(kind=3, slots=slots, learning_rate=learning_rate, hyper=hyper, exact=exact)


def Adam(
    learning_rate: float = 0.001,
    beta_1: float = 0.9,
    beta_2: float = 0.999,
    epsilon: float = 1e-7,
    *,
    exact: bool = False,
) -> RowOptimizer:
    """Adam (Kingma and Ba, 2014); see the module."""
    _check("Adam", 0.0, 1.0, beta_1=beta_1, beta_2=beta_2)
    # Terms below 1e-9 of the first one do not change a number with 24 significant bits.
    reach = 1.0 if beta_1 == 0.0 else min(float(HISTORY - 1), math.ceil(math.log(1e-9) / math.log(beta_1)))
    hyper = (beta_1, beta_2, epsilon, reach)
    return RowOptimizer(kind=4, slots=(0.0, 0.0), learning_rate=learning_rate, hyper=hyper, exact=exact)


def FTRL(
    learning_rate: float = 0.001,
    learning_rate_power: float = -0.5,
    initial_accumulator_value: float = 0.1,
    l1_regularization_strength: float = 0.0,
    l2_regularization_strength: float = 0.0,
    beta: float = 0.0,
) -> RowOptimizer:
    """Follow the regularized leader; see the module."""
    if learning_rate <= 0:
        raise ValueError(f"FTRL: learning_rate must be above 0, not {learning_rate}")
    hyper = (-learning_rate_power, l1_regularization_strength, l2_regularization_strength, beta)
    return RowOptimizer(kind=5, slots=(initial_accumulator_value, 0.0), learning_rate=learning_rate, hyper=hyper)


@dataclass(frozen=True, kw_only=True, slots=True)
class GeneralOptimizer:
    """Any optimizer that works row by row, as a Python function of arrays; slower than compiled ones.

    Attributes:
      apply: returns new rows and new parts of their state, from rows [n, dim], the parts of their state (each
        [n, dim]), gradients [n, dim], the number of the update (from 1) and the learning rate.
      slots: the initial value of each part of the state.
      learning_rate: passed to ``apply``.
      name: identifies the optimizer across tasks: equal names mean equal optimizers.
    """

    apply: Callable[[Reals, Sequence[Reals], Reals, int, float], tuple[Reals, Sequence[Reals]]]
    slots: tuple[float, ...] = ()
    learning_rate: float = 0.0
    name: str = ""
    exact: bool = field(default=False, init=False)
    kind: int = field(default=-1, init=False)
    hyper: tuple[float, ...] = field(default=(0.0,), init=False)


AnyOptimizer = RowOptimizer | GeneralOptimizer


def step_rate(optimizer: AnyOptimizer, rate: float, step: int) -> float:
    """Returns the factor of an update: the learning rate, with bias corrections for Adam."""
    if optimizer.kind != 4:
        return rate
    beta_1, beta_2 = optimizer.hyper[:2]
    return rate * math.sqrt(1.0 - beta_2**step) / (1.0 - beta_1**step)


@compiled
def catch_up(values: Any, at: int, dim: int, kind: int, hyper: Reals, rates: Reals, since: int, now: int) -> None:
    """Applies to a row the steps after ``since`` up to ``now``, in which it had no gradient."""
    missed = now - since
    if missed <= 0:
        return
    one = np.float32(1.0)
    # Without a gradient the momentum shrinks by the same factor in each step, so the sum of all missed steps is a
    # geometric series.
    if kind == 1:
        mu = hyper[0]
        left = mu**missed
        total = mu * (1.0 - left) / (1.0 - mu)
        if hyper[1] != 0.0:
            total = total * mu
        for j in range(dim):
            m = values[at + dim + j]
            values[at + j] += np.float32(total) * m
            values[at + dim + j] = np.float32(left) * m
    elif kind == 3:
        decay = np.float32(hyper[0] ** missed)
        for j in range(dim):
            values[at + dim + j] *= decay
        mu = hyper[1]
        if mu != 0.0:
            left = mu**missed
            total = mu * (1.0 - left) / (1.0 - mu)
            for j in range(dim):
                m = values[at + 2 * dim + j]
                values[at + j] -= np.float32(total) * m
                values[at + 2 * dim + j] = np.float32(left) * m
    elif kind == 4:
        first, second, epsilon = np.float32(hyper[0]), np.float32(hyper[1]), np.float32(hyper[2])
        # Adam's steps also depend on v and on each step's rate: apply them one by one, until the momentum is too small
        # to change the row (see `Adam`).
        near = min(missed, np.int64(hyper[3]))
        for i in range(near):
            rate = np.float32(rates[(since + 1 + i) & 4095])
            for j in range(dim):
                m = values[at + dim + j] * first
                v = values[at + 2 * dim + j] * second
                values[at + dim + j] = m
                values[at + 2 * dim + j] = v
                values[at + j] -= rate * m / (np.float32(math.sqrt(v)) + epsilon)
        # The remaining steps do not change the row, but still shrink its state.
        if missed > near:
            m_left = np.float32(hyper[0] ** (missed - near)) * one
            v_left = np.float32(hyper[1] ** (missed - near)) * one
            for j in range(dim):
                values[at + dim + j] *= m_left
                values[at + 2 * dim + j] *= v_left


@compiled
def update_row(values: Any, at: int, dim: int, kind: int, hyper: Any, rate: float, gradients: Any, row: int) -> None:
    """Applies ``gradients[row]`` to the record at ``values[at]``: the row, then the parts of its state."""
    eta = np.float32(rate)
    one = np.float32(1.0)
    if kind == 0:
        for j in range(dim):
            values[at + j] -= eta * gradients[row, j]
    elif kind == 1:
        mu = np.float32(hyper[0])
        nesterov = hyper[1] != 0.0
        for j in range(dim):
            m = mu * values[at + dim + j] - eta * gradients[row, j]
            values[at + dim + j] = m
            if nesterov:
                values[at + j] += mu * m - eta * gradients[row, j]
            else:
                values[at + j] += m
    elif kind == 2:
        first, size = values.ctypes.data + _REAL_BYTES * at, _REAL_BYTES * dim
        damped_adagrad_reals(first, first + size, gradients.ctypes.data + row * size, eta, np.float32(hyper[0]), dim)
    elif kind == 3:
        rho, epsilon = np.float32(hyper[0]), np.float32(hyper[2])
        mu = np.float32(hyper[1])
        for j in range(dim):
            g = gradients[row, j]
            v = rho * values[at + dim + j] + (one - rho) * g * g
            values[at + dim + j] = v
            change = eta * g / np.float32(math.sqrt(v + epsilon))
            if mu != 0.0:
                change += mu * values[at + 2 * dim + j]
                values[at + 2 * dim + j] = change
            values[at + j] -= change
    elif kind == 4:
        first, second, epsilon = np.float32(hyper[0]), np.float32(hyper[1]), np.float32(hyper[2])
        for j in range(dim):
            g = gradients[row, j]
            m = values[at + dim + j]
            v = values[at + 2 * dim + j]
            m += (one - first) * (g - m)
            v += (one - second) * (g * g - v)
            values[at + dim + j] = m
            values[at + 2 * dim + j] = v
            values[at + j] -= eta * m / (np.float32(math.sqrt(v)) + epsilon)
    elif kind == 5:
        power, l1 = np.float32(hyper[0]), np.float32(hyper[1])
        # As in Keras, ``beta`` is added to the regularization.
        l2 = np.float32(hyper[2] + hyper[3] / (2.0 * rate))
        for j in range(dim):
            g = gradients[row, j]
            n = values[at + dim + j]
            more = n + g * g
            grown = np.float32(more**power)
            z = values[at + 2 * dim + j] + g - (grown - np.float32(n**power)) / eta * values[at + j]
            values[at + dim + j] = more
            values[at + 2 * dim + j] = z
            if abs(z) > l1:
                signed = l1 if z > 0 else -l1
                values[at + j] = (signed - z) / (grown / eta + np.float32(2.0) * l2)
            else:
                values[at + j] = np.float32(0.0)
