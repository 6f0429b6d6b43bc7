"""Combines the operations on the ids of each safe lookup in a table into one ``DistinctBags`` on the host.

A safe lookup (`tf.nn.safe_embedding_lookup_sparse`, an embedding or linear column) drops negative ids, adds a default
to each empty row, finds the distinct ids, and converts rows to segments: ten operations on small arrays for each
feature. This pass replaces them, if nothing else uses their results.

Unless a default id is given, the lookup also replaces the sums of empty bags, and their gradients, by zeros (*masks*).
If all users of the bags are masked in this way, the ``DistinctBags`` adds no default id to empty bags: their sums and
gradients are then zeros without masks. The default id remains one of the distinct ids, because an optimizer may change
a row with a gradient of zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final

import numpy as np

from headwater.dtypes import int32, int64
from headwater.graph.passes.plan import Compute, Host, Instruction, Node, Send, TaskPlan, inputs_of, outputs_of
from headwater.graph.tensor_names import operation_of

_SUMS: Final = frozenset({"SparseSegmentMean", "SparseSegmentSqrtN", "SparseSegmentSum"})
_GRADIENTS: Final = frozenset({"SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad"})


def combine_bags(plans: Mapping[str, TaskPlan]) -> Mapping[str, TaskPlan]:
    """Returns the plans, by task, with the operations on ids of safe lookups combined."""
    return {task: _Search(plan).run() if _has_lookups(plan) else plan for task, plan in plans.items()}


def _has_lookups(plan: TaskPlan) -> bool:
    return any(isinstance(item, Host) and item.node.type == "SparseFillEmptyRows" for item in plan.instructions)


@dataclass(frozen=True, slots=True)
class _Rewrite:
    """Replacements for the operations of one lookup, or of lookups with the same ids.

    Attributes:
      removed: names of operations without a replacement.
      replaced: replacements of other operations, by name.
      names: the new names of tensors.
    """

    removed: frozenset[str]
    replaced: Mapping[str, Node]
    names: Mapping[str, str]


class _NotSafe(Exception):
    """The operations do not form a safe lookup."""


class _Search:
    """Finds and replaces the safe lookups of a plan."""

    def __init__(self, plan: TaskPlan) -> None:
        self._plan = plan
        self._nodes = {node.name: node for node in _nodes_of(plan)}
        self._instruction_of = {
            node.name: index
            for index, item in enumerate(plan.instructions)
            if isinstance(item, Compute)
            for node in item.nodes
        }
        self._users: dict[str, list[str]] = {}
        for node in self._nodes.values():
            for name in node.inputs:
                self._users.setdefault(name, []).append(node.name)
        sent = (item.tensors for item in plan.instructions if isinstance(item, Send))
        for name in chain(plan.fetches, *sent):
            self._users.setdefault(name, []).append("")  # a user outside of this plan
        outside = chain.from_iterable(map(outputs_of, plan.instructions))
        on_host = {item.node.name for item in plan.instructions if isinstance(item, Host)}
        self._outside = {*plan.feeds, *plan.constants, *outside}
        self._on_host = on_host

    def run(self) -> TaskPlan:
        """Returns the plan with all safe lookups combined."""
        found = [each for each in map(self._rewrite_of, self._nodes.values()) if each is not None]
        if not found:
            return self._plan
        removed = frozenset[str]().union(*(each.removed for each in found))
        replaced = {name: node for each in found for name, node in each.replaced.items()}
        names = {old: new for each in found for old, new in each.names.items()}
        for old, new in names.items():
            names[old] = names.get(new, new)  # the new name may be renamed itself
        instructions: list[Instruction] = []
        for item in self._plan.instructions:
            if isinstance(item, Host):
                if item.node.name not in removed:
                    node = replaced.get(item.node.name, item.node)
                    instructions.append(Host(node.rename_inputs(names)))
            elif isinstance(item, Compute):
                rest = _replace_operations(item, removed, replaced, names)
                if rest.outputs or any(node.type != "Const" for node in rest.nodes):
                    instructions.append(rest)
            else:
                instructions.append(item)
        used = {name for item in instructions for name in inputs_of(item)} | {*self._plan.fetches}
        constants = {name: value for name, value in self._plan.constants.items() if name in used}
        return replace(self._plan, instructions=tuple(instructions), constants=constants)

    def _rewrite_of(self, fill: Node) -> _Rewrite | None:
        """Returns the replacements for the lookup with ``fill``; None if ``fill`` is not in a safe lookup."""
        if fill.type != "SparseFillEmptyRows":
            return None
        try:
            return self._match(fill)
        except _NotSafe:
            return None

    def _match(self, fill: Node) -> _Rewrite:
        """Returns the replacements for the lookup with ``fill``, its ``SparseFillEmptyRows``.

        The lookup is this, with ids and rows of a sparse matrix::

            which = reshape(where(ids >= 0), [-1])
            fill = SparseFillEmptyRows(gather(indices, which), gather(ids, which), shape, default)
            segments = cast(fill.indices[:, 0], int32)
            distinct, numbers = unique(fill.values)

        Raises:
          _NotSafe: ``fill`` is used otherwise, or a part of the lookup is used elsewhere.
        """
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
        # The slice `[:, 0]`.
        masks = {"begin_mask": 1, "end_mask": 1, "shrink_axis_mask": 2, "ellipsis_mask": 0, "new_axis_mask": 0}
        _require(all(int(rows.attrs.get(key, 0)) == value for key, value in masks.items()))
        _require(segments.attrs.get("DstT") is int32 and unique.attrs.get("out_idx", int32) is int32)
        _require(fill.attrs.get("T", int64) is int64)
        inputs = (ids, indices, *fill.inputs[2:])
        _require(all(name in self._outside or operation_of(name) in self._on_host for name in inputs))
        own = frozenset(node.name for node in (places, values, which, where, valid, rows, segments, unique, fill))
        # The order of the results of `DistinctBags`, which gets the name of `fill`: so `fill:2` keeps its name.
        results = (f"{unique.name}:0", f"{unique.name}:1", f"{fill.name}:2", f"{segments.name}:0")
        self._require_private(own, results)
        names = {name: f"{fill.name}:{index}" for index, name in enumerate(results)}
        try:
            masked = self._match_masks(*results[1:], f"{fill.name}:4")
        except _NotSafe:
            masked = None
        bags = Node(fill.name, "DistinctBags", inputs, {}, {"fills": masked is None})
        if masked is None:
            return _Rewrite(own - {fill.name}, {fill.name: bags}, names)
        replaced = {**masked.replaced, fill.name: bags}
        return _Rewrite((own - {fill.name}) | masked.removed, replaced, {**names, **masked.names})

    def _match_masks(self, numbers: str, empty: str, bags: str, count: str) -> _Rewrite:
        """Returns the replacements that make masks of sums of empty bags, and of their gradients, unnecessary.

        Args:
          numbers: tensor with the number of each id among the distinct ids.
          empty: tensor of booleans, true for each empty bag.
          bags: tensor with the bag of each id.
          count: name for the tensor with the number of bags.

        Raises:
          _NotSafe: other operations use these tensors, or the sums.
        """
        removed: set[str] = set()
        replaced: dict[str, Node] = {}
        names: dict[str, str] = {}
        gradients: set[str] = set()
        for mask in map(self._node, self._users.get(empty, ())):
            zeros, sums = self._source(mask.inputs[1], "ZerosLike"), self._node(operation_of(mask.inputs[2]))
            _require(sums.type in _SUMS and sums.inputs[1:] == (numbers, bags) and mask.inputs[0] == empty)
            _require(zeros.inputs[0] == mask.inputs[2] == f"{sums.name}:0")
            removed |= {zeros.name, mask.name}
            replaced[sums.name] = replace(sums, type=f"{sums.type}WithNumSegments", inputs=(*sums.inputs, count))
            if mask.type == "Select":
                names[f"{mask.name}:0"] = mask.inputs[2]
                continue
            wanted = mask.attrs.get("wanted", ())
            _require(mask.type == "Vjp" and mask.attrs["f"].name == "Select" and len(mask.inputs) == 4)
            gradient = f"{mask.name}:{sum(wanted[:2])}"
            _require(all(name == gradient for name in self._users if operation_of(name) == mask.name))
            names[gradient] = mask.inputs[3]
            for user in map(self._node, self._users.get(gradient, ())):
                _require(self._instruction_of.get(user.name) == self._instruction_of[mask.name])
                gradients.add(user.name)
                if user.type in _GRADIENTS:
                    _require(user.inputs[:3] == (gradient, numbers, bags))
                    continue
                # The gradient of a sum is one operation, too.
                _require(user.type == "GatherV2" and user.inputs[:2] == (gradient, bags))
                _require(self._is_constant(user.inputs[2], 0) and not user.attrs.get("batch_dims"))
                added = self._only_user(f"{user.name}:0", "UnsortedSegmentSum")
                _require(added.inputs[1] == numbers)
                gradients.add(added.name)
                removed.add(user.name)
                inputs = (mask.inputs[3], numbers, bags, added.inputs[2])
                replaced[added.name] = replace(added, type="SparseSegmentSumGrad", inputs=inputs, attrs={})
        _require(bool(names) and not any("" in self._users.get(name, ()) for name in names))
        _require({*self._users[numbers], *self._users[bags]} <= {*gradients, *replaced})
        for name in (removed | replaced.keys()) - gradients:
            _require(f"{name}:0" in names or removed.issuperset(self._users.get(f"{name}:0", ())))
        return _Rewrite(frozenset(removed), replaced, names)

    def _node(self, name: str) -> Node:
        if name not in self._nodes:
            raise _NotSafe
        return self._nodes[name]

    def _require_private(self, removed: frozenset[str], results: Sequence[str]) -> None:
        """Raises `_NotSafe` if other operations use a tensor of the ``removed`` operations, except that operations of
        this plan may use ``results``."""
        for name, users in self._users.items():
            if operation_of(name) in removed:
                _require("" not in users and (name in results or removed.issuperset(users)))

    def _source(self, tensor: str, op_type: str) -> Node:
        """Returns the operation of a type with ``tensor`` as its first output."""
        node = self._nodes.get(operation_of(tensor))
        if node is None or tensor != f"{node.name}:0" or node.type != op_type or node.refs:
            raise _NotSafe
        return node

    def _only_user(self, tensor: str, op_type: str) -> Node:
        users = self._users.get(tensor, [])
        node = self._nodes.get(users[0]) if len(users) == 1 else None
        if node is None or node.type != op_type or node.inputs[0] != tensor:
            raise _NotSafe
        return node

    def _is_constant(self, tensor: str, value: object) -> bool:
        """Returns whether a tensor is a constant of a value."""
        node = self._nodes.get(operation_of(tensor))
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


def _replace_operations(
    item: Compute, removed: frozenset[str], replaced: Mapping[str, Node], names: Mapping[str, str]
) -> Compute:
    """Returns an executable without ``removed`` and with ``replaced`` operations, and with the new names of tensors."""
    nodes = [replaced.get(node.name, node).rename_inputs(names) for node in item.nodes if node.name not in removed]
    used = {name for node in nodes for name in node.inputs}
    outputs = tuple(name for name in item.outputs if operation_of(name) not in removed)
    nodes = [node for node in nodes if node.type != "Const" or f"{node.name}:0" in used or f"{node.name}:0" in outputs]
    own = {node.name for node in nodes}
    new = {name for name in names.values() if operation_of(name) not in own}
    taken = [
        *(names.get(name, name) for name in item.inputs),
        *(name for node in nodes for name in node.inputs if name in new),
    ]
    inputs = tuple(name for name in _distinct(taken) if name in used)
    static = tuple(name for name in _distinct(names.get(name, name) for name in item.static) if name in used)
    return replace(item, nodes=tuple(nodes), inputs=inputs, static=static, outputs=outputs)


def _distinct(names: Iterable[str]) -> Sequence[str]:
    return list(dict.fromkeys(names))
