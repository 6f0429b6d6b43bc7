"""Learning-rate schedules of ``tf.keras.experimental`` that Keras 3 has removed."""

from __future__ import annotations

import math
from typing import Any, cast

import keras

from headwater.keras.types import Value

_keras: Any = keras
ops: Any = keras.ops
"""A number, a JAX array or a variable of Keras."""

CosineDecay = keras.optimizers.schedules.CosineDecay
CosineDecayRestarts = keras.optimizers.schedules.CosineDecayRestarts


class LinearCosineDecay(keras.optimizers.schedules.LearningRateSchedule):
    """A rate that is the product of a linear decay and a cosine (Bello and others, 2017)::

        initial_learning_rate * ((alpha + linear) * cosine + beta)

    Args:
      initial_learning_rate: the rate at the start.
      decay_steps: number of steps of the decay.
      num_periods: the number of periods of the cosine within ``decay_steps``.
      alpha: see the formula.
      beta: see the formula.
      name: the name of the schedule.
    """

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: int,
        num_periods: float = 0.5,
        alpha: float = 0.0,
        beta: float = 0.001,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.initial_learning_rate = initial_learning_rate
        self.decay_steps = decay_steps
        self.num_periods = num_periods
        self.alpha = alpha
        self.beta = beta
        self.name = name

    def _linear(self, share: Value) -> Value:
        return cast("Value", 1.0 - share)

    def __call__(self, step: Value) -> Value:
        """The rate at a step."""
        share = ops.minimum(ops.cast(step, "float32"), self.decay_steps) / self.decay_steps
        cosine = 0.5 * (1.0 + ops.cos(math.pi * 2.0 * self.num_periods * share))
        return self.initial_learning_rate * ((self.alpha + self._linear(share)) * cosine + self.beta)

    def get_config(self) -> dict[str, object]:
        """Returns the arguments that recreate this schedule."""
        names = ("initial_learning_rate", "decay_steps", "num_periods", "alpha", "beta", "name")
        return {name: getattr(self, name) for name in names}


class NoisyLinearCosineDecay(LinearCosineDecay):
    """Like `LinearCosineDecay`, with noise in the linear part.

    Args:
      initial_learning_rate: the rate at the start.
      decay_steps: number of steps of the decay.
      initial_variance: variance of the noise at the start.
      variance_decay: exponent of the decay of the variance, which is divided by ``(1 + step) ** variance_decay``.
      num_periods: number of periods of the cosine within ``decay_steps``.
      alpha: added to the linear part.
      beta: added to the product.
      name: the name of the schedule.
    """

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: int,
        initial_variance: float = 1.0,
        variance_decay: float = 0.55,
        num_periods: float = 0.5,
        alpha: float = 0.0,
        beta: float = 0.001,
        name: str | None = None,
    ) -> None:
        super().__init__(initial_learning_rate, decay_steps, num_periods, alpha, beta, name)
        self.initial_variance = initial_variance
        self.variance_decay = variance_decay

    def _linear(self, share: Value) -> Value:
        step = cast("Value", share * self.decay_steps)
        deviation = ops.sqrt(self.initial_variance / ops.power(1.0 + step, self.variance_decay))
        noise: Value = _keras.random.normal(())
        return cast("Value", 1.0 - share) + noise * deviation

    def get_config(self) -> dict[str, object]:
        """Returns the arguments that recreate this schedule."""
        more = {name: getattr(self, name) for name in ("initial_variance", "variance_decay")}
        return {**super().get_config(), **more}
