"""Moving averages of variables, often better to evaluate than the variables themselves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Operation, Tensor
from headwater.tf1.functional import math as ops
from headwater.tf1.functional.control_flow import group
from headwater.tf1.training import slot_creator
from headwater.tf1.variables.initializers import Zeros
from headwater.tf1.variables.state import assign_add, assign_sub
from headwater.tf1.variables.variable_lists import moving_average_variables, trainable_variables
from headwater.tf1.variables.variable_scope import get_variable, variable_scope
from headwater.tf1.variables.variables import Variable, init_scope

if TYPE_CHECKING:
    from headwater.graph.types import TensorLike
    from headwater.tf1.training.optimizer import Hyperparameter
    from headwater.tf1.variables.types import AnyVariable


def _now(value: TensorLike) -> Tensor:
    """Converts ``value`` to a tensor; a variable is read after the current control dependencies."""
    return value.read_value() if isinstance(value, Variable) else convert_to_tensor(value)


def assign_moving_average(
    variable: Variable | Tensor,
    value: TensorLike,
    decay: Hyperparameter | None,
    zero_debias: bool = True,
    name: str | None = None,
) -> Tensor:
    """a ← a − (1 − d)·(a − x).

    Args:
      variable: a, the average.
      value: x, a tensor of its shape.
      decay: d, near 1 for a long memory.
      zero_debias: correct an average that began at zero (Kingma and Ba, 2015): with b ← b − (1 − d)·(b − x), kept in
        variables beside ``variable``, a is b / (1 − dⁿ) after n updates.
    """
    graph, dtype = variable.graph, variable.dtype.base_dtype
    with (
        graph.as_default(),
        name_scope(name, "AssignMovingAvg", [value, decay]) as scope,
        graph.colocate_with(variable.op),
    ):
        weight = ops.subtract(convert_to_tensor(1.0, dtype, name="decay"), ops.cast(decay, dtype))
        if zero_debias:
            delta = _debiased_delta(variable, value, weight)
        else:
            delta = (_now(variable) - _now(value)) * weight
        return assign_sub(variable, delta, name=scope)


def _debiased_delta(variable: Variable | Tensor, value: TensorLike, weight: Any) -> object:
    """Returns the difference between the average and its bias-corrected value after this update."""
    graph = variable.graph
    dtype = variable.dtype.base_dtype
    with variable_scope(variable.op.name, values=[value]), graph.colocate_with(variable.op):
        with init_scope():
            biased = get_variable("biased", variable.shape, dtype, Zeros(), trainable=False)
            count = get_variable("local_step", [], dtype, Zeros(), trainable=False)
        updated = convert_to_tensor(assign_sub(biased, (_now(biased) - _now(value)) * weight))
        counted = convert_to_tensor(assign_add(count, 1.0))
        return _now(variable) - updated / (1 - ops.pow(1.0 - weight, counted))


class ExponentialMovingAverage:
    """Maintains moving averages of variables: a ← d·a + (1 − d)·x.

    ::

        ema = tf.train.ExponentialMovingAverage(0.999)
        with tf.control_dependencies([opt_op]):
            train_op = ema.apply(variables)

    Args:
      decay: d, e.g. 0.999.
      num_updates: number n of updates so far; then d is min(d, (1 + n) / (10 + n)), so that the average moves faster
        at first.
      zero_debias: correct averages of tensors, which begin at zero; see `assign_moving_average`.
      name: end of the names of the averages: ``weight/ExponentialMovingAverage``.
    """

    def __init__(
        self,
        decay: TensorLike,
        num_updates: TensorLike | None = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        self._decay = decay
        self._num_updates = num_updates
        self._zero_debias = zero_debias
        self._name = name
        self._averages: dict[Any, Any] = {}

    @property
    def name(self) -> str:
        return self._name

    def apply(self, var_list: Iterable[Any] | None = None) -> Operation:
        """Creates missing averages, and returns the operation that updates all of them.

        Args:
          var_list: variables and tensors; all trainable variables if None. The average of a variable begins at the
            variable's initial value, the average of a tensor at zero.

        Raises:
          TypeError: one is of no floating type.
        """
        values = list(trainable_variables() if var_list is None else var_list)
        from_zero: set[Any] = set()
        for value in values:
            if not value.dtype.base_dtype.is_floating:
                raise TypeError(f"The variables must be half, float, or double: {value.name}")
            if value in self._averages:
                continue
            with init_scope():
                self._averages[value] = self._make(value)
            if not isinstance(value, Variable) and self._zero_debias:
                from_zero.add(value)
        with name_scope(self._name) as scope:
            decay = convert_to_tensor(self._decay, name="decay")
            if self._num_updates is not None:
                count = ops.cast(_now(self._num_updates), decay.dtype, name="num_updates")
                decay = ops.minimum(decay, (1.0 + count) / (10.0 + count))
            updates = [
                assign_moving_average(self._averages[value], value, decay, zero_debias=value in from_zero)
                for value in values
            ]
            return group(*updates, name=scope)

    def _make(self, value: Tensor | Variable) -> Any:
        if isinstance(value, Variable):
            average = slot_creator.create_slot(value, value.initialized_value(), self._name)
            get_default_graph().add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, value)
            return average
        return slot_creator.create_zeros_slot(value, self._name, colocate_with_primary=False)

    def average(self, var: AnyVariable | Tensor) -> Any:
        """Returns the variable with the average of ``var``; None if there is none."""
        return self._averages.get(var)

    def average_name(self, var: Variable | Tensor) -> str:
        """Returns the name of the average of ``var``, even if it does not exist yet."""
        if var in self._averages:
            return self._averages[var].op.name
        return get_default_graph().unique_name(f"{var.op.name}/{self._name}", mark_as_used=False)

    def variables_to_restore(self, moving_avg_variables: Iterable[Variable] | None = None) -> dict[str, Variable]:
        """For a `Saver` that restores the averages into the variables: names in the checkpoint to variables.

        Args:
          moving_avg_variables: the variables that have averages; all trainable and ``MOVING_AVERAGE_VARIABLES`` when
            None.
        """
        if moving_avg_variables is None:
            averaged = [*trainable_variables(), *moving_average_variables()]
        else:
            averaged = list(moving_avg_variables)
        averaged = list(dict.fromkeys(averaged))
        names = {self.average_name(variable): variable for variable in averaged}
        graph = get_default_graph()
        taken = {variable.op.name for variable in averaged}
        for key in (GraphKeys.GLOBAL_VARIABLES, GraphKeys.MOVING_AVERAGE_VARIABLES):
            for variable in graph.get_collection(key):
                if variable.op.name not in taken:
                    names.setdefault(variable.op.name, variable)
        return names
