"""Learning rates that depend on the global step. Every function returns a scalar tensor, to use as ``learning_rate``.

η₀ is ``learning_rate``, t the global step, T ``decay_steps``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headwater.dtypes import int32, int64
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.tf1.functional import math as ops
from headwater.tf1.functional.indexing import where
from headwater.tf1.functional.random import random_normal

if TYPE_CHECKING:
    from headwater.dtypes import DType
    from headwater.graph.types import TensorLike
    from headwater.tf1.training.optimizer import Hyperparameter
    from headwater.tf1.variables.variables import Variable


def _start(learning_rate: Any, global_step: Variable | None, function: str) -> tuple[Tensor, Any]:
    """η₀ as a tensor and t in its element type."""
    if global_step is None:
        raise ValueError(f"global_step is required for {function}.")
    rate = convert_to_tensor(learning_rate, name="learning_rate")
    return rate, ops.cast(global_step, rate.dtype)


def exponential_decay(
    learning_rate: Hyperparameter,
    global_step: Variable,
    decay_steps: TensorLike,
    decay_rate: TensorLike,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """η₀ · ``decay_rate`` ^ (t / T), with t / T rounded down if ``staircase``."""
    with name_scope(name, "ExponentialDecay", [learning_rate, global_step]) as scope:
        rate, step = _start(learning_rate, global_step, "exponential_decay")
        power = step / ops.cast(decay_steps, rate.dtype)
        if staircase:
            power = ops.floor(power)
        return ops.multiply(rate, ops.pow(ops.cast(decay_rate, rate.dtype), power), name=scope)


def natural_exp_decay(
    learning_rate: Hyperparameter,
    global_step: Variable,
    decay_steps: TensorLike,
    decay_rate: TensorLike,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """η₀ · exp(−``decay_rate`` · t / T), with t / T rounded down if ``staircase``."""
    with name_scope(name, "NaturalExpDecay", [learning_rate, global_step]) as scope:
        rate, step = _start(learning_rate, global_step, "natural_exp_decay")
        power = step / ops.cast(decay_steps, rate.dtype)
        if staircase:
            power = ops.floor(power)
        return ops.multiply(rate, ops.exp(-ops.cast(decay_rate, rate.dtype) * power), name=scope)


def inverse_time_decay(
    learning_rate: Hyperparameter,
    global_step: Variable,
    decay_steps: TensorLike,
    decay_rate: TensorLike,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """η₀ / (1 + ``decay_rate`` · t / T), with t / T rounded down if ``staircase``."""
    with name_scope(name, "InverseTimeDecay", [learning_rate, global_step]) as scope:
        rate, step = _start(learning_rate, global_step, "inverse_time_decay")
        power = step / ops.cast(decay_steps, rate.dtype)
        if staircase:
            power = ops.floor(power)
        return ops.divide(rate, 1 + ops.cast(decay_rate, rate.dtype) * power, name=scope)


def _limit(boundary: TensorLike, dtype: DType) -> Tensor:
    """A boundary in the type of the steps."""
    limit = convert_to_tensor(boundary)
    found = limit.dtype.base_dtype
    if found != dtype and not (found == int32 and dtype == int64):
        raise ValueError(f"Boundaries ({found.name}) must have the same dtype as x ({dtype.name}).")
    return ops.cast(limit, dtype)


def piecewise_constant(
    x: TensorLike, boundaries: Sequence[TensorLike], values: Sequence[TensorLike], name: str | None = None
) -> Tensor:
    """Returns ``values[i]`` for the first i with ``x <= boundaries[i]``, the last value beyond all boundaries.

    Args:
      x: the global step.
      boundaries: ascending numbers, of the type of ``x``.
      values: one more than boundaries.

    Raises:
      ValueError: the number of values is wrong, or types differ among boundaries or among values.
    """
    if len(boundaries) != len(values) - 1:
        raise ValueError("The length of boundaries should be 1 less than the length of values")
    with name_scope(name, "PiecewiseConstant", [x, *boundaries, *values]):
        step = convert_to_tensor(x)
        limits = [_limit(boundary, step.dtype.base_dtype) for boundary in boundaries]
        rates = [convert_to_tensor(value) for value in values]
        if any(rate.dtype != rates[0].dtype for rate in rates):
            raise ValueError(f"Values must have elements all with the same dtype ({[r.dtype.name for r in rates]}).")
        result = rates[0]
        for limit, rate in zip(limits, rates[1:], strict=True):
            result = where(ops.greater(step, limit), rate, result)
        return result


def polynomial_decay(
    learning_rate: Hyperparameter,
    global_step: Variable,
    decay_steps: TensorLike,
    end_learning_rate: TensorLike = 0.0001,
    power: TensorLike = 1.0,
    cycle: bool = False,
    name: str | None = None,
) -> Tensor:
    """(η₀ − η₁) · (1 − min(t, T) / T) ^ ``power`` + η₁, with η₁ = ``end_learning_rate``.

    With ``cycle``, T is replaced by its next multiple after its end: the rate jumps up and decays again.
    """
    with name_scope(name, "PolynomialDecay", [learning_rate, global_step]) as scope:
        rate, step = _start(learning_rate, global_step, "polynomial_decay")
        end = ops.cast(end_learning_rate, rate.dtype)
        total = ops.cast(decay_steps, rate.dtype)
        if cycle:
            rounds = where(ops.equal(step, 0.0), convert_to_tensor(1.0, rate.dtype), ops.ceil(step / total))
            total = total * rounds
        else:
            step = ops.minimum(step, total)
        return ops.add((rate - end) * ops.pow(1 - step / total, ops.cast(power, rate.dtype)), end, name=scope)


def cosine_decay(
    learning_rate: Hyperparameter,
    global_step: Variable,
    decay_steps: TensorLike,
    alpha: float = 0.0,
    name: str | None = None,
) -> Tensor:
    """η₀ · ((1 − α) · ½ · (1 + cos(π · min(t, T) / T)) + α) (Loshchilov and Hutter, 2016)."""
    with name_scope(name, "CosineDecay", [learning_rate, global_step]):
        rate, step = _start(learning_rate, global_step, "cosine decay")
        done = _done(step, decay_steps, rate)
        cosine = 0.5 * (1.0 + ops.cos(math.pi * done))
        return ops.multiply(rate, (1 - alpha) * cosine + alpha)


def _done(step: TensorLike, decay_steps: TensorLike, rate: Tensor) -> Tensor:
    total = ops.cast(decay_steps, rate.dtype)
    return ops.minimum(step, total) / total


def cosine_decay_restarts(
    learning_rate: Hyperparameter,
    global_step: Variable,
    first_decay_steps: TensorLike,
    t_mul: float = 2.0,
    m_mul: float = 1.0,
    alpha: float = 0.0,
    name: str | None = None,
) -> Tensor:
    """`cosine_decay` again and again: every period ``t_mul`` times as long and ``m_mul`` times as high (SGDR)."""
    with name_scope(name, "SGDRDecay", [learning_rate, global_step]) as scope:
        rate, step = _start(learning_rate, global_step, "cosine decay restarts")
        done = step / ops.cast(first_decay_steps, rate.dtype)
        longer = ops.cast(t_mul, rate.dtype)
        if t_mul == 1.0:
            period = ops.floor(done)
            done = done - period
        else:
            period = ops.floor(ops.log(1.0 - done * (1.0 - longer)) / ops.log(longer))
            before = (1.0 - ops.pow(longer, period)) / (1.0 - longer)
            done = (done - before) / ops.pow(longer, period)
        height = ops.pow(ops.cast(m_mul, rate.dtype), period)
        cosine = 0.5 * height * (1.0 + ops.cos(math.pi * done))
        return ops.multiply(rate, (1 - alpha) * cosine + alpha, name=scope)


def linear_cosine_decay(
    learning_rate: Hyperparameter,
    global_step: Variable,
    decay_steps: TensorLike,
    num_periods: float = 0.5,
    alpha: float = 0.0,
    beta: float = 0.001,
    name: str | None = None,
) -> Tensor:
    """η₀ · ((α + 1 − s) · ½ · (1 + cos(2π · ``num_periods`` · s)) + β), s = min(t, T) / T (Bello et al., 2017)."""
    with name_scope(name, "LinearCosineDecay", [learning_rate, global_step]) as scope:
        rate, step = _start(learning_rate, global_step, "linear cosine decay")
        done = _done(step, decay_steps, rate)
        cosine = 0.5 * (1.0 + ops.cos(math.pi * 2.0 * num_periods * done))
        return ops.multiply(rate, (alpha + (1.0 - done)) * cosine + beta, name=scope)


def noisy_linear_cosine_decay(
    learning_rate: Hyperparameter,
    global_step: Variable,
    decay_steps: TensorLike,
    initial_variance: float = 1.0,
    variance_decay: float = 0.55,
    num_periods: float = 0.5,
    alpha: float = 0.0,
    beta: float = 0.001,
    name: str | None = None,
) -> Tensor:
    """`linear_cosine_decay` with noise added to 1 − s.

    Its variance is ``initial_variance`` / (1 + t) ^ ``variance_decay``.
    """
    with name_scope(name, "NoisyLinearCosineDecay", [learning_rate, global_step]) as scope:
        rate, step = _start(learning_rate, global_step, "noisy linear cosine decay")
        total = ops.cast(decay_steps, rate.dtype)
        step = ops.minimum(step, total)
        deviation = ops.sqrt(initial_variance / ops.pow(1.0 + step, ops.cast(variance_decay, rate.dtype)))
        falling = (total - step) / total + random_normal([], dtype=rate.dtype) * deviation
        cosine = 0.5 * (1.0 + ops.cos(math.pi * 2.0 * num_periods * (step / total)))
        return ops.multiply(rate, (alpha + falling) * cosine + beta, name=scope)
