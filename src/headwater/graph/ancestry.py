"""Operations that tensors depend on."""

from __future__ import annotations

from collections.abc import Container, Iterable

from headwater.graph.operation import Operation, Tensor


def needed_operations(ends: Iterable[Operation], done: Container[Operation] = ()) -> list[Operation]:
    """Returns ``ends`` and the operations that these need, also by control dependencies, in the order of creation.

    Operations in ``done``, and operations that are needed only by these, are left out.
    """
    found: set[Operation] = set()
    stack = list(ends)
    while stack:
        op = stack.pop()
        if op not in found and op not in done:
            found.add(op)
            stack.extend(tensor.op for tensor in op.inputs)
            stack.extend(op.control_inputs)
    return sorted(found, key=lambda op: op.number)


def ancestors(targets: Iterable[Operation | Tensor], stops: Iterable[Tensor]) -> tuple[set[Operation], set[Tensor]]:
    """Returns the operations that compute ``targets``, and the tensors among ``stops`` that these read.

    Operations that are needed only to compute ``stops`` are left out, and control dependencies are not followed.
    """
    ends = set(stops)
    found: set[Operation] = set()
    reached: set[Tensor] = set()
    stack = list(targets)
    while stack:
        item = stack.pop()
        if isinstance(item, Tensor):
            if item in ends:
                reached.add(item)
                continue
            item = item.op
        if item not in found:
            found.add(item)
            stack += item.inputs
    return found, reached
