"""Operations that tensors depend on."""

from __future__ import annotations

from collections.abc import Iterable

from headwater.graph.operation import Operation, Tensor


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
