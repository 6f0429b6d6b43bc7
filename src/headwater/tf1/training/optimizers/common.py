"""Common parts of the optimizers: settings as tensors, and the operation that updates one variable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headwater.graph.convert import convert_to_tensor
from headwater.graph.indexed_slices import IndexedSlices
from headwater.graph.operation import Operation, Tensor
from headwater.tf1.training.optimizer import Optimizer
from headwater.tf1.variables.state import update_op

if TYPE_CHECKING:
    from headwater.graph.types import GraphTensor
    from headwater.tf1.variables.variables import Variable


class SettingsOptimizer(Optimizer):
    """Base of optimizers with settings that are numbers, tensors, or functions without arguments that return these."""

    def __init__(self, use_locking: bool, name: str) -> None:
        super().__init__(use_locking, name)
        self._settings: dict[str, Tensor] = {}

    def _prepare_settings(self, **settings: object) -> None:
        """Creates a tensor of every setting, under its name."""
        self._settings = {
            key: convert_to_tensor(self._call_if_callable(value), name=key) for key, value in settings.items()
        }

    def _setting(self, name: str, var: GraphTensor) -> Tensor:
        """The setting in the element type of ``var``."""
        tensor = self._settings[name]
        dtype = var.dtype.base_dtype
        if tensor.dtype.base_dtype == dtype:
            return tensor
        return tensor.graph.create_op("Cast", [tensor], {"DstT": dtype}).outputs[0]

    def _apply(
        self, op_type: str, var: GraphTensor, slots: tuple[str, ...], values: list[tuple[str, Any]], **attrs: object
    ) -> Operation:
        """Adds the update ``op_type`` of ``var`` and its ``slots``.

        Args:
          values: further inputs in order, by argument name. The name of a setting alone denotes this setting; a
            gradient of `IndexedSlices` for its values.
        """
        refs = [var, *(self.get_slot(var, slot) for slot in slots)]
        inputs = [(key, value.values if isinstance(value, IndexedSlices) else value, None) for key, value in values]
        return update_op(op_type, refs, inputs, {"use_locking": self._use_locking, **attrs}).op


class OneOperationOptimizer(SettingsOptimizer):
    """Base of optimizers with one operation for each update: ``Apply<kind>``, or ``SparseApply<kind>`` for rows.

    Attributes:
      _kind: see above.
      _updated: the slots that the operation updates besides the variable, zeros at first.
      _inputs: the further arguments of the operation in order, each with the name of its setting or ``grad``.
      _attrs: attributes of the operation.
    """

    _kind: str
    _updated: tuple[str, ...]
    _inputs: Mapping[str, str]
    _attrs: Mapping[str, object] = {}

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        for var in var_list:
            for slot in self._updated:
                self._zeros_slot(var, slot, self._name)

    def _values(self, grad: Any, var: GraphTensor) -> list[tuple[str, Any]]:
        """Returns the further inputs in order, by argument name."""
        return [(key, grad if name == "grad" else self._setting(name, var)) for key, name in self._inputs.items()]

    def _apply_dense(self, grad: Tensor, var: Variable) -> Operation:
        return self._apply(f"Apply{self._kind}", var, self._updated, self._values(grad, var), **self._attrs)

    def _apply_sparse(self, grad: Any, var: GraphTensor) -> Any:
        values = self._values(grad, var)
        values.insert(1 + [key for key, _ in values].index("grad"), ("indices", grad.indices))
        return self._apply(f"SparseApply{self._kind}", var, self._updated, values, **self._attrs)
