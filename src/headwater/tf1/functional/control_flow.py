"""Control dependencies: groups, and tensors that wait for operations."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.indexed_slices import IndexedSlices
from headwater.graph.operation import Operation

if TYPE_CHECKING:
    from headwater.graph.operation import Tensor
    from headwater.graph.types import TensorLike


def no_op(name: str | None = None) -> Operation:
    """Returns an operation that does nothing but wait for its control inputs."""
    return get_default_graph().create_op("NoOp", [], name=name)


def group(*inputs: object, name: str | None = None) -> Operation:
    """An operation that is done when all of ``inputs`` are.

    If the inputs are on several devices, each device has a grouping operation of its own, so that one message from
    each device suffices.

    Args:
      inputs: operations, tensors, variables, and nested lists of these.

    Raises:
      TypeError: an input is of another type.
    """
    ops = list(dict.fromkeys(_operations(inputs)))
    graph = ops[0].graph if ops else get_default_graph()
    with graph.as_default(), graph.name_scope(name or "group_deps") as scope:
        by_device: dict[str, list[Operation]] = {}
        for op in ops:
            by_device.setdefault(op.device, []).append(op)
        if len(by_device) > 1:
            return _after([_after(by_device[device], device, None) for device in sorted(by_device)], "", scope)
        device, ops = by_device.popitem() if by_device else ("", [])
        return _after(ops, device, scope)


def tables_initializer(name: str = "init_all_tables") -> Operation:
    """An operation that runs the initialisers of all lookup tables of the default graph."""
    return group(*get_default_graph().get_collection(GraphKeys.TABLE_INITIALIZERS), name=name)


def _after(ops: Sequence[Operation], device: str, name: str | None) -> Operation:
    """Returns an operation that ends after ``ops``, on ``device`` (empty: the device that the program requests)."""
    graph = get_default_graph()
    with graph.control_dependencies(ops), graph.device(device or _as_asked):
        return no_op(name)


def _as_asked(op: Operation) -> str:
    """A device function that changes nothing."""
    return op.device


def _operations(values: Any) -> Iterator[Operation]:
    for value in values:
        if isinstance(value, Operation):
            yield value
        elif isinstance(value, dict):
            yield from _operations(value.values())  # pyright: ignore[reportUnknownMemberType]
        elif isinstance(value, list | builtins.tuple | set):
            yield from _operations(value)
        elif isinstance(getattr(value, "op", None), Operation):
            yield value.op
        else:
            raise TypeError(f"Expected tf.Tensor, tf.Operation, tf.Variable or IndexedSlices, got {value!r}")


def with_dependencies(dependencies: Sequence[object], output_tensor: Any, name: str | None = None) -> Any:
    """Returns ``output_tensor``, a tensor or `IndexedSlices`, available once ``dependencies`` have run."""
    with name_scope(name, "control_dependency", [output_tensor]) as scope:
        graph = get_default_graph()
        if isinstance(output_tensor, IndexedSlices):
            return output_tensor.scaled(lambda values: with_dependencies(dependencies, values))
        tensor = convert_to_tensor(output_tensor)
        with graph.control_dependencies(dependencies), graph.colocate_with(tensor.op):
            return graph.create_op("Identity", [tensor], name=scope).outputs[0]


def tuple(
    tensors: Sequence[object], name: str | None = None, control_inputs: Sequence[TensorLike] | None = None
) -> list[IndexedSlices | Tensor | None]:
    """Returns ``tensors`` (None stays None), available once all of them are computed.

    Args:
      tensors: tensors, `IndexedSlices` and None.
      name: name scope of the operations created.
      control_inputs: further operations that have to run first.

    Raises:
      ValueError: there is neither a tensor nor a control input.
    """
    with name_scope(name, "tuple", list(tensors)):
        gating = [tensor for tensor in tensors if tensor is not None] + list(control_inputs or ())
        if not gating:
            raise ValueError(f"Must have at least one Tensor: {tensors}")
        gate = group(*gating)
        return [None if tensor is None else with_dependencies([gate], tensor) for tensor in tensors]
