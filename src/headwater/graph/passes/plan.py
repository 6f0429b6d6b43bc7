"""Plans: the part of one task in a step, as a frozen list of instructions.

A plan refers to tensors (``operation:output``) and operations by name, so its task does not need the graph. It is sent
to the task once, as msgpack with the operations as ``GraphDef`` messages, and is compiled there. Several workers often
send a ``ps`` plans that differ only in the workers' names, which the `Compute` instructions do not contain. So each
`Compute` is encoded separately, and a task decodes equal ones only once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import msgpack
import numpy as np
from google.protobuf.message import DecodeError

from headwater.data.io.tensor_proto import make_ndarray, make_tensor_proto
from headwater.errors import InvalidArgumentError
from headwater.graph.attr_value import attr_value, read_attr
from headwater.graph.registry import OpDef, lookup
from headwater.graph.tensor_names import operation_of
from headwater.tensorboard_protos import graph_pb2, tensor_pb2

if TYPE_CHECKING:
    from headwater.graph.types import SparseLike


FORMAT = 4


@dataclass(frozen=True, slots=True)
class Node:
    """One operation of a plan.

    Attributes:
      name: the operation's name in its graph.
      type: its operation type.
      inputs: names of its input tensors.
      refs: the inputs that are references to variables: maps the position of the input to the name of the operation
        that defines the variable.
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

    def rename_inputs(self, names: Mapping[str, str]) -> Node:
        """Returns the node with input tensors renamed; tensors that are not in ``names`` keep their names."""
        inputs = tuple(names.get(name, name) for name in self.inputs)
        return self if inputs == self.inputs else replace(self, inputs=inputs)


@dataclass(frozen=True, slots=True)
class VariableInfo:
    """A variable that a plan uses, in a container of the task.

    Attributes:
      name: name of the variable's operation.
      cell: the name under which the container stores the variable.
      container: the container's name; empty for the default one.
      device: the variable's device, e.g. ``CPU:0``.
    """

    name: str
    cell: str
    container: str
    device: str


@dataclass(frozen=True, slots=True)
class Receive:
    """An instruction to wait for the tensors of a transfer.

    Attributes:
      transfer: number of the transfer within the step.
      source: full name of the sending task.
      tensors: names of the tensors, in order.
    """

    transfer: int
    source: str
    tensors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Send:
    """An instruction to send tensors to another task, whose plan has the corresponding `Receive`."""

    transfer: int
    destination: str
    tensors: tuple[str, ...]


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Compute:
    """An instruction to run operations as one part, on kernels or as an executable.

    Attributes:
      device: the device, e.g. ``CPU:0``.
      nodes: the operations in order, including constants.
      inputs: names of the tensors that are computed outside and used here.
      static: the inputs whose values must be known when compiling.
      outputs: names of the tensors that are computed here and used outside. For a reference to a variable, the output
        is the value of the variable after the operation that returns the reference.
      digest: BLAKE2b hash of the encoded form, which is set by decoding. Empty for an instruction that this process has
        created, also by changing a decoded one.
    """

    device: str
    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    static: tuple[str, ...]
    outputs: tuple[str, ...]
    digest: bytes = field(default=b"", init=False, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Host:
    """An instruction to run one operation in Python.

    For an input that is a reference to a variable, an operation of kind `Kind.HOST` receives the variable's cell. Other
    operations, which this instruction runs in their form for strings, receive the variable's value.
    """

    node: Node


Instruction = Receive | Send | Compute | Host


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """The part of one task in a step.

    Attributes:
      task: full task name.
      instructions: the instructions in the order of their execution.
      variables: the task's variables that the plan uses, by operation name.
      constants: values of constants used outside of executables, by tensor name.
      feeds: tensors sent with the request to run, in order.
      fetches: tensors returned with the answer, in order.
      block: the most runs that the task may make in answer to one request to run. More than one run is made only if the
        results are the same as with separate requests; see `headwater.graph.passes.block_plan` and
        `headwater.graph.passes.repetition`.
      isolated: whether the session has separate state on the task, which is discarded at the end of the session.
      jit_level: the session's ``global_jit_level``. A negative level runs all operations on kernels, a positive level
        compiles them, and at 0 the task decides.
    """

    task: str
    instructions: tuple[Instruction, ...]
    variables: Mapping[str, VariableInfo] = field(default_factory=dict[str, VariableInfo])
    constants: Mapping[str, np.ndarray[Any, Any]] = field(default_factory=dict[str, "np.ndarray[Any, Any]"])
    feeds: tuple[str, ...] = ()
    fetches: tuple[str, ...] = ()
    block: int = 1
    isolated: bool = False
    jit_level: int = 0

    def describe(self) -> str:
        """Returns the plan as readable text, one line per instruction."""
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


def inputs_of(item: Instruction) -> Sequence[str]:
    """Returns the names of the tensors that an instruction takes."""
    match item:
        case Compute():
            return item.inputs
        case Host():
            return item.node.inputs
        case Send():
            return item.tensors
        case Receive():
            return ()


def outputs_of(item: Instruction) -> Sequence[str]:
    """Returns the names of the tensors that an executable computes or a transfer contains. Returns none for an
    operation on the host, whose outputs the plan does not list."""
    match item:
        case Compute():
            return item.outputs
        case Receive():
            return item.tensors
        case Host() | Send():
            return ()


def encode_plan(plan: TaskPlan) -> bytes:
    """Encodes ``plan`` for its task."""
    instructions: list[list[object]] = []
    for item in plan.instructions:
        match item:
            case Receive():
                instructions.append(["receive", item.transfer, item.source, item.tensors])
            case Send():
                instructions.append(["send", item.transfer, item.destination, item.tensors])
            case Compute():
                instructions.append(["compute", encode_compute(item)])
            case Host():
                instructions.append(["host", *_packed([item.node])])
    return msgpack.packb(
        {
            "format": FORMAT,
            "task": plan.task,
            "instructions": instructions,
            "variables": [[v.name, v.cell, v.container, v.device] for v in plan.variables.values()],
            "constants": [[name, make_tensor_proto(v).SerializeToString()] for name, v in plan.constants.items()],
            "feeds": plan.feeds,
            "fetches": plan.fetches,
            "block": plan.block,
            "isolated": plan.isolated,
            "jit_level": plan.jit_level,
        }
    )


def encode_compute(item: Compute) -> bytes:
    """Encodes ``item``; the bytes are equal for equal instructions."""
    return msgpack.packb([item.device, *_packed(item.nodes), item.inputs, item.static, item.outputs])


def _packed(nodes: Iterable[Node]) -> tuple[bytes, list[list[list[Any]]]]:
    """Returns operations as an encoded ``GraphDef``, and for each one its references, as pairs (position, variable)."""
    graph = graph_pb2.GraphDef()
    refs: list[list[list[object]]] = []
    for node in nodes:
        proto = graph.node.add(name=node.name, op=node.type, input=node.inputs)
        for key, value in node.attrs.items():
            proto.attr[key].CopyFrom(attr_value(value))
        refs.append([[position, name] for position, name in node.refs.items()])
    return graph.SerializeToString(deterministic=True), refs


def decode_plan(data: bytes) -> TaskPlan:
    """Decodes the result of `encode_plan`.

    Raises:
      InvalidArgumentError: the plan is malformed, or has, for example, an operation type unknown to this version.
    """
    try:
        raw = msgpack.unpackb(data, strict_map_key=True)
        if raw["format"] != FORMAT:
            raise ValueError(f"the plan has format {raw['format']}; this version of Headwater reads format {FORMAT}")
        variables = [VariableInfo(*_texts(item)) for item in raw["variables"]]
        constants = {
            _text(name): make_ndarray(tensor_pb2.TensorProto.FromString(value)) for name, value in raw["constants"]
        }
        plan = TaskPlan(
            task=_text(raw["task"]),
            instructions=tuple(_instruction(item) for item in raw["instructions"]),
            variables={v.name: v for v in variables},
            constants=constants,
            feeds=_texts(raw["feeds"]),
            fetches=_texts(raw["fetches"]),
            block=_number(raw["block"]),
            isolated=bool(raw["isolated"]),
            jit_level=int(raw["jit_level"]),
        )
        check_plan(plan)
        return plan
    except (ValueError, TypeError, OverflowError, KeyError, IndexError, DecodeError) as error:
        raise InvalidArgumentError(f"not a well-formed plan: {error}") from error


def _instruction(item: Any) -> Instruction:
    kind, *parts = item
    if kind == "receive":
        transfer, source, tensors = parts
        return Receive(_number(transfer), _text(source), _texts(tensors))
    if kind == "send":
        transfer, destination, tensors = parts
        return Send(_number(transfer), _text(destination), _texts(tensors))
    if kind == "compute":
        (packed,) = parts
        return _decode_compute(packed)
    if kind == "host":
        (node,) = _unpacked(*parts)
        return Host(node)
    raise ValueError(f"unknown instruction: {str(item)[:80]}")


_decoded: WeakValueDictionary[bytes, Compute] = WeakValueDictionary()


def _decode_compute(data: bytes) -> Compute:
    """Decodes the result of `encode_compute`. For equal bytes, returns the same object as long as it is in use."""
    digest = hashlib.blake2b(data).digest()
    found = _decoded.get(digest)
    if found is None:
        device, graph, refs, inputs, static, outputs = msgpack.unpackb(data, strict_map_key=True)
        nodes = tuple(_unpacked(graph, refs))
        found = Compute(_text(device), nodes, _texts(inputs), _texts(static), _texts(outputs))
        _check_compute(found)
        object.__setattr__(found, "digest", digest)
        _decoded[digest] = found
    return found


def _unpacked(graph: bytes, refs: Sequence[Any]) -> Iterator[Node]:
    for proto, its in zip(graph_pb2.GraphDef.FromString(graph).node, refs, strict=True):
        lookup(proto.op)  # KeyError for an unknown type
        attrs = {str(key): read_attr(value) for key, value in proto.attr.items()}
        yield Node(proto.name, proto.op, tuple(proto.input), {_number(p): _text(n) for p, n in its}, attrs)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a name was expected, not {str(value)[:80]}")
    return value


def _texts(values: Any) -> tuple[str, ...]:
    return tuple(_text(value) for value in values)


def _number(value: SparseLike) -> int:
    if not isinstance(value, int) or value < 0:
        raise TypeError(f"a number was expected, not {str(value)[:80]}")
    return value


def check_plan(plan: TaskPlan) -> None:
    """Checks that the inputs of every instruction are available.

    Raises:
      ValueError: an input is missing; the message names the instruction and the input.
    """
    known = _Known({*plan.feeds, *plan.constants})
    for item in plan.instructions:
        match item:
            case Receive():
                known.tensors.update(item.tensors)
            case Send():
                known.need(item.tensors, f"send {item.transfer} to {item.destination}")
            case Compute():
                known.need(item.inputs, f"compute on {item.device}")
                if not item.digest:
                    _check_compute(item)
                _need_variables(item.nodes, plan.variables)
                known.tensors.update(item.outputs)
            case Host():
                known.add_node(item.node)
                _need_variables((item.node,), plan.variables)
    known.need(plan.fetches, "the answer")


def _check_compute(item: Compute) -> None:
    """Checks that each operation's inputs are computed before it or passed in. References to variables are not checked.

    Raises:
      ValueError: an input is missing; the message names the operation and the input.
    """
    where = f"compute on {item.device}"
    inside = _Known(set(item.inputs))
    inside.need(item.static, f"the list of static inputs of {where}")
    for node in item.nodes:
        inside.add_node(node)
    inside.need(item.outputs, f"the end of {where}")


def _need_variables(nodes: Iterable[Node], variables: Mapping[str, VariableInfo]) -> None:
    for node in nodes:
        used = [*node.refs.values(), *([node.name] if node.type == "VariableV2" else ())]
        if unknown := [name for name in used if name not in variables]:
            raise ValueError(f"{node.type} {node.name} needs variables that the plan lacks: {unknown}")


@dataclass(frozen=True, slots=True)
class _Known:
    """The tensors that the instructions up to a point of a plan have made available.

    Attributes:
      tensors: names of available tensors.
      ops: names of operations of which all outputs are available.
    """

    tensors: set[str]
    ops: set[str] = field(default_factory=set[str])

    def need(self, names: Iterable[str], what: str) -> None:
        missing = [name for name in names if name not in self.tensors and operation_of(name) not in self.ops]
        if missing:
            raise ValueError(f"{what} needs {', '.join(missing)}, which no earlier instruction provides")

    def add_node(self, node: Node) -> None:
        self.need((name for index, name in enumerate(node.inputs) if index not in node.refs), node.name)
        absent = [index for index in node.definition.ref_positions(node.attrs) if index not in node.refs]
        if absent or any(index >= len(node.inputs) for index in node.refs):
            raise ValueError(f"{node.type} {node.name} needs variables that the plan lacks: {absent or node.refs}")
        self.ops.add(node.name)
