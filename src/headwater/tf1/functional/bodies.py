"""Bodies of conditions and loops: operations of the graph, taken into an attribute of one operation.

A branch or a turn is built in the program's graph as all else is, so that names, scopes, collections and variables are
as the program expects. What its results need of the operations made meanwhile is then written into a `FunctionAttr`;
what these use from before becomes an input of the operation that holds it. The operations themselves stay in the graph,
where nothing runs them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field

from headwater.dtypes import resource, string
from headwater.graph.constants import constant_value
from headwater.graph.context import get_default_graph
from headwater.graph.graph import Graph
from headwater.graph.graph_def import subgraph_def
from headwater.graph.operation import Operation, Tensor
from headwater.graph.registry import FunctionAttr, Kind

_MAX_COPIED = 4096


@dataclass(slots=True)
class Recorded:
    """What a branch or a turn is made of.

    Attributes:
      outputs: its results.
      ops: its operations, in the order in which they were made.
      captured: tensors from before that it uses.
      before: operations from before that it waits for.
    """

    outputs: list[Tensor]
    ops: list[Operation] = field(default_factory=list[Operation])
    captured: dict[Tensor, None] = field(default_factory=dict[Tensor, None])
    before: dict[Operation, None] = field(default_factory=dict[Operation, None])

    @property
    def on_host(self) -> bool:
        """Whether something in it cannot be compiled."""
        return any(
            (op.definition.kind in (Kind.HOST, Kind.STATEFUL) and op.definition.traced is None)
            or any(t.dtype.base_dtype in (string, resource) for t in (*op.inputs, *op.outputs))
            for op in self.ops
        )

    @property
    def draws(self) -> list[Operation]:
        """Its operations that draw random numbers."""
        return [op for op in self.ops if op.definition.kind is Kind.RANDOM]

    @property
    def changed(self) -> set[Tensor]:
        """References that some operation of it needs as such."""
        return {op.inputs[i] for op in self.ops for i in op.definition.ref_positions(op.attrs)}


def record(
    graph: Graph,
    first: int,
    outputs: Sequence[Tensor],
    params: Iterable[Tensor] = (),
    live: Container[Tensor | None] = (),
) -> Recorded:
    """What ``outputs`` need of the operations made since the graph's version was ``first``.

    Args:
      params: tensors that stand for values that change from turn to turn.
      live: references to variables that are read at the begin of a turn, not as the step finds them.
    """
    given = set(params)
    stand_ins = {tensor.op for tensor in given}
    found = Recorded(list(outputs))
    ops: dict[Operation, None] = {}
    stack: list[Operation] = []

    def use(tensor: Tensor) -> None:
        if tensor in given:
            return
        if _inside(tensor.op, first) or _copied(tensor) or _read(tensor.op) in live:
            stack.append(tensor.op)
        else:
            found.captured[tensor] = None

    for tensor in outputs:
        use(tensor)
    while stack:
        op = stack.pop()
        if op in ops:
            continue
        ops[op] = None
        for tensor in op.inputs:
            use(tensor)
        for control in op.control_inputs:
            # The values of a turn are there before it begins.
            if control in stand_ins:
                continue
            if _inside(control, first):
                stack.append(control)
            elif op.number >= first:
                found.before[control] = None
    found.ops = sorted(ops, key=lambda op: op.number)
    return found


def record_turns(
    graph: Graph, parts: Sequence[tuple[int, Sequence[Tensor]]], params: Sequence[Tensor]
) -> list[Recorded]:
    """The parts of a loop's turn, as `record` finds them: each from a version of the graph on, with its outputs.

    A variable that a turn changes is read anew in each turn. Any other one is read once, before the loop.
    """
    found = [record(graph, first, outputs, params) for first, outputs in parts]
    changed = {tensor for part in found for tensor in part.changed}
    if any(_read(tensor.op) in changed for part in found for tensor in part.captured):
        found = [record(graph, first, outputs, params, changed) for first, outputs in parts]
    return found


def _inside(op: Operation, first: int) -> bool:
    """Whether ``op`` belongs to the body. A variable made there does not, nor does its value as the step finds it."""
    return op.number >= first and op.type != "VariableV2" and _read(op) is None


def _read(op: Operation) -> Tensor | None:
    """The reference to the variable whose value, as the step finds it, ``op`` is; None where it is something else."""
    reads = op.type == "Identity" and op.inputs[0].op.type == "VariableV2" and not op.control_inputs
    return op.inputs[0] if reads else None


def _copied(tensor: Tensor) -> bool:
    """Whether a value from before is small and known, so that the body has it at hand when it is compiled.

    Of what can have a gradient none is: it stays an input.
    """
    if tensor.op.type != "Const" or tensor.dtype.is_differentiable:
        return False
    value = constant_value(tensor)
    return value is not None and value.size <= _MAX_COPIED


def random_key(bodies: Sequence[Recorded]) -> Tensor | None:
    """A key for what the bodies draw, seeded as the first of them that has a seed; None where nothing is drawn."""
    draws = [op for body in bodies for op in body.draws]
    if not draws:
        return None
    pairs = [(int(op.attrs.get("seed") or 0), int(op.attrs.get("seed2") or 0)) for op in draws]
    seed, seed2 = next((pair for pair in pairs if pair != (0, 0)), (0, 0))
    return get_default_graph().create_op("RandomKey", [], {"seed": seed, "seed2": seed2}).outputs[0]


def function_of(name: str, body: Recorded, inputs: Sequence[Tensor], key: Tensor | None) -> FunctionAttr:
    """``body`` as an attribute of an operation with ``inputs``."""
    proto = subgraph_def(body.ops)
    for node in proto.node:
        node.device = ""
        node.attr.pop("_class", None)
    attrs: tuple[tuple[str, object], ...] = (
        ("graph", proto.SerializeToString(deterministic=True)),
        ("inputs", tuple(tensor.name for tensor in inputs)),
        ("key", "" if key is None or not body.draws else key.name),
        ("outputs", tuple(tensor.name for tensor in body.outputs)),
    )
    return FunctionAttr(name, attrs)


def captures(bodies: Sequence[Recorded]) -> list[Tensor]:
    """What the bodies use from before, each once; what some change comes as a reference."""
    return list(dict.fromkeys(tensor for body in bodies for tensor in body.captured))
