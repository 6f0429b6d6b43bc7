"""Partition: groups the operations that run together, by lane and level.

A *lane* runs operations one after the other. It is a device of a task (for compiled operations) or the host of a task
(for operations in Python). An operation's *level* is the largest number of changes of lane on a path of dependencies
that ends at the operation. All operations of one lane and level form a *segment*. A segment of compiled operations
becomes one executable. Because each change of lane increases the level, running the segments in the order of levels
cannot deadlock.

If an operation needs the value of an input when it is compiled, that dependency also increases the level, unless the
value can be computed from constants and static shapes.

Operations are moved to the highest level that their users allow, so that they become part of the executable that uses
their results.
Constants are copied to each place of use, and groups (``NoOp``) are replaced by their dependencies, so that neither is
ever sent between tasks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headwater.graph.operation import Operation, Tensor
from headwater.graph.passes.place import Placement, reads_variable, runs_on_host
from headwater.graph.passes.prune import dependencies
from headwater.graph.registry import Kind

_DISSOLVED = frozenset({"Const", "NoOp"})
SHAPE_OPS = frozenset({"Shape", "Size", "Rank", "ShapeN"})


class Lane(NamedTuple):
    """A sequence of operations: a device, or the host, of a task.

    Attributes:
      task: full task name, e.g. ``/job:ps/replica:0/task:0``.
      device: e.g. ``CPU:0``; empty for the host.
    """

    task: str
    device: str


@dataclass(frozen=True, slots=True)
class Partition:
    """Operations with their lanes and levels.

    Attributes:
      placement: the operations with their devices.
      lanes: lane of each operation that runs; constants and groups have no lane.
      levels: level of each of these operations.
      before: dependencies of each operation, with each group replaced by the group's own dependencies.
    """

    placement: Placement
    lanes: Mapping[Operation, Lane]
    levels: Mapping[Operation, int]
    before: Mapping[Operation, Sequence[Operation]]


def task_of(placement: Placement, op: Operation) -> str:
    """Returns the full name of the task on which ``op`` is placed."""
    device = placement.devices[op]
    return f"/job:{device.job}/replica:{device.replica or 0}/task:{device.task}"


def partition(placement: Placement) -> Partition:
    """Assigns lanes and levels."""
    fed = set(placement.pruned.request.feeds)
    lanes: dict[Operation, Lane] = {}
    before: dict[Operation, list[Operation]] = {}
    for op in placement.pruned.ops:
        if op.outputs and all(t in fed for t in op.outputs):
            continue
        needed = [*dependencies(op, fed), *placement.pruned.after.get(op, ())]
        before[op] = _dissolved(needed, before)
        if op.type not in _DISSOLVED:
            device = placement.devices[op]
            on_host = runs_on_host(op) and op.type != "VariableV2" and not reads_variable(op, fed)
            lanes[op] = Lane(task_of(placement, op), "" if on_host else f"{device.device_type}:{device.device_index}")
    known = _statically_known(placement, fed)
    running = [op for op in placement.pruned.ops if op in lanes]
    levels: dict[Operation, int] = {}
    for op in running:
        static = _static_edges(op, known, fed)
        levels[op] = max((levels[d] + _cost(lanes, d, op, static) for d in before[op] if d in lanes), default=0)
    fetched = {t.op for t in placement.pruned.request.fetches}
    _move_up(running, lanes, levels, before, known, fed, fetched)
    return Partition(placement, lanes, levels, before)


def _dissolved(deps: Sequence[Operation], before: Mapping[Operation, Sequence[Operation]]) -> list[Operation]:
    """Returns ``deps`` with every group and constant replaced by its own dependencies."""
    result: dict[Operation, None] = {}
    for op in deps:
        if op.type in _DISSOLVED:
            result.update(dict.fromkeys(before.get(op, ())))
        else:
            result[op] = None
    return list(result)


def _statically_known(placement: Placement, fed: set[Tensor]) -> set[Operation]:
    """Returns the operations that can be computed from constants and shapes when compiling."""
    known: set[Operation] = set()
    for op in placement.pruned.ops:
        if op.type in SHAPE_OPS or op.type == "Const":
            known.add(op)
        elif op.definition.kind is Kind.PURE and op.inputs and op.type != "Placeholder":
            integers = all(t.dtype.is_integer or t.dtype.is_bool for t in op.outputs)
            if integers and all(t.op in known and t not in fed for t in op.inputs):
                known.add(op)
    return known


def _static_edges(op: Operation, known: set[Operation], fed: set[Tensor]) -> set[Operation]:
    """Returns the producers of inputs that ``op`` needs when compiling, but that are only known in a run."""
    if runs_on_host(op):
        return set()
    positions = op.definition.static_positions(op.attrs, len(op.inputs))
    inputs = [op.inputs[i] for i in positions]
    return {t.op for t in inputs if t not in fed and t.op not in known}


def _cost(lanes: Mapping[Operation, Lane], source: Operation, op: Operation, static: set[Operation]) -> int:
    return 0 if lanes[source] == lanes[op] and source not in static else 1


def _move_up(
    running: Sequence[Operation],
    lanes: Mapping[Operation, Lane],
    levels: dict[Operation, int],
    before: Mapping[Operation, Sequence[Operation]],
    known: set[Operation],
    fed: set[Tensor],
    fetched: set[Operation],
) -> None:
    """Moves operations to the highest level that their users allow.

    Two kinds of operations are moved: pure operations, and operations that only read and change variables of their own
    lane and whose results are not used outside of it. As a result, one executable makes all updates in place, and
    transfers to other tasks do not wait for the updates. Fetched reads stay at their level: in the executable of an
    update in place, their values would have to be copied.
    """
    latest: dict[Operation, int] = {}
    last: dict[Lane, int] = {}
    inside: set[Operation] = set()  # operations that depend on no other lane
    used_outside = set(fetched)
    for op in running:
        last[lanes[op]] = max(last.get(lanes[op], 0), levels[op])
        sources = [source for source in before[op] if source in lanes]
        if all(source in inside and lanes[source] == lanes[op] for source in sources):
            inside.add(op)
        used_outside.update(source for source in sources if lanes[source] != lanes[op])
    for op in reversed(running):
        pure = op.definition.kind in (Kind.PURE, Kind.RANDOM) and not any(t.dtype.is_ref for t in op.inputs)
        if not runs_on_host(op) and (pure or (op in inside and op not in used_outside)):
            unused = last[lanes[op]] if op.definition.updates else 0
            levels[op] = max(levels[op], latest.get(op, unused))
        static = _static_edges(op, known, fed)
        for source in before[op]:
            if source in lanes:
                allowed = levels[op] - _cost(lanes, source, op, static)
                latest[source] = min(latest.get(source, allowed), allowed)


def verify_partition(part: Partition) -> None:
    """Checks that the level of each dependency is not higher than the level of its user, and lower if it is on another
    lane."""
    for op, lane in part.lanes.items():
        for source in part.before[op]:
            if source in part.lanes:
                crosses = part.lanes[source] != lane
                assert part.levels[source] + crosses <= part.levels[op], f"{source.name} -> {op.name}"
