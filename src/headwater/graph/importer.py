"""From a ``GraphDef`` to operations of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from headwater.graph.attr_value import read_attr
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor
from headwater.graph.graph import Graph
from headwater.graph.operation import Operation, Tensor
from headwater.graph.registry import lookup

if TYPE_CHECKING:
    from headwater.graph.types import SparseLike
    from headwater.tensorboard_protos import GraphDef, NodeDef


def import_graph_def(
    graph_def: GraphDef,
    input_map: Mapping[str, SparseLike | Operation] | None = None,
    return_elements: Iterable[str] | None = None,
    name: str | None = None,
    op_dict: object = None,
    producer_op_list: object = None,
) -> list[Operation | Tensor] | None:
    """Adds the operations of ``graph_def`` to the default graph.

    Args:
      graph_def: a ``GraphDef``.
      input_map: tensors of the default graph to use in place of named inputs.
      return_elements: names within ``graph_def`` of operations and tensors to return.
      name: prefix of all names (``import`` when None, none at all when empty).
      op_dict: accepted for compatibility.
      producer_op_list: an ``OpList`` of the program that made the graph, whose defaults nodes have already.

    Raises:
      TypeError: not a GraphDef, or names that are no text.
      AttributeError: ``producer_op_list`` is no ``OpList``.
      ValueError: an unknown operation type, an input that is not there, or a cycle; the message names the node.
    """
    del op_dict
    if not hasattr(graph_def, "node"):
        raise TypeError("graph_def must be a GraphDef proto.")
    if producer_op_list is not None and not hasattr(producer_op_list, "op"):
        raise AttributeError(f"{type(producer_op_list).__name__!r} object has no attribute 'op'")
    if not _is_map(input_map or {}):
        raise TypeError("input_map must be a dictionary mapping strings to Tensor objects.")
    wanted = None if return_elements is None else list(return_elements)
    if not all(isinstance(each, str) for each in wanted or ()):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError("return_elements must be a list of strings.")
    graph = get_default_graph()
    prefix = "import" if name is None else name
    current = graph.get_name_scope()
    with graph.name_scope(prefix or (f"{current}/" if current else None)) as scope:
        importer = _Importer(
            graph, graph_def, {_tensor_name(k): _mapped(v) for k, v in (input_map or {}).items()}, scope
        )
        importer.run()
        unused = {each for each in set(importer.input_map) - importer.used if not importer.has(each)}
        if unused:
            raise ValueError(f"Attempted to map inputs that were not found in graph_def: [{', '.join(sorted(unused))}]")
        if wanted is None:
            return None
        return [importer.element(element) for element in wanted]


def _mapped(value: Any) -> Any:
    """What stands for an input: what is of a graph as it is, else a tensor of it."""
    return value if hasattr(value, "graph") else convert_to_tensor(value)


def _is_map(given: object) -> bool:
    return isinstance(given, Mapping) and all(isinstance(key, str) for key in given)  # pyright: ignore[reportUnknownVariableType]


def load_graph(proto: GraphDef) -> Graph:
    """A new graph of exactly ``proto``, names unchanged."""
    graph = Graph()
    extend_graph(graph, proto)
    return graph


def extend_graph(graph: Graph, proto: GraphDef) -> None:
    """Adds ``proto`` to ``graph``, names unchanged; inputs may be operations that are there already.

    Raises:
      ValueError: as `import_graph_def`; also a name that is there already.
    """
    with graph.as_default():
        _Importer(graph, proto, {}, "").run()


def _tensor_name(name: str) -> str:
    return name if ":" in name or name.startswith("^") else f"{name}:0"


class _Importer:
    def __init__(self, graph: Graph, proto: GraphDef, input_map: dict[str, Any], scope: str) -> None:
        self._graph = graph
        self._nodes: dict[str, Any] = {}
        for node in proto.node:
            if node.name in self._nodes:
                raise ValueError(f"Node '{node.name}' is twice in the GraphDef")
            self._nodes[node.name] = node
        self._scope = scope
        self._made: dict[str, Operation] = {}
        self.input_map = input_map
        self.used: set[str] = set()

    def run(self) -> None:
        pending: set[str] = set()
        for first in self._nodes:
            stack = [first]
            while stack:
                name = stack[-1]
                missing = [] if name in self._made else [d for d in self._needs(name) if d not in self._made]
                if missing and name in pending:
                    raise ValueError(f"Node '{name}' lies on a cycle, which GraphDefs of functions do not have")
                if missing:
                    pending.add(name)
                    stack.extend(missing)
                else:
                    if name not in self._made:
                        self._make(self._nodes[name])
                    pending.discard(name)
                    stack.pop()

    def _needs(self, name: str) -> list[str]:
        needed: list[str] = []
        for item in self._nodes[name].input:
            source = item.lstrip("^").partition(":")[0]
            if _tensor_name(item) in self.input_map:
                continue
            if source in self._nodes:
                needed.append(source)
            elif self._scope or not self._exists(source):
                raise ValueError(f"Node '{name}': Unknown input node '{item}'")
        return needed

    def _exists(self, name: str) -> bool:
        try:
            self._graph.get_operation_by_name(name)
        except (KeyError, ValueError):
            return False
        return True

    def _op(self, name: str) -> Operation:
        return self._made[name] if name in self._made else self._graph.get_operation_by_name(name)

    def _tensor(self, name: str) -> Tensor:
        full = _tensor_name(name)
        if full in self.input_map:
            self.used.add(full)
            return self.input_map[full]
        op_name, _, index = full.rpartition(":")
        outputs = self._op(op_name).outputs
        if not index.isdigit() or int(index) >= len(outputs):
            raise ValueError(f"Input '{name}': node '{op_name}' has {len(outputs)} outputs")
        return outputs[int(index)]

    def _make(self, node: NodeDef) -> None:
        try:
            definition = lookup(node.op)
        except KeyError:
            raise ValueError(f"Op type not registered '{node.op}' (node '{node.name}')") from None
        inputs = [self._tensor(item) for item in node.input if not item.startswith("^")]
        controls = [self._control(item) for item in node.input if item.startswith("^")]
        attrs = {
            key: read_attr(value)
            for key, value in node.attr.items()
            if key not in definition.types and key != "_output_shapes"
        }
        groups = attrs.get("_class", ())
        if groups:
            attrs["_class"] = [self._group(group) for group in groups]
        name = self._scope + node.name
        if self._exists(name):
            raise ValueError(f"Node '{name}' is in the graph already")
        op = self._graph.create_op(
            node.op, inputs, attrs, name + "/", device=node.device or None, control_inputs=[c for c in controls if c]
        )
        self._made[node.name] = op
        shapes = node.attr["_output_shapes"].list.shape if "_output_shapes" in node.attr else ()
        for tensor, shape in zip(op.outputs, shapes, strict=False):
            try:
                tensor.set_shape(shape)
            except ValueError as error:
                raise ValueError(f"Node '{node.name}' says another shape than its inputs lead to: {error}") from error

    def _control(self, item: str) -> Operation | None:
        mapped = self.input_map.get(item)
        if mapped is not None:
            self.used.add(item)
            return mapped if isinstance(mapped, Operation) else mapped.op
        return self._op(item[1:])

    def _group(self, group: str | bytes) -> bytes:
        text = group if isinstance(group, str) else group.decode()
        return f"loc:@{self._scope}{text.removeprefix('loc:@')}".encode()

    def has(self, name: str) -> bool:
        """Whether there is a tensor of that name."""
        op, _, index = name.rpartition(":")
        return op in self._made and int(index) < len(self._made[op].outputs)

    def element(self, name: str) -> Operation | Tensor:
        """What ``return_elements`` calls ``name``."""
        try:
            return self._tensor(name) if ":" in name else self._made[name]
        except KeyError:
            raise ValueError(f"Requested return_element {name!r} not found in graph_def") from None
