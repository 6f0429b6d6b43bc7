"""Combines the operations on the ids of each safe lookup in a table into one ``DistinctBags`` on the host.

A safe lookup (`tf.nn.safe_embedding_lookup_sparse`, an embedding or linear column) drops negative ids, adds a default
to each empty row, finds the distinct ids, and converts rows to segments: ten operations on small arrays for each
feature. This pass replaces them, if nothing else uses their results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from headwater.dtypes import int32, int64
from headwater.graph.passes.plan import Compute, Host, Instruction, Node, Send, TaskPlan, inputs_of, outputs_of


def combine_bags(plans: Mapping[str, TaskPlan]) -> Mapping[str, TaskPlan]:
    """Returns the plans, by task, with the operations on ids of safe lookups combined."""
    return {task: _Search(plan).run() if _has_lookups(plan) else plan for task, plan in plans.items()}


def _has_lookups(plan: TaskPlan) -> bool:
    return any(isinstance(item, Host) and item.node.type == "SparseFillEmptyRows" for item in plan.instructions)


@dataclass(frozen=True, slots=True)
class _Found:
    """One lookup: its operations, the operation that replaces them, and the new names of their results."""

    removed: frozenset[str]
    node: Node
    names: Mapping[str, str]


class _NotSafe(Exception):
    """Raised if operations do not form a safe lookup."""


class _Search:
    """Finds and replaces the safe lookups of a plan."""

    def __init__(self, plan: TaskPlan) -> None:
        self._plan = plan
        self._nodes = {node.name: node for node in _nodes_of(plan)}
        self._users: dict[str, list[str]] = {}
        for node in self._nodes.values():
            for name in node.inputs:
                self._users.setdefault(name, []).append(node.name)
        sent = (item.tensors for item in plan.instructions if isinstance(item, Send))
        for name in chain(plan.fetches, *sent):
            self._users.setdefault(name, []).append("")
        outside = chain.from_iterable(map(outputs_of, plan.instructions))
        on_host = {item.node.name for item in plan.instructions if isinstance(item, Host)}
        self._outside = {*plan.feeds, *plan.constants, *outside}
        self._on_host = on_host

    def run(self) -> TaskPlan:
        """Returns the plan with all safe lookups combined."""
        found = {each.node.name: each for each in map(self._found, self._nodes.values()) if each is not None}
        if not found:
            return self._plan
        removed = frozenset[str]().union(*(each.removed for each in found.values()))
        names = {old: new for each in found.values() for old, new in each.names.items()}
        instructions: list[Instruction] = []
        for item in self._plan.instructions:
            if isinstance(item, Host) and item.node.name in found:
                instructions.append(Host(found[item.node.name].node))
            elif isinstance(item, Host):
                if item.node.name not in removed:
                    instructions.append(Host(item.node.rename_inputs(names)))
            elif isinstance(item, Compute):
                rest = _remove_operations(item, removed, names)
                if rest.outputs or any(node.type != "Const" for node in rest.nodes):
                    instructions.append(rest)
            else:
                instructions.append(item)
        used = {name for item in instructions for name in inputs_of(item)} | {*self._plan.fetches}
        constants = {name: value for name, value in self._plan.constants.items() if name in used}
        return replace(self._plan, instructions=tuple(instructions), constants=constants)

    def _found(self, fill: Node) -> _Found | None:
        """Returns the lookup that fills empty rows by an operation; None if it cannot be replaced."""
        if fill.type != "SparseFillEmptyRows":
            return None
        try:
            return self._lookup(fill)
        except _NotSafe:
            return None

    def _lookup(self, fill: Node) -> _Found:
        places, values = (self._source(name, "GatherV2") for name in fill.inputs[:2])
        which = self._source(places.inputs[1], "Reshape")
        where = self._source(which.inputs[0], "Where")
        valid = self._source(where.inputs[0], "GreaterEqual")
        ids, indices = values.inputs[0], places.inputs[0]
        rows = self._only_user(f"{fill.name}:0", "StridedSlice")
        segments = self._only_user(f"{rows.name}:0", "Cast")
        unique = self._only_user(f"{fill.name}:1", "Unique")
        _require(values.inputs[1] == places.inputs[1] and valid.inputs[0] == ids)
        _require(
            all(self._is_constant(node.inputs[2], 0) and not node.attrs.get("batch_dims") for node in (places, values))
        )
        _require(self._is_constant(which.inputs[1], [-1]) and self._is_constant(valid.inputs[1], 0))
        _require(all(map(self._is_constant, rows.inputs[1:], ([0, 0], [0, 1], [1, 1]))))
        masks = {"begin_mask": 1, "end_mask": 1, "shrink_axis_mask": 2, "ellipsis_mask": 0, "new_axis_mask": 0}
        _require(all(int(rows.attrs.get(key, 0)) == value for key, value in masks.items()))
        _require(segments.attrs.get("DstT") is int32 and unique.attrs.get("out_idx", int32) is int32)
        _require(fill.attrs.get("T", int64) is int64)
        inputs = (ids, indices, *fill.inputs[2:])
        _require(all(name in self._outside or name.rpartition(":")[0] in self._on_host for name in inputs))
        removed = frozenset(node.name for node in (places, values, which, where, valid, rows, segments, unique, fill))
        results = (f"{unique.name}:0", f"{unique.name}:1", f"{segments.name}:0", f"{fill.name}:2")
        self._require_private(removed, results)
        names = {name: f"{fill.name}:{index}" for index, name in enumerate(results)}
        return _Found(removed, Node(fill.name, "DistinctBags", inputs, {}, {}), names)

    def _require_private(self, removed: frozenset[str], results: Sequence[str]) -> None:
        """Raises an error if a result of the ``removed`` operations is used elsewhere. Only ``results`` may be used, by
        other operations of this plan."""
        for name, users in self._users.items():
            if name.rpartition(":")[0] in removed:
                _require("" not in users and (name in results or removed.issuperset(users)))

    def _source(self, tensor: str, op_type: str) -> Node:
        """Returns the operation of a type with ``tensor`` as its first output."""
        name, _, index = tensor.rpartition(":")
        node = self._nodes.get(name)
        if node is None or index != "0" or node.type != op_type or node.refs:
            raise _NotSafe
        return node

    def _only_user(self, tensor: str, op_type: str) -> Node:
        users = self._users.get(tensor, [])
        node = self._nodes.get(users[0]) if len(users) == 1 else None
        if node is None or node.type != op_type or node.inputs[0] != tensor:
            raise _NotSafe
        return node

    def _is_constant(self, tensor: str, value: object) -> bool:
        """Whether a tensor is a constant of a value."""
        node = self._nodes.get(tensor.rpartition(":")[0])
        known: Any = self._plan.constants.get(tensor)
        if node is not None and node.type == "Const":
            known = node.attrs["value"]
        return known is not None and np.array_equal(known, np.asarray(value))


def _require(holds: bool) -> None:
    if not holds:
        raise _NotSafe


def _nodes_of(plan: TaskPlan) -> Iterator[Node]:
    for item in plan.instructions:
        if isinstance(item, Host):
            yield item.node
        elif isinstance(item, Compute):
            yield from item.nodes


def _remove_operations(item: Compute, removed: frozenset[str], names: Mapping[str, str]) -> Compute:
    """Returns an executable without ``removed`` operations, which takes results by their new names as inputs."""
    nodes = [node.rename_inputs(names) for node in item.nodes if node.name not in removed]
    used = {name for node in nodes for name in node.inputs}
    outputs = tuple(name for name in item.outputs if name.rpartition(":")[0] not in removed)
    nodes = [node for node in nodes if node.type != "Const" or f"{node.name}:0" in used or f"{node.name}:0" in outputs]
    new = set(names.values())
    taken = [
        *(names.get(name, name) for name in item.inputs),
        *(name for node in nodes for name in node.inputs if name in new),
    ]
    inputs = tuple(name for name in _distinct(taken) if name in used)
    static = tuple(name for name in _distinct(names.get(name, name) for name in item.static) if name in used)
    return replace(item, nodes=tuple(nodes), inputs=inputs, static=static, outputs=outputs)


def _distinct(names: Iterable[str]) -> Sequence[str]:
    return list(dict.fromkeys(names))
