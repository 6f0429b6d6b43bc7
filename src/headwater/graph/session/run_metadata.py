"""Fills in the parts of a ``RunMetadata`` that the options of a step and the configuration of its session request."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from headwater.cluster.telemetry.step_stats import StepTrace
from headwater.graph.attr_value import attr_value
from headwater.graph.graph import Graph
from headwater.graph.operation import Tensor


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """The parts that a step has to fill in.

    Attributes:
      times: ``step_stats``: the activities of each device, with times.
      partitions: ``partition_graphs``: the subgraph of each device.
      costs: ``cost_graph``: duration and output sizes of each operation in the partitions.
    """

    times: bool
    partitions: bool
    costs: bool

    def fill(self, run_metadata: Any, trace: StepTrace, graph: Graph) -> None:
        """Fills ``run_metadata`` from the ``trace`` of a step of ``graph``."""
        stats = trace.step_stats()
        run_metadata.Clear()
        if self.times:
            run_metadata.step_stats.CopyFrom(stats)
        if self.partitions:
            run_metadata.partition_graphs.extend(trace.partitions)
        if self.costs:
            _fill_costs(run_metadata.cost_graph, trace.partitions, stats, graph)


def wanted_metadata(options: Any, config: Any) -> Wanted | None:
    """Returns the parts that a step with ``options`` has to fill in, in a session with ``config``; None if no part is
    requested.

    Args:
      options: a ``RunOptions``, or None.
      config: a ``ConfigProto``, or None.
    """
    times = options is not None and bool(options.trace_level)
    partitions = options is not None and bool(options.output_partition_graphs)
    costs = config is not None and config.graph_options.build_cost_model > 0
    return Wanted(times=times or costs, partitions=partitions, costs=costs) if times or partitions or costs else None


def _fill_costs(costs: Any, partitions: list[Any], stats: Any, graph: Graph) -> None:
    """Adds the nodes of ``partitions``, each with its time in microseconds and its outputs, as far as they are known.

    The time of fused operations is recorded for the last of them; the other operations are marked ``inaccurate`` and
    have no time. Sizes in bytes are computed from static shapes; -1 if a shape is unknown. The memory of variables
    counts as persistent.
    """
    took: dict[str, int] = {}
    for device in stats.dev_stats:
        # Skip executables: their times are the sums of the times of their operations.
        if not device.device.endswith("/executables"):
            for node in device.node_stats:
                took[node.node_name] = took.get(node.node_name, 0) + node.op_end_rel_micros
    nodes = [node for part in partitions for node in part.node]
    numbers = {node.name: number for number, node in enumerate(nodes)}
    known = {op.name: op for op in graph.get_operations()}
    for number, node in enumerate(nodes):
        cost = costs.node.add(name=node.name, device=node.device, id=number, is_final=node.op == "_Retval")
        cost.compute_cost = took.get(node.name, 0)
        cost.inaccurate = node.name not in took
        for name in node.input:
            source, _, port = name.partition(":")
            if source in numbers:
                cost.input_info.add(preceding_node=numbers[source], preceding_port=int(port or 0))
        for tensor in known[node.name].outputs if node.name in known else ():
            size = _size(tensor)
            output = cost.output_info.add(size=size, alias_input_port=-1)
            output.shape.CopyFrom(tensor.shape.as_proto())
            output.dtype = attr_value(tensor.dtype).type
            if node.op == "VariableV2":
                cost.persistent_memory_size = max(0, size)


def _size(tensor: Tensor) -> int:
    dims = tensor.dims
    if dims is None or None in dims:
        return -1
    return math.prod(dim or 0 for dim in dims) * tensor.dtype.size
