"""Groups of operations that must be on one device, updated as the graph grows."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.graph.operation import Operation


class Groups:
    """A disjoint-set forest of operations, joined by a shared variable or by the program (``tf.colocate_with``).

    Every operation is in exactly one group, at first alone.
    """

    def __init__(self) -> None:
        self._parent: dict[Operation, Operation] = {}
        self._members: dict[Operation, list[Operation]] = {}
        self._by_name: dict[str, Operation] = {}
        self._awaited: dict[str, list[Operation]] = {}
        self._seen = 0

    def extend(self, ops: Sequence[Operation]) -> None:
        """Adds the new operations in ``ops``, which are all operations of the graph in the order of their creation."""
        new = ops[self._seen :]
        self._seen = len(ops)
        for op in new:
            self._parent[op] = op
            self._members[op] = [op]
            self._by_name[op.name] = op
        for op in new:
            for index in op.definition.ref_positions(op.attrs):
                self._join(op, op.inputs[index].op)
            for name in _colocated_with(op):
                if name in self._by_name:
                    self._join(op, self._by_name[name])
                else:
                    # The program may add the named operation later.
                    self._awaited.setdefault(name, []).append(op)
            for waiting in self._awaited.pop(op.name, ()):
                self._join(waiting, op)

    def members(self, op: Operation) -> Sequence[Operation]:
        """Returns the group of ``op``, including itself, in the order of creation."""
        return sorted(self._members[self._find(op)], key=lambda each: each.number)

    def _find(self, op: Operation) -> Operation:
        while self._parent[op] is not op:
            self._parent[op] = self._parent[self._parent[op]]
            op = self._parent[op]
        return op

    def _join(self, a: Operation, b: Operation) -> None:
        one, other = self._find(a), self._find(b)
        if one is other:
            return
        if len(self._members[one]) < len(self._members[other]):
            one, other = other, one
        self._parent[other] = one
        self._members[one].extend(self._members.pop(other))


def _colocated_with(op: Operation) -> list[str]:
    groups = op.attrs.get("_class", ())
    return [(g.decode() if isinstance(g, bytes) else str(g)).removeprefix("loc:@") for g in groups]
