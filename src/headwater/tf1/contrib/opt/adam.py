"""Variants of Adam: lazy, with Nesterov's momentum, with an infinite norm, with powers from the global step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headwater.dtypes import float32
from headwater.graph.convert import convert_to_tensor
from headwater.tf1.functional import math as ops
from headwater.tf1.functional.arrays import identity
from headwater.tf1.functional.control_flow import group
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.functional.indexing import gather
from headwater.tf1.training.optimizers.adam import AdamOptimizer
from headwater.tf1.training.optimizers.common import SettingsOptimizer
from headwater.tf1.variables.state import assign, scatter_add, scatter_sub, scatter_update

if TYPE_CHECKING:
    from headwater.graph.operation import Operation, Tensor
    from headwater.graph.types import TensorLike
    from headwater.tf1.training.optimizer import Hyperparameter
    from headwater.tf1.variables.variables import Variable


def _rate(settings: Any, var: Any) -> Any:
    """Returns η·√(1−β₂ᵗ)/(1−β₁ᵗ)."""
    corrected = ops.sqrt(1 - settings("beta2_power", var)) / (1 - settings("beta1_power", var))
    return settings("learning_rate", var) * corrected


class _LazyRows(AdamOptimizer):
    """The sparse update of lazy Adam."""

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        beta1, beta2 = self._setting("beta1", var), self._setting("beta2", var)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        m_rows = beta1 * gather(m, grad.indices) + (1 - beta1) * grad.values
        v_rows = beta2 * gather(v, grad.indices) + (1 - beta2) * ops.square(grad.values)
        change = _rate(self._setting, var) * m_rows / (ops.sqrt(v_rows) + self._setting("epsilon", var))
        with control_dependencies([m_rows, v_rows]):
            slots = [scatter_update(m, grad.indices, m_rows), scatter_update(v, grad.indices, v_rows)]
        return group(scatter_sub(var, grad.indices, change), *slots)


class LazyAdamOptimizer(_LazyRows):
    """Adam that, for a sparse gradient, updates only the rows in it, and only their m and v.

    Rows without a gradient keep their averages, which speeds up large embeddings and changes the results: see
    `AdamOptimizer` for the arguments and for dense gradients.
    """


class NadamOptimizer(AdamOptimizer):
    """Adam with Nesterov's momentum (Dozat, 2016): the step uses β₁·m + (1−β₁)·g in place of m.

    See `AdamOptimizer` for the arguments. For a sparse gradient m and v of all rows decay, and the rows in the gradient
    move.
    """

    _attrs = {"use_nesterov": True}

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        beta1, beta2 = self._setting("beta1", var), self._setting("beta2", var)
        scaled = grad.values * (1 - beta1)
        m = _decay_and_add(self.get_slot(var, "m"), beta1, grad.indices, scaled)
        v = _decay_and_add(self.get_slot(var, "v"), beta2, grad.indices, ops.square(grad.values) * (1 - beta2))
        m_bar = scaled + beta1 * gather(m, grad.indices)
        root = ops.sqrt(gather(v, grad.indices)) + self._setting("epsilon", var)
        return group(scatter_sub(var, grad.indices, _rate(self._setting, var) * m_bar / root), m, v)


def _decay_and_add(slot: Any, decay: Any, indices: Any, rows: Any) -> Tensor:
    """Returns the slot after it decayed and ``rows`` were added to it."""
    with control_dependencies([assign(slot, slot * decay)]):
        return scatter_add(slot, indices, rows)


class AdaMaxOptimizer(AdamOptimizer):
    """AdaMax, Adam with an infinite norm (Kingma and Ba, 2015, section 7).

    m ← m + (1−β₁)·(g − m), v ← max(β₂·v, |g|), then θ ← θ − η/(1−β₁ᵗ) · m / (v + ε). A sparse gradient updates its
    rows only.

    See `AdamOptimizer` for the arguments.
    """

    def __init__(
        self,
        learning_rate: Hyperparameter = 0.001,
        beta1: Hyperparameter = 0.9,
        beta2: Hyperparameter = 0.999,
        epsilon: Hyperparameter = 1e-8,
        use_locking: bool = False,
        name: str = "AdaMax",
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)

    def _get_beta_accumulators(self) -> Any:
        return self._get_non_slot_variable("beta1_power")

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        first = min(var_list, key=lambda var: var.name)
        self._create_non_slot_variable(self._call_if_callable(self._beta1), "beta1_power", first)
        for var in var_list:
            self._zeros_slot(var, "m", self._name)
            self._zeros_slot(var, "v", self._name)

    def _prepare(self) -> None:
        self._prepare_settings(learning_rate=self._lr, beta1=self._beta1, beta2=self._beta2, epsilon=self._epsilon)
        self._settings["beta1_power"] = self._get_beta_accumulators().value()

    def _rows(self, var: Any, m: Any, v: Any, grad: Any) -> tuple[Any, Any, Any]:
        """Returns new values of m and v, and the change of θ."""
        beta1 = self._setting("beta1", var)
        m = m + (grad - m) * (1 - beta1)
        v = ops.maximum(self._setting("beta2", var) * v, ops.abs(grad))
        rate = self._setting("learning_rate", var) / (1 - self._setting("beta1_power", var))
        return m, v, rate * (m / (v + self._setting("epsilon", var)))

    def _apply_dense(self, grad: Tensor, var: Variable) -> Any:
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        new_m, new_v, change = self._rows(var, m, v, grad)
        with control_dependencies([new_m, new_v]):
            return group(assign(m, new_m), assign(v, new_v), var.assign_sub(change))

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        m, v, at = self.get_slot(var, "m"), self.get_slot(var, "v"), grad.indices
        new_m, new_v, change = self._rows(var, gather(m, at), gather(v, at), grad.values)
        with control_dependencies([new_m, new_v]):
            return group(scatter_update(m, at, new_m), scatter_update(v, at, new_v), scatter_sub(var, at, change))

    def _finish(self, update_ops: Sequence[Operation], name_scope: str) -> Any:
        power = self._get_beta_accumulators()
        with control_dependencies(update_ops), power.graph.colocate_with(power.op):
            decayed = power.assign(power.value() * self._setting("beta1", power), use_locking=self._use_locking)
        return group(*update_ops, decayed, name=name_scope)


class AdamGSOptimizer(AdamOptimizer):
    """Adam with β₁ᵗ and β₂ᵗ computed from the global step rather than kept in variables.

    Workers that train together then agree about t, and checkpoints lack the two powers.

    Args:
      global_step: t − 1: a variable, tensor or number.
      learning_rate, beta1, beta2, epsilon, use_locking, name: as for `AdamOptimizer`.
    """

    def __init__(
        self,
        global_step: TensorLike = 0,
        learning_rate: Hyperparameter = 0.001,
        beta1: Hyperparameter = 0.9,
        beta2: Hyperparameter = 0.999,
        epsilon: Hyperparameter = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)
        self._global_step = global_step

    def _get_beta_accumulators(self) -> tuple[Any, Any]:
        return self._settings["beta1_power"], self._settings["beta2_power"]

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for var in var_list:
            self._zeros_slot(var, "m", self._name)
            self._zeros_slot(var, "v", self._name)

    def _prepare(self) -> None:
        self._prepare_settings(learning_rate=self._lr, beta1=self._beta1, beta2=self._beta2, epsilon=self._epsilon)
        step = ops.cast(identity(convert_to_tensor(self._global_step)) + 1, float32)
        for beta in ("beta1", "beta2"):
            self._settings[f"{beta}_power"] = ops.pow(self._settings[beta], step)

    def _finish(self, update_ops: Sequence[Operation], name_scope: str) -> Any:
        return SettingsOptimizer._finish(self, update_ops, name_scope)


class LazyAdamGSOptimizer(AdamGSOptimizer, _LazyRows):
    """`LazyAdamOptimizer` with powers from the global step, as `AdamGSOptimizer`."""
