"""Adadelta: steps in the unit of the variable, from decaying averages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headwater.tf1.training.optimizers.common import OneOperationOptimizer

if TYPE_CHECKING:
    from headwater.tf1.training.optimizer import Hyperparameter


class AdadeltaOptimizer(OneOperationOptimizer):
    """Adadelta (Zeiler, 2012).

    a ← ρ·a + (1−ρ)·g², Δ = g·√(u + ε) / √(a + ε), θ ← θ − η·Δ, u ← ρ·u + (1−ρ)·Δ².

    The paper has no η (it is 1); the default here, as TensorFlow's, is 0.001, so that with default arguments it moves
    a thousand times less than PyTorch's.

    Args:
      learning_rate: η; a number, a tensor, or a function that returns one.
      rho: ρ, how slowly the averages change.
      epsilon: ε, without which the first step would be zero: u starts at zero.

    Slots: ``accum`` is a, ``accum_update`` is u.
    """

    _kind = "Adadelta"
    _updated = ("accum", "accum_update")
    _inputs: Mapping[str, str] = {"lr": "lr", "rho": "rho", "epsilon": "epsilon", "grad": "grad"}

    def __init__(
        self,
        learning_rate: Hyperparameter = 0.001,
        rho: Hyperparameter = 0.95,
        epsilon: Hyperparameter = 1e-8,
        use_locking: bool = False,
        name: str = "Adadelta",
    ) -> None:
        super().__init__(use_locking, name)
        self._lr = learning_rate
        self._rho = rho
        self._epsilon = epsilon

    def _prepare(self) -> None:
        self._prepare_settings(lr=self._lr, rho=self._rho, epsilon=self._epsilon)
