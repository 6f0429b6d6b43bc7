"""Schedule: converts a partition to the instructions of every task.

A *segment* is the operations of one lane at one level; it becomes one `Compute`, or the `Host` instructions of the
level. Levels are in the order of execution: a segment uses only tensors of segments at lower levels, or of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from headwater.errors import InvalidArgumentError
from headwater.graph.operation import Operation, Tensor
from headwater.graph.passes.known import always_differ, always_fit
from headwater.graph.passes.partition import SHAPE_OPS, Lane, Partition, task_of
from headwater.graph.passes.place import runs_on_host
from headwater.graph.passes.plan import (
    Compute,
    Host,
    Instruction,
    Node,
    Receive,
    Send,
    TaskPlan,
    VariableInfo,
    check_plan,
)
from headwater.graph.passes.prune import RunRequest
from headwater.graph.registry import CHECKED, CLASSES

_KEPT: Final = frozenset({"dtype", "container", "shared_name", "shape", CHECKED, CLASSES})
"""Attributes that the runtime reads although no lowering takes them."""


@dataclass(frozen=True, slots=True)
class _Segment:
    """The key of a segment; see the module's docstring."""

    lane: Lane
    level: int


@dataclass(slots=True)
class _Draft:
    """A task's plan under construction."""

    feeds: dict[Tensor, None] = field(default_factory=dict[Tensor, None])
    fetches: dict[Tensor, None] = field(default_factory=dict[Tensor, None])
    constants: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict[str, "np.ndarray[Any, Any]"])
    variables: dict[str, VariableInfo] = field(default_factory=dict[str, VariableInfo])
    levels: dict[int, list[list[Instruction]]] = field(default_factory=dict[int, "list[list[Instruction]]"])

    def at(self, level: int) -> list[list[Instruction]]:
        """Returns three lists, to which instructions of a level are added: receives, computations and sends."""
        return self.levels.setdefault(level, [[], [], []])


def schedule(part: Partition) -> Mapping[str, TaskPlan]:
    """Builds the plans, by full task name.

    At each level, a task first receives, then computes, then sends. All tensors that one task sends to another at a
    level form one transfer. A small transfer is merged into a later one if the receiver waits for both at the same
    point.
    """
    return _Scheduler(part).run()


class _Scheduler:
    def __init__(self, part: Partition) -> None:
        self._part = part
        self._request: RunRequest = part.placement.pruned.request
        self._fed = set(self._request.feeds)
        self._drafts: dict[str, _Draft] = {}
        self._segments: dict[_Segment, list[Operation]] = {}
        for op in part.placement.pruned.ops:
            if op in part.lanes:
                self._segments.setdefault(_Segment(part.lanes[op], part.levels[op]), []).append(op)
        self._variable_of: dict[Tensor, Operation] = {}
        for op in part.placement.pruned.ops:
            if op.type == "VariableV2":
                self._variable_of[op.outputs[0]] = op
            elif op.definition.updates and op.outputs:
                source = op.inputs[op.definition.updates[0]]
                if source in self._variable_of:
                    self._variable_of[op.outputs[0]] = self._variable_of[source]

    def run(self) -> Mapping[str, TaskPlan]:
        self._add_fetches()
        exported = self._exported_tensors()
        self._add_transfers(exported)
        for segment, ops in self._segments.items():
            self._add_instructions(segment, ops, exported)
        return {task: self._as_plan(task, draft) for task, draft in self._drafts.items()}

    def _draft(self, task: str) -> _Draft:
        return self._drafts.setdefault(task, _Draft())

    def _as_plan(self, task: str, draft: _Draft) -> TaskPlan:
        steps = [item for level in sorted(draft.levels) for part in draft.levels[level] for item in part]
        return TaskPlan(
            task=task,
            instructions=tuple(steps),
            variables=draft.variables,
            constants=draft.constants,
            feeds=tuple(t.name for t in draft.feeds),
            fetches=tuple(t.name for t in draft.fetches),
        )

    def _add_fetches(self) -> None:
        for tensor in self._request.fetches:
            if tensor not in self._fed:
                task = task_of(self._part.placement, tensor.op)
                self._draft(task).fetches[tensor] = None
                self._use_constant(self._draft(task), tensor)

    def _use_constant(self, draft: _Draft, tensor: Tensor) -> None:
        if tensor.op.type == "Const" and tensor not in self._fed:
            draft.constants[tensor.name] = tensor.op.attrs["value"]

    def _same_place(self, tensor: Tensor, op: Operation, index: int) -> bool:
        """Returns whether ``op`` gets the input without an export from the segment that computes it.

        This is so if the input is a variable that ``op`` reads directly, or if it is computed in the segment of ``op``.
        """
        part = self._part
        source = tensor.op
        if self._is_shared(tensor, op, index):
            return True
        return part.lanes[source] == part.lanes[op] and part.levels[source] == part.levels[op]

    def _is_shared(self, tensor: Tensor, op: Operation, index: int) -> bool:
        """Returns whether ``op`` reads the variable itself, so that it sees the variable's value at the time it
        runs."""
        if tensor not in self._variable_of or tensor in self._fed:
            return False
        static = op.definition.static_positions(op.attrs, len(op.inputs))
        here = self._part.lanes[tensor.op] == self._part.lanes[op] and index not in static
        return here or index in op.definition.ref_positions(op.attrs)

    def _exported_tensors(self) -> dict[Tensor, None]:
        """Returns the tensors that are used outside of their segment."""
        exported: dict[Tensor, None] = dict.fromkeys(t for t in self._request.fetches if t not in self._fed)
        for op in self._part.lanes:
            for index, tensor in enumerate(op.inputs):
                if tensor in self._fed:
                    self._draft(self._part.lanes[op].task).feeds[tensor] = None
                elif tensor.op in self._part.lanes and not self._same_place(tensor, op, index):
                    exported[tensor] = None
        return exported

    def _add_transfers(self, exported: Iterable[Tensor]) -> None:
        lanes, levels = self._part.lanes, self._part.levels
        # By source task, target task and level of the source: the tensors, and the lowest level that needs them.
        groups: dict[tuple[str, str, int], tuple[dict[Tensor, None], int]] = {}
        exported = set(exported)

        def add_dependency(source: Operation, op: Operation, tensors: Iterable[Tensor]) -> None:
            here, there = lanes[source].task, lanes[op].task
            if here != there:
                found, needed = groups.get((here, there, levels[source]), ({}, levels[op]))
                found.update(dict.fromkeys(tensors))
                groups[here, there, levels[source]] = found, min(needed, levels[op])

        for op in self._part.placement.pruned.ops:
            if op not in lanes:
                continue
            for source in self._part.before[op]:
                if source in lanes:
                    # A control dependency between tasks becomes a transfer without tensors, for which the receiver
                    # waits.
                    add_dependency(
                        source, op, [t for t in op.inputs if t.op is source and t not in self._fed and t in exported]
                    )
        _join_small(groups)
        for number, ((here, there, level), (tensors, needed)) in enumerate(groups.items()):
            names = tuple(t.name for t in tensors)
            self._draft(here).at(level)[2].append(Send(number, there, names))
            self._draft(there).at(needed)[0].append(Receive(number, here, names))

    def _add_instructions(self, segment: _Segment, ops: list[Operation], exported: Mapping[Tensor, None]) -> None:
        draft = self._draft(segment.lane.task)
        out = draft.at(segment.level)[1]
        if segment.lane.device == "":
            for op in ops:
                for tensor in op.inputs:
                    self._use_constant(draft, tensor)
                out.append(Host(self._node(op, draft)))
            return
        # Reads of string variables get their own instruction, which runs in Python: compiled operations cannot use
        # strings.
        texts = [op for op in ops if runs_on_host(op)]
        for some in (texts, [op for op in ops if op not in texts]) if texts else (ops,):
            out += self._compute_instructions(segment.lane.device, some, exported, draft)

    def _compute_instructions(
        self, device: str, ops: Sequence[Operation], exported: Mapping[Tensor, None], draft: _Draft
    ) -> list[Compute]:
        """Returns the instruction that computes ``ops``, in a list; empty if all of them are variables that other
        operations read directly."""
        nodes: dict[Operation, Node] = {}
        inputs: dict[Tensor, None] = {}
        static: dict[Tensor, None] = {}
        outputs = [t for op in ops for t in op.outputs if t in exported]
        known = _tensors_to_know(ops)
        for op in ops:
            for index, tensor in enumerate(op.inputs):
                if tensor.op.type == "Const" and tensor not in self._fed:
                    nodes.setdefault(tensor.op, self._node(tensor.op, draft))
                elif tensor in self._fed or not self._same_place(tensor, op, index):
                    inputs[tensor] = None
                    if tensor in known:
                        static[tensor] = None
            if op.type != "VariableV2" or op.outputs[0] in exported:
                nodes[op] = self._node(op, draft)
        if not nodes:
            return []
        names = [tuple(t.name for t in tensors) for tensors in (inputs, static, outputs)]
        return [Compute(device, tuple(nodes.values()), *names)]

    def _node(self, op: Operation, draft: _Draft) -> Node:
        if op.type == "Placeholder":
            raise InvalidArgumentError(None, op, f"placeholder {op.name!r} is needed for a fetch, but is not fed")
        refs: dict[int, str] = {}
        for index, tensor in enumerate(op.inputs):
            variable = self._variable_of.get(tensor)
            if index in op.definition.ref_positions(op.attrs) and (variable is None or tensor in self._fed):
                raise InvalidArgumentError(
                    None, op, f"input {index} of {op.name!r} must be a variable, not {tensor.name!r}"
                )
            if variable is not None and self._is_shared(tensor, op, index):
                refs[index] = variable.name
                self._use_variable(variable, draft)
        if op.type == "VariableV2":
            self._use_variable(op, draft)
        attrs = {key: value for key, value in op.attrs.items() if key in op.definition.attrs or key in _KEPT}
        if CHECKED in attrs and always_fit(op, self._fed):
            del attrs[CHECKED]
        if op in self._part.placement.pruned.exceeding:
            attrs["exceeds"] = True
        # If all indices differ, there are no equal rows to sum, so `SumEqualRows` is the identity.
        op_type = "IdentityN" if op.type == "SumEqualRows" and always_differ(op.inputs[1], self._fed) else op.type
        return Node(op.name, op_type, tuple(t.name for t in op.inputs), refs, attrs)

    def _use_variable(self, op: Operation, draft: _Draft) -> None:
        device = self._part.placement.devices[op]
        draft.variables[op.name] = VariableInfo(
            op.name,
            op.attrs.get("shared_name") or op.name,
            op.attrs.get("container") or "",
            f"{device.device_type}:{device.device_index}",
        )


#: Transfers of at most this size, in bytes, are merged into a later transfer.
_SMALL_BYTES = 4096


def _join_small(groups: dict[tuple[str, str, int], tuple[dict[Tensor, None], int]]) -> None:
    """Merges small early transfers into a later transfer, if the receiver waits for both at the same point.

    The receiver uses the tensors of both transfers only at that point, so it does not wait longer than before.
    """
    latest = {(here, there, needed): level for (here, there, level), (_, needed) in sorted(groups.items(), key=_level)}
    for (here, there, level), (tensors, needed) in list(groups.items()):
        last = latest[here, there, needed]
        sizes = [tensor.shape.num_elements() for tensor in tensors]
        # Assume 8 bytes for an element: an error only affects speed.
        if level < last and all(size is not None and 8 * size <= _SMALL_BYTES for size in sizes):
            groups[here, there, last][0].update(tensors)
            del groups[here, there, level]


def _level(item: tuple[tuple[str, str, int], object]) -> int:
    return item[0][2]


def _tensors_to_know(ops: Sequence[Operation]) -> set[Tensor]:
    """Returns the tensors that must be known to compile a segment: static inputs, and tensors that these depend
    on."""
    known: set[Tensor] = set()
    for op in reversed(ops):
        static = op.definition.static_positions(op.attrs, len(op.inputs))
        follows = op.type not in SHAPE_OPS and any(tensor in known for tensor in op.outputs)
        known.update(tensor for index, tensor in enumerate(op.inputs) if follows or index in static)
    return known


def verify_plans(plans: Mapping[str, TaskPlan]) -> None:
    """Checks that all inputs are available, that every transfer is sent once and received once, and that sender and
    receiver agree on its tensors and tasks."""
    sent: dict[int, tuple[str, str, tuple[str, ...]]] = {}
    received: dict[int, tuple[str, str, tuple[str, ...]]] = {}
    for task, plan in plans.items():
        assert plan.task == task
        check_plan(plan)
        for item in plan.instructions:
            match item:
                case Send():
                    assert item.transfer not in sent, item
                    sent[item.transfer] = (task, item.destination, item.tensors)
                case Receive():
                    assert item.transfer not in received, item
                    received[item.transfer] = (item.source, task, item.tensors)
                case Compute() | Host():
                    pass
    assert sent == received
