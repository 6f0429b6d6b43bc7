"""Adagrad and its variants: learning rates per element that decrease with its accumulated gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headwater.dtypes import int32, int64
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Tensor
from headwater.tf1.training.optimizers.common import OneOperationOptimizer
from headwater.tf1.variables.initializers import Constant, Zeros

if TYPE_CHECKING:
    from headwater.graph.types import GraphTensor, TensorLike
    from headwater.tf1.training.optimizer import Hyperparameter
    from headwater.tf1.variables.types import AnyVariable
    from headwater.tf1.variables.variables import Variable


def _constant_slot(optimizer: Any, var: Any, value: float, slot: str, name: str) -> Any:
    """A slot of ``value`` in the shape of ``var``, known before the step or not."""
    dtype = var.dtype.base_dtype
    if var.shape.is_fully_defined():
        return optimizer._get_or_make_slot_with_initializer(var, Constant(value, dtype), var.shape, dtype, slot, name)
    graph = get_default_graph()
    with graph.colocate_with(var.op):
        shape = graph.create_op("Shape", [var.initialized_value()], {"out_type": int32}).outputs[0]
        filled = graph.create_op("Fill", [shape, convert_to_tensor(value, dtype)]).outputs[0]
    return optimizer._get_or_make_slot(var, filled, slot, name)


_PENALTIES = {"l1": "l1_regularization_strength", "l2": "l2_regularization_strength"}


class _AccumulatingOptimizer(OneOperationOptimizer):
    """Base of optimizers with one accumulator of squared gradients."""

    _updated = ("accumulator",)

    def __init__(
        self, learning_rate: Hyperparameter, initial_accumulator_value: float, use_locking: bool, name: str
    ) -> None:
        if initial_accumulator_value <= 0.0:
            raise ValueError(f"initial_accumulator_value must be positive: {initial_accumulator_value}")
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial_accumulator_value = initial_accumulator_value

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for var in var_list:
            _constant_slot(self, var, self._initial_accumulator_value, "accumulator", self._name)


class AdagradOptimizer(_AccumulatingOptimizer):
    """Adagrad (Duchi, Hazan and Singer, 2011).

    a ← a + g², then θ ← θ − η·g / √a, where a starts at a₀.

    There is no ε: a₀ > 0 keeps the root away from zero. Keras and PyTorch start at 0 and add an ε (1e-7, 1e-10) to
    the root, so that their first steps are larger.

    Args:
      learning_rate: η; a number, a tensor, or a function that returns one.
      initial_accumulator_value: a₀, positive.

    Raises:
      ValueError: ``initial_accumulator_value`` is not positive.

    Slots: ``accumulator`` is a.
    """

    _kind = "Adagrad"
    _inputs: Mapping[str, str] = {"lr": "learning_rate", "grad": "grad"}

    def __init__(
        self,
        learning_rate: Hyperparameter,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:
        super().__init__(learning_rate, initial_accumulator_value, use_locking, name)

    def _prepare(self) -> None:
        self._prepare_settings(learning_rate=self._learning_rate)


class ProximalAdagradOptimizer(_AccumulatingOptimizer):
    """Adagrad with L1 and L2 penalties that produce exact zeros (FOBOS; Duchi and Singer, 2009).

    a ← a + g², ρ = η / √a, z = θ − ρ·g, then θ ← sign(z)·max(|z| − ρ·λ₁, 0) / (1 + ρ·λ₂).

    Args:
      learning_rate: η; a number or a tensor.
      initial_accumulator_value: the initial value of a, positive.
      l1_regularization_strength: λ₁, not negative.
      l2_regularization_strength: λ₂, not negative.

    Raises:
      ValueError: ``initial_accumulator_value`` is not positive.

    Slots: ``accumulator`` is a.
    """

    _kind = "ProximalAdagrad"
    _inputs: Mapping[str, str] = {"lr": "learning_rate", **_PENALTIES, "grad": "grad"}

    def __init__(
        self,
        learning_rate: Hyperparameter,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: Hyperparameter = 0.0,
        l2_regularization_strength: Hyperparameter = 0.0,
        use_locking: bool = False,
        name: str = "ProximalAdagrad",
    ) -> None:
        super().__init__(learning_rate, initial_accumulator_value, use_locking, name)
        self._l1 = l1_regularization_strength
        self._l2 = l2_regularization_strength

    def _prepare(self) -> None:
        self._prepare_settings(
            learning_rate=self._learning_rate, l1_regularization_strength=self._l1, l2_regularization_strength=self._l2
        )


class AdagradDAOptimizer(OneOperationOptimizer):
    """Adagrad by dual averaging, for sparse linear models with an L1 penalty (Duchi, Hazan and Singer, 2011).

    At step t: s ← s + g, a ← a + g², z = sign(s)·max(|s| − λ₁·t, 0), then θ ← −η·z / (λ₂·η·t + √a). The variable's
    initial value does not count: the variable is zero after the first step if λ₁ is large.

    Args:
      learning_rate: η; a number or a tensor.
      global_step: the integer variable that counts steps; t is one more than it.
      initial_gradient_squared_accumulator_value: the initial value of a, positive.
      l1_regularization_strength: λ₁.
      l2_regularization_strength: λ₂.

    Raises:
      ValueError: ``initial_gradient_squared_accumulator_value`` is not positive.

    Slots: ``gradient_accumulator`` is s, ``gradient_squared_accumulator`` is a.
    """

    _kind = "AdagradDA"
    _updated = ("gradient_accumulator", "gradient_squared_accumulator")
    _inputs: Mapping[str, str] = {"grad": "grad", "lr": "learning_rate", **_PENALTIES}

    def __init__(
        self,
        learning_rate: TensorLike,
        global_step: Any,
        initial_gradient_squared_accumulator_value: float = 0.1,
        l1_regularization_strength: TensorLike = 0.0,
        l2_regularization_strength: TensorLike = 0.0,
        use_locking: bool = False,
        name: str = "AdagradDA",
    ) -> None:
        if initial_gradient_squared_accumulator_value <= 0.0:
            raise ValueError(
                "initial_gradient_squared_accumulator_value must be positive: "
                f"{initial_gradient_squared_accumulator_value}"
            )
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._global_step = global_step
        self._initial = initial_gradient_squared_accumulator_value
        self._l1 = l1_regularization_strength
        self._l2 = l2_regularization_strength

    def _create_slots(self, var_list: Sequence[AnyVariable]) -> None:
        for var in var_list:
            dtype = var.dtype.base_dtype
            self._get_or_make_slot_with_initializer(
                var, Zeros(dtype), var.shape, dtype, "gradient_accumulator", self._name
            )
            _constant_slot(self, var, self._initial, "gradient_squared_accumulator", self._name)

    def _prepare(self) -> None:
        self._prepare_settings(
            learning_rate=self._learning_rate, l1_regularization_strength=self._l1, l2_regularization_strength=self._l2
        )
        graph = self._global_step.graph
        before = graph.create_op("Cast", [convert_to_tensor(self._global_step)], {"DstT": int64}).outputs[0]
        self._step: Tensor = graph.create_op("Add", [before, convert_to_tensor(1, int64)], name="step").outputs[0]

    def _values(self, grad: TensorLike, var: GraphTensor) -> list[tuple[str, Any]]:
        return [*super()._values(grad, var), ("global_step", self._step)]
