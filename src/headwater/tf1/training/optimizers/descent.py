"""Gradient descent, with momentum, and with proximal steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headwater.tf1.training.optimizers.common import OneOperationOptimizer, SettingsOptimizer
from headwater.tf1.variables.state import update_op

if TYPE_CHECKING:
    from headwater.graph.operation import Operation, Tensor
    from headwater.graph.types import GraphTensor
    from headwater.tf1.training.optimizer import Hyperparameter
    from headwater.tf1.variables.variables import Variable


class GradientDescentOptimizer(SettingsOptimizer):
    """θ ← θ − η·g.

    Args:
      learning_rate: η; a number, a tensor, or a function that returns one.
    """

    def __init__(self, learning_rate: Hyperparameter, use_locking: bool = False, name: str = "GradientDescent") -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate

    def _prepare(self) -> None:
        self._prepare_settings(learning_rate=self._learning_rate)

    def _apply_dense(self, grad: Tensor, var: Variable) -> Operation:
        rate = self._setting("learning_rate", var)
        return self._apply("ApplyGradientDescent", var, (), [("alpha", rate), ("delta", grad)])

    def _apply_sparse_duplicate_indices(self, grad: Any, var: GraphTensor) -> Operation:
        # Rows are subtracted one after the other, so rows with the same index add up.
        grad, rate = grad.summed, self._setting("learning_rate", var)
        scaled = grad.graph.create_op("Mul", [grad.values, rate]).outputs[0]
        values = [("indices", grad.indices, None), ("updates", scaled, None)]
        return update_op("ScatterSub", [var], values, {"use_locking": self._use_locking}).op


class MomentumOptimizer(OneOperationOptimizer):
    """Gradient descent with momentum (Polyak, 1964).

    a ← μ·a + g, then θ ← θ − η·a; with Nesterov's momentum θ ← θ − (η·g + η·μ·a).

    The learning rate scales the step, not the accumulated gradient, so that a change of η acts immediately; PyTorch
    does the same, while Sutskever et al. (2013) and Caffe scale the accumulated value. Nesterov's form here evaluates
    the gradient at θ, as Sutskever et al. rewrite it.

    Args:
      learning_rate: η; a number, a tensor, or a function that returns one.
      momentum: μ, of the same kinds.
      use_nesterov: use Nesterov's momentum.

    Slots: ``momentum`` is a.
    """

    _kind = "Momentum"
    _updated = ("momentum",)
    _inputs: Mapping[str, str] = {"lr": "learning_rate", "grad": "grad", "momentum": "momentum"}

    def __init__(
        self,
        learning_rate: Hyperparameter,
        momentum: Hyperparameter,
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._momentum = momentum
        self._attrs = {"use_nesterov": use_nesterov}

    def _prepare(self) -> None:
        self._prepare_settings(learning_rate=self._learning_rate, momentum=self._momentum)


class ProximalGradientDescentOptimizer(SettingsOptimizer):
    """Gradient descent with L1 and L2 penalties that produce exact zeros (FOBOS; Duchi and Singer, 2009).

    z = θ − η·g, then θ ← sign(z)·max(|z| − η·λ₁, 0) / (1 + η·λ₂).

    Args:
      learning_rate: η; a number or a tensor.
      l1_regularization_strength: λ₁, not negative.
      l2_regularization_strength: λ₂, not negative.
    """

    def __init__(
        self,
        learning_rate: Hyperparameter,
        l1_regularization_strength: Hyperparameter = 0.0,
        l2_regularization_strength: Hyperparameter = 0.0,
        use_locking: bool = False,
        name: str = "ProximalGradientDescent",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._l1 = l1_regularization_strength
        self._l2 = l2_regularization_strength

    def _prepare(self) -> None:
        self._prepare_settings(
            learning_rate=self._learning_rate, l1_regularization_strength=self._l1, l2_regularization_strength=self._l2
        )

    def _values(self, var: GraphTensor) -> list[tuple[str, Any]]:
        return [
            ("alpha", self._setting("learning_rate", var)),
            ("l1", self._setting("l1_regularization_strength", var)),
            ("l2", self._setting("l2_regularization_strength", var)),
        ]

    def _apply_dense(self, grad: Tensor, var: Variable) -> Operation:
        return self._apply("ApplyProximalGradientDescent", var, (), [*self._values(var), ("delta", grad)])

    def _apply_sparse(self, grad: Any, var: GraphTensor) -> Any:
        values = [*self._values(var), ("grad", grad), ("indices", grad.indices)]
        return self._apply("SparseApplyProximalGradientDescent", var, (), values)
