"""Initial values that depend on other variables, independent of the order of initializers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from headwater.graph.collections import GraphKeys
from headwater.graph.operation import Operation, Tensor


def with_initialized_values(initial: Tensor, name: str) -> Tensor:
    """Returns ``initial``, computed from the initial values of the variables that it depends on.

    The operations between these variables and ``initial`` are copied; without such variables none are.

    Args:
      initial: the tensor.
      name: name of the variable to initialise; suffix of the names of copied operations.
    """
    return _Rebuilder(initial, name.replace("/", "_")).tensor(initial)


class _Rebuilder:
    def __init__(self, initial: Tensor, suffix: str) -> None:
        self._graph = initial.graph
        self._suffix = suffix
        self._made: dict[Operation, Operation | Tensor] = {}
        for op in self._sorted(initial.op):
            self._made[op] = self._again(op)

    @cached_property
    def _initialized(self) -> dict[Operation, Callable[[], Tensor]]:
        """Returns, by variable operation, functions that read initialised values of variables.

        It is computed only if ``initial`` depends on a variable: otherwise building a graph would take quadratic time
        in its number of variables.
        """
        return {
            variable.op: variable.initialized_value
            for key in (GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES)
            for variable in self._graph.get_collection(key)
            if getattr(variable, "initial_value", None) is not None
        }

    def _sorted(self, last: Operation) -> list[Operation]:
        """Returns ``last`` and the operations that it depends on, inputs first."""
        order: dict[Operation, None] = {}
        stack = [(last, False)]
        while stack:
            op, inputs_done = stack.pop()
            if inputs_done:
                order[op] = None
            elif op not in order:
                stack.append((op, True))
                # Do not replace operations on the variable itself, such as IsVariableInitialized.
                inputs = () if op.definition.ref_positions(op.attrs) else op.inputs
                stack.extend((tensor.op, False) for tensor in inputs if tensor.op not in order)
        return list(order)

    def _again(self, op: Operation) -> Operation | Tensor:
        if op.definition.ref_positions(op.attrs):
            return op  # it works on a variable itself
        read = op.inputs[0].op if op.type == "Identity" else op
        if read.type == "VariableV2" and read in self._initialized:
            return self._initialized[read]()
        inputs = [self.tensor(tensor) if tensor.op in self._made else tensor for tensor in op.inputs]
        if all(new is old for new, old in zip(inputs, op.inputs, strict=True)):
            return op
        with self._graph.name_scope(None):
            return self._graph.create_op(
                op.type,
                inputs,
                dict(op.attrs),
                f"{op.name}_{self._suffix}",
                device=op.device or None,
                control_inputs=op.control_inputs,
            )

    def tensor(self, tensor: Tensor) -> Tensor:
        """Returns the replacement of ``tensor``."""
        made = self._made[tensor.op]
        return made if isinstance(made, Tensor) else made.outputs[tensor.value_index]
