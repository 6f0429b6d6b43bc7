"""Merges operations of a task that have the same type, equal attributes and the same inputs.

Models often compute the same result twice: a feature of a wide-and-deep model is hashed for its weight and again for
its embedding. Within an executable, XLA merges equal operations itself, so this pass skips plans without operations on
the host. In the other plans it merges equal operations on the host, and the equal pure operations in executables.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from headwater.graph.ops.define import hashable
from headwater.graph.passes.plan import Compute, Host, Instruction, Node, Receive, Send, TaskPlan, inputs_of
from headwater.graph.registry import MAX_KNOWN_ELEMENTS, Kind
from headwater.graph.tensor_names import operation_of, split_name

_HASH: Final = "StringToHashBucketFast"
_SEGMENTS: Final = [f"{prefix}Segment{of}" for prefix in ("", "Sparse") for of in ("Sum", "Mean")]
DETERMINISTIC: Final = frozenset(
    [
        *("AsString", "DecodeBase64", "DecodeCSV", "DecodeRaw", "EncodeBase64", "Fingerprint", "ReduceJoin"),
        *("RegexFullMatch", "RegexReplace", "StaticRegexFullMatch", "StaticRegexReplace", "StringJoin"),
        *("StringLength", "StringLower", "StringSplit", "StringSplitV2", "StringStrip", "StringToHashBucket"),
        *(_HASH, "StringToHashBucketStrong", "StringToNumber", "StringUpper", "Substr"),
        *("ParseExample", "ParseExampleV2", "ParseSingleExample"),
        *("DistinctBags", "NumberToHashBucketFast"),
        *("DynamicPartition", "ListDiff", "Unique", "UniqueWithCounts", "Where"),
        *(
            "SparseConcat",
            "SparseCross",
            "SparseFeatureCross",
            "SparseFillEmptyRows",
            "SparseOrder",
            "SparseReorder",
            "SparseReshape",
        ),
        *("SegmentMax", "SegmentMin", "SegmentProd", "SparseSegmentSqrtN", *_SEGMENTS),
    ]
)
"""Operations on the host that are functions of their inputs and attributes."""


def merge_equal(plans: Mapping[str, TaskPlan]) -> Mapping[str, TaskPlan]:
    """Returns the plans, by task, without operations that compute the same result as an earlier operation of the task.

    Operations whose results are fetched or sent are kept, because a program may change a fetched array.
    """
    return {task: _Merging(plan).run() if _may_merge(plan) else plan for task, plan in plans.items()}


def _may_merge(plan: TaskPlan) -> bool:
    types = [item.node.type for item in plan.instructions if isinstance(item, Host)]
    found = [op_type for op_type in types if op_type in DETERMINISTIC]
    return len(set(found)) < len(found) or _HASH in found


def _with_hashed_numbers(instructions: Sequence[Instruction], kept: Collection[str]) -> list[Instruction]:
    """Replaces each ``AsString`` that is followed by a hash: one operation then hashes the numbers as if they were
    texts, without creating the texts.

    Args:
      instructions: the instructions of a plan.
      kept: operations with outputs that are used outside of the instructions.
    """
    inputs = {
        f"{item.node.name}:0": item.node.inputs
        for item in instructions
        if isinstance(item, Host) and item.node.type == "AsString" and _has_defaults(item.node)
    }

    def hashed(item: Instruction) -> Instruction:
        if not isinstance(item, Host) or item.node.type != _HASH or item.node.inputs[0] not in inputs:
            return item
        return Host(replace(item.node, type="NumberToHashBucketFast", inputs=inputs[item.node.inputs[0]]))

    changed = [hashed(item) for item in instructions]
    used = {name for item in changed for name in inputs_of(item)}
    unused = {name for name in inputs if name not in used and operation_of(name) not in kept}
    return [item for item in changed if not (isinstance(item, Host) and f"{item.node.name}:0" in unused)]


def _has_defaults(node: Node) -> bool:
    defaults = node.definition.defaults
    return all(node.attrs.get(key, value) == value for key, value in defaults.items())


def _is_pure(node: Node) -> bool:
    """Returns whether an operation has inputs, and its result depends only on them and on its attributes."""
    return node.definition.kind is Kind.PURE and bool(node.inputs) and not node.refs


@dataclass(slots=True)
class _Merging:
    """The state of merging the operations of one plan.

    Attributes:
      plan: the plan.
      first: maps the name of each removed operation to the name of the equal operation that remains.
      hosts: the first of equal operations on the host, by type, inputs and attributes.
      constants: the values of small constants, by tensor name, for comparison.
      kept: operations with outputs that are fetched or sent.
    """

    plan: TaskPlan
    first: dict[str, str] = field(default_factory=dict[str, str])
    hosts: dict[object, Node] = field(default_factory=dict[object, Node])
    constants: dict[str, object] = field(default_factory=dict[str, object])
    kept: set[str] = field(default_factory=set[str])

    def run(self) -> TaskPlan:
        """Returns the plan without repeated operations."""
        plan = self.plan
        sent = [name for item in plan.instructions if isinstance(item, Send) for name in item.tensors]
        self.kept = {operation_of(name) for name in (*plan.fetches, *sent)}
        for name, value in plan.constants.items():
            self._add_constant(name, value)
        instructions = [found for item in plan.instructions if (found := self._merged(item)) is not None]
        instructions = _with_hashed_numbers(instructions, self.kept)
        used = {name for item in instructions if isinstance(item, Host) for name in item.node.inputs}
        constants = {name: value for name, value in plan.constants.items() if name in used or name in plan.fetches}
        return replace(plan, instructions=tuple(instructions), constants=constants)

    def _add_constant(self, name: str, value: np.ndarray[Any, Any]) -> None:
        if value.size <= MAX_KNOWN_ELEMENTS and value.dtype != object:
            self.constants[name] = value.dtype.str, value.shape, value.tobytes()

    def _merged(self, item: Instruction) -> Instruction | None:
        """Returns an instruction with the names of the remaining tensors; None for a repeated operation."""
        match item:
            case Receive() | Send():
                return item
            case Host():
                node = self._renamed(item.node)
                if (node.type in DETERMINISTIC or _is_pure(node)) and self._repeats(node, self.hosts):
                    return None
                return Host(node)
            case Compute():
                return self._merged_nodes(item)

    def _merged_nodes(self, item: Compute) -> Compute:
        """Returns an executable without repeated operations."""
        nodes: list[Node] = []
        inside: dict[object, Node] = {}
        for original in item.nodes:
            node = self._renamed(original)
            if node.type == "Const":
                self._add_constant(f"{node.name}:0", np.asarray(node.attrs["value"]))
            elif _is_pure(node) and self._repeats(node, inside):
                continue
            nodes.append(node)
        inputs, static, outputs = map(self._distinct, (item.inputs, item.static, item.outputs))
        return replace(item, nodes=tuple(nodes), inputs=inputs, static=static, outputs=outputs)

    def _renamed(self, node: Node) -> Node:
        inputs = tuple(map(self._name, node.inputs))
        return node if inputs == node.inputs else replace(node, inputs=inputs)

    def _distinct(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(map(self._name, names)))

    def _name(self, tensor: str) -> str:
        """Returns the name of the remaining tensor that is equal to a tensor."""
        op, index = split_name(tensor)
        return f"{self.first[op]}:{index}" if op in self.first else tensor

    def _repeats(self, node: Node, known: dict[object, Node]) -> bool:
        """Returns whether an operation in ``known`` computes the same result; if so, its outputs replace the outputs of
        ``node``."""
        inputs = tuple([self.constants.get(name, name) for name in node.inputs])
        found = known.setdefault((node.type, inputs, hashable(dict(node.attrs))), node)
        # Fetched arrays must not be shared: the program may change one of them.
        if found is node or node.name in self.kept:
            return False
        self.first[node.name] = found.name
        return True
