"""The operations of each device in a step, as graphs: ``partition_graphs`` of a ``RunMetadata``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headwater.graph.attr_value import attr_value
from headwater.graph.passes.plan import Compute, Host, Node, Receive, Send, TaskPlan
from headwater.graph.tensor_names import operation_of
from headwater.tensorboard_protos import graph_pb2

_HOST = "CPU:0"


def partition_graphs(plans: Iterable[TaskPlan]) -> list[object]:
    """Returns a ``GraphDef`` for each device that takes part in a step.

    Each operation has its name, type, inputs, attributes and device. Variables have only their names, since a plan
    contains no other data of a variable. As in TensorFlow, fed values are ``_Arg``, fetched values ``_Retval``, and
    tensors received from or sent to other tasks ``_Recv`` and ``_Send``.

    Args:
      plans: the tasks' plans.
    """
    graphs: list[object] = []
    for plan in plans:
        devices: dict[str, Any] = {}
        for item in plan.instructions:
            _add(devices, plan.task, item)
        for name, variable in plan.variables.items():
            _node(devices, plan.task, variable.device, name, "VariableV2")
        for name in plan.constants:
            op = operation_of(name)
            if all(op != node.name for graph in devices.values() for node in graph.node):
                _node(devices, plan.task, _HOST, op, "Const")
        for number, name in enumerate(plan.feeds):
            _node(devices, plan.task, _HOST, f"_arg_{_joined(name)}_{number}", "_Arg")
        for number, name in enumerate(plan.fetches):
            _node(devices, plan.task, _HOST, f"_retval_{_joined(name)}_{number}", "_Retval", [name])
        graphs += [devices[device] for device in sorted(devices)]
    return graphs


def _add(devices: dict[str, object], task: str, item: object) -> None:
    match item:
        case Compute():
            for node in item.nodes:
                _operation(devices, task, item.device, node)
        case Host():
            _operation(devices, task, _HOST, item.node)
        case Receive():
            for name in item.tensors:
                _node(devices, task, _HOST, f"{_joined(name)}/_recv_{item.transfer}", "_Recv")
        case Send():
            for name in item.tensors:
                _node(devices, task, _HOST, f"{_joined(name)}/_send_{item.transfer}", "_Send", [name])
        case _:
            raise TypeError(f"unknown instruction: {item}")


def _operation(devices: dict[str, object], task: str, device: str, node: Node) -> None:
    proto = _node(devices, task, device, node.name, node.type, node.inputs)
    for key, value in node.attrs.items():
        proto.attr[key].CopyFrom(attr_value(value))


def _node(devices: dict[str, Any], task: str, device: str, name: str, kind: str, inputs: Iterable[str] = ()) -> Any:
    graph = devices.setdefault(device, graph_pb2.GraphDef())
    taken = [each.removesuffix(":0") for each in inputs]
    return graph.node.add(name=name, op=kind, device=f"{task}/device:{device}", input=taken)


def _joined(tensor: str) -> str:
    """Returns a tensor's name in a form for use in other names: ``x_0`` for ``x:0``."""
    return tensor.replace(":", "_")
