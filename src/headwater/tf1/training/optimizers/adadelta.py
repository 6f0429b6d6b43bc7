"""Adadelta: steps in the unit of the variable, from decaying averages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headwater.tf1.training.optimizers.common import OneOperationOptimizer

if TYPE_CHECKING:
    from headwater.graph.types import GraphTensor, TensorLike
    from headwater.tf1.training.optimizer import Hyperparameter
    from headwater.tf1.variables.variables import Variable


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

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for var in var_list:
            self._zeros_slot(var, "accum", self._name)
            self._zeros_slot(var, "accum_update", self._name)

    def _prepare(self) -> None:
        self._prepare_settings(lr=self._lr, rho=self._rho, epsilon=self._epsilon)

    def _values(self, grad: TensorLike, var: GraphTensor) -> list[tuple[str, Any]]:
        return [*((key, self._setting(key, var)) for key in ("lr", "rho", "epsilon")), ("grad", grad)]
