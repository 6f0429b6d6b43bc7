"""FTRL-Proximal: follow the regularised leader, for sparse linear models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headwater.tf1.training.optimizers.common import OneOperationOptimizer
from headwater.tf1.variables.initializers import Constant

if TYPE_CHECKING:
    from headwater.tf1.variables.variables import Variable


class FtrlOptimizer(OneOperationOptimizer):
    """FTRL-Proximal (McMahan et al., "Ad Click Prediction", 2013).

    With the power p = −``learning_rate_power``: a' = a + g², z ← z + g − (a'ᵖ − aᵖ)/η · θ, a ← a', then
    θ ← 0 where |z| ≤ λ₁, else (sign(z)·λ₁ − z) / (aᵖ/η + 2·λ₂).

    The L2 shrinkage of strength σ adds 2·σ·θ to the gradient in z, but not in a, and so penalises the size of θ
    without changing the learning rates. The paper's λ₂ is twice the one here.

    Args:
      learning_rate: η; a number, a tensor, or a function that returns one.
      learning_rate_power: −p, not positive; −0.5 is the usual root, 0 a fixed learning rate.
      initial_accumulator_value: the initial value of a, not negative.
      l1_regularization_strength: λ₁, not negative.
      l2_regularization_strength: λ₂, not negative.
      accum_name: end of the name of the slot a; ``name`` if None.
      linear_name: end of the name of the slot z; ``name`` if None.
      l2_shrinkage_regularization_strength: σ, not negative.

    Raises:
      ValueError: a setting on the wrong side of zero; the message names it.

    Slots: ``accum`` is a, ``linear`` is z.
    """

    _updated = ("accum", "linear")
    _NAMES = ("l1_regularization_strength", "l2_regularization_strength", "l2_shrinkage_regularization_strength")

    def __init__(
        self,
        learning_rate: Any,
        learning_rate_power: Any = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        use_locking: bool = False,
        name: str = "Ftrl",
        accum_name: str | None = None,
        linear_name: str | None = None,
        l2_shrinkage_regularization_strength: Any = 0.0,
    ) -> None:
        super().__init__(use_locking, name)
        strengths = (l1_regularization_strength, l2_regularization_strength, l2_shrinkage_regularization_strength)
        self._strengths = dict(zip(self._NAMES, strengths, strict=True))
        for key, value in {"initial_accumulator_value": initial_accumulator_value, **self._strengths}.items():
            if value < 0.0:
                raise ValueError(f"{key} {value:f} needs to be positive or zero")
        if learning_rate_power > 0.0:
            raise ValueError(f"learning_rate_power {learning_rate_power:f} needs to be negative or zero")
        self._learning_rate = learning_rate
        self._learning_rate_power = learning_rate_power
        self._initial_accumulator_value = initial_accumulator_value
        shrinks = l2_shrinkage_regularization_strength > 0
        self._kind = "FtrlV2" if shrinks else "Ftrl"
        penalties = dict(zip(("l1", "l2", "l2_shrinkage") if shrinks else ("l1", "l2"), self._NAMES, strict=False))
        self._inputs = {"grad": "grad", "lr": "learning_rate", **penalties, "lr_power": "learning_rate_power"}
        self._accum_name = accum_name
        self._linear_name = linear_name

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for var in var_list:
            dtype = var.dtype.base_dtype
            initializer = Constant(self._initial_accumulator_value, dtype)
            self._get_or_make_slot_with_initializer(
                var, initializer, var.shape, dtype, "accum", self._accum_name or self._name
            )
            self._zeros_slot(var, "linear", self._linear_name or self._name)

    def _prepare(self) -> None:
        self._prepare_settings(
            learning_rate=self._learning_rate, **self._strengths, learning_rate_power=self._learning_rate_power
        )
