"""Bodies of conditions and loops: operations of the graph, recorded in an attribute of one operation.

A branch of a condition, or an iteration of a loop, is first built in the program's graph like other operations, so that
names, scopes, collections and variables are as the program expects. Then the new operations that its results need
are encoded in a `FunctionAttr`. Older tensors that they use become inputs of the operation with this attribute.
The recorded operations stay in the graph, but never run there.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from headwater.dtypes import int32, resource, string, variant
from headwater.graph.constants import constant_value
from headwater.graph.context import get_default_graph
from headwater.graph.graph import Graph
from headwater.graph.graph_def import subgraph_def
from headwater.graph.operation import Operation, Tensor
from headwater.graph.registry import FunctionAttr, Kind
from headwater.shapes import Dims, TensorShape

_MAX_COPIED = 4096
_HELD = (string, resource, variant)
"""Element types that only exist on the host."""


@dataclass(slots=True)
class Recorded:
    """A recorded branch or iteration.

    Attributes:
      outputs: the result tensors of the body; None for a result that only the other branch of a condition computes.
      ops: the operations of the body, in the order of creation.
      captured: tensors from outside that the body uses.
      before: operations from outside that have to run before the body.
    """

    outputs: list[Any]
    ops: list[Operation] = field(default_factory=list[Operation])
    captured: dict[Tensor, None] = field(default_factory=dict[Tensor, None])
    before: dict[Operation, None] = field(default_factory=dict[Operation, None])

    @property
    def on_host(self) -> bool:
        """Whether any operation of the body cannot be compiled."""
        return any(
            (op.definition.kind in (Kind.HOST, Kind.STATEFUL) and op.definition.traced is None)
            or any(t.dtype.base_dtype in _HELD for t in (*op.inputs, *op.outputs))
            for op in self.ops
        )

    @property
    def draws(self) -> list[Operation]:
        """The operations of the body that draw random numbers."""
        return [op for op in self.ops if op.definition.kind is Kind.RANDOM]

    @property
    def changed(self) -> set[Tensor]:
        """The references to variables that the body's operations change or need as references."""
        return {op.inputs[i] for op in self.ops for i in op.definition.ref_positions(op.attrs)}


def record(
    graph: Graph,
    first: int,
    outputs: Sequence[Tensor],
    params: Iterable[Tensor] = (),
    live: Container[Tensor | None] = (),
    awaited: Iterable[Operation] = (),
) -> Recorded:
    """Records the operations created since the graph's version ``first`` that ``outputs`` need.

    Args:
      first: the graph's version before the first operation of the body.
      outputs: the results.
      params: placeholders of values that change from iteration to iteration.
      live: references to variables that are read at the start of each iteration rather than at the start of the step.
      awaited: further operations to run for their effects.
    """
    given = set(params)
    stand_ins = {tensor.op for tensor in given}
    found = Recorded(list(outputs))
    ops: dict[Operation, None] = {}
    stack = list(awaited)

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
            # Omit this dependency: the values of an iteration are available when the iteration starts.
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
    """Records the parts of a loop's iteration with `record`: each part has a version of the graph and its outputs.

    A variable that an iteration changes is read in each iteration. Other variables are read once, before the loop.
    """
    found = [record(graph, first, outputs, params) for first, outputs in parts]
    changed = {tensor for part in found for tensor in part.changed}
    if any(_read(tensor.op) in changed for part in found for tensor in part.captured):
        found = [record(graph, first, outputs, params, changed) for first, outputs in parts]
    return found


def record_members(
    members: Iterable[Operation],
    outputs: Sequence[Tensor | None],
    params: Iterable[Tensor] = (),
    awaited: Iterable[Operation] = (),
) -> Recorded:
    """Records the ``members`` that ``outputs`` need; their other dependencies are in `Recorded.before`.

    Args:
      params: as in `record`.
      awaited: further operations to run for their effects.
    """
    inside, given = set(members), set(params)
    stand_ins = {tensor.op for tensor in given}
    found = Recorded(list(outputs))
    ops: dict[Operation, None] = {}
    stack = list(awaited)

    def use(tensor: Tensor) -> None:
        if tensor.op in inside or _copied(tensor):
            stack.append(tensor.op)
        elif tensor not in given:
            found.captured[tensor] = None

    for tensor in outputs:
        if tensor is not None:
            use(tensor)
    while stack:
        op = stack.pop()
        if op in ops:
            continue
        ops[op] = None
        for tensor in op.inputs:
            use(tensor)
        for control in op.control_inputs:
            if control in inside:
                stack.append(control)
            elif control not in stand_ins:
                found.before[control] = None
    found.ops = sorted(ops, key=lambda op: op.number)
    return found


def _inside(op: Operation, first: int) -> bool:
    """Returns whether ``op`` belongs to the body. Variables that were created in the body, and reads of their values at
    the start of the step, do not belong to it."""
    return op.number >= first and op.type != "VariableV2" and _read(op) is None


def _read(op: Operation) -> Tensor | None:
    """Returns the reference to the variable that ``op`` reads at the start of the step; None for other operations."""
    return None if op.control_inputs else op.read_reference


def _copied(tensor: Tensor) -> bool:
    """Returns whether a value from outside is small and known, so that it is copied into the body as a constant.

    Differentiable values are not copied: they remain inputs.
    """
    if tensor.op.type != "Const" or tensor.dtype.is_differentiable:
        return False
    value = constant_value(tensor)
    return value is not None and value.size <= _MAX_COPIED


def random_key(bodies: Sequence[Recorded]) -> Tensor | None:
    """Creates the random key of the bodies, with the first seed found in them; None if they draw no random numbers."""
    draws = [op for body in bodies for op in body.draws]
    if not draws:
        return None
    pairs = [(int(op.attrs.get("seed") or 0), int(op.attrs.get("seed2") or 0)) for op in draws]
    seed, seed2 = next((pair for pair in pairs if pair != (0, 0)), (0, 0))
    return get_default_graph().create_op("RandomKey", [], {"seed": seed, "seed2": seed2}).outputs[0]


def function_of(name: str, body: Recorded, inputs: Sequence[Tensor], key: Tensor | None) -> FunctionAttr:
    """Encodes ``body`` as an attribute of an operation with ``inputs``."""
    proto = subgraph_def(body.ops)
    for node in proto.node:
        node.device = ""
        node.attr.pop("_class", None)
    attrs: tuple[tuple[str, object], ...] = (
        ("graph", proto.SerializeToString(deterministic=True)),
        ("inputs", tuple(tensor.name for tensor in inputs)),
        ("key", "" if key is None or not body.draws else key.name),
        ("outputs", tuple("" if tensor is None else tensor.name for tensor in body.outputs)),
    )
    return FunctionAttr(name, attrs)


def captures(bodies: Sequence[Recorded]) -> list[Tensor]:
    """Returns the tensors from outside that the bodies use, each once; changed variables as references."""
    return list(dict.fromkeys(tensor for body in bodies for tensor in body.captured))


# The operations that hold bodies --------------------------------------------------------------------------------


def add_condition(
    pred: Tensor,
    branches: Sequence[Recorded],
    *,
    shapes_differ: bool = False,
    on_host: bool = False,
    reads_late: bool = False,
    name: str = "Merge",
    device: str | None = None,
    before: Iterable[Operation] = (),
    replaced: Mapping[Tensor, Tensor] = MappingProxyType({}),
) -> Operation:
    """Adds the operation that runs the first of two branches if ``pred`` is true, else the second.

    An output that only one branch computes (None in the other branch's outputs) is zeros if the other branch ran.

    Args:
      pred: a boolean.
      branches: the branch for true, then the branch for false.
      shapes_differ: whether the branches' values may have different shapes, so that ``pred`` must be known when
        compiling.
      on_host: whether to run the condition on the host even if it can be compiled.
      reads_late: whether a variable is read only in the branch that uses it, on the host, because the variable may have
        no value if the other branch runs.
      before: operations that run before the condition, in addition to those of the branches.
      replaced: maps tensors from outside that the branches use to the tensors to use in their place.
    """
    graph = pred.graph
    inputs = captures(branches)
    late = {tensor for tensor in inputs if tensor.dtype.is_ref} if reads_late else set[Tensor]()
    on_host |= any(branch.on_host for branch in branches) or any(t.dtype.base_dtype in _HELD for t in inputs)
    on_host |= bool(late)
    key = None if on_host else random_key(branches)
    inputs += [] if key is None else [key]
    pairs = list(zip(branches[0].outputs, branches[1].outputs, strict=True))
    some = [yes if yes is not None else no for yes, no in pairs]
    attrs: dict[str, object] = {
        "then_branch": function_of("then", branches[0], inputs, key),
        "else_branch": function_of("else", branches[1], inputs, key),
        "Tout": tuple(_present(tensor).dtype.base_dtype for tensor in some),
        "output_shapes": tuple(TensorShape(_common(yes, no)) for yes, no in pairs),
    }
    if on_host:
        changed = late | branches[0].changed | branches[1].changed
        attrs["refs"] = tuple(1 + i for i, tensor in enumerate(inputs) if tensor in changed)
    else:
        attrs["shapes_differ"] = shapes_differ or any(_differ(yes, no) for yes, no in pairs)
    waits = [*before, *(op for branch in branches for op in branch.before)]
    return graph.create_op(
        "If" if on_host else "StatelessIf",
        [pred, *(replaced.get(tensor, tensor) for tensor in _read_in_order(inputs, branches))],
        attrs,
        name,
        device=device,
        control_inputs=list(dict.fromkeys(waits)),
    )


def add_loop(
    start: Sequence[Tensor],
    params: Sequence[Tensor],
    loop_condition: Recorded,
    turn: Recorded,
    shapes: Sequence[TensorShape],
    *,
    on_host: bool = False,
    bound: int = -1,
    name: str = "Exit",
    device: str | None = None,
    before: Iterable[Operation] = (),
) -> Operation:
    """Adds the operation of a loop. Its outputs are the loop's final values and the number of iterations.

    Args:
      start: the values before the first iteration.
      params: placeholders of the loop's values within ``loop_condition`` and ``turn``.
      loop_condition: the condition, whose result decides whether there is another iteration.
      shapes: static shapes of the values.
      on_host: whether to run the loop on the host even if it can be compiled.
      bound: the maximum number of iterations; -1 if unknown.
      before: operations that run before the loop, in addition to those of its parts.
    """
    parts = [loop_condition, turn]
    inputs = captures(parts)
    on_host |= any(part.on_host for part in parts)
    on_host |= any(t.dtype.base_dtype in _HELD for t in (*inputs, *start))
    key = None if on_host else random_key(parts)
    inputs += [] if key is None else [key]
    named = [*params, *inputs]
    attrs: dict[str, object] = {
        "cond": function_of("cond", loop_condition, named, key),
        "body": function_of("body", turn, named, key),
        "Tout": (*(param.dtype.base_dtype for param in params), int32),
        "output_shapes": (*shapes, TensorShape([])),
    }
    if on_host:
        changed = loop_condition.changed | turn.changed
        attrs["refs"] = tuple(len(start) + i for i, tensor in enumerate(inputs) if tensor in changed)
    elif bound >= 0:
        attrs["bound"] = bound
    waits = [*before, *(op for part in parts for op in part.before)]
    return start[0].graph.create_op(
        "While" if on_host else "StatelessWhile",
        [*start, *_read_in_order(inputs, parts)],
        attrs,
        name,
        device=device,
        control_inputs=list(dict.fromkeys(waits)),
    )


def _read_in_order(inputs: Iterable[Tensor], parts: Sequence[Recorded]) -> list[Tensor]:
    """Returns ``inputs``, with a read in place of each variable that operations before ``parts`` change.

    Without it, another device would get the variable's value before the change.
    """
    changed = {tensor for part in parts for tensor in part.changed}

    def read(tensor: Tensor) -> Tensor:
        graph, variable = tensor.graph, tensor.op
        if variable.type != "VariableV2" or tensor in changed or not graph.may_change_before(variable, None):
            return tensor
        with graph.colocate_with(variable):
            return graph.create_op("Identity", [tensor], name="read").outputs[0]

    return [read(tensor) for tensor in inputs]


def _present(tensor: Tensor | None) -> Tensor:
    assert tensor is not None, "an output that neither branch has"
    return tensor


def _common(first: Tensor | None, second: Tensor | None) -> Dims:
    """Returns the static shape of a result that is one of two tensors."""
    if first is None or second is None:
        return _present(second if first is None else first).dims
    if first.dims is None or second.dims is None or len(first.dims) != len(second.dims):
        return None
    return tuple(a if a == b else None for a, b in zip(first.dims, second.dims, strict=True))


def _differ(yes: Tensor | None, no: Tensor | None) -> bool:
    """Returns whether the shapes contradict each other. A missing value or an unknown size contradicts nothing."""
    if yes is None or no is None or yes.dims is None or no.dims is None:
        return False
    if len(yes.dims) != len(no.dims):
        return True
    return any(None not in (a, b) and a != b for a, b in zip(yes.dims, no.dims, strict=True))
