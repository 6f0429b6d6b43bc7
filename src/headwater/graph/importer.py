"""Imports a ``GraphDef`` into a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headwater.dtypes import as_dtype, int32, resource
from headwater.graph import bodies
from headwater.graph.attr_value import read_attr
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, make_const
from headwater.graph.foreign.contexts import (
    Branch,
    Context,
    Merge,
    data_inputs,
    find_contexts,
    kind,
)
from headwater.graph.foreign.datasets import body_attr, is_dataset, rewritten
from headwater.graph.foreign.forms import converted_arguments, type_here
from headwater.graph.foreign.functions import expanded, function_nodes
from headwater.graph.foreign.regions import Condition, Loop, items_of
from headwater.graph.foreign.signatures import check_signature
from headwater.graph.graph import Graph
from headwater.graph.graph_def import PRODUCER_VERSION
from headwater.graph.operation import Operation, Tensor
from headwater.graph.registry import FunctionAttr, HostArray, lookup
from headwater.graph.tensor_names import full_name, source_of, split_name
from headwater.shapes import TensorShape, as_shape, less_specific
from headwater.tensorboard_protos import graph_pb2

if TYPE_CHECKING:
    from headwater.graph.types import SparseLike
    from headwater.tensorboard_protos import GraphDef, NodeDef


def import_graph_def(
    graph_def: GraphDef,
    input_map: Mapping[str, SparseLike | Operation] | Mapping[bytes, SparseLike | Operation] | None = None,
    return_elements: Iterable[str | bytes] | None = None,
    name: str | None = None,
    op_dict: object = None,
    producer_op_list: object = None,
) -> list[Operation | Tensor] | None:
    """Adds the operations of ``graph_def`` to the default graph.

    Args:
      input_map: tensors of the default graph to use in place of named inputs.
      return_elements: names within ``graph_def`` of operations and tensors to return.
      name: prefix of all names (``import`` if None, no prefix if empty).
      op_dict: accepted for compatibility.
      producer_op_list: an ``OpList`` of the program that wrote the graph; unused, as nodes have its defaults already.

    Raises:
      TypeError: not a GraphDef, or names that are not strings.
      AttributeError: ``producer_op_list`` is not an ``OpList``.
      ValueError: an unknown operation type, a missing input, or a cycle; the message names the node. Or the graph
        requires a newer version.
    """
    del op_dict
    if not hasattr(graph_def, "node"):
        raise TypeError("graph_def must be a GraphDef proto.")
    if producer_op_list is not None and not hasattr(producer_op_list, "op"):
        raise AttributeError(f"{type(producer_op_list).__name__!r} object has no attribute 'op'")
    given = _by_name(input_map or {})
    wanted = None if return_elements is None else list(return_elements)
    if not all(isinstance(each, str | bytes) for each in wanted or ()):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError("return_elements must be a list of strings.")
    least = graph_def.versions.min_consumer
    if least > PRODUCER_VERSION:
        raise ValueError(
            f"GraphDef min consumer version {least} above current version {PRODUCER_VERSION} for TensorFlow 1.15.  "
            "Please upgrade TensorFlow."
        )
    if graph_def.versions.producer < 0:
        raise ValueError(
            f"GraphDef producer version {graph_def.versions.producer} below min producer 0 supported by TensorFlow "
            "1.15.  Please regenerate your graph."
        )
    graph = get_default_graph()
    prefix = "import" if name is None else name
    if not prefix and not all(isinstance(value, Tensor | Operation) for value in given.values()):
        raise ValueError(
            "tf.import_graph_def() requires a non-empty `name` if `input_map` contains non-Tensor values. Try calling "
            "tf.convert_to_tensor() on `input_map` values before calling tf.import_graph_def()."
        )
    current = graph.get_name_scope()
    with graph.name_scope(prefix or (f"{current}/" if current else None)) as scope:
        with graph.name_scope("_inputs" if prefix else None):
            mapped = {full_name(key): _mapped(value) for key, value in given.items()}
        importer = _Importer(graph, graph_def, mapped, scope, renames=True)
        importer.run()
        unused = {each for each in set(importer.input_map) - importer.used if not importer.has_tensor(each)}
        if unused:
            raise ValueError(f"Attempted to map inputs that were not found in graph_def: [{', '.join(sorted(unused))}]")
        if wanted is None:
            return None
        return [importer.element(each.decode() if isinstance(each, bytes) else each) for each in wanted]


def _mapped(value: Any) -> Any:
    """Converts a value of the input map to a tensor, unless it is an element of a graph."""
    return value if isinstance(value, Tensor | Operation) else convert_to_tensor(value)


def _by_name(given: Any) -> dict[str, Any]:
    """Returns the input map with its keys as text.

    Raises:
      TypeError: ``given`` is no map, or its keys are not text.
    """
    if not isinstance(given, Mapping) or not all(isinstance(key, str | bytes) for key in given):  # pyright: ignore[reportUnknownVariableType]
        raise TypeError("input_map must be a dictionary mapping strings to Tensor objects.")
    return {key.decode() if isinstance(key, bytes) else key: value for key, value in given.items()}  # pyright: ignore[reportUnknownVariableType]


def load_graph(proto: GraphDef) -> Graph:
    """Creates a graph from ``proto``, with unchanged names."""
    graph = Graph()
    extend_graph(graph, proto)
    return graph


def extend_graph(graph: Graph, proto: GraphDef) -> None:
    """Adds ``proto`` to ``graph``, with unchanged names; inputs may be existing operations.

    Raises:
      ValueError: as `import_graph_def`; or a name exists already.
    """
    with graph.as_default():
        _Importer(graph, proto, {}, "").run()


class _Importer:
    """Creates the operations of a ``GraphDef``.

    Args:
      input_map: tensors and operations of the graph to use in place of nodes.
      scope: prefix of the names of all operations.
      renames: whether to choose another name for a node whose name is in use, and devices of colocated nodes, as
        `import_graph_def` does; otherwise the graph is an exact copy, and such a name is an error.
    """

    def __init__(
        self, graph: Graph, proto: GraphDef, input_map: dict[str, Any], scope: str, renames: bool = False
    ) -> None:
        self._graph = graph
        self._library = proto.library
        self._producer: int = proto.versions.producer
        self._functions = {function.signature.name: function for function in proto.library.function}
        self._nodes: dict[str, Any] = {}
        for node in expanded(proto):
            if node.name in self._nodes:
                raise ValueError(f"Node '{node.name}' is not unique")
            self._nodes[node.name] = node
        self._scope = scope
        self._renames = renames
        self._made: dict[str, Operation] = {}
        self._members: list[Operation] = []
        self._tensors: dict[str, Tensor] = {}
        """Tensors whose operation does not have the name of their node."""
        self._groups: dict[str, list[str]] = {}
        """For each node that is colocated with others, their names."""
        self._controls: dict[str, Operation] = {}
        """For each node within a condition or a loop, the operation for which nodes outside of it wait instead."""
        self._exits: dict[str, Tensor] = {}
        self._only_one_branch: set[Tensor] = set()
        self.input_map = input_map
        self.used: set[str] = set()

    def run(self) -> None:
        for node in self._nodes.values():
            self._check_inputs(node)
        mapped = self.input_map
        self._contexts = find_contexts(self._nodes, mapped)
        self._build((), self._contexts.order)
        for name, others in self._groups.items():
            self._colocate(name, others)

    def _check_inputs(self, node: NodeDef) -> None:
        for item in node.input:
            if full_name(item) in self.input_map or source_of(item) in self._nodes:
                continue
            if self._scope or not self._exists(source_of(item)):
                raise ValueError(f"Node '{node.name}': Unknown input node '{item}'")

    # Regions --------------------------------------------------------------------------------------------------------

    def _build(self, region: Context, names: Sequence[str]) -> list[Operation]:
        """Creates the operations of a region (see `headwater.graph.foreign.regions`); returns them in order."""
        outer, self._members = self._members, []
        for item in items_of(region, names, self._contexts):
            if isinstance(item, Loop):
                self._build_loop((*region, item.frame), item)
            elif isinstance(item, Condition):
                self._build_condition(region, item)
            else:
                self._make(self._nodes[item])
        made, self._members = self._members, outer
        return made

    def _build_condition(self, region: Context, condition: Condition) -> None:
        branches: list[bodies.Recorded] = []
        outputs: list[Tensor | None] = []
        for side in (True, False):
            members = self._build((*region, Branch(condition.predicate, side)), condition.nodes[side])
            outputs = [self._tensor(self._contexts.merges[name].values[side]) for name in condition.merges]
            outputs += [self._tensor(item) if of == side else None for item, of in condition.given.items()]
            awaited = [self._control(f"^{name}") for name, of in condition.awaited.items() if of == side]
            branches.append(bodies.record_members(members, outputs, awaited=awaited))
            for op in members:
                self._graph.prevent_fetching(op)
        inner = [*condition.nodes[False], *condition.nodes[True]]
        if not branches[0].outputs and not condition.awaited:
            return  # no other node uses a result of this condition
        first = self._nodes[[*condition.merges, *inner][0]]
        op = bodies.add_condition(
            self._tensor(condition.predicate),
            branches,
            # If a shape is not fully known, only a run shows whether both branches have the same shape.
            shapes_differ=not all(tensor is None or tensor.shape.is_fully_defined() for tensor in outputs),
            on_host=self._needs_host(branches) or not branches[0].outputs,
            reads_late=self._asks_for_values(condition.predicate),
            name=self._free(f"{first.name}/Condition"),
            device=first.device or None,
        )
        self._made_besides(op)
        self._controls.update(dict.fromkeys(inner, op))
        if op.type == "If":
            self._only_one_branch |= set(op.outputs[len(condition.merges) :])
        for name, value in zip(condition.merges, op.outputs, strict=False):
            node, merge = self._nodes[name], self._contexts.merges[name]
            self._create(node, "IdentityN", [value, self._index(name, merge)], {})
        self._tensors.update(zip(condition.given, op.outputs[len(condition.merges) :], strict=True))

    def _index(self, name: str, merge: Merge) -> Tensor:
        """Creates the second output of a ``Merge``: the index of the input that has a value."""
        pred = self._tensor(merge.predicate)
        if merge.first:
            pred = self._made_besides(
                self._graph.create_op("LogicalNot", [pred], name=self._free(f"{name}/not_first"))
            ).outputs[0]
        op = self._graph.create_op("Cast", [pred], {"DstT": int32}, self._free(f"{name}/value_index"))
        return self._made_besides(op).outputs[0]

    def _build_loop(self, region: Context, loop: Loop) -> None:
        merges = [name for name in loop.nodes if name in self._contexts.loop_merges and self._in(name, region)]
        entries = [self._contexts.loop_merges[name] for name in merges]
        start = [self._tensor(first) for first, _ in entries]
        params = [self._param(self._nodes[name], tensor) for name, tensor in zip(merges, start, strict=True)]
        members = self._build(region, [name for name in loop.nodes if name not in merges])
        holds = [name for name in loop.nodes if self._nodes[name].op == "LoopCond" and self._in(name, region)]
        if len(holds) != 1:
            raise ValueError(f"The loop '{loop.frame.name}' has {len(holds)} LoopCond nodes in place of one")
        results = [self._tensor(again) for _, again in entries]
        loop_condition = bodies.record_members(members, [self._tensor(holds[0])], params)
        turn = bodies.record_members(members, results, params)
        pairs = list(zip(params, results, strict=True))
        fits = [less_specific(param.dims, result.dims) for param, result in pairs]
        known = [param.dims is not None and None not in param.dims for param in params]
        op = bodies.add_loop(
            start,
            params,
            loop_condition,
            turn,
            [TensorShape(param.dims if fit else None) for param, fit in zip(params, fits, strict=True)],
            # If a shape is not fully known, only a run shows whether it changes from iteration to iteration.
            on_host=not all(fits) or not all(known) or self._needs_host([loop_condition, turn]),
            name=self._free(f"{merges[0]}/Loop"),
            device=self._nodes[merges[0]].device or None,
        )
        self._made_besides(op)
        for tensor in params:
            self._graph.prevent_fetching(tensor.op)
        for member in members:
            self._graph.prevent_fetching(member)
        self._exits.update(zip(merges, op.outputs, strict=False))
        self._controls.update(dict.fromkeys(loop.nodes, op))

    def _in(self, name: str, region: Context) -> bool:
        """Returns whether a node is in the region itself, not in a nested one."""
        return self._contexts.of[name] == region

    def _param(self, node: NodeDef, start: Tensor) -> Tensor:
        """Creates the placeholder of a loop's value within an iteration."""
        shapes = node.attr["_output_shapes"].list.shape if "_output_shapes" in node.attr else ()
        shape = as_shape(shapes[0]) if shapes else TensorShape(start.dims)
        attrs = {"dtype": start.dtype.base_dtype, "shape": shape}
        op = self._graph.create_op("Placeholder", [], attrs, f"{self._scope}{node.name}/")
        self._made[node.name] = op
        self._graph.prevent_feeding(op.outputs[0])
        return op.outputs[0]

    def _needs_host(self, parts: Sequence[bodies.Recorded]) -> bool:
        """Returns whether the parts use a value that only one branch of a condition on the host computes, so that it
        may be zeros."""
        return any(tensor in self._only_one_branch for part in parts for tensor in part.captured)

    def _asks_for_values(self, predicate: str) -> bool:
        """Returns whether a predicate tests if a variable has a value, so that only one branch may read it."""
        op = self._tensor(predicate).op
        while op.type in ("Identity", "LogicalNot"):
            op = op.inputs[0].op
        return op.type == "IsVariableInitialized"

    def _made_besides(self, op: Operation) -> Operation:
        self._members.append(op)
        return op

    def _exists(self, name: str) -> bool:
        try:
            self._graph.get_operation_by_name(name)
        except (KeyError, ValueError):
            return False
        return True

    def _op(self, name: str) -> Operation:
        return self._made[name] if name in self._made else self._graph.get_operation_by_name(name)

    def _tensor(self, name: str) -> Tensor:
        full = full_name(name)
        if full in self.input_map:
            self.used.add(full)
            return self.input_map[full]
        if full in self._tensors:
            return self._tensors[full]
        op_name, _, index = full.rpartition(":")
        outputs = self._op(op_name).outputs
        if not index.isdigit() or int(index) >= len(outputs):
            raise ValueError(
                f"Connecting to invalid output {index} of source node {op_name} which has {len(outputs)} outputs"
            )
        return outputs[int(index)]

    def _make(self, node: NodeDef) -> None:
        try:
            inputs = [self._tensor(item) for item in data_inputs(node)]
        except ValueError as error:
            raise ValueError(f"Node '{node.name}': {error}") from None
        form = kind(node)
        if form == "Exit":
            self._create(node, "Identity", [self._exits[self._value_of_loop(node)]], {})
        elif form == "Switch":
            self._create(node, "IdentityN", [inputs[0], inputs[0]], {})
            self._tensors.update(dict.fromkeys((f"{node.name}:0", f"{node.name}:1"), inputs[0]))
        elif form in ("Enter", "LoopCond", "NextIteration"):
            self._create(node, "Identity", inputs, {})
            constant = "is_constant" in node.attr and node.attr["is_constant"].b
            if form == "Enter" and (constant or inputs[0].dtype.is_ref):
                self._tensors[f"{node.name}:0"] = inputs[0]
        else:
            op_type = type_here("Identity" if form == "Identity" else node.op)
            try:
                definition = lookup("Identity" if is_dataset(node) else op_type)
            except KeyError:
                raise ValueError(f"Op type not registered '{node.op}' (node '{node.name}')") from None
            attrs = {
                key: read_attr(value)
                for key, value in node.attr.items()
                if key not in definition.types and key != "_output_shapes"
            }
            inputs, attrs = converted_arguments(node, inputs, attrs, self._producer, self._constant)
            if definition.name == node.op:
                check_signature(self._scope + node.name, node, definition, inputs)
            if is_dataset(node):
                op_type, inputs, attrs = rewritten(node, inputs, attrs, self._constant, self._body_of)
            elif node.op == "OneShotIterator" and attrs["dataset_factory"].name in self._functions:
                attrs["dataset_factory"] = self._body_of(attrs["dataset_factory"].name)
            self._create(node, op_type, inputs, attrs)

    def _constant(self, value: HostArray) -> Tensor:
        return self._made_besides(make_const(value, self._free("Const")).op).outputs[0]

    def _free(self, name: str) -> str:
        """Returns a name for an operation without a node: ``name``, with underscores appended if a node has it."""
        while name in self._nodes:
            name += "_"
        return name

    def _body_of(self, name: str) -> FunctionAttr:
        """Imports a function of the library as the body of an operation."""
        function = self._functions[name]
        graph = Graph()
        with graph.as_default():
            args = [
                graph.create_op(
                    "Placeholder", [], {"dtype": as_dtype(arg.type), "shape": TensorShape(None)}, f"{arg.name}/"
                ).outputs[0]
                for arg in function.signature.input_arg
            ]
            nodes, results = function_nodes(self._library, name)
            proto = graph_pb2.GraphDef(node=nodes, library=self._library)
            proto.versions.producer = self._producer
            importer = _Importer(graph, proto, {}, "")
            importer.run()
            return body_attr(name, graph, args, [importer._tensor(item) for item in results])

    def _value_of_loop(self, end: NodeDef) -> str:
        """Returns the ``Merge`` of the loop's value that an ``Exit`` returns."""
        node = end
        while kind(node) in ("Exit", "Identity", "Switch"):
            node = self._nodes[source_of(node.input[0])]
        if node.name not in self._exits:
            raise ValueError(f"Node '{end.name}' (Exit) gives '{node.name}', which is not a value of its loop")
        return node.name

    def _create(self, node: NodeDef, op_type: str, inputs: Sequence[Tensor], attrs: dict[str, Any]) -> None:
        within = self._contexts.inputs[node.name]
        waits = [item for item in node.input if item.startswith("^")]
        controls = [
            self._control(item)
            for item in waits
            if item in within or item in self.input_map or source_of(item) not in self._nodes
        ]
        name = self._scope + node.name
        groups = [text if isinstance(text, str) else text.decode() for text in attrs.pop("_class", ())]
        if groups:
            self._groups[node.name] = [group.removeprefix("loc:@") for group in groups]
        if self._exists(name):
            if not self._renames:
                raise ValueError(f"Node '{name}' is in the graph already")
            name = self._graph.unique_name(node.name)
        op = self._graph.create_op(
            op_type, inputs, attrs, name + "/", device=node.device or None, control_inputs=controls
        )
        self._made[node.name] = op
        self._members.append(op)
        handle = "T" in node.attr and node.attr["T"].type == resource.as_datatype_enum
        if handle or node.op == "VarHandleOp":
            return  # The shape of a handle is unrelated to the shape of its resource.
        shapes = node.attr["_output_shapes"].list.shape if "_output_shapes" in node.attr else ()
        for tensor, shape in zip(op.outputs, shapes, strict=False):
            if tensor.dtype is resource:
                continue
            try:
                tensor.set_shape(shape)
            except ValueError as error:
                raise ValueError(f"Node '{node.name}' says another shape than its inputs lead to: {error}") from error

    def _control(self, item: str) -> Operation:
        mapped = self.input_map.get(item)
        if mapped is not None:
            self.used.add(item)
            return mapped if isinstance(mapped, Operation) else mapped.op
        name = source_of(item)
        return self._controls[name] if name in self._controls else self._op(name)

    def _colocate(self, name: str, others: Sequence[str]) -> None:
        """Colocates a node with others. In `import_graph_def`, it gets the device of the first of them that has one."""
        devices: list[str] = []
        groups: list[bytes] = []
        for other in others:
            target = self._made.get(other)
            found = self._scope + other if target is None else target.name
            if target is None and self._exists(found):
                target = self._graph.get_operation_by_name(found)
            elif target is None and self._renames and other not in self._nodes:
                raise ValueError(f"Node '{name}' expects to be colocated with unknown node '{other}'")
            devices.append("" if target is None else target.device)
            groups.append(f"loc:@{found}".encode())
        op = self._made[name]
        op.attrs["_class"] = groups
        if self._renames:
            op._set_device(next(filter(None, devices), ""))  # pyright: ignore[reportPrivateUsage]

    def has_tensor(self, name: str) -> bool:
        """Returns whether a tensor of that name was imported."""
        op, index = split_name(name)
        return op in self._made and index < len(self._made[op].outputs)

    def element(self, name: str) -> Operation | Tensor:
        """Returns the element with this name in ``return_elements``."""
        node, _, index = name.partition(":")
        if index and not index.isdigit():
            raise ValueError(f"Cannot convert {name!r} to a tensor name.")
        if full_name(name) not in self.input_map and node not in self._made and name not in self._tensors:
            raise ValueError(f"Requested return {'tensor' if index else 'node'} '{name}' not found in graph def")
        if not index:
            return self._made[node]
        try:
            return self._tensor(name)
        except ValueError:
            count = len(self._made[node].outputs)
            raise ValueError(f"Invalid return output {index} of node '{node}', which has {count} output(s)") from None
