"""`Optimizer`: the base of all optimizers. Subclasses override:

- ``_create_slots(var_list)``: creates slot variables (with `_zeros_slot` and similar methods);
- ``_prepare()``: makes tensors of the settings;
- ``_apply_dense(grad, var)`` and ``_apply_sparse(grad, var)``: return the operation that updates one variable;
- ``_finish(update_ops, name_scope)``: joins these, and may add operations that run after them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from headwater.dtypes import DType, bfloat16, float16, float32, float64
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.gradients import gradients
from headwater.graph.graph import Graph
from headwater.graph.indexed_slices import IndexedSlices
from headwater.graph.operation import Operation, Tensor
from headwater.tf1.functional.arrays import shape
from headwater.tf1.functional.control_flow import group
from headwater.tf1.functional.control_flow import tuple as tuple_of
from headwater.tf1.functional.indexing import boolean_mask
from headwater.tf1.functional.reductions import unsorted_segment_sum
from headwater.tf1.functional.searching import unique
from headwater.tf1.training import slot_creator
from headwater.tf1.training.accounted import account_for
from headwater.tf1.variables.partitioned import PartitionedVariable
from headwater.tf1.variables.state import assign_add
from headwater.tf1.variables.variable_lists import trainable_variables
from headwater.tf1.variables.variables import Variable, init_scope

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.types import Gradient, GraphTensor, TensorLike
    from headwater.shapes import ShapeLike
    from headwater.tf1.variables.types import AnyVariable, InitializerLike

GradsAndVars: TypeAlias = "list[tuple[Gradient | None, Variable]]"

Hyperparameter: TypeAlias = "TensorLike | Callable[[], TensorLike]"
"""A setting: a number, a tensor, or a function that returns one."""

OptimizerLike: TypeAlias = "str | Optimizer | Callable[[], Optimizer] | type[Optimizer]"
"""An optimizer, the name of one, or a function or class that returns one."""


class Optimizer:
    """Computes gradients and applies them to variables.

    ``minimize`` is ``compute_gradients`` and ``apply_gradients``; call these two to change gradients in between.

    Args:
      use_locking: accepted; updates are always atomic.

    Raises:
      ValueError: no name.
    """

    GATE_NONE: ClassVar[int] = 0
    GATE_OP: ClassVar[int] = 1
    GATE_GRAPH: ClassVar[int] = 2

    def __init__(self, use_locking: bool, name: str) -> None:
        if not name:
            raise ValueError("Must specify the optimizer name")
        self._use_locking = use_locking
        self._name = name
        self._slots: dict[str, dict[Any, Any]] = {}
        self._non_slots: dict[tuple[str, Graph], Variable] = {}

    def get_name(self) -> str:
        return self._name

    # Gradients --------------------------------------------------------------------------------------------------

    def minimize(
        self,
        loss: TensorLike,
        global_step: Variable | None = None,
        var_list: Sequence[Variable] | None = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: TensorLike | None = None,
    ) -> Operation:
        """Returns an operation that performs one training step, which reduces ``loss``.

        Args:
          loss: the tensor to minimise, or a function that returns it.
          global_step: a variable to increment once the variables are updated.
          var_list: variables to change; all trainable ones if None.
          gate_gradients: ``GATE_GRAPH`` uses no gradient before all are computed.
          aggregation_method, colocate_gradients_with_ops: accepted.
          grad_loss: gradient of the loss, ones if None.

        Raises:
          ValueError: ``loss`` depends on none of the variables, or an argument is not valid.
        """
        found = self.compute_gradients(
            loss,
            var_list=var_list,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss,
        )
        if all(grad is None for grad, _ in found):
            raise ValueError(
                "No gradients provided for any variable, check your graph for ops that do not support gradients, "
                f"between variables {[str(var) for _, var in found]} and loss {loss}."
            )
        return self.apply_gradients(found, global_step=global_step, name=name)

    def compute_gradients(
        self,
        loss: TensorLike | Callable[[], TensorLike],
        var_list: Sequence[Variable] | Mapping[str, Variable] | None = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: TensorLike | None = None,
    ) -> GradsAndVars:
        """Returns pairs of gradient and variable; see `minimize` for the arguments.

        A gradient is a tensor, `IndexedSlices` for a variable that is only gathered from, or None if ``loss`` does not
        depend on the variable.
        """
        if gate_gradients not in (Optimizer.GATE_NONE, Optimizer.GATE_OP, Optimizer.GATE_GRAPH):
            raise ValueError(
                "gate_gradients must be one of: Optimizer.GATE_NONE, Optimizer.GATE_OP, Optimizer.GATE_GRAPH.  "
                f"Not {gate_gradients}"
            )
        if callable(loss):
            loss = loss()
        self._assert_valid_dtypes([loss])
        if grad_loss is not None:
            self._assert_valid_dtypes([grad_loss])
        variables = list(_flat(trainable_variables() if var_list is None else var_list))
        if not variables:
            raise ValueError("No variables to optimize.")
        found = gradients(
            loss,
            variables,
            grad_ys=grad_loss,
            gate_gradients=gate_gradients == Optimizer.GATE_OP,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
        )
        if gate_gradients == Optimizer.GATE_GRAPH:
            found = list(tuple_of(found))
        pairs: GradsAndVars = list(zip(found, variables, strict=True))
        self._assert_valid_dtypes([var for grad, var in pairs if grad is not None])
        return pairs

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Gradient | None, Variable]],
        global_step: Tensor | Variable | None = None,
        name: str | None = None,
    ) -> Operation:
        """Returns an operation that updates variables by their gradients, and then increments ``global_step``.

        Args:
          grads_and_vars: pairs of gradient (None: leave the variable unchanged) and variable.
          global_step: a variable to increment once all others are updated; incremented on its own device.
          name: name of the operation; the optimizer's if None.

        Raises:
          TypeError: a gradient that is neither tensor nor `IndexedSlices`.
          ValueError: there are no variables, or no gradients.
        """
        pairs = [(_as_gradient(grad), var) for grad, var in grads_and_vars]
        if not pairs:
            raise ValueError("No variables provided.")
        variables = [var for grad, var in pairs if grad is not None]
        if not variables:
            raise ValueError(f"No gradients provided for any variable: {[str(var) for _, var in pairs]}.")
        graph: Graph = variables[0].graph
        with init_scope():
            self._create_slots(variables)
        with name_scope(name, self._name) as scope:
            self._prepare()
            updates: list[Any] = []
            for grad, var in pairs:
                if grad is not None:
                    with graph.name_scope(f"update_{var.op.name}"), graph.colocate_with(var.op):
                        updates.append(self._update(grad, var))
            updates += account_for((grad for grad, _ in pairs), updates)
            if global_step is None:
                result = self._finish(updates, scope)
            else:
                done = self._finish(updates, "update")
                with graph.control_dependencies([done]), graph.colocate_with(global_step.op):
                    result = assign_add(global_step, 1, name=scope)
        train_op: Operation = result.op if isinstance(result, Tensor) else result
        collected = graph.get_collection_ref(GraphKeys.TRAIN_OP)
        if train_op not in collected:
            collected.append(train_op)
        return train_op

    def _update(self, grad: Tensor, var: AnyVariable) -> Any:
        if not isinstance(var, Variable):
            raise NotImplementedError("Trying to update a Tensor ", var)
        if isinstance(grad, IndexedSlices):
            if var.constraint is not None:
                raise RuntimeError("Cannot use a constraint function on a sparse variable.")
            return self._apply_sparse_duplicate_indices(grad, var)
        update = self._apply_dense(grad, var)
        if var.constraint is None:
            return update
        with var.graph.control_dependencies([update]):
            return var.assign(var.constraint(var.read_value())).op

    # Overridden by subclasses -----------------------------------------------------------------------------------

    def _valid_dtypes(self) -> set[DType]:
        return {float16, bfloat16, float32, float64}

    def _assert_valid_dtypes(self, tensors: Iterable[Any]) -> None:
        valid = self._valid_dtypes()
        for tensor in tensors:
            dtype = tensor.dtype.base_dtype
            if dtype not in valid:
                raise ValueError(
                    f"Invalid type {dtype!r} for {tensor.name}, expected: {sorted(valid, key=lambda d: d.name)}."
                )

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        """Creates the slots of ``var_list``. Creates none by default."""

    def _prepare(self) -> None:
        """Creates tensors of the settings, before the updates. Does nothing by default."""

    def _apply_dense(self, grad: Tensor, var: Variable) -> Any:
        """The operation that updates ``var`` by the tensor ``grad``."""
        return self._resource_apply_dense(grad, var)

    def _apply_sparse(self, grad: Any, var: GraphTensor) -> Any:
        """Returns the operation that updates ``var`` by the `IndexedSlices` ``grad`` with distinct indices."""
        return self._resource_apply_sparse(grad.values, var, grad.indices)

    def _resource_apply_dense(self, grad: Tensor, handle: object) -> Any:
        """Like `_apply_dense`; overridden by optimizers written for resource variables."""
        raise NotImplementedError(f"{type(self).__name__} has no _apply_dense")

    def _resource_apply_sparse(self, grad: Tensor, handle: object, indices: TensorLike) -> Any:
        """Like `_apply_sparse`; overridden by optimizers written for resource variables."""
        raise NotImplementedError(f"{type(self).__name__} has no _apply_sparse")

    def _apply_sparse_duplicate_indices(self, grad: Any, var: GraphTensor) -> Any:
        """Adds up rows of ``grad`` that have the same index, then `_apply_sparse`.

        ``SumEqualRows`` keeps the number of rows: unused ones have an index outside the variable. The sparse updates of
        the package's optimizers ignore these; other classes may gather rows by the indices, and get used rows only.
        """
        grad = grad.summed
        values, indices = grad.values, grad.indices
        own = type(self)._apply_sparse.__module__.startswith("headwater.tf1.training.optimizers.")
        if not own:
            used = indices >= 0  # lookups in parts pad their requests with `NO_ROW`
            values, indices = boolean_mask(values, used), boolean_mask(indices, used)
        if not grad.distinct:
            if own:
                values, indices = grad.graph.create_op("SumEqualRows", [values, indices]).outputs
            else:
                indices, positions = unique(indices)
                values = unsorted_segment_sum(values, positions, shape(indices)[0])
        return self._apply_sparse(IndexedSlices(values, indices, grad.dense_shape), var)

    def _finish(self, update_ops: Sequence[Operation], name_scope: str) -> Any:
        """Joins the updates into one operation called ``name_scope``."""
        return group(*update_ops, name=name_scope)

    def _call_if_callable(self, param: object) -> Any:
        """Returns a setting; calls it first if it is a function."""
        return param() if callable(param) else param

    # Slots ------------------------------------------------------------------------------------------------------

    def get_slot(self, var: GraphTensor, name: str) -> Any:
        """Returns the slot ``name`` of ``var``; None if there is none."""
        return self._slots.get(name, {}).get(var)

    def get_slot_names(self) -> list[str]:
        """Returns the names of all existing slots, sorted."""
        return sorted(self._slots)

    def variables(self) -> list[Variable]:
        """Returns all variables that this optimizer keeps in the default graph, sorted by name."""
        graph = get_default_graph()
        kept = [slot for slots in self._slots.values() for slot in slots.values()] + self._non_slot_variables()
        return sorted((var for var in kept if var.graph is graph), key=lambda var: var.name)

    def _slot_dict(self, slot_name: str) -> dict[Any, Any]:
        return self._slots.setdefault(slot_name, {})

    def _get_or_make_slot(self, var: AnyVariable, val: object, slot_name: str, op_name: str) -> Any:
        """The slot of ``var``, made with the initial value ``val``; ``op_name`` is the end of its name."""
        return self._slot(var, slot_name, lambda: slot_creator.create_slot(var, val, op_name))

    def _get_or_make_slot_with_initializer(
        self,
        var: AnyVariable,
        initializer: InitializerLike,
        shape: ShapeLike,
        dtype: DTypeLike,
        slot_name: str,
        op_name: str,
    ) -> Any:
        """The slot of ``var``, made by ``initializer``; see `_get_or_make_slot`."""
        return self._slot(
            var, slot_name, lambda: slot_creator.create_slot_with_initializer(var, initializer, shape, dtype, op_name)
        )

    def _zeros_slot(self, var: Variable, slot_name: str, op_name: str) -> Any:
        """The slot of ``var``, made of zeros; see `_get_or_make_slot`."""
        return self._slot(var, slot_name, lambda: slot_creator.create_zeros_slot(var, op_name))

    def _slot(self, var: AnyVariable, slot_name: str, make: Callable[[], object]) -> Any:
        slots = self._slot_dict(slot_name)
        if var not in slots:
            slots[var] = make()
        return slots[var]

    def _create_non_slot_variable(self, initial_value: TensorLike, name: str, colocate_with: Any) -> Any:
        """Returns a variable of this optimizer that is not a slot, once per graph, colocated with ``colocate_with``."""
        key = (name, colocate_with.graph)
        if key not in self._non_slots:
            with colocate_with.graph.colocate_with(colocate_with.op):
                self._non_slots[key] = Variable(initial_value, name=name, trainable=False)
        return self._non_slots[key]

    def _get_non_slot_variable(self, name: str, graph: Graph | None = None) -> Variable | None:
        return self._non_slots.get((name, graph or get_default_graph()))

    def _non_slot_variables(self) -> list[Variable]:
        return list(self._non_slots.values())


def _flat(value: Any) -> Iterable[Any]:
    if isinstance(value, list | tuple | set | PartitionedVariable):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _flat(item)
    else:
        yield value


def _as_gradient(grad: Any) -> Any:
    if grad is None or isinstance(grad, Tensor | IndexedSlices):
        return grad
    try:
        return convert_to_tensor(grad)
    except (TypeError, ValueError):
        raise TypeError(f"Gradient must be convertible to a Tensor or IndexedSlices, or None: {grad}") from None
