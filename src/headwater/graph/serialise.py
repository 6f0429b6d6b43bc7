"""Graphs as ``GraphDef`` and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from headwater.dtypes import DType, as_dtype
from headwater.graph.context import get_default_graph
from headwater.graph.graph import Graph
from headwater.graph.operation import Operation, Tensor
from headwater.graph.tensor_proto import make_ndarray, make_tensor_proto
from headwater.registry import FunctionAttr, lookup
from headwater.shapes import TensorShape
from headwater.tensorboard_protos import attr_value_pb2, graph_pb2, node_def_pb2

PRODUCER_VERSION = 134  # of TensorFlow 1.15's GraphDefs


def graph_def(graph: Graph, from_version: int | None = None, add_shapes: bool = False) -> Any:
    """``graph`` as a ``GraphDef``; with ``from_version`` only what was added since."""
    proto = graph_pb2.GraphDef()
    proto.versions.producer = PRODUCER_VERSION
    for op in graph.get_operations():
        if from_version is None or op.number >= from_version:
            _write_node(proto.node.add(), op, add_shapes)
    return proto


def subgraph_def(ops: Iterable[Operation]) -> Any:
    """A ``GraphDef`` of just ``ops``."""
    proto = graph_pb2.GraphDef()
    proto.versions.producer = PRODUCER_VERSION
    for op in ops:
        _write_node(proto.node.add(), op, add_shapes=False)
    return proto


def node_def(op: Operation) -> Any:
    """``op`` as a ``NodeDef``."""
    proto = node_def_pb2.NodeDef()
    _write_node(proto, op, add_shapes=False)
    return proto


def _write_node(proto: Any, op: Operation, add_shapes: bool) -> None:
    proto.name = op.name
    proto.op = op.type
    proto.device = op.device
    proto.input.extend(_input_name(tensor) for tensor in op.inputs)
    proto.input.extend(f"^{control.name}" for control in op.control_inputs)
    for key, source in op.definition.types.items():
        if key not in op.attrs and -len(op.inputs) <= source < len(op.inputs):
            proto.attr[key].type = op.inputs[source].dtype.base_dtype.as_datatype_enum
    for key, value in op.attrs.items():
        _write_attr(proto.attr[key], value)
    if add_shapes:
        shapes = proto.attr["_output_shapes"].list.shape
        shapes.extend(tensor.shape.as_proto() for tensor in op.outputs)


def _input_name(tensor: Tensor) -> str:
    return tensor.op.name if tensor.value_index == 0 else tensor.name


def _write_attr(proto: Any, value: Any) -> None:
    if isinstance(value, bool | np.bool_):
        proto.b = bool(value)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, int | np.integer):
        proto.i = int(value)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, float | np.floating):
        proto.f = float(value)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, str):
        proto.s = value.encode()
    elif isinstance(value, bytes):
        proto.s = value
    elif isinstance(value, DType):
        proto.type = value.as_datatype_enum
    elif isinstance(value, TensorShape):
        proto.shape.CopyFrom(value.as_proto())
    elif isinstance(value, np.ndarray):
        proto.tensor.CopyFrom(make_tensor_proto(value))
    elif isinstance(value, FunctionAttr):
        proto.func.name = value.name
        for key, inner in value.attrs:
            _write_attr(proto.func.attr[key], inner)
    elif isinstance(value, list | tuple):
        _write_list(proto.list, list(value))  # pyright: ignore[reportUnknownArgumentType]
    else:
        raise TypeError(f"an attribute of type {type(value).__name__} has no form in a GraphDef: {value!r}")


def _write_list(proto: Any, values: list[Any]) -> None:
    proto.SetInParent()
    for value in values:
        if isinstance(value, bool):
            proto.b.append(value)
        elif isinstance(value, int):
            proto.i.append(value)
        elif isinstance(value, float):
            proto.f.append(value)
        elif isinstance(value, str):
            proto.s.append(value.encode())
        elif isinstance(value, bytes):
            proto.s.append(value)
        elif isinstance(value, DType):
            proto.type.append(value.as_datatype_enum)
        elif isinstance(value, TensorShape):
            proto.shape.append(value.as_proto())
        elif isinstance(value, np.ndarray):
            proto.tensor.append(make_tensor_proto(value))
        else:
            raise TypeError(f"a list with {value!r} has no form in a GraphDef")


def read_attr(proto: Any) -> Any:
    """The Python value of an ``AttrValue``; bytes that are UTF-8 text come as str."""
    kind = proto.WhichOneof("value")
    if kind == "s":
        return _text(proto.s)
    if kind in ("i", "f", "b"):
        return getattr(proto, kind)
    if kind == "type":
        return as_dtype(proto.type)
    if kind == "shape":
        return TensorShape(proto.shape)
    if kind == "tensor":
        return make_ndarray(proto.tensor)
    if kind == "func":
        inner = sorted((key, read_attr(value)) for key, value in proto.func.attr.items())
        return FunctionAttr(proto.func.name, tuple(inner))
    if kind == "list":
        return _read_list(proto.list)
    return None


def _read_list(proto: Any) -> tuple[Any, ...]:
    for field, convert in (
        ("s", _text), ("i", int), ("f", float), ("b", bool), ("type", as_dtype), ("shape", TensorShape),
        ("tensor", make_ndarray),
    ):  # fmt: skip
        values = getattr(proto, field)
        if values:
            return tuple(convert(value) for value in values)  # pyright: ignore[reportUnknownArgumentType]
    return ()


def _text(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def import_graph_def(
    graph_def: Any,
    input_map: Mapping[str, Any] | None = None,
    return_elements: Iterable[str] | None = None,
    name: str | None = None,
    op_dict: Any = None,
    producer_op_list: Any = None,
) -> list[Operation | Tensor] | None:
    """Adds the operations of ``graph_def`` to the default graph.

    Args:
      graph_def: a ``GraphDef``.
      input_map: tensors of the default graph to use in place of named inputs.
      return_elements: names within ``graph_def`` of operations and tensors to return.
      name: prefix of all names (``import`` when None, none at all when empty).
      op_dict: accepted for compatibility.
      producer_op_list: accepted for compatibility.

    Raises:
      TypeError: not a GraphDef.
      ValueError: an unknown operation type, an input that is not there, or a cycle; the message names the node.
    """
    del op_dict, producer_op_list
    if not hasattr(graph_def, "node"):
        raise TypeError("graph_def must be a GraphDef proto.")
    graph = get_default_graph()
    prefix = "import" if name is None else name
    with graph.name_scope(prefix or None) if prefix else graph.name_scope(graph.get_name_scope() + "/") as scope:
        importer = _Importer(graph, graph_def, {_tensor_name(k): v for k, v in (input_map or {}).items()}, scope)
        importer.run()
        unused = set(importer.input_map) - importer.used
        if unused:
            raise ValueError(f"Attempted to map inputs that were not found in graph_def: {sorted(unused)}")
        if return_elements is None:
            return None
        return [importer.element(element) for element in return_elements]


def load_graph(proto: Any) -> Graph:
    """A new graph of exactly ``proto``, names unchanged."""
    graph = Graph()
    extend_graph(graph, proto)
    return graph


def extend_graph(graph: Graph, proto: Any) -> None:
    """Adds ``proto`` to ``graph``, names unchanged; inputs may be operations that are there already.

    Raises:
      ValueError: as `import_graph_def`; also a name that is there already.
    """
    with graph.as_default():
        _Importer(graph, proto, {}, "").run()


def _tensor_name(name: str) -> str:
    return name if ":" in name or name.startswith("^") else f"{name}:0"


class _Importer:
    def __init__(self, graph: Graph, proto: Any, input_map: dict[str, Any], scope: str) -> None:
        self._graph = graph
        self._nodes: dict[str, Any] = {}
        for node in proto.node:
            if node.name in self._nodes:
                raise ValueError(f"Node '{node.name}' is twice in the GraphDef")
            self._nodes[node.name] = node
        self._scope = scope
        self._made: dict[str, Operation] = {}
        self.input_map = input_map
        self.used: set[str] = set()

    def run(self) -> None:
        pending: set[str] = set()
        for first in self._nodes:
            stack = [first]
            while stack:
                name = stack[-1]
                missing = [] if name in self._made else [d for d in self._needs(name) if d not in self._made]
                if missing and name in pending:
                    raise ValueError(f"Node '{name}' lies on a cycle, which GraphDefs of functions do not have")
                if missing:
                    pending.add(name)
                    stack.extend(missing)
                else:
                    if name not in self._made:
                        self._make(self._nodes[name])
                    pending.discard(name)
                    stack.pop()

    def _needs(self, name: str) -> list[str]:
        needed: list[str] = []
        for item in self._nodes[name].input:
            source = item.lstrip("^").partition(":")[0]
            if _tensor_name(item) in self.input_map:
                continue
            if source in self._nodes:
                needed.append(source)
            elif self._scope or not self._exists(source):
                raise ValueError(f"Node '{name}': Unknown input node '{item}'")
        return needed

    def _exists(self, name: str) -> bool:
        try:
            self._graph.get_operation_by_name(name)
        except (KeyError, ValueError):
            return False
        return True

    def _op(self, name: str) -> Operation:
        return self._made[name] if name in self._made else self._graph.get_operation_by_name(name)

    def _tensor(self, name: str) -> Tensor:
        full = _tensor_name(name)
        if full in self.input_map:
            self.used.add(full)
            return self.input_map[full]
        op_name, _, index = full.rpartition(":")
        outputs = self._op(op_name).outputs
        if not index.isdigit() or int(index) >= len(outputs):
            raise ValueError(f"Input '{name}': node '{op_name}' has {len(outputs)} outputs")
        return outputs[int(index)]

    def _make(self, node: Any) -> None:
        try:
            definition = lookup(node.op)
        except KeyError:
            raise ValueError(f"Op type not registered '{node.op}' (node '{node.name}')") from None
        inputs = [self._tensor(item) for item in node.input if not item.startswith("^")]
        controls = [self._control(item) for item in node.input if item.startswith("^")]
        attrs = {
            key: read_attr(value)
            for key, value in node.attr.items()
            if key not in definition.types and key != "_output_shapes"
        }
        groups = attrs.get("_class", ())
        if groups:
            attrs["_class"] = [self._group(group) for group in groups]
        name = self._scope + node.name
        if self._exists(name):
            raise ValueError(f"Node '{name}' is in the graph already")
        op = self._graph.create_op(
            node.op, inputs, attrs, name + "/", device=node.device or None, control_inputs=[c for c in controls if c]
        )
        self._made[node.name] = op

    def _control(self, item: str) -> Operation | None:
        mapped = self.input_map.get(item)
        if mapped is not None:
            self.used.add(item)
            return mapped if isinstance(mapped, Operation) else mapped.op
        return self._op(item[1:])

    def _group(self, group: str | bytes) -> bytes:
        text = group if isinstance(group, str) else group.decode()
        return f"loc:@{self._scope}{text.removeprefix('loc:@')}".encode()

    def element(self, name: str) -> Operation | Tensor:
        """What ``return_elements`` calls ``name``."""
        try:
            return self._tensor(name) if ":" in name else self._made[name]
        except KeyError:
            raise ValueError(f"Requested return_element {name!r} not found in graph_def.") from None


def attr_value(value: Any) -> Any:
    """``value`` as an ``AttrValue``."""
    proto = attr_value_pb2.AttrValue()
    _write_attr(proto, value)
    return proto
