"""Transformations of ``GraphDef``: subgraphs, constants in place of variables, removal of training operations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from headwater.data.io.tensor_proto import make_tensor_proto
from headwater.dtypes import from_numpy
from headwater.graph.tensor_names import full_name, source_of
from headwater.shapes import TensorShape
from headwater.tensorboard_protos import graph_pb2, node_def_pb2, types_pb2

if TYPE_CHECKING:
    from headwater.graph.graph import Graph
    from headwater.graph.types import SessionLike
    from headwater.tensorboard_protos import GraphDef, NodeDef


_VARIABLES = ("Variable", "VariableV2", "VarHandleOp")


def _like(graph_def: GraphDef, nodes: Iterable[NodeDef]) -> object:
    """Returns a graph of ``nodes`` with the versions and functions of ``graph_def``."""
    result = graph_pb2.GraphDef()
    result.node.extend(nodes)
    result.library.CopyFrom(graph_def.library)
    result.versions.CopyFrom(graph_def.versions)
    return result


def extract_sub_graph(graph_def: GraphDef, dest_nodes: Sequence[str]) -> Any:
    """Returns the part of a graph that some nodes need, including these nodes.

    Raises:
      TypeError: ``graph_def`` is not a ``GraphDef``, or ``dest_nodes`` is a string.
      AssertionError: the graph has no node with one of the names.
    """
    if not isinstance(graph_def, graph_pb2.GraphDef):
        raise TypeError("graph_def must be a graph_pb2.GraphDef proto.")
    if isinstance(dest_nodes, str):
        raise TypeError("dest_nodes must be a list.")
    nodes = {node.name: node for node in graph_def.node}
    for name in dest_nodes:
        assert name in nodes, f"{name} is not in graph"
    needed: set[str] = set()
    waiting = [source_of(name) for name in dest_nodes]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting.extend(map(source_of, nodes[name].input))
    return _like(graph_def, (node for node in graph_def.node if node.name in needed))


def convert_variables_to_constants(
    sess: SessionLike,
    input_graph_def: GraphDef,
    output_node_names: Sequence[str],
    variable_names_whitelist: Iterable[str] | None = None,
    variable_names_blacklist: Iterable[str] | None = None,
) -> Any:
    """Returns the part of a graph that some nodes need, and replaces its variables by constants.

    Args:
      sess: the session that has the values of the variables.
      output_node_names: names of the nodes.
      variable_names_whitelist: names of the variables to replace; None replaces all.
      variable_names_blacklist: names of variables to keep.
    """
    part = extract_sub_graph(input_graph_def, output_node_names)
    allowed = None if variable_names_whitelist is None else set(variable_names_whitelist)
    kept = set(variable_names_blacklist or ())
    found = {
        node.name: node.op
        for node in part.node
        if node.op in _VARIABLES and (allowed is None or node.name in allowed) and node.name not in kept
    }
    reads = {node.name: node.input[0] for node in part.node if node.op == "ReadVariableOp"}
    fetched: dict[str, str] = {}
    for name, kind in found.items():
        of_handle = [read for read, source in reads.items() if source_of(source) == name]
        if kind != "VarHandleOp":
            fetched[name] = f"{name}:0"
        elif of_handle:
            fetched[name] = f"{of_handle[0]}:0"
    values = dict(zip(fetched, sess.run(list(fetched.values())), strict=True)) if fetched else {}
    return _like(part, [_frozen(node, values) for node in part.node])


def _frozen(node: NodeDef, values: dict[str, Any]) -> Any:
    made = node_def_pb2.NodeDef()
    if node.name in values:
        value = values[node.name]
        made.op, made.name = "Const", node.name
        made.attr["dtype"].type = from_numpy(value.dtype).as_datatype_enum
        made.attr["value"].tensor.CopyFrom(make_tensor_proto(value))
    elif node.op == "ReadVariableOp" and source_of(node.input[0]) in values:
        made.op, made.name = "Identity", node.name
        made.input.append(node.input[0])
        made.attr["T"].CopyFrom(node.attr["dtype"])
    else:
        made.CopyFrom(node)
    return made


def remove_training_nodes(input_graph: Any, protected_nodes: Sequence[str] | None = None) -> Any:
    """Returns a graph without ``CheckNumerics`` and ``Identity`` operations, except those with control dependencies.

    Args:
      protected_nodes: names of nodes to keep.
    """
    kept = set(protected_nodes or ())
    controls = {source_of(text) for node in input_graph.node for text in node.input if text.startswith("^")}
    replaced_by: dict[str, str] = {}
    for node in input_graph.node:
        has_controls = any(text.startswith("^") for text in node.input)
        removable = node.op in ("CheckNumerics", "Identity") and not has_controls
        if removable and node.name not in kept and node.name not in controls:
            replaced_by[node.name] = node.input[0]

    def source(text: str) -> str:
        while (name := re.sub(r":0$", "", text)) in replaced_by:
            text = replaced_by[name]
        return text

    nodes: Iterable[NodeDef] = []
    for node in input_graph.node:
        if node.name not in replaced_by:
            made = node_def_pb2.NodeDef()
            made.CopyFrom(node)
            del made.input[:]
            made.input.extend(text if text.startswith("^") else source(text) for text in node.input)
            nodes.append(made)
    return _like(input_graph, nodes)


def tensor_shape_from_node_def_name(graph: Graph, input_name: str) -> TensorShape:
    """Returns the static shape of a tensor, given the name of a node's input: ``x`` or ``x:1``."""
    return graph.get_tensor_by_name(full_name(input_name)).get_shape()


_VARIABLE_TYPES = ("Variable", "VariableV2", "Assign", "AssignAdd", "AssignSub", "VarHandleOp", "ReadVariableOp")


def must_run_on_cpu(node: NodeDef, pin_variables_on_cpu: bool = False) -> bool:
    """Returns whether an operation must run on a CPU. Constants of strings and of int32 must.

    Args:
      node: an operation or a ``NodeDef``.
      pin_variables_on_cpu: whether operations on variables must run on a CPU, too.
    """
    proto = node if isinstance(node, node_def_pb2.NodeDef) else node.node_def
    if pin_variables_on_cpu and proto.op in _VARIABLE_TYPES:
        return True
    return proto.op == "Const" and proto.attr["dtype"].type in (types_pb2.DT_STRING, types_pb2.DT_INT32)
