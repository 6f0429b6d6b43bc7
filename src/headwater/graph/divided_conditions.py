"""Conditions with branches that change variables of several tasks: one operation per task and stage.

An operation with references runs on the task of its variables, so one operation cannot contain a branch that changes
variables of two tasks. Such a branch is divided into stages. A stage consists of operations of one task that depend
only on earlier stages. Both branches have the same sequence of stages, and each stage becomes a condition with the
original predicate. The outputs of a stage are the results that later stages use. The results of the branch that does
not run are empty, so almost nothing is sent between tasks for a branch that does nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from headwater.cluster.devices import parse_device
from headwater.dtypes import resource
from headwater.graph.bodies import Recorded, add_condition
from headwater.graph.operation import Operation, Tensor
from headwater.graph.registry import Kind

_Task = tuple[str, int, int]
_FOLLOWERS = ("Const", "Identity", "NoOp")
"""Types of operations that are placed on the task of the operations on which they depend."""


def add_conditions(pred: Tensor, branches: Sequence[Recorded], *, shapes_differ: bool = False) -> list[Tensor]:
    """Adds one condition, or one for each stage if the branches change variables of several tasks.

    Args:
      pred: a boolean; the first of two branches runs if it is true, else the second.
      shapes_differ: as for `add_condition`.

    Returns:
      The results of the branch that ran.
    """
    devices: dict[_Task, str] = {}
    for op in (op for branch in branches for op in branch.ops if _refs(op)):
        task = _task(op)
        if task is not None:
            devices.setdefault(task, _device(op))
    stages = _Stages(branches) if len(devices) > 1 else None
    if stages is not None and stages.place_outputs():
        return stages.add(pred)
    changes = any(branch.on_host for branch in branches)
    # Place the condition on the device of its variables, even if the program requests another device for this block.
    device = next(iter(devices.values())) if changes and len(devices) == 1 else None
    return list(add_condition(pred, branches, shapes_differ=shapes_differ, device=device).outputs)


@dataclass(slots=True)
class _Placed:
    """The stages of one branch's operations.

    Attributes:
      branch: the branch.
      stages: the number of each operation's stage. Operations that run in every stage that uses them have no entry.
    """

    branch: Recorded
    stages: dict[Operation, int] = field(default_factory=dict[Operation, int])

    def parts(self, stage: int, outputs: Iterable[Tensor | None]) -> tuple[list[Operation], list[Tensor]]:
        """Returns the operations of a stage with these outputs, and the tensors from outside that they use."""
        inside = set(self.branch.ops)
        ops = {op: None for op, placed in self.stages.items() if placed == stage}
        waiting = [*ops, *(tensor.op for tensor in outputs if tensor is not None)]
        captured: dict[Tensor, None] = {}
        while waiting:
            op = waiting.pop()
            ops[op] = None
            for tensor in op.inputs:
                if tensor.op not in inside or self.stages.get(tensor.op, stage) != stage:
                    captured[tensor] = None
                elif tensor.op not in ops:
                    waiting.append(tensor.op)
        return sorted(ops, key=lambda op: op.number), list(captured)


class _Stages:
    """Assigns the operations of both branches to stages."""

    def __init__(self, branches: Sequence[Recorded]) -> None:
        self._tasks: list[tuple[_Task | None, str]] = []
        self._placed = [_Placed(branch) for branch in branches]
        self._branches = branches
        for placed in self._placed:
            for op in placed.branch.ops:
                self._place(op, placed.stages)

    def _place(self, op: Operation, stages: dict[Operation, int]) -> None:
        before = [] if _makes_resource(op) else [*(tensor.op for tensor in op.inputs), *op.control_inputs]
        waits = [stages[each] for each in before if each in stages]
        task = None if op.type in _FOLLOWERS and not _refs(op) else _task(op)
        if not waits and (_makes_resource(op) or (op.definition.kind is Kind.PURE and not _refs(op))):
            return
        first = max(waits, default=0)
        if task is None and first < len(self._tasks):
            stages[op] = first
            return
        later = range(first, len(self._tasks))
        stages[op] = next((i for i in later if self._tasks[i][0] == task), len(self._tasks))
        if stages[op] == len(self._tasks):
            self._tasks.append((task, _device(op)))

    def place_outputs(self) -> bool:
        """Moves each result of the condition, which both branches compute, to one stage; returns whether that is
        possible."""
        for pair in zip(*(branch.outputs for branch in self._branches), strict=True):
            found = [placed.stages.get(tensor.op) for placed, tensor in zip(self._placed, pair, strict=True)]
            last = max((stage for stage in found if stage is not None), default=0)
            for placed, tensor, stage in zip(self._placed, pair, found, strict=True):
                if stage not in (None, last) and tensor.op.type not in _FOLLOWERS:
                    return False
                placed.stages[tensor.op] = last
        return True

    def add(self, pred: Tensor) -> list[Tensor]:
        """Adds the conditions of all stages, and returns the results."""
        computed: dict[Tensor, Tensor] = {}
        results: dict[int, Tensor] = {}
        added: list[Operation] = []
        for number, (_, device) in enumerate(self._tasks):
            crossing = [self._crossing(placed, number) for placed in self._placed]
            finals = [i for i, out in enumerate(self._branches[0].outputs) if self._placed[0].stages[out.op] == number]
            outputs = [
                [*crossing[0], *(None for _ in crossing[1]), *(self._branches[0].outputs[i] for i in finals)],
                [*(None for _ in crossing[0]), *crossing[1], *(self._branches[1].outputs[i] for i in finals)],
            ]
            bodies: list[Recorded] = []
            for placed, given in zip(self._placed, outputs, strict=True):
                ops, captured = placed.parts(number, given)
                for tensor in captured:
                    if tensor.dtype.is_ref and tensor not in computed and tensor.op in placed.stages:
                        computed[tensor] = _variable(tensor)
                bodies.append(Recorded(given, ops, dict.fromkeys(captured), placed.branch.before))
            op = add_condition(
                pred, bodies, on_host=True, reads_late=True, device=device, before=added, replaced=computed
            )
            added.append(op)
            crossed = [*crossing[0], *crossing[1]]
            computed.update(zip(crossed, op.outputs, strict=False))
            results.update(zip(finals, op.outputs[len(crossed) :], strict=True))
        return [results[i] for i in range(len(results))]

    def _crossing(self, placed: _Placed, stage: int) -> list[Tensor]:
        """Returns the results of a stage that operations of later stages use, except references: later stages read
        variables themselves."""
        found: dict[Tensor, None] = {}
        for op in placed.branch.ops:
            for tensor in op.inputs:
                if placed.stages.get(tensor.op) == stage and placed.stages.get(op, stage) > stage:
                    found[tensor] = None
        return [tensor for tensor in found if not tensor.dtype.is_ref]


def _makes_resource(op: Operation) -> bool:
    """Returns whether ``op`` finds or creates a shared resource, such as a queue. It runs in every stage that uses the
    resource."""
    return not op.inputs and bool(op.outputs) and op.outputs[0].dtype.base_dtype == resource


def _refs(op: Operation) -> bool:
    return any(tensor.dtype.is_ref for tensor in op.inputs)


def _variable(tensor: Tensor) -> Tensor:
    """Returns the reference to the variable that an update returned."""
    while tensor.op.type != "VariableV2":
        tensor = tensor.op.inputs[0]
    return tensor


def _device(op: Operation) -> str:
    ref = next((tensor for tensor in op.inputs if tensor.dtype.is_ref), None)
    return op.device if ref is None else _variable(ref).op.device


def _task(op: Operation) -> _Task | None:
    """Returns the task of the variables of ``op``, or else the task that the program requests; None if ``op`` may run
    on any task."""
    device = parse_device(_device(op))
    return None if device.job is None else (device.job, device.replica or 0, device.task or 0)
