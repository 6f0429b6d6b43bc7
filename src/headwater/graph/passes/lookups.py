"""Joins lookups in several partitioned tables of one step.

Without this pass, each lookup costs a Python call (``RouteIds``), and the requested ids of each table, their rows, and
the gradients of the rows are separate tensors in frames and executables. The pass replaces consecutive lookups in a
task's plan by one ``RouteTables``. The ids, rows or gradients for one part of all tables are then sent as one tensor,
which executables unpack. They get the number of rows of each table from another tensor, whose value is known when they
are compiled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from headwater.graph.passes.plan import Compute, Host, Instruction, Node, Receive, Send, TaskPlan
from headwater.graph.passes.prune import Pruned

_Row = tuple[Any, Any]
"""Type and shape of a row."""


def join_lookups(plans: Mapping[str, TaskPlan], pruned: Pruned) -> Mapping[str, TaskPlan]:
    """Returns the plans with lookups joined where possible.

    Args:
      plans: by full task name.
      pruned: the operations of the plans, for the shapes of rows.
    """
    rows: dict[str, _Row] = {
        op.name: (op.outputs[0].dtype, op.outputs[0].dims[1:])
        for op in pruned.ops
        if op.type == "GatherRouted" and op.outputs[0].dims is not None
    }
    joined = dict(plans)
    for task, plan in plans.items():
        for nodes in _standing_together(plan):
            _Joining(joined, task, nodes, rows).run()
    return joined


def _standing_together(plan: TaskPlan) -> list[list[Node]]:
    """Returns groups of consecutive lookups in tables with the same number of parts."""

    def kind(item: Instruction) -> Any:
        return item.node.attrs["parts"] if isinstance(item, Host) and item.node.type == "RouteIds" else None

    runs = [(parts, list(items)) for parts, items in groupby(plan.instructions, kind)]
    return [
        [item.node for item in items if isinstance(item, Host)]
        for parts, items in runs
        if parts is not None and len(items) > 1
    ]


class _Joining:
    """One group of lookups of a task."""

    def __init__(self, plans: dict[str, TaskPlan], task: str, nodes: Sequence[Node], rows: Mapping[str, _Row]) -> None:
        self._plans = plans
        self._task = task
        self._nodes = nodes
        self._rows = rows
        self._parts: int = nodes[0].attrs["parts"]
        self._name = f"{nodes[0].name}/tables"

    def run(self) -> None:
        parts, nodes = self._parts, self._nodes
        requests = [[f"{node.name}:{part}" for node in nodes] for part in range(parts)]
        fetched = {tensor for plan in self._plans.values() for tensor in plan.fetches}
        if not all(self._travel_together(members) for members in requests) or any(
            f"{node.name}:{parts}" in fetched for node in nodes
        ):
            return
        found = [self._found(members) for members in requests]
        told = [self._told(members) for members in requests]
        for part, members in enumerate(requests):
            for tensors in (*self._alike(found[part], found[part]), *self._alike(told[part], found[part])):
                self._pack([tensors[number] for number in sorted(tensors)], sorted(tensors), part)
            self._pack(members, range(len(nodes)), part, made=True)
        names = {f"{node.name}:{parts}": f"{self._name}:{2 * parts + number}" for number, node in enumerate(nodes)}
        for task, plan in self._plans.items():
            self._plans[task] = _renamed(plan, names)
        self._route()

    def _found(self, requests: Sequence[str]) -> dict[int, str]:
        """Returns the tensors with the rows that one part of each table has found, by the lookup's number. ``requests``
        are the tensors of the ids requested from this part."""
        return {
            requests.index(node.inputs[1]): f"{node.name}:0"
            for _, node in self._computed("GatherRouted")
            if node.inputs[1] in requests
        }

    def _told(self, requests: Sequence[str]) -> dict[int, str]:
        """Returns the tensors with the gradients of the rows of one part of each table, by the lookup's number."""
        found: dict[int, str] = {}
        for _, node in self._computed("SplitRouted"):
            for position, tensor in enumerate(node.inputs[2:]):
                if tensor in requests:
                    found[requests.index(tensor)] = f"{node.name}:{position}"
        return found

    def _computed(self, op_type: str) -> Iterable[tuple[Compute, Node]]:
        for plan in self._plans.values():
            for item in plan.instructions:
                if isinstance(item, Compute):
                    yield from ((item, node) for node in item.nodes if node.type == op_type)

    def _alike(self, tensors: Mapping[int, str], found: Mapping[int, str]) -> list[dict[int, str]]:
        """Groups ``tensors`` by the type and shape of their rows, and returns the groups that can be packed, each with
        at least two tensors. ``found`` are the tensors of the lookups' rows, whose type and shape are known."""
        groups: dict[_Row, dict[int, str]] = {}
        for number, tensor in tensors.items():
            row = self._rows.get(found.get(number, "").rpartition(":")[0])
            if row is not None:
                groups.setdefault(row, {})[number] = tensor
        return [group for group in groups.values() if len(group) > 1 and self._travel_together(list(group.values()))]

    def _travel_together(self, tensors: Sequence[str]) -> bool:
        """Whether all ``tensors`` come from one executable, or from the host, are sent in the same transfers, and are
        used by executables only."""
        wanted = set(tensors)
        sources = 0
        sent = False
        for plan in self._plans.values():
            if wanted & {*plan.fetches, *plan.feeds}:
                return False
            for item in plan.instructions:
                match item:
                    case Send() | Receive():
                        here = wanted & set(item.tensors)
                        if here and here != wanted:
                            return False
                        sent = sent or bool(here)
                    case Compute():
                        sources += bool(wanted & set(item.outputs))
                        if wanted & set(item.outputs) and not wanted <= set(item.outputs):
                            return False
                        if wanted & set(item.static):
                            return False
                    case Host():
                        if wanted & set(item.node.inputs):
                            return False
        return sent and sources <= 1

    def _pack(self, tensors: Sequence[str], numbers: Sequence[int], part: int, made: bool = False) -> None:
        """Packs ``tensors`` into one tensor for transfers.

        Args:
          tensors: names of the tensors.
          numbers: the numbers of their lookups.
          part: the number of the tables' part.
          made: whether the ``RouteTables`` on the host computes them as one tensor already.
        """
        sizes = f"{self._name}:{self._parts + part}"
        packer = Node(f"{tensors[0].replace(':', '_')}/packed", "PackRows", tuple(tensors), {}, {})
        packed = f"{self._name}:{part}" if made else f"{packer.name}:0"
        unpacker = Node(f"{packer.name}/rows", "UnpackRows", (packed, sizes), {}, {"numbers": list(numbers)})
        names = {tensor: f"{unpacker.name}:{index}" for index, tensor in enumerate(tensors)}
        wanted = set(tensors)

        def change(item: Instruction) -> Instruction:
            match item:
                case Send() | Receive():
                    if not wanted & set(item.tensors):
                        return item
                    kept = tuple(tensor for tensor in item.tensors if tensor not in wanted)
                    return replace(item, tensors=(*kept, packed, *((sizes,) if made else ())))
                case Compute():
                    if wanted & set(item.outputs):
                        kept = tuple(tensor for tensor in item.outputs if tensor not in wanted)
                        item = replace(item, nodes=(*item.nodes, packer), outputs=(*kept, packed))
                    if wanted & set(item.inputs):
                        kept = tuple(tensor for tensor in item.inputs if tensor not in wanted)
                        known = dict.fromkeys((*item.static, sizes))
                        nodes = (unpacker, *(_with_names(node, names) for node in item.nodes))
                        inputs = tuple(dict.fromkeys((*kept, packed, sizes)))
                        item = replace(item, nodes=nodes, inputs=inputs, static=tuple(known))
                    return item
                case Host():
                    return item

        for task, plan in self._plans.items():
            self._plans[task] = replace(plan, instructions=tuple(map(change, plan.instructions)))

    def _route(self) -> None:
        """Replaces the lookups by one ``RouteTables``."""
        nodes = self._nodes
        attrs = {
            "parts": self._parts,
            "names": [node.name for node in nodes],
            "strategies": [node.attrs["strategy"] for node in nodes],
        }
        inputs = (*(node.inputs[0] for node in nodes), *(node.inputs[1] for node in nodes))
        together = Host(Node(self._name, "RouteTables", inputs, {}, attrs))
        gone = {node.name for node in nodes}
        plan = self._plans[self._task]
        kept: list[Instruction] = []
        for item in plan.instructions:
            if isinstance(item, Host) and item.node.name == nodes[0].name:
                kept.append(together)
            elif not (isinstance(item, Host) and item.node.name in gone):
                kept.append(item)
        self._plans[self._task] = replace(plan, instructions=tuple(kept))


def _with_names(node: Node, names: Mapping[str, str]) -> Node:
    return replace(node, inputs=tuple(names.get(tensor, tensor) for tensor in node.inputs))


def _renamed(plan: TaskPlan, names: Mapping[str, str]) -> TaskPlan:
    """Returns the plan with some tensors renamed."""

    def all_of(tensors: Sequence[str]) -> tuple[str, ...]:
        return tuple(names.get(tensor, tensor) for tensor in tensors)

    def change(item: Instruction) -> Instruction:
        match item:
            case Send() | Receive():
                return replace(item, tensors=all_of(item.tensors))
            case Compute():
                nodes = tuple(_with_names(node, names) for node in item.nodes)
                return replace(
                    item,
                    nodes=nodes,
                    inputs=all_of(item.inputs),
                    static=all_of(item.static),
                    outputs=all_of(item.outputs),
                )
            case Host():
                return replace(item, node=_with_names(item.node, names))

    return replace(plan, instructions=tuple(map(change, plan.instructions)), fetches=all_of(plan.fetches))
