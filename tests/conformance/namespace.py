"""Headwater under the names that the cases use, from the layers below `headwater.compat`."""

from __future__ import annotations

from types import SimpleNamespace

from headwater import dtypes, errors, shapes
from headwater.build import (
    arrays,
    control_flow,
    indexing,
    linalg,
    math,
    operators,
    reductions,
    state,
    variable_lists,
    variables,
)
from headwater.cluster.devices import DeviceSpec
from headwater.graph import context, convert, gradients, importer
from headwater.graph.collections import GraphKeys
from headwater.graph.graph import Graph
from headwater.graph.indexed_slices import IndexedSlices
from headwater.graph.operation import Operation, Tensor
from headwater.session import InteractiveSession, Session
from headwater.session.fetches import IndexedSlicesValue
from headwater.tensorboard_protos import config_pb2, graph_pb2


def _public(*modules: object) -> dict[str, object]:
    return {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == getattr(module, "__name__", "")
    }


del operators  # imported for what it does: it gives tensors their operators

tf = SimpleNamespace(
    **{
        **{dtype.name: dtype for dtype in dtypes.VALUE_DTYPES},
        **_public(
            arrays, indexing, linalg, reductions, math, state, control_flow, variable_lists, variables, shapes,
            context, convert, gradients, importer,
        ),
        "as_dtype": dtypes.as_dtype, "errors": errors, "DeviceSpec": DeviceSpec, "GraphKeys": GraphKeys,
        "Graph": Graph, "IndexedSlices": IndexedSlices, "IndexedSlicesValue": IndexedSlicesValue,
        "Operation": Operation, "Tensor": Tensor, "Session": Session, "InteractiveSession": InteractiveSession,
        "ConfigProto": config_pb2.ConfigProto, "RunOptions": config_pb2.RunOptions, "GraphDef": graph_pb2.GraphDef,
        "device": lambda name: context.get_default_graph().device(name),
        "control_dependencies": lambda ops: context.get_default_graph().control_dependencies(ops),
        "colocate_with": lambda op, ignore=False: context.get_default_graph().colocate_with(op, ignore),
    }
)  # fmt: skip
