"""Conversion of graphs and operations to ``GraphDef`` and ``NodeDef``."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from headwater.graph.attr_value import write_attr
from headwater.graph.registry import lookup
from headwater.tensorboard_protos import attr_value_pb2, graph_pb2, node_def_pb2

if TYPE_CHECKING:
    from headwater.graph.graph import Graph
    from headwater.graph.operation import Operation, Tensor
    from headwater.tensorboard_protos import GraphDef

PRODUCER_VERSION = 134  # of TensorFlow 1.15's GraphDefs


def graph_def(graph: Graph, from_version: int | None = None, add_shapes: bool = False) -> GraphDef:
    """Converts ``graph`` to a ``GraphDef``; with ``from_version`` only operations added since."""
    proto = graph_pb2.GraphDef()
    proto.versions.producer = PRODUCER_VERSION
    for op in graph.get_operations():
        if from_version is None or op.number >= from_version:
            _write_node(proto.node.add(), op, add_shapes)
    return proto


def strip_defaults(proto: GraphDef) -> None:
    """Removes attributes with default values from the nodes of a ``GraphDef``."""
    for node in proto.node:
        try:
            parameters = inspect.signature(lookup(node.op).lower).parameters
        except KeyError:
            continue
        for name in [name for name in node.attr if name in parameters]:
            default = parameters[name].default
            if default is inspect.Parameter.empty or default is None:
                continue
            written = attr_value_pb2.AttrValue()
            write_attr(written, default)
            if written == node.attr[name]:
                del node.attr[name]


def subgraph_def(ops: Iterable[Operation]) -> GraphDef:
    """Converts only ``ops`` to a ``GraphDef``."""
    proto = graph_pb2.GraphDef()
    proto.versions.producer = PRODUCER_VERSION
    for op in ops:
        _write_node(proto.node.add(), op, add_shapes=False)
    return proto


def node_def(op: Operation) -> Any:
    """Converts ``op`` to a ``NodeDef``."""
    proto = node_def_pb2.NodeDef()
    _write_node(proto, op, add_shapes=False)
    return proto


def _write_node(proto: GraphDef, op: Operation, add_shapes: bool) -> None:
    proto.name = op.name
    proto.op = op.type
    proto.device = op.device
    proto.input.extend(_input_name(tensor) for tensor in op.inputs)
    proto.input.extend(f"^{control.name}" for control in op.control_inputs)
    for key, source in op.definition.types.items():
        if key not in op.attrs and -len(op.inputs) <= source < len(op.inputs):
            proto.attr[key].type = op.inputs[source].dtype.base_dtype.as_datatype_enum
    for key, value in op.attrs.items():
        write_attr(proto.attr[key], value)
    if add_shapes and op.outputs:
        shapes = proto.attr["_output_shapes"].list.shape
        shapes.extend(tensor.shape.as_proto() for tensor in op.outputs)


def _input_name(tensor: Tensor) -> str:
    return tensor.op.name if tensor.value_index == 0 else tensor.name
