"""Graphs as GraphDefs and back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from headwater import tf
from headwater.graph.graph_def import graph_def, subgraph_def
from headwater.graph.importer import extend_graph, load_graph
from headwater.tensorboard_protos import graph_pb2
from tests.conformance.cases.graph_defs import nodes
from tests.support.random_graphs import Program, build, programs

GRAPHS = sorted((Path(__file__).resolve().parents[2] / "data" / "tf1" / "graphs").glob("*.pb"))


@pytest.mark.parametrize("path", GRAPHS, ids=lambda path: path.stem)
def test_graphs_that_tensorflow_wrote(path: Path) -> None:
    """Nodes, devices, attributes and static shapes equal TensorFlow's."""
    proto = graph_pb2.GraphDef.FromString(path.read_bytes())
    assert nodes(load_graph(proto).as_graph_def(add_shapes=True)) == nodes(proto)


@pytest.mark.parametrize("path", GRAPHS, ids=lambda path: path.stem)
def test_constants_that_tensorflow_wrote(path: Path) -> None:
    proto = graph_pb2.GraphDef.FromString(path.read_bytes())
    again = load_graph(load_graph(proto).as_graph_def())
    for op in load_graph(proto).get_operations():
        if op.type == "Const":
            np.testing.assert_array_equal(again.get_operation_by_name(op.name).attrs["value"], op.attrs["value"])


@settings(max_examples=50, deadline=None)
@given(programs)
def test_round_trip(program: Program) -> None:
    graph = build(program, placed=True).graph
    proto = graph.as_graph_def(add_shapes=True)
    again = load_graph(graph_pb2.GraphDef.FromString(proto.SerializeToString()))
    assert again.as_graph_def(add_shapes=True) == proto
    assert [op.name for op in again.get_operations()] == [op.name for op in graph.get_operations()]


def test_import_puts_names_in_a_scope() -> None:
    with tf.Graph().as_default() as source:
        x = tf.constant(1, name="x")
        with tf.control_dependencies([tf.no_op(name="before")]), tf.colocate_with(x):
            tf.identity(tf.constant(2, name="z"), name="y")
    with tf.Graph().as_default() as graph:
        assert tf.import_graph_def(source.as_graph_def()) is None
        tf.import_graph_def(source.as_graph_def())
        tf.import_graph_def(source.as_graph_def(), name="mine")
        tf.import_graph_def(source.as_graph_def(), name="")
        with tf.name_scope("outer"):
            tf.import_graph_def(source.as_graph_def(), name="inner")
        names = [op.name for op in graph.get_operations()]
    scopes = ["import/", "import_1/", "mine/", "", "outer/inner/"]
    assert names == [scope + op.name for scope in scopes for op in source.get_operations()]
    z = graph.get_operation_by_name("mine/z")
    assert [op.name for op in z.control_inputs] == ["mine/before"]
    assert z.colocation_groups() == [b"loc:@mine/x"]


def test_import_maps_inputs_and_returns_elements() -> None:
    with tf.Graph().as_default() as source:
        doubled = tf.placeholder(tf.float32, [2], name="x") * 2.0
        axis = tf.constant(0)
        with tf.control_dependencies([tf.no_op(name="before")]):
            tf.split(doubled, 2, axis, name="parts")
    with tf.Graph().as_default():
        mine = tf.constant([1.0, 2.0])
        after = tf.no_op(name="after")
        found = tf.import_graph_def(
            source.as_graph_def(), {"x:0": mine, "^before": after}, ["parts:1", "mul", "mul:0"], name="of"
        )
    assert found is not None
    assert [element.name for element in found] == ["of/parts:1", "of/mul", "of/mul:0"]
    part, product, _ = found
    assert isinstance(product, tf.Operation)
    assert product.inputs[0] is mine
    assert isinstance(part, tf.Tensor)
    assert part.op.control_inputs == [after]


def _with_unknown_type(proto: Any) -> None:
    proto.node[0].op = "NoSuchOperation"


def _with_unknown_input(proto: Any) -> None:
    proto.node[1].input[0] = "nowhere"


def _with_unknown_output(proto: Any) -> None:
    proto.node[1].input[0] = "x:7"


def _with_a_node_twice(proto: Any) -> None:
    proto.node.add().CopyFrom(proto.node[0])


def _with_a_cycle(proto: Any) -> None:
    proto.node[0].input.append("^y")


def _with_a_bad_device(proto: Any) -> None:
    proto.node[0].device = "nowhere"


def _with_another_shape(proto: Any) -> None:
    proto.node[0].attr["_output_shapes"].list.shape.add().dim.add(size=3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_with_unknown_type, "not registered 'NoSuchOperation'.*'x'"),
        (_with_unknown_input, "'y'.*'nowhere'"),
        (_with_unknown_output, "'y': .* output 7 of source node x "),
        (_with_a_node_twice, "'x' is not unique"),
        (_with_a_cycle, "cycle"),
        (_with_a_bad_device, "nowhere"),
        (_with_another_shape, "'x' says another shape"),
    ],
)
def test_import_names_the_fault(change: Callable[[Any], None], message: str) -> None:
    with tf.Graph().as_default() as graph:
        tf.identity(tf.constant(1, name="x"), name="y")
    proto = graph.as_graph_def()
    change(proto)
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        tf.import_graph_def(proto, name="")


def test_import_refuses_unused_inputs_and_missing_elements() -> None:
    with tf.Graph().as_default() as graph:
        tf.constant(1, name="x")
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match=r"not found in graph_def.*q:0"):
            tf.import_graph_def(graph.as_graph_def(), {"q": tf.constant(1)})
        with pytest.raises(ValueError, match="node 'q' not found"):
            tf.import_graph_def(graph.as_graph_def(), return_elements=["q"])
        with pytest.raises(TypeError, match="GraphDef"):
            tf.import_graph_def(5)


def test_graph_def_from_a_version() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.constant(1, name="x")
        version = graph.version
        y = tf.identity(x, name="y")
        assert [node.name for node in graph_def(graph, from_version=version).node] == ["y"]
        assert [node.name for node in subgraph_def([x.op]).node] == ["x"]
    copy = load_graph(subgraph_def([x.op]))
    extend_graph(copy, graph_def(graph, from_version=version))
    assert copy.get_tensor_by_name(y.name).op.inputs[0].name == "x:0"
    with pytest.raises(ValueError, match="'y' is in the graph already"):
        extend_graph(copy, graph_def(graph, from_version=version))


def test_a_long_chain_needs_no_deep_stack() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.constant(1.0)
        for _ in range(3000):
            x = tf.identity(x)
    proto = graph.as_graph_def()
    backwards = graph_pb2.GraphDef(versions=proto.versions, node=reversed(proto.node))
    assert len(load_graph(backwards).get_operations()) == 3001
