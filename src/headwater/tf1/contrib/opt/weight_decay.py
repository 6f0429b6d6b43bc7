"""Optimizers with decoupled weight decay (Loshchilov and Hutter, 2017): θ ← θ − λ·θ before the update."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.tf1.functional.control_flow import no_op
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.functional.indexing import gather
from headwater.tf1.training.optimizers import AdamOptimizer, MomentumOptimizer
from headwater.tf1.variables.state import scatter_sub

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.graph.operation import Operation
    from headwater.tf1.training.optimizer import Hyperparameter, Optimizer

    _Base = Optimizer
else:
    _Base = object


class DecoupledWeightDecayExtension(_Base):
    """A class to inherit from before an optimizer: variables decay by λ·θ before each update of them.

    Unlike a penalty in the loss, the decay is not scaled by adaptive learning rates. It is not scaled by η either:
    schedule both alike. A sparse gradient decays its rows only.

    Args:
      weight_decay: λ.
      args, kwargs: arguments of the optimizer.
    """

    def __init__(self, weight_decay: Any, *args: Any, **kwargs: Any) -> None:
        self._decay_var_list: set[Any] = set()
        self._of_minimize: Iterable[Any] = ()
        self._weight_decay = weight_decay
        super().__init__(*args, **kwargs)

    def minimize(
        self,
        loss: Any,
        global_step: Any = None,
        var_list: Any = None,
        gate_gradients: int = 1,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Any = None,
        decay_var_list: Iterable[Any] | None = None,
    ) -> Operation:
        """Minimizes as `Optimizer.minimize`.

        Args:
          loss, global_step, var_list, gate_gradients, aggregation_method, colocate_gradients_with_ops, name, grad_loss:
            as for `Optimizer.minimize`.
          decay_var_list: variables that decay; all if None. TensorFlow 1.15 documents this argument of `minimize`
            and ignores it.
        """
        self._of_minimize = decay_var_list or ()
        try:
            named = (aggregation_method, colocate_gradients_with_ops, name, grad_loss)
            return super().minimize(loss, global_step, var_list, gate_gradients, *named)
        finally:
            self._of_minimize = ()

    def apply_gradients(
        self,
        grads_and_vars: Any,
        global_step: Any = None,
        name: str | None = None,
        decay_var_list: Iterable[Any] | None = None,
    ) -> Operation:
        """Applies gradients as `Optimizer.apply_gradients`.

        Args:
          grads_and_vars, global_step, name: as for `Optimizer.apply_gradients`.
          decay_var_list: variables that decay; all if None.
        """
        self._decay_var_list = set(decay_var_list or self._of_minimize)
        return super().apply_gradients(grads_and_vars, global_step, name)

    def _decays(self, var: object) -> bool:
        return not self._decay_var_list or var in self._decay_var_list

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        decay = var.assign_sub(self._weight_decay * var, self._use_locking) if self._decays(var) else no_op()
        with control_dependencies([decay]):
            return super()._apply_dense(grad, var)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        decay = no_op()
        if self._decays(var):
            decay = scatter_sub(var, grad.indices, self._weight_decay * gather(var, grad.indices), self._use_locking)
        with control_dependencies([decay]):
            return super()._apply_sparse(grad, var)


def extend_with_decoupled_weight_decay(base_optimizer: type[Any]) -> type[Any]:
    """Returns a subclass of an optimizer's class with decoupled weight decay.

    Its first argument is ``weight_decay``; the optimizer's own arguments follow, by name.
    """

    class OptimizerWithDecoupledWeightDecay(DecoupledWeightDecayExtension, base_optimizer):
        pass

    return OptimizerWithDecoupledWeightDecay


class MomentumWOptimizer(DecoupledWeightDecayExtension, MomentumOptimizer):
    """`MomentumOptimizer` with decoupled weight decay.

    Args:
      weight_decay: λ.
      learning_rate, momentum, use_locking, name, use_nesterov: as for `MomentumOptimizer`.
    """

    def __init__(
        self,
        weight_decay: object,
        learning_rate: Hyperparameter,
        momentum: Hyperparameter,
        use_locking: bool = False,
        name: str = "MomentumW",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(weight_decay, learning_rate, momentum, use_locking, name, use_nesterov)


class AdamWOptimizer(DecoupledWeightDecayExtension, AdamOptimizer):
    """`AdamOptimizer` with decoupled weight decay.

    Args:
      weight_decay: λ.
      learning_rate, beta1, beta2, epsilon, use_locking, name: as for `AdamOptimizer`.
    """

    def __init__(
        self,
        weight_decay: object,
        learning_rate: Hyperparameter = 0.001,
        beta1: Hyperparameter = 0.9,
        beta2: Hyperparameter = 0.999,
        epsilon: Hyperparameter = 1e-8,
        use_locking: bool = False,
        name: str = "AdamW",
    ) -> None:
        super().__init__(weight_decay, learning_rate, beta1, beta2, epsilon, use_locking, name)
