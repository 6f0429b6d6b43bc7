"""``tf.contrib.tfprof.model_analyzer``: numbers of parameters and floating-point operations of a graph, by names.

Names form a tree, as paths do. Counts are defined as in TensorFlow: a product of m×k and k×n takes 2·m·n·k operations
on floats, a convolution two per weight and output, a maximum over a window one per element of the window, a sum the
number of inputs less the number of outputs, and an elementwise operation one per output. Gradients of products and
convolutions count as the operation itself, for each input with a gradient; other gradients, and operations with unknown
shapes, are not counted.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from headwater.data.io import files
from headwater.graph.collections import GraphKeys
from headwater.graph.graph import Graph
from headwater.tf1.variables.variables import Variable

ROOT: Final = "_TFProfRoot"
DEFAULTS: Final[Mapping[str, Any]] = {
    "max_depth": 10000,
    "min_bytes": 0,
    "min_micros": 0,
    "min_params": 0,
    "min_float_ops": 0,
    "order_by": "name",
    "account_type_regexes": [".*"],
    "start_name_regexes": [".*"],
    "trim_name_regexes": [],
    "show_name_regexes": [".*"],
    "hide_name_regexes": [],
    "account_displayed_op_only": False,
    "select": ["params"],
    "output": "stdout",
}
TRAINABLE_VARS_PARAMS_STAT_OPTIONS: Final[dict[str, Any]] = {
    **DEFAULTS,
    "dump_to_file": "",
    "account_type_regexes": ["_trainable_variables"],
    "account_displayed_op_only": True,
}
FLOAT_OPS_OPTIONS: Final[dict[str, Any]] = {
    **DEFAULTS,
    "dump_to_file": "",
    "min_float_ops": 1,
    "order_by": "float_ops",
    "account_displayed_op_only": True,
    "select": ["float_ops"],
}
_FIELDS: Final[Mapping[str, str]] = {
    "params": "parameters",
    "float_ops": "float_ops",
    "micros": "exec_micros",
    "bytes": "requested_bytes",
}
"""Fields of a node by the names that ``select`` and ``order_by`` accept."""


@dataclass(kw_only=True)
class GraphNode:
    """An operation or a name scope, with its contents.

    Attributes:
      name: the full name.
      parameters: number of elements, if it is a variable.
      float_ops: operations on floats in one run.
      exec_micros: how long it ran in the analysed step, in microseconds.
      requested_bytes: size of its outputs in that step.
      total_parameters, total_float_ops, total_exec_micros, total_requested_bytes: sums over it and all counted nodes
        within.
      total_definition_count: number of operations and scopes within, including itself.
      children: the operations and scopes directly within.
    """

    name: str
    parameters: int = 0
    float_ops: int = 0
    exec_micros: int = 0
    requested_bytes: int = 0
    total_parameters: int = 0
    total_float_ops: int = 0
    total_exec_micros: int = 0
    total_requested_bytes: int = 0
    total_definition_count: int = 0
    children: list[GraphNode] = field(default_factory=list["GraphNode"])
    _types: set[str] = field(default_factory=set[str], repr=False)
    _shape: str = field(default="", repr=False)


def print_model_analysis(
    graph: Graph,
    run_meta: object = None,
    op_log: object = None,
    tfprof_cmd: str = "scope",
    tfprof_options: Mapping[str, Any] = DEFAULTS,
) -> GraphNode:
    """Writes the numbers of parameters, or of floating-point operations, of a graph, and returns them.

    Args:
      run_meta: a ``RunMetadata`` of a step, for times and memory.
      op_log: must be None.
      tfprof_cmd: ``"scope"``: by names.
      tfprof_options: see `TRAINABLE_VARS_PARAMS_STAT_OPTIONS` and `FLOAT_OPS_OPTIONS`; ``output`` may be ``stdout``,
        ``none`` or ``file:outfile=PATH``.

    Raises:
      ValueError: an option is not supported.
    """
    options = {**DEFAULTS, **tfprof_options}
    require_no_log(op_log)
    if tfprof_cmd != "scope":
        raise ValueError(f"tfprof_cmd must be 'scope', not {tfprof_cmd!r}")
    unknown = [name for name in options["select"] if name not in _FIELDS]
    if unknown:
        raise ValueError(f"select may name {', '.join(_FIELDS)}, not {', '.join(unknown)}")
    root = _tree(graph, run_meta)
    shown = _shown(root, options, 0)
    write(
        "\n".join(
            [
                "node name | " + ", ".join(_HEADERS[name] for name in options["select"]),
                *_lines(shown, options["select"], 0),
            ]
        )
        + "\n",
        options,
    )
    return shown


# The tree ----------------------------------------------------------------------------------------------------------


def ran(run_meta: Any) -> dict[str, tuple[int, int]]:
    """Returns, for each operation of a step, its time in microseconds, and the size of its outputs in bytes."""
    found: dict[str, tuple[int, int]] = {}
    for device in run_meta.step_stats.dev_stats if run_meta is not None else ():
        if not device.device.endswith("/executables"):  # their times are also reported by operation
            for node in device.node_stats:
                time, size = found.get(node.node_name, (0, 0))
                given = sum(memory.total_bytes for memory in node.memory)
                found[node.node_name] = time + node.op_end_rel_micros, size + given
    return found


def _tree(graph: Graph, run_meta: object = None) -> GraphNode:
    root = GraphNode(name=ROOT)
    found: dict[str, GraphNode] = {"": root}

    def node_of(name: str) -> GraphNode:
        if name not in found:
            found[name] = made = GraphNode(name=name)
            node_of(name.rpartition("/")[0]).children.append(made)
        return found[name]

    variables = {
        id(variable.op): variable
        for variable in graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
        if isinstance(variable, Variable)
    }
    trainable = {id(variable.op) for variable in graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)}
    took = ran(run_meta)
    for op in graph.get_operations():
        node = node_of(op.name)
        node.exec_micros, node.requested_bytes = took.get(op.name, (0, 0))
        node._types.add(op.type)  # pyright: ignore[reportPrivateUsage]
        node.float_ops = float_ops_of(op)
        if id(op) in variables and (size := _size(variables[id(op)])) is not None:
            node.parameters = size
            node._shape = "x".join(map(str, variables[id(op)].shape.as_list()))  # pyright: ignore[reportPrivateUsage]
        if id(op) in trainable:
            node._types.add("_trainable_variables")  # pyright: ignore[reportPrivateUsage]
    return root


def _matches(patterns: Any, text: str) -> bool:
    return any(re.fullmatch(pattern, text) for pattern in patterns)


def _shown(node: GraphNode, options: Mapping[str, Any], depth: int) -> GraphNode:
    """Returns the node with the requested parts of its subtree, and totals over these."""
    types: set[str] = node._types  # pyright: ignore[reportPrivateUsage]
    counts = node.name == ROOT or any(_matches(options["account_type_regexes"], kind) for kind in types)
    made = GraphNode(
        name=node.name,
        total_definition_count=1,
        _types=types,
        _shape=node._shape,  # pyright: ignore[reportPrivateUsage]
    )
    for name in _FIELDS.values():
        own = getattr(node, name) if counts else 0
        setattr(made, name, own)
        setattr(made, f"total_{name}", own)
    for child in node.children:
        part = _shown(child, options, depth + 1)
        named = _matches(options["show_name_regexes"], child.name) and not _matches(
            options["hide_name_regexes"], child.name
        )
        counted = any(_matches(options["account_type_regexes"], kind) for kind in child._types)  # pyright: ignore[reportPrivateUsage]
        trimmed = depth >= options["max_depth"] or _matches(options["trim_name_regexes"], child.name)
        visible = (
            named
            and not trimmed
            and (counted or bool(part.children))
            and part.parameters >= options["min_params"]
            and part.float_ops >= options["min_float_ops"]
            and (part.exec_micros >= options["min_micros"] or part.total_exec_micros >= max(1, options["min_micros"]))
        )
        parts = [part] if visible else [] if trimmed else part.children
        made.children += parts
        made.total_definition_count += sum(each.total_definition_count for each in parts)
        for each in parts if options["account_displayed_op_only"] else [part]:
            for name in _FIELDS.values():
                setattr(made, f"total_{name}", getattr(made, f"total_{name}") + getattr(each, f"total_{name}"))
    order = _FIELDS.get(options["order_by"])
    made.children.sort(key=lambda part: part.name if order is None else (-getattr(part, f"total_{order}"), part.name))
    return made


# Counting ----------------------------------------------------------------------------------------------------------


def _size(tensor: Any) -> int | None:
    return math.prod(tensor.shape.as_list()) if tensor.shape.is_fully_defined() else None


def _outputs(op: Any) -> int:
    return _size(op.outputs[0]) or 0


def _inputs(op: Any) -> int:
    return _size(op.inputs[0]) or 0


def _product(op: Any) -> int:
    rows = op.inputs[0].shape
    if not rows.is_fully_defined():
        return 0
    transposed = op.get_attr("transpose_a" if op.type == "MatMul" else "adj_x")
    return 2 * _outputs(op) * rows.as_list()[-2 if transposed else -1]


def _convolution(op: Any) -> int:
    weights = op.inputs[1].shape
    if not weights.is_fully_defined():
        return 0
    sizes = weights.as_list()
    # Of a depthwise filter the third size is the input's channels, of which each output has one.
    return 2 * _outputs(op) * math.prod(sizes[:2] if op.type.startswith("Depthwise") else sizes[:-1])


def _pooling(op: Any) -> int:
    return _outputs(op) * math.prod(op.get_attr("ksize"))


_ELEMENTWISE: Final = (
    "Add BiasAdd Equal Greater GreaterEqual Less LessEqual Log Maximum Minimum Mul Neg NotEqual Pow RealDiv Reciprocal "
    "Square SquaredDifference Sub"
)
_COUNTS: Final[Mapping[str, Callable[[Any], int]]] = {
    **dict.fromkeys(("MatMul", "BatchMatMul", "BatchMatMulV2"), _product),
    **dict.fromkeys(("Conv2D", "Conv3D", "DepthwiseConv2dNative"), _convolution),
    **dict.fromkeys(("MaxPool", "AvgPool"), _pooling),
    **dict.fromkeys(_ELEMENTWISE.split(), _outputs),
    "Rsqrt": lambda op: 2 * _outputs(op),
    "Softmax": lambda op: 5 * _outputs(op),
    "L2Loss": lambda op: 3 * _inputs(op) - 1,
    "Sum": lambda op: _inputs(op) - _outputs(op),
    "Mean": _inputs,
    "ArgMax": lambda op: _inputs(op) - _outputs(op),
    "ArgMin": lambda op: _inputs(op) - _outputs(op),
    "AddN": lambda op: _outputs(op) * (len(op.inputs) - 1),
    "AssignAdd": _outputs,
    "AssignSub": _outputs,
}
_LINEAR: Final = (_product, _convolution)


class _Forward:
    """The forward operation of a gradient operation, with the properties needed for counting."""

    def __init__(self, gradient: Any) -> None:
        function, count = gradient.get_attr("f"), len(gradient.get_attr("wanted"))
        self.type: str = function.name
        self.inputs = gradient.inputs[:count]
        self.outputs = gradient.inputs[count:]  # their gradients, which have their shapes
        self._attrs = dict(function.attrs)

    def get_attr(self, name: str) -> Any:
        return self._attrs[name]


def float_ops_of(op: Any) -> int:
    """Returns the number of floating-point operations of one run of ``op``; 0 if unknown."""
    if op.type == "Vjp":
        forward = _Forward(op)
        counter = _COUNTS.get(forward.type)
        known = counter is not None and counter in _LINEAR and forward.outputs
        return counter(forward) * len(op.outputs) if counter is not None and known else 0
    count = _COUNTS.get(op.type)
    return max(0, count(op)) if count is not None else 0


# Writing -----------------------------------------------------------------------------------------------------------

_HEADERS: Final = {
    "params": "# parameters",
    "float_ops": "# float_ops",
    "micros": "execution time",
    "bytes": "requested bytes",
}
_WORDS: Final = {"params": " params", "float_ops": " flops", "micros": "us", "bytes": "B"}
_UNITS: Final = ((10**9, "b"), (10**6, "m"), (10**3, "k"))


def _number(value: int) -> str:
    return next((f"{value / size:.2f}{unit}" for size, unit in _UNITS if value >= size), str(value))


def _lines(node: GraphNode, select: Any, depth: int) -> Iterator[str]:
    parts: list[str] = []
    for name in select:
        own, total = getattr(node, _FIELDS[name]), getattr(node, f"total_{_FIELDS[name]}")
        shape: str = f"{node._shape}, " if name == "params" and node._shape else ""  # pyright: ignore[reportPrivateUsage]
        parts.append(f"{shape}{_number(own) if own else '--'}/{_number(total) if total else '--'}{_WORDS[name]}")
    yield f"{'  ' * depth}{node.name} ({', '.join(parts)})"
    for child in node.children:
        yield from _lines(child, select, depth + 1)


def require_no_log(op_log: object) -> None:
    """Raises ValueError if an ``op_log`` is given."""
    if op_log is not None:
        raise ValueError("op_log must be None: types and float operations are the graph's own")


def write(text: str, options: Mapping[str, Any]) -> None:
    """Writes ``text`` to the destination in the option ``output``.

    Raises:
      ValueError: the destination is unknown.
    """
    kind, _, rest = options["output"].partition(":")
    path = options.get("dump_to_file") or (rest.partition("outfile=")[2] if kind == "file" else "")
    if path:
        with files.atomic_write(path) as file:
            file.write(text.encode())
    elif kind == "stdout":
        print(text, file=sys.stdout)
    elif kind != "none":
        raise ValueError(f"output must be 'stdout', 'none' or 'file:outfile=PATH', not {options['output']!r}")
