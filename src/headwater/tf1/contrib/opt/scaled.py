"""Layer-wise adaptive rates (LARS), and Adagrad that can apply gradients without updating its slots."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from headwater.tf1.functional import math as ops
from headwater.tf1.functional.indexing import where
from headwater.tf1.functional.linalg import norm
from headwater.tf1.training.optimizers.adagrad import AdagradOptimizer
from headwater.tf1.training.optimizers.common import OneOperationOptimizer

if TYPE_CHECKING:
    from headwater.graph.operation import Operation, Tensor
    from headwater.tf1.training.optimizer import Hyperparameter
    from headwater.tf1.variables.variables import Variable


class LARSOptimizer(OneOperationOptimizer):
    """Layer-wise adaptive rates (You et al., 2017), for training with large batches.

    With the trust ratio r = e·‖θ‖ / (‖g‖ + λ·‖θ‖ + ε), which is 1 where a norm is 0: a ← μ·a + η·r·(g + λ·θ), then
    θ ← θ − a. A sparse gradient is applied as by `MomentumOptimizer`, without r and λ.

    Args:
      learning_rate: η.
      momentum: μ, not negative.
      weight_decay: λ, not negative.
      eeta: e, the trust coefficient.
      epsilon: ε.
      skip_list: parts of names; variables with one of them in their names are updated without r and λ.
      use_nesterov: use Nesterov's momentum.

    Raises:
      ValueError: ``momentum`` or ``weight_decay`` is negative.

    Slots: ``momentum`` is a.
    """

    _kind = "Momentum"
    _updated = ("momentum",)
    _inputs: Mapping[str, str] = {"lr": "learning_rate", "grad": "grad", "momentum": "momentum"}

    def __init__(
        self,
        learning_rate: Hyperparameter,
        momentum: float = 0.9,
        weight_decay: float = 0.0001,
        eeta: float = 0.001,
        epsilon: float = 0.0,
        name: str = "LARSOptimizer",
        skip_list: Sequence[str] | None = None,
        use_nesterov: bool = False,
    ) -> None:
        if momentum < 0.0:
            raise ValueError(f"momentum should be positive: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"weight_decay should be positive: {weight_decay}")
        super().__init__(use_locking=False, name=name)
        self._learning_rate = learning_rate
        self._momentum = momentum
        self._weight_decay = weight_decay
        self._eeta = eeta
        self._epsilon = epsilon
        self._skip_list = skip_list
        self._attrs = {"use_nesterov": use_nesterov}

    def _prepare(self) -> None:
        self._prepare_settings(learning_rate=self._learning_rate, momentum=self._momentum)

    def compute_lr(self, grad: Any, var: Any) -> tuple[Any, Any]:
        """Returns η·r and g + λ·θ; η and g for a variable of the skip list."""
        rate = self._call_if_callable(self._learning_rate)
        if any(part in var.name for part in self._skip_list or ()):
            return rate, grad
        theta, slope = norm(var, ord=2), norm(grad, ord=2)
        ratio = self._eeta * theta / (slope + self._weight_decay * theta + self._epsilon)
        one = ops.cast(1.0, ratio.dtype)
        trust = where(ops.greater(theta, 0), where(ops.greater(slope, 0), ratio, one), one)
        return rate * trust, grad + self._weight_decay * var

    def _apply_dense(self, grad: Tensor, var: Variable) -> Operation:
        rate, decayed = self.compute_lr(grad, var)
        one = ops.cast(1.0, var.dtype.base_dtype)
        values = [("lr", one), ("grad", decayed * rate), ("momentum", self._setting("momentum", var))]
        return self._apply("ApplyMomentum", var, self._updated, values, **self._attrs)


class RegAdagradOptimizer(AdagradOptimizer):
    """`AdagradOptimizer` that can leave its accumulators unchanged, for the gradients of regularisation terms.

    ::

        with opt.avoid_updating_slots():
            opt.apply_gradients(gradients_of_penalties)
    """

    def __init__(
        self,
        learning_rate: Hyperparameter,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "RegAdagrad",
    ) -> None:
        super().__init__(learning_rate, initial_accumulator_value, use_locking, name)
        self._should_update_slots = True

    @contextmanager
    def avoid_updating_slots(self) -> Generator[None]:
        """Returns a context in which updates leave the accumulators unchanged."""
        before = self._should_update_slots
        self._should_update_slots = False
        try:
            yield
        finally:
            self._should_update_slots = before

    def _apply(self, op_type: str, var: Any, slots: tuple[str, ...], values: Any, **attrs: object) -> Operation:
        return super()._apply(op_type, var, slots, values, **{**attrs, "update_slots": self._should_update_slots})
