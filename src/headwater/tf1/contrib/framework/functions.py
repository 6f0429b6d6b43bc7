"""Names within scopes, sums of tensors, placeholders of a graph, devices of variables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from headwater.cluster.devices import DeviceSpec
from headwater.graph.context import get_default_graph
from headwater.graph.convert import name_scope
from headwater.graph.graph import Graph
from headwater.graph.operation import Operation, Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional import math, reductions
from headwater.tf1.training.training_util import assert_global_step, get_global_step

_REFERENCE = r"^(\^|loc:@)?"


def get_name_scope() -> str:
    """The current name scope of the default graph, without a trailing ``/``."""
    return get_default_graph().get_name_scope()


def strip_name_scope(name: str, export_scope: str | None) -> str:
    """Returns ``name``, also as a control input or a colocation, without the prefix ``export_scope``."""
    if not export_scope:
        return name
    return re.sub(f"{_REFERENCE}{re.escape(export_scope.rstrip('/'))}/+", r"\1", name, count=1)


def prepend_name_scope(name: str, import_scope: str | None) -> str:
    """Returns ``name``, also as a control input or a colocation, with the prefix ``import_scope``."""
    if not import_scope:
        return name
    scope = import_scope.rstrip("/")
    return re.sub(_REFERENCE, lambda found: f"{found.group(1) or ''}{scope}/", name, count=1)


def get_placeholders(graph: Graph) -> list[Tensor]:
    """The placeholders of a graph, except those with a default.

    Raises:
      TypeError: ``graph`` is not a graph.
    """
    if not isinstance(graph, Graph):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"Input graph needs to be a Graph: {graph}")
    return [op.outputs[0] for op in graph.get_operations() if op.type == "Placeholder"]


def reduce_sum_n(tensors: Sequence[Tensor], name: str | None = None) -> Tensor:
    """The sum of all elements of all tensors.

    Raises:
      ValueError: there are no tensors.
    """
    if not tensors:
        raise ValueError("No tensors provided.")
    with name_scope(name, "reduce_sum_n", tensors) as scope:
        sums = [reductions.reduce_sum(tensor, name=f"{tensor.op.name}/sum") for tensor in tensors]
        return sums[0] if len(sums) == 1 else math.add_n(sums, name=scope)


def assert_or_get_global_step(graph: Graph | None = None, global_step_tensor: TensorLike | None = None) -> object:
    """Returns the given step after a check of its type and shape; the graph's global step if None."""
    if global_step_tensor is None:
        return get_global_step(graph)
    assert_global_step(global_step_tensor)
    return global_step_tensor


class VariableDeviceChooser:
    """A device function that distributes variables over tasks, one after the other.

    Args:
      num_tasks: number of tasks; 0 names no task.
      job_name: the job of the tasks.
      device_type, device_index: the device within a task.
    """

    def __init__(
        self,
        num_tasks: int = 0,
        job_name: str = "ps",
        device_type: str = "CPU",
        device_index: int = 0,
        replica: int | None = None,
    ) -> None:
        self._count = num_tasks
        self._job = job_name
        self._device = partial(DeviceSpec, device_type=device_type, device_index=device_index, replica=replica)
        self._next = 0

    def __call__(self, op: Operation) -> str:
        del op
        task, self._next = self._next, (self._next + 1) % max(1, self._count)
        device = self._device(job=self._job, task=task) if self._count else self._device()
        return device.to_string()
