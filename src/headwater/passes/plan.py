"""Plans: what one task does in a step, as a frozen list of instructions.

A plan names tensors (``operation:output``) and operations; it needs no graph. It travels to its task once, as msgpack
with the operations as a ``GraphDef``, and is compiled there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgpack
import numpy as np
from google.protobuf.message import DecodeError

from headwater.errors import InvalidArgumentError
from headwater.io.attr_value import attr_value, read_attr
from headwater.io.tensor_proto import make_ndarray, make_tensor_proto
from headwater.registry import OpDef, lookup
from headwater.tensorboard_protos import graph_pb2, tensor_pb2

FORMAT = 2


@dataclass(frozen=True, slots=True)
class Node:
    """One operation of a plan.

    Attributes:
      name: the operation's name in its graph.
      type: its operation type.
      inputs: names of its input tensors.
      refs: for inputs that are references, position -> name of the variable's operation.
      attrs: its attributes.
    """

    name: str
    type: str
    inputs: tuple[str, ...]
    refs: Mapping[int, str]
    attrs: Mapping[str, Any]

    @property
    def definition(self) -> OpDef:
        return lookup(self.type)


@dataclass(frozen=True, slots=True)
class VariableInfo:
    """A variable that a plan uses, which lives in a container of the task.

    Attributes:
      name: name of the variable's operation.
      cell: its name in the container.
      container: the container's name; empty for the default one.
      device: the device it lives on, e.g. ``CPU:0``.
    """

    name: str
    cell: str
    container: str
    device: str


@dataclass(frozen=True, slots=True)
class Receive:
    """Wait for the tensors of a transfer.

    Attributes:
      transfer: number of the transfer within the step.
      source: full name of the task that sends.
      tensors: names of the tensors, in order.
    """

    transfer: int
    source: str
    tensors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Send:
    """Send tensors to another task; counterpart of its `Receive`."""

    transfer: int
    destination: str
    tensors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Compute:
    """Run operations as one executable.

    Attributes:
      device: e.g. ``CPU:0``.
      nodes: in order; constants among them.
      inputs: tensors that come from elsewhere.
      static: those of ``inputs`` whose values must be known when compiling.
      outputs: tensors that something else uses. A reference among them stands for the variable's value at that point.
    """

    device: str
    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    static: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Host:
    """Run one operation in Python. ``inputs`` that are references arrive as cells where the operation asks for it."""

    node: Node


Instruction = Receive | Send | Compute | Host


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """What one task does in a step.

    Attributes:
      task: full task name.
      instructions: in order.
      variables: what the plan uses of the task's state, by operation name.
      constants: values of constants that are used outside of executables, by tensor name.
      feeds: tensors whose values come with the request to run, in order.
      fetches: tensors whose values go back with the answer, in order.
      block: maximum number of runs that one run may stand for, where that changes nothing (`headwater.passes.blocks`).
      isolated: whether its session has state of its own on the task, which ends with it.
    """

    task: str
    instructions: tuple[Instruction, ...]
    variables: Mapping[str, VariableInfo] = field(default_factory=dict[str, VariableInfo])
    constants: Mapping[str, np.ndarray[Any, Any]] = field(default_factory=dict[str, "np.ndarray[Any, Any]"])
    feeds: tuple[str, ...] = ()
    fetches: tuple[str, ...] = ()
    block: int = 1
    isolated: bool = False

    def describe(self) -> str:
        """The plan for people, one line per instruction."""
        lines = [f"{self.task}: feeds ({', '.join(self.feeds)}) fetches ({', '.join(self.fetches)})"]
        for item in self.instructions:
            match item:
                case Receive():
                    lines.append(f"  receive {item.transfer} from {item.source}: {', '.join(item.tensors)}")
                case Send():
                    lines.append(f"  send {item.transfer} to {item.destination}: {', '.join(item.tensors)}")
                case Host():
                    lines.append(f"  host {item.node.type} {item.node.name}")
                case Compute():
                    static = f" static ({', '.join(item.static)})" if item.static else ""
                    lines.append(f"  compute on {item.device}: ({', '.join(item.inputs)}){static}")
                    lines.extend(f"    {node.type} {node.name}" for node in item.nodes if node.type != "Const")
                    lines.append(f"    -> ({', '.join(item.outputs)})")
        return "\n".join(lines)


def encode_plan(plan: TaskPlan) -> bytes:
    """``plan`` as bytes for its task."""
    graph = graph_pb2.GraphDef()

    def add(node: Node) -> int:
        proto = graph.node.add(name=node.name, op=node.type, input=node.inputs)
        for key, value in node.attrs.items():
            proto.attr[key].CopyFrom(attr_value(value))
        return len(graph.node) - 1

    instructions: list[list[Any]] = []
    refs: list[list[list[Any]]] = []

    def index(node: Node) -> int:
        refs.append([[position, name] for position, name in node.refs.items()])
        return add(node)

    for item in plan.instructions:
        match item:
            case Receive():
                instructions.append(["receive", item.transfer, item.source, item.tensors])
            case Send():
                instructions.append(["send", item.transfer, item.destination, item.tensors])
            case Compute():
                nodes = [index(node) for node in item.nodes]
                instructions.append(["compute", item.device, nodes, item.inputs, item.static, item.outputs])
            case Host():
                instructions.append(["host", index(item.node)])
    return msgpack.packb(
        {
            "format": FORMAT,
            "task": plan.task,
            "instructions": instructions,
            "refs": refs,
            "variables": [[v.name, v.cell, v.container, v.device] for v in plan.variables.values()],
            "constants": [[name, make_tensor_proto(v).SerializeToString()] for name, v in plan.constants.items()],
            "feeds": plan.feeds,
            "fetches": plan.fetches,
            "block": plan.block,
            "isolated": plan.isolated,
            "graph": graph.SerializeToString(deterministic=True),
        }
    )


def decode_plan(data: bytes) -> TaskPlan:
    """The plan that `encode_plan` wrote.

    Raises:
      InvalidArgumentError: anything in it is not as it should be, such as an operation type this version lacks.
    """
    try:
        raw: Any = msgpack.unpackb(data, strict_map_key=True)
        if raw["format"] != FORMAT:
            raise ValueError(f"format {raw['format']}, and this version reads {FORMAT}")
        graph = graph_pb2.GraphDef.FromString(raw["graph"])
        nodes = [_node(proto, refs) for proto, refs in zip(graph.node, raw["refs"], strict=True)]
        variables = [VariableInfo(*_texts(item)) for item in raw["variables"]]
        constants: dict[str, np.ndarray[Any, Any]] = {
            _text(name): make_ndarray(tensor_pb2.TensorProto.FromString(value)) for name, value in raw["constants"]
        }
        plan = TaskPlan(
            task=_text(raw["task"]),
            instructions=tuple(_instruction(item, nodes) for item in raw["instructions"]),
            variables={v.name: v for v in variables},
            constants=constants,
            feeds=_texts(raw["feeds"]),
            fetches=_texts(raw["fetches"]),
            block=_number(raw["block"]),
            isolated=bool(raw["isolated"]),
        )
        check_plan(plan)
        return plan
    except (ValueError, TypeError, KeyError, IndexError, DecodeError) as error:
        raise InvalidArgumentError(None, None, f"not a well-formed plan: {error}") from error


def _node(proto: Any, refs: Any) -> Node:
    lookup(proto.op)  # KeyError for a type that is not there
    attrs = {str(key): read_attr(value) for key, value in proto.attr.items()}
    return Node(proto.name, proto.op, tuple(proto.input), {_number(p): _text(n) for p, n in refs}, attrs)


def _instruction(item: Any, nodes: list[Node]) -> Instruction:
    kind, *parts = item
    if kind == "receive":
        transfer, source, tensors = parts
        return Receive(_number(transfer), _text(source), _texts(tensors))
    if kind == "send":
        transfer, destination, tensors = parts
        return Send(_number(transfer), _text(destination), _texts(tensors))
    if kind == "compute":
        device, indices, inputs, static, outputs = parts
        chosen = tuple(nodes[_number(index)] for index in indices)
        return Compute(_text(device), chosen, _texts(inputs), _texts(static), _texts(outputs))
    if kind == "host":
        (index,) = parts
        return Host(nodes[_number(index)])
    raise ValueError(f"no instruction: {str(item)[:80]}")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a name was expected, not {str(value)[:80]}")
    return value


def _texts(values: Any) -> tuple[str, ...]:
    return tuple(_text(value) for value in values)


def _number(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise TypeError(f"a number of something was expected, not {str(value)[:80]}")
    return value


def check_plan(plan: TaskPlan) -> None:
    """Makes sure that every instruction finds what it uses.

    Raises:
      ValueError: one does not; the message names it and what is missing.
    """
    known = _Known({*plan.feeds, *plan.constants})
    for item in plan.instructions:
        match item:
            case Receive():
                known.tensors.update(item.tensors)
            case Send():
                known.need(item.tensors, f"send {item.transfer} to {item.destination}")
            case Compute():
                where = f"compute on {item.device}"
                known.need(item.inputs, where)
                inside = _Known(set(item.inputs))
                inside.need(item.static, f"what is static in {where}")
                for node in item.nodes:
                    inside.add_node(node, plan.variables)
                inside.need(item.outputs, f"the end of {where}")
                known.tensors.update(item.outputs)
            case Host():
                known.add_node(item.node, plan.variables)
    known.need(plan.fetches, "the answer")


@dataclass(frozen=True, slots=True)
class _Known:
    """What is there at a point of a plan: tensors, and all outputs of some operations."""

    tensors: set[str]
    ops: set[str] = field(default_factory=set[str])

    def need(self, names: Iterable[str], what: str) -> None:
        missing = [name for name in names if name not in self.tensors and name.rpartition(":")[0] not in self.ops]
        if missing:
            raise ValueError(f"{what} needs {', '.join(missing)}, which nothing before it gives")

    def add_node(self, node: Node, variables: Mapping[str, VariableInfo]) -> None:
        self.need((name for index, name in enumerate(node.inputs) if index not in node.refs), node.name)
        used = [*node.refs.values(), *([node.name] if node.type == "VariableV2" else ())]
        unknown = [name for name in used if name not in variables]
        absent = [index for index in node.definition.ref_positions(node.attrs) if index not in node.refs]
        if unknown or absent or any(index >= len(node.inputs) for index in node.refs):
            raise ValueError(f"{node.type} {node.name} lacks variables it needs: {unknown or absent or node.refs}")
        self.ops.add(node.name)
