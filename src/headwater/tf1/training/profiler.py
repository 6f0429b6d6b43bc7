"""``tf.profiler``: parameters, operations on floats, times and memory of a graph, by names or by types, and advice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from headwater.graph.context import get_default_graph
from headwater.graph.graph import Graph
from headwater.tf1.training.model_analysis import DEFAULTS, GraphNode, print_model_analysis, ran, require_no_log, write

if TYPE_CHECKING:
    from headwater.tensorboard_protos import RunMetadata

_BEGIN: Final[Mapping[str, object]] = {
    **DEFAULTS,
    "max_depth": 100,
    "min_occurrence": 0,
    "select": ["micros"],
    "step": -1,
}
ALL_ADVICE: Final[Mapping[str, object]] = {
    "ExpensiveOperationChecker": {},
    "AcceleratorUtilizationChecker": {},
    "JobChecker": {},
    "OperationChecker": {},
}


class ProfileOptionBuilder:
    """Builds options for `profile`; each method changes an option and returns the builder.

    Args:
      options: initial options; TensorFlow's defaults if None.
    """

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self._options = dict(_BEGIN if options is None else options)

    @staticmethod
    def trainable_variables_parameter() -> dict[str, Any]:
        """Options that count the parameters of trainable variables."""
        return {
            **_BEGIN,
            "max_depth": 10000,
            "account_type_regexes": ["_trainable_variables"],
            "account_displayed_op_only": True,
            "select": ["params"],
        }

    @staticmethod
    def float_operation() -> dict[str, Any]:
        """Options that count operations on floats."""
        return {
            **_BEGIN,
            "max_depth": 10000,
            "min_float_ops": 1,
            "order_by": "float_ops",
            "account_displayed_op_only": True,
            "select": ["float_ops"],
        }

    @staticmethod
    def time_and_memory(
        min_micros: int = 1,
        min_bytes: int = 1,
        min_accelerator_micros: int = 0,
        min_cpu_micros: int = 0,
        min_peak_bytes: int = 0,
        min_residual_bytes: int = 0,
        min_output_bytes: int = 0,
    ) -> dict[str, Any]:
        """Options that show the times of operations and the sizes of their outputs."""
        return {
            **_BEGIN,
            "max_depth": 10000,
            "min_bytes": min_bytes,
            "min_peak_bytes": min_peak_bytes,
            "min_residual_bytes": min_residual_bytes,
            "min_output_bytes": min_output_bytes,
            "min_micros": min_micros,
            "min_accelerator_micros": min_accelerator_micros,
            "min_cpu_micros": min_cpu_micros,
            "order_by": "micros",
            "account_displayed_op_only": True,
            "select": ["micros", "bytes"],
        }

    def build(self) -> dict[str, Any]:
        """The options."""
        return dict(self._options)

    def _with(self, **changes: object) -> ProfileOptionBuilder:
        self._options.update(changes)
        return self

    def with_max_depth(self, max_depth: int) -> ProfileOptionBuilder:
        """Sets the maximum depth of the shown tree."""
        return self._with(max_depth=max_depth)

    def with_min_memory(
        self, min_bytes: int = 0, min_peak_bytes: int = 0, min_residual_bytes: int = 0, min_output_bytes: int = 0
    ) -> ProfileOptionBuilder:
        """Shows only operations with at least as many bytes of outputs."""
        return self._with(
            min_bytes=min_bytes,
            min_peak_bytes=min_peak_bytes,
            min_residual_bytes=min_residual_bytes,
            min_output_bytes=min_output_bytes,
        )

    def with_min_execution_time(
        self, min_micros: int = 0, min_accelerator_micros: int = 0, min_cpu_micros: int = 0
    ) -> ProfileOptionBuilder:
        """Shows only operations that took at least this time, in microseconds."""
        return self._with(
            min_micros=min_micros, min_accelerator_micros=min_accelerator_micros, min_cpu_micros=min_cpu_micros
        )

    def with_min_parameters(self, min_params: int) -> ProfileOptionBuilder:
        """Shows only operations with at least as many parameters."""
        return self._with(min_params=min_params)

    def with_min_occurrence(self, min_occurrence: int) -> ProfileOptionBuilder:
        """Shows only types with at least as many operations."""
        return self._with(min_occurrence=min_occurrence)

    def with_min_float_operations(self, min_float_ops: int) -> ProfileOptionBuilder:
        """Shows only operations with at least as many floating-point operations."""
        return self._with(min_float_ops=min_float_ops)

    def with_accounted_types(self, account_type_regexes: Sequence[str]) -> ProfileOptionBuilder:
        """Counts only types and devices that match one of these."""
        return self._with(account_type_regexes=list(account_type_regexes))

    def with_node_names(
        self,
        start_name_regexes: Sequence[str] | None = None,
        show_name_regexes: Sequence[str] | None = None,
        hide_name_regexes: Sequence[str] | None = None,
        trim_name_regexes: Sequence[str] | None = None,
    ) -> ProfileOptionBuilder:
        """Sets regular expressions of the names to show, hide, start at or stop below."""
        given = {
            "start_name_regexes": start_name_regexes,
            "show_name_regexes": show_name_regexes,
            "hide_name_regexes": hide_name_regexes,
            "trim_name_regexes": trim_name_regexes,
        }
        return self._with(**{key: list(value) for key, value in given.items() if value is not None})

    def account_displayed_op_only(self, is_true: bool) -> ProfileOptionBuilder:
        """Sets whether totals include displayed nodes only."""
        return self._with(account_displayed_op_only=is_true)

    def with_empty_output(self) -> ProfileOptionBuilder:
        """Writes nothing."""
        return self._with(output="none")

    def with_stdout_output(self) -> ProfileOptionBuilder:
        """Writes to the standard output."""
        return self._with(output="stdout")

    def with_file_output(self, outfile: str) -> ProfileOptionBuilder:
        """Writes to a file."""
        return self._with(output=f"file:outfile={outfile}")

    def order_by(self, attribute: str) -> ProfileOptionBuilder:
        """Sorts by a column's name."""
        return self._with(order_by=attribute)

    def select(self, attributes: Sequence[str]) -> ProfileOptionBuilder:
        """The columns: ``params``, ``float_ops``, ``micros``, ``bytes``."""
        return self._with(select=list(attributes))


@dataclass(kw_only=True)
class TypeNode:
    """Totals of all operations of one type.

    Attributes:
      name: the type.
      graph_nodes: the operations.
      exec_micros, requested_bytes, parameters, float_ops: sums.
    """

    name: str
    graph_nodes: list[GraphNode] = field(default_factory=list[GraphNode])
    exec_micros: int = 0
    requested_bytes: int = 0
    parameters: int = 0
    float_ops: int = 0
    total_exec_micros: int = 0
    total_requested_bytes: int = 0
    total_parameters: int = 0
    total_float_ops: int = 0
    children: list[TypeNode] = field(default_factory=list["TypeNode"])


def profile(
    graph: Graph | None = None,
    run_meta: RunMetadata | None = None,
    op_log: object = None,
    cmd: str = "scope",
    options: Any = 0,
) -> Any:
    """Writes a profile of a graph and a step, and returns it.

    Args:
      graph: the graph; the default one if None.
      run_meta: a ``RunMetadata`` of a step, for times and memory.
      op_log: must be None.
      cmd: ``"scope"``: by names, a tree of `GraphNode`; ``"op"``: by types, a `TypeNode` with one for each type.
      options: options of `ProfileOptionBuilder`.

    Raises:
      ValueError: a command or option is not supported.
    """
    graph = get_default_graph() if graph is None else graph
    chosen: dict[str, object] = {**_BEGIN, **(options or {})}
    require_no_log(op_log)
    if cmd == "op":
        return _by_type(graph, run_meta, chosen)
    if cmd != "scope":
        raise ValueError(f"cmd must be 'scope' or 'op', not {cmd!r}")
    return print_model_analysis(graph, run_meta, op_log, cmd, chosen)


def _by_type(graph: Graph, run_meta: RunMetadata, options: Mapping[str, Any]) -> TypeNode:
    quiet = {**options, "output": "none", "max_depth": 10000}
    tree = print_model_analysis(graph, run_meta, None, "scope", quiet)
    types = {op.name: op.type for op in graph.get_operations()}
    root = TypeNode(name="_TFProfRoot")
    found: dict[str, TypeNode] = {}
    stack = list(tree.children)
    while stack:
        node = stack.pop()
        stack.extend(node.children)
        if node.name in types:
            kind = found.setdefault(types[node.name], TypeNode(name=types[node.name]))
            kind.graph_nodes.append(node)
            for name in ("exec_micros", "requested_bytes", "parameters", "float_ops"):
                for each, key in ((kind, name), (kind, f"total_{name}"), (root, f"total_{name}")):
                    setattr(each, key, getattr(each, key) + getattr(node, name))
    kept = [kind for kind in found.values() if len(kind.graph_nodes) >= options.get("min_occurrence", 0)]
    root.children = sorted(kept, key=lambda kind: (-kind.exec_micros, -kind.float_ops, kind.name))
    lines = ["type | occurrence | execution time | # parameters | # float_ops"] + [
        f"{kind.name} | {len(kind.graph_nodes)} | {kind.exec_micros}us | {kind.parameters} | {kind.float_ops}"
        for kind in root.children
    ]
    write("\n".join(lines), options)
    return root


@dataclass(kw_only=True)
class Checker:
    """Reports of one kind of advice; each report is one line."""

    reports: list[str] = field(default_factory=list[str])


@dataclass(kw_only=True)
class Advice:
    """Advice by its kind."""

    checkers: dict[str, Checker] = field(default_factory=dict[str, Checker])


def advise(graph: Graph | None = None, run_meta: object = None, options: Any = 0) -> Advice:
    """Reports the types and operations that take the most time in a step, and layouts that are slow on a GPU.

    Args:
      graph: the graph; the default one if None.
      run_meta: a ``RunMetadata`` of the step; without it only the graph is analysed.
      options: kinds of advice; all when empty.
    """
    graph = get_default_graph() if graph is None else graph
    wanted = options or ALL_ADVICE
    advice = Advice(checkers={name: Checker() for name in wanted})
    took = {name: time for name, (time, _) in ran(run_meta).items()}
    whole = sum(took.values())
    if "ExpensiveOperationChecker" in wanted and whole:
        reports = advice.checkers["ExpensiveOperationChecker"].reports
        types = {op.name: op.type for op in graph.get_operations()}
        by_type: dict[str, int] = {}
        for name, time in took.items():
            by_type[types.get(name, name)] = by_type.get(types.get(name, name), 0) + time
        for what, times in (("operation type", by_type), ("graph node", took)):
            for place, name in enumerate(sorted(times, key=lambda name: -times[name])[:3], 1):
                reports.append(f"top {place} {what}: {name}, total: {times[name]}us ({100 * times[name] / whole:.2f}%)")
    if "OperationChecker" in wanted:
        for op in graph.get_operations():
            if op.attrs.get("data_format") == "NHWC" and "GPU" in op.device.upper():
                advice.checkers["OperationChecker"].reports.append(
                    f"{op.name}: uses NHWC data_format on GPU. Maybe NCHW is faster."
                )
    return advice


class Profiler:
    """Profiles of several steps of one graph.

    Args:
      graph: the graph; the default one if None.
      op_log: must be None.

    Raises:
      ValueError: ``op_log`` is given.
    """

    def __init__(self, graph: Graph | None = None, op_log: object = None) -> None:
        require_no_log(op_log)
        self._graph = get_default_graph() if graph is None else graph
        self._steps: dict[int, Any] = {}

    def add_step(self, step: int, run_meta: RunMetadata) -> None:
        """Adds the ``RunMetadata`` of a step."""
        self._steps[step] = run_meta

    def profile_name_scope(self, options: Mapping[str, Any]) -> GraphNode:
        """Profiles by names; see `profile`. The option ``step`` selects the step, -1 the latest."""
        return profile(self._graph, self._of(options), None, "scope", options)

    def profile_operations(self, options: Mapping[str, Any]) -> TypeNode:
        """Profiles by operation types."""
        return profile(self._graph, self._of(options), None, "op", options)

    def advise(self, options: Mapping[str, object]) -> Advice:
        """Advice on the latest step."""
        return advise(self._graph, self._of({}), options)

    def _of(self, options: Mapping[str, Any]) -> Any:
        step = options.get("step", -1)
        if step == -1:
            return self._steps[max(self._steps)] if self._steps else None
        if step not in self._steps:
            raise ValueError(f"no step {step} was added; there are {sorted(self._steps)}")
        return self._steps[step]
