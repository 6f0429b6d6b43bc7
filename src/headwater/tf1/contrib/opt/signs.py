"""`AddSignOptimizer` and `PowerSignOptimizer`: steps that are larger in elements in which the signs of gradient and
average agree."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headwater.graph.convert import convert_to_tensor
from headwater.tf1.functional import math as ops
from headwater.tf1.functional.control_flow import group
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.functional.indexing import gather
from headwater.tf1.training.optimizers.common import SettingsOptimizer
from headwater.tf1.variables.state import assign, scatter_add, scatter_sub

if TYPE_CHECKING:
    from headwater.graph.operation import Operation, Tensor
    from headwater.tf1.contrib.opt.sign_decay import SignDecay
    from headwater.tf1.training.optimizer import Hyperparameter
    from headwater.tf1.variables.variables import Variable


class _SignOptimizer(SettingsOptimizer):
    """m ← β·m + (1−β)·g, then θ ← θ − η·f(d·sign(g)·sign(m))·g with the decay d of the global step.

    Subclasses define f. For a sparse gradient all rows of m decay.
    """

    def __init__(
        self,
        learning_rate: Hyperparameter,
        beta: Hyperparameter,
        sign_decay_fn: SignDecay | None,
        use_locking: bool,
        name: str,
    ) -> None:
        super().__init__(use_locking, name)
        self._lr = learning_rate
        self._beta = beta
        self._sign_decay_fn = sign_decay_fn
        self._sign_decay: Any = 1.0

    @abstractmethod
    def _multiplier(self, agreement: object, var: object) -> Any:
        """Returns f of the agreement of signs."""

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Operation:
        """Applies gradients as `Optimizer.apply_gradients`; a decay function requires ``global_step``."""
        if self._sign_decay_fn is not None:
            self._sign_decay = convert_to_tensor(self._sign_decay_fn(global_step), name="sign_decay")
        return super().apply_gradients(grads_and_vars, global_step=global_step, name=name)

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for var in var_list:
            self._zeros_slot(var, "m", self._name)

    def _prepare(self) -> None:
        self._prepare_settings(learning_rate=self._lr, beta=self._beta, sign_decay=self._sign_decay)

    def _change(self, grad: Any, average: Any, var: Any) -> Any:
        agreement = self._setting("sign_decay", var) * ops.sign(average) * ops.sign(grad)
        return self._setting("learning_rate", var) * self._multiplier(agreement, var) * grad

    def _apply_dense(self, grad: Tensor, var: Variable) -> Any:
        m, beta = self.get_slot(var, "m"), self._setting("beta", var)
        new_m = m * beta + grad * (1 - beta)
        return group(var.assign_sub(self._change(grad, new_m, var)), assign(m, new_m))

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        m, beta = self.get_slot(var, "m"), self._setting("beta", var)
        with control_dependencies([assign(m, m * beta)]):
            new_m = scatter_add(m, grad.indices, grad.values * (1 - beta))
        change = self._change(grad.values, gather(new_m, grad.indices), var)
        return group(scatter_sub(var, grad.indices, change), new_m)


class AddSignOptimizer(_SignOptimizer):
    """AddSign (Bello et al., 2017): θ ← θ − η·(α + d·sign(g)·sign(m))·g, with m ← β·m + (1−β)·g.

    Args:
      learning_rate: η.
      alpha: α.
      beta: β, how slowly the average m changes.
      sign_decay_fn: d, a function of the global step, such as `get_cosine_decay_fn(n)`; 1 if None.

    Slots: ``m``.
    """

    def __init__(
        self,
        learning_rate: Hyperparameter = 0.1,
        alpha: Hyperparameter = 1.0,
        beta: Hyperparameter = 0.9,
        sign_decay_fn: SignDecay | None = None,
        use_locking: bool = False,
        name: str = "AddSignOptimizer",
    ) -> None:
        super().__init__(learning_rate, beta, sign_decay_fn, use_locking, name)
        self._alpha = alpha

    def _multiplier(self, agreement: Any, var: Any) -> Any:
        return ops.cast(self._alpha, var.dtype.base_dtype) + agreement


class PowerSignOptimizer(_SignOptimizer):
    """PowerSign (Bello et al., 2017): θ ← θ − η·b^(d·sign(g)·sign(m))·g, with m ← β·m + (1−β)·g.

    Args:
      learning_rate: η.
      base: b, a number.
      beta, sign_decay_fn, use_locking, name: as for `AddSignOptimizer`.

    Slots: ``m``.
    """

    def __init__(
        self,
        learning_rate: Hyperparameter = 0.1,
        base: float = math.e,
        beta: Hyperparameter = 0.9,
        sign_decay_fn: SignDecay | None = None,
        use_locking: bool = False,
        name: str = "PowerSignOptimizer",
    ) -> None:
        super().__init__(learning_rate, beta, sign_decay_fn, use_locking, name)
        self._logbase = math.log(base)

    def _multiplier(self, agreement: Any, var: Any) -> Any:
        return ops.exp(ops.cast(self._logbase, var.dtype.base_dtype) * agreement)
