"""Adam: steps from decaying averages of gradients and of their squares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headwater.tf1.functional.control_flow import group
from headwater.tf1.training.optimizers.common import OneOperationOptimizer

if TYPE_CHECKING:
    from headwater.graph.operation import Operation
    from headwater.tf1.training.optimizer import Hyperparameter
    from headwater.tf1.variables.variables import Variable


class AdamOptimizer(OneOperationOptimizer):
    """Adam (Kingma and Ba, 2015).

    At step t: m ← m + (1−β₁)·(g − m), v ← v + (1−β₂)·(g² − v), then
    θ ← θ − η·√(1−β₂ᵗ)/(1−β₁ᵗ) · m / (√v + ε).

    This is the form just before section 2.1 of the paper, where ε ("epsilon hat") is added to a root that is not
    corrected for its bias; Keras does the same, while PyTorch and optax add it after the correction, so that their ε
    is smaller in the first steps by the factor √(1−β₂ᵗ).

    A sparse gradient is treated as a dense gradient with zeros: m and v of all rows decay, and all rows move by their
    decayed m. The powers β₁ᵗ and β₂ᵗ are variables, on the task of the variable that is first by name.

    Args:
      learning_rate: η; a number, a tensor, or a function that returns one.
      beta1: β₁, how slowly the average of gradients changes.
      beta2: β₂, how slowly the average of squares changes.
      epsilon: ε; keeps steps finite where v is near zero. Larger values, such as 0.1 or 1, suit some networks better.

    Slots: ``m`` and ``v``.
    """

    _kind = "Adam"
    _updated = ("m", "v")
    _inputs: Mapping[str, str] = {
        "beta1_power": "beta1_power",
        "beta2_power": "beta2_power",
        "lr": "learning_rate",
        "beta1": "beta1",
        "beta2": "beta2",
        "epsilon": "epsilon",
        "grad": "grad",
    }

    def __init__(
        self,
        learning_rate: Hyperparameter = 0.001,
        beta1: Hyperparameter = 0.9,
        beta2: Hyperparameter = 0.999,
        epsilon: Hyperparameter = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(use_locking, name)
        self._lr = learning_rate
        self._beta1 = beta1
        self._beta2 = beta2
        self._epsilon = epsilon

    def _get_beta_accumulators(self) -> tuple[Any, Any]:
        return self._get_non_slot_variable("beta1_power"), self._get_non_slot_variable("beta2_power")

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        first = min(var_list, key=lambda var: var.name)
        self._create_non_slot_variable(self._call_if_callable(self._beta1), "beta1_power", first)
        self._create_non_slot_variable(self._call_if_callable(self._beta2), "beta2_power", first)
        super()._create_slots(var_list)

    def _prepare(self) -> None:
        self._prepare_settings(learning_rate=self._lr, beta1=self._beta1, beta2=self._beta2, epsilon=self._epsilon)
        for name, power in zip(("beta1_power", "beta2_power"), self._get_beta_accumulators(), strict=True):
            self._settings[name] = power.value()

    def _finish(self, update_ops: Sequence[Operation], name_scope: str) -> Any:
        powers = self._get_beta_accumulators()
        graph = powers[0].graph
        decays: list[Operation] = []
        # This need not run after the updates: they use the powers from the start of the step. So no other task is
        # waited for.
        with graph.colocate_with(powers[0].op):
            for power, beta in zip(powers, ("beta1", "beta2"), strict=True):
                product = graph.create_op("Mul", [power.value(), self._setting(beta, power)], name="mul").outputs[0]
                decays.append(power.assign(product, use_locking=self._use_locking))
        return group(*update_ops, *decays, name=name_scope)
