"""Joins lookups in several partitioned tables of one step.

Without this pass, each lookup costs a Python call (``RouteIds`` or ``RouteBags``), and the requested ids of each table,
their rows, and the gradients of the rows are separate tensors in frames and executables. The pass replaces lookups of a
task's plan by one ``RouteTables`` or ``RouteBagsOfTables``. The ids, rows or gradients for one part of all tables are
then sent as one tensor, which executables unpack. They get the number of rows of each table from another tensor, whose
value is known when they are compiled.

Lookups of the same ids in tables of the same size, as in a wide and a deep model, form a group. Their ids are divided
and sent once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from headwater.graph.passes.plan import Compute, Host, Instruction, Node, Receive, Send, TaskPlan
from headwater.graph.passes.prune import Pruned
from headwater.graph.tensor_names import operation_of

_Row = tuple[Any, Any]
"""Type and shape of a row."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Kind:
    """How lookups of one operation type are joined.

    Attributes:
      joined: type of the operation that replaces the lookups.
      gather: type of the operation that reads rows of one part; its second input has the requested rows.
      columns: for each tensor that is sent to a part, the columns of the part's layout that have its sizes.
      found: column of the part's layout with the number of rows that the part returns.
      common: attributes that must be equal in all joined lookups.
      listed: maps an attribute of the joined operation, a list, to the lookups' attribute with the list's elements.
      of_group: whether a list has one element for each group; otherwise one for each lookup.
      shared: number of outputs that are equal for all lookups of a group and are not sent to parts.
    """

    joined: str
    gather: str
    columns: Sequence[Sequence[int]]
    found: int
    common: Sequence[str]
    listed: Mapping[str, str]
    of_group: bool
    shared: int


_KINDS: Final = {
    "RouteIds": _Kind(
        joined="RouteTables",
        gather="GatherRouted",
        columns=((0,),),
        found=0,
        common=("parts",),
        listed={"strategies": "strategy"},
        of_group=True,
        shared=1,
    ),
    "RouteBags": _Kind(
        joined="RouteBagsOfTables",
        gather="GatherBags",
        columns=((0,), (1, 2), (3, 4), (5,)),
        found=6,
        common=("parts", "strategy", "weighted", "safe", "small", "default_id"),
        listed={"combiners": "combiner", "row_bytes": "row_bytes"},
        of_group=False,
        shared=3,
    ),
}


def join_lookups(plans: Mapping[str, TaskPlan], pruned: Pruned) -> Mapping[str, TaskPlan]:
    """Returns the plans with lookups joined where possible.

    Args:
      plans: by full task name.
      pruned: the operations of the plans, for the shapes of rows.
    """
    gathers = {kind.gather for kind in _KINDS.values()}
    rows: dict[str, _Row] = {
        op.name: (op.outputs[0].dtype, op.outputs[0].dims[1:])
        for op in pruned.ops
        if op.type in gathers and op.outputs[0].dims is not None
    }
    outside = {operation_of(name) for plan in plans.values() for name in (*plan.fetches, *plan.feeds)}
    joined = dict(plans)
    for task, plan in plans.items():
        for nodes in _adjacent_lookups(plan):
            kept = [node for node in nodes if node.name not in outside]
            if len(kept) > 1:
                _LookupJoin(joined, task, kept, rows).run()
    return joined


def _adjacent_lookups(plan: TaskPlan) -> list[list[Node]]:
    """Returns groups of lookups with equal common attributes. Between lookups of a group, the plan has only operations
    on the host that do not use results of these lookups."""
    found: list[list[Node]] = []
    last: dict[object, list[Node]] = {}
    for item in plan.instructions:
        if not isinstance(item, Host):
            last.clear()
            continue
        used = {operation_of(name) for name in item.node.inputs}
        last = {key: nodes for key, nodes in last.items() if used.isdisjoint(node.name for node in nodes)}
        kind = _KINDS.get(item.node.type)
        if kind is not None:
            key = (kind.joined, *(item.node.attrs.get(name) for name in kind.common))
            if key not in last:
                found.append(last.setdefault(key, []))
            last[key].append(item.node)
    return found


class _LookupJoin:
    """Replaces lookups of one task by one operation.

    A lookup has these outputs: for each kind of tensor, one for each part (`_sent` times `_parts`); then the shared
    outputs; then its own. The joined operation has: the tensors for the parts, packed over all groups; the layout of
    each part; the shared outputs of each group; and the own output of each lookup.

    Args:
      plans: by full task name; `run` replaces plans in it.
      task: the task with the lookups.
      nodes: the lookups, at least two, in the order of the plan.
      rows: type and shape of the rows that an operation of type `_Kind.gather` returns, by the operation's name.
    """

    def __init__(self, plans: dict[str, TaskPlan], task: str, nodes: Sequence[Node], rows: Mapping[str, _Row]) -> None:
        self._plans = plans
        self._task = task
        self._nodes = nodes
        self._rows = rows
        self._kind = _KINDS[nodes[0].type]
        self._parts: int = nodes[0].attrs["parts"]
        self._sent = len(self._kind.columns)
        self._name = f"{nodes[0].name}/tables"

    def run(self) -> None:
        """Changes the plans, if the tensors for each part are always sent together."""
        parts, kind = self._parts, self._kind
        every = range(self._sent * parts)
        if not all(self._are_sent_together([f"{node.name}:{index}" for node in self._nodes]) for index in every):
            return
        requests = [[f"{node.name}:{part}" for node in self._nodes] for part in range(parts)]
        found = [self._row_tensors(members) for members in requests]
        requested = [self._gradient_tensors(members) for members in requests]
        groups = self._groups()
        firsts = [group[0] for group in groups]
        of_group = {node.name: number for number, group in enumerate(groups) for node in group}
        numbers = [of_group[node.name] for node in self._nodes]
        # Lookups of a group have equal results, except for the outputs that follow the shared outputs.
        equal = self._sent * parts + kind.shared
        names = {
            f"{node.name}:{index}": f"{group[0].name}:{index}"
            for group in groups
            for node in group[1:]
            for index in range(equal)
        }
        self._rename(names)
        for part in range(parts):
            for tensors in (
                *self._packable_groups(found[part], found[part]),
                *self._packable_groups(requested[part], found[part]),
            ):
                lookups = sorted(tensors)
                members = [tensors[lookup] for lookup in lookups]
                self._pack(members, [numbers[lookup] for lookup in lookups], part, (kind.found,))
        for position, columns in enumerate(kind.columns):
            for part in range(parts):
                output = position * parts + part
                members = [f"{node.name}:{output}" for node in firsts]
                self._pack(members, range(len(firsts)), part, columns, f"{self._name}:{output}")
        first, end = self._sent * parts, (self._sent + 1) * parts
        names = {
            f"{node.name}:{first + index}": f"{self._name}:{end + number * kind.shared + index}"
            for number, node in enumerate(firsts)
            for index in range(kind.shared)
        }
        end += len(firsts) * kind.shared
        own = {f"{node.name}:{equal}": f"{self._name}:{end + number}" for number, node in enumerate(self._nodes)}
        self._rename(names | own)
        self._replace_lookups(groups, numbers)

    def _groups(self) -> list[list[Node]]:
        """Returns the lookups by group."""
        constants = self._plans[self._task].constants
        groups: dict[object, list[Node]] = {}
        for node in self._nodes:
            known = [constants.get(name) for name in node.inputs]
            inputs = [
                name if value is None else (value.dtype.str, value.shape, value.tobytes())
                for name, value in zip(node.inputs, known, strict=True)
            ]
            # Only with weights, a combiner determines which ids are skipped.
            combiner = node.attrs["combiner"] if node.attrs.get("weighted") else None
            groups.setdefault((*inputs, node.attrs["strategy"], combiner), []).append(node)
        return list(groups.values())

    def _rename(self, names: Mapping[str, str]) -> None:
        for task, plan in self._plans.items():
            self._plans[task] = _renamed(plan, names)

    def _row_tensors(self, requests: Sequence[str]) -> dict[int, str]:
        """Returns the tensors of the rows that one part of each table returns, by the lookup's number. ``requests`` are
        the tensors with the ids that the lookups request from this part."""
        return {
            requests.index(node.inputs[1]): f"{node.name}:0"
            for node in self._compute_nodes(self._kind.gather)
            if node.inputs[1] in requests
        }

    def _gradient_tensors(self, requests: Sequence[str]) -> dict[int, str]:
        """Returns the tensors of the rows' gradients for one part of each table; see `_row_tensors`."""
        found: dict[int, str] = {}
        for node in self._compute_nodes("SplitRouted"):
            for position, tensor in enumerate(node.inputs[2:]):
                if tensor in requests:
                    found[requests.index(tensor)] = f"{node.name}:{position}"
        for node in self._compute_nodes("SpreadBags"):
            if node.inputs[1] in requests:
                found[requests.index(node.inputs[1])] = node.inputs[0]
        return found

    def _compute_nodes(self, op_type: str) -> Iterable[Node]:
        for plan in self._plans.values():
            for item in plan.instructions:
                if isinstance(item, Compute):
                    yield from (node for node in item.nodes if node.type == op_type)

    def _packable_groups(self, tensors: Mapping[int, str], found: Mapping[int, str]) -> list[dict[int, str]]:
        """Groups ``tensors`` by the type and shape of their rows, and returns the groups that can be packed, each with
        at least two tensors. ``found`` are the tensors of the lookups' rows, whose type and shape are known."""
        groups: dict[_Row, dict[int, str]] = {}
        for number, tensor in tensors.items():
            row = self._rows.get(operation_of(found.get(number, "")))
            if row is not None:
                groups.setdefault(row, {})[number] = tensor
        return [group for group in groups.values() if len(group) > 1 and self._are_sent_together(list(group.values()))]

    def _are_sent_together(self, tensors: Sequence[str]) -> bool:
        """Returns whether all ``tensors`` come from one executable, or from the host, are sent in the same transfers,
        and are used by executables only."""
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

    def _pack(
        self, tensors: Sequence[str], numbers: Sequence[int], part: int, columns: Sequence[int], made: str = ""
    ) -> None:
        """Packs ``tensors`` into one tensor for transfers.

        Args:
          tensors: names of the tensors.
          numbers: the numbers of their groups.
          part: the number of the tables' part.
          columns: the columns of the part's layout that have their sizes.
          made: the output of the joined lookups that is this packed tensor; empty if an executable must pack it.
        """
        sizes = f"{self._name}:{self._sent * self._parts + part}"
        packer = Node(f"{tensors[0].replace(':', '_')}/packed", "PackRows", tuple(tensors), {}, {})
        packed = made or f"{packer.name}:0"
        attrs = {"numbers": list(numbers), "columns": list(columns)}
        unpacker = Node(f"{packer.name}/rows", "UnpackRows", (packed, sizes), {}, attrs)
        names = {tensor: f"{unpacker.name}:{index}" for index, tensor in enumerate(tensors)}
        wanted = set(tensors)

        def change(item: Instruction) -> Instruction:
            match item:
                case Send() | Receive():
                    if not wanted & set(item.tensors):
                        return item
                    kept = tuple(tensor for tensor in item.tensors if tensor not in wanted)
                    return replace(item, tensors=tuple(dict.fromkeys((*kept, packed, *((sizes,) if made else ())))))
                case Compute():
                    if wanted & set(item.outputs):
                        kept = tuple(tensor for tensor in item.outputs if tensor not in wanted)
                        item = replace(item, nodes=(*item.nodes, packer), outputs=(*kept, packed))
                    if wanted & set(item.inputs):
                        kept = tuple(tensor for tensor in item.inputs if tensor not in wanted)
                        known = dict.fromkeys((*item.static, sizes))
                        nodes = (unpacker, *(node.rename_inputs(names) for node in item.nodes))
                        inputs = tuple(dict.fromkeys((*kept, packed, sizes)))
                        item = replace(item, nodes=nodes, inputs=inputs, static=tuple(known))
                    return item
                case Host():
                    return item

        for task, plan in self._plans.items():
            self._plans[task] = replace(plan, instructions=tuple(map(change, plan.instructions)))

    def _replace_lookups(self, groups: Sequence[Sequence[Node]], numbers: Sequence[int]) -> None:
        """Replaces the lookups by one operation; lookup ``i`` belongs to group ``numbers[i]``."""
        nodes, kind = self._nodes, self._kind
        firsts = [group[0] for group in groups]
        listed = firsts if kind.of_group else nodes
        attrs: dict[str, Any] = {
            **{name: nodes[0].attrs[name] for name in kind.common if name in nodes[0].attrs},
            **{name: [node.attrs[own] for node in listed] for name, own in kind.listed.items()},
            "names": [node.name for node in listed],
            **({} if kind.of_group else {"groups": list(numbers)}),
        }
        inputs = [name for node in firsts for name in node.inputs]
        together = Host(Node(self._name, kind.joined, tuple(inputs), {}, attrs))
        gone = {node.name for node in nodes}
        plan = self._plans[self._task]
        kept: list[Instruction] = []
        for item in plan.instructions:
            if isinstance(item, Host) and item.node.name == nodes[-1].name:
                kept.append(together)
            elif not (isinstance(item, Host) and item.node.name in gone):
                kept.append(item)
        self._plans[self._task] = replace(plan, instructions=tuple(kept))


def _renamed(plan: TaskPlan, names: Mapping[str, str]) -> TaskPlan:
    """Returns the plan with some tensors renamed, and each tensor at most once in a list."""

    def all_of(tensors: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(names.get(tensor, tensor) for tensor in tensors))

    def change(item: Instruction) -> Instruction:
        match item:
            case Send() | Receive():
                return replace(item, tensors=all_of(item.tensors))
            case Compute():
                nodes = tuple(node.rename_inputs(names) for node in item.nodes)
                return replace(
                    item,
                    nodes=nodes,
                    inputs=all_of(item.inputs),
                    static=all_of(item.static),
                    outputs=all_of(item.outputs),
                )
            case Host():
                return replace(item, node=item.node.rename_inputs(names))

    return replace(plan, instructions=tuple(map(change, plan.instructions)), fetches=all_of(plan.fetches))
