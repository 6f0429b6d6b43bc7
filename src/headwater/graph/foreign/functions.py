"""Inlines functions of a ``GraphDef``'s library into the nodes that call them.

TensorFlow stores the bodies of `tf.function`, `Defun`, and of conditions and loops of control flow version 2 as
functions, which nodes call by name. A call is replaced by the function's nodes. A condition or a loop is replaced by
``Switch`` and ``Merge`` nodes (`headwater.graph.foreign.contexts`), as in TensorFlow's own runtime.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from headwater.dtypes import bool_
from headwater.graph.foreign.contexts import data_inputs
from headwater.graph.foreign.outputs import output_index
from headwater.graph.tensor_names import source_of
from headwater.tensorboard_protos import node_def_pb2

if TYPE_CHECKING:
    from headwater.tensorboard_protos import GraphDef, NodeDef

_CALLS: Final = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
_CONDITIONS: Final = frozenset({"If", "StatelessIf"})
_LOOPS: Final = frozenset({"While", "StatelessWhile"})


def expanded(proto: GraphDef) -> list[NodeDef]:
    """Returns the nodes of ``proto``, with calls replaced by the functions' nodes.

    Raises:
      ValueError: a function calls itself, or refers to an output that the operation does not have.
    """
    functions = {function.signature.name: function for function in proto.library.function}
    return _Expander(functions).expand(proto.node, ()) if functions else list(proto.node)


def function_nodes(library: Any, name: str) -> tuple[list[NodeDef], list[str]]:
    """Returns the nodes and the results of a function of a ``GraphDef``'s library; each argument becomes a node with
    the argument's name."""
    function = next(each for each in library.function if each.signature.name == name)
    body = _Body("", function, [arg.name for arg in function.signature.input_arg], ())
    return body.nodes, body.outputs


class _Expander:
    def __init__(self, functions: Mapping[str, Any]) -> None:
        self._functions = functions

    def expand(self, nodes: Iterable[NodeDef], within: tuple[str, ...]) -> list[NodeDef]:
        """Returns ``nodes`` with calls replaced; ``within`` names the functions that enclose the nodes."""
        found: list[NodeDef] = []
        for node in nodes:
            if node.op in self._functions:
                found += self._call(node, node.op, within)
            elif node.op in _CALLS and "f" in node.attr:
                found += self._call(node, node.attr["f"].func.name, within)
            elif node.op in _CONDITIONS and self._names(node, "then_branch"):
                found += self._condition(node, within)
            elif node.op in _LOOPS and self._names(node, "body"):
                found += self._loop(node, within)
            else:
                found.append(node)
        return found

    def _names(self, node: NodeDef, attr: str) -> bool:
        """Returns whether an attribute names a function of the library, rather than holding a body written by
        Headwater."""
        return attr in node.attr and node.attr[attr].func.name in self._functions

    def _call(self, node: NodeDef, function: str, within: tuple[str, ...]) -> list[NodeDef]:
        inputs = data_inputs(node)
        waits = [item for item in node.input if item.startswith("^")]
        body = self._body(f"{node.name}/", function, inputs, waits, within)
        return [*body.nodes, _result(node.name, body.outputs, body.types, body.effects)]

    def _body(
        self, prefix: str, name: str, inputs: Sequence[str], waits: Sequence[str], within: tuple[str, ...]
    ) -> _Body:
        if name in within:
            raise ValueError(f"The function '{name}' calls itself; recursion cannot be inlined")
        if name not in self._functions:
            raise ValueError(f"The function '{name}' is not in the library of the GraphDef")
        body = _Body(prefix, self._functions[name], inputs, waits)
        body.nodes = self.expand(body.nodes, (*within, name))
        return body

    def _condition(self, node: NodeDef, within: tuple[str, ...]) -> list[NodeDef]:
        name = node.name
        predicate, *inputs = data_inputs(node)
        waits = [item for item in node.input if item.startswith("^")]
        nodes: list[NodeDef] = []
        if "Tcond" in node.attr and node.attr["Tcond"].type != bool_.as_datatype_enum:
            nodes.append(_node(f"{name}/holds", "Cast", [predicate], DstT=bool_.as_datatype_enum))
            predicate = nodes[-1].name
        nodes.append(_node(f"{name}/switch", "Switch", [predicate, predicate, *waits]))
        nodes += [_node(f"{name}/input_{i}", "Switch", [item, predicate]) for i, item in enumerate(inputs)]
        bodies: list[_Body] = []
        for side, attr in enumerate(("else_branch", "then_branch")):
            pivot = _node(f"{name}/{attr}/pivot", "Identity", [f"{name}/switch:{side}"])
            given = [f"{name}/input_{i}:{side}" for i in range(len(inputs))]
            body = self._body(f"{name}/{attr}/", node.attr[attr].func.name, given, [f"^{pivot.name}"], within)
            done = _node(f"{name}/{attr}/done", "Identity", [f"{name}/switch:{side}", *body.effects])
            nodes += [pivot, *body.nodes, done]
            bodies.append(body)
        pairs = list(zip(bodies[0].outputs, bodies[1].outputs, strict=True))
        merges = [_node(f"{name}/merge_{i}", "Merge", pair) for i, pair in enumerate(pairs)]
        ends: list[NodeDef] = []
        if bodies[0].effects or bodies[1].effects:
            ends = [_node(f"{name}/end", "Merge", [f"{name}/else_branch/done", f"{name}/then_branch/done"])]
        effects = [f"^{end.name}" for end in ends]
        result = _result(name, [merge.name for merge in merges], bodies[0].types, effects)
        return [*nodes, *merges, *ends, result]

    def _loop(self, node: NodeDef, within: tuple[str, ...]) -> list[NodeDef]:
        name = node.name
        inputs = data_inputs(node)
        waits = [item for item in node.input if item.startswith("^")]
        names = [f"{name}/value_{i}" for i in range(len(inputs))]
        body = self._body(f"{name}/body/", node.attr["body"].func.name, names, [f"^{name}/body/pivot"], within)
        # Loop-invariant values stay outside of the loop, since handles cannot be loop variables.
        same = [source_of(body.origin(item)) == own for item, own in zip(body.outputs, names, strict=True)]
        if all(same):
            raise ValueError(f"Node '{name}': no loop variable changes in the loop")
        changing = [i for i, fixed in enumerate(same) if not fixed]
        first = f"{name}/merge_{changing[0]}"
        at_start = [
            item if fixed else f"{name}/merge_{i}" for i, (item, fixed) in enumerate(zip(inputs, same, strict=True))
        ]
        holds = self._body(f"{name}/cond/", node.attr["cond"].func.name, at_start, [f"^{first}"], within)
        nodes = [*holds.nodes, _node(f"{name}/loop_cond", "LoopCond", holds.outputs[:1])]
        nodes += [_node(names[i], "Identity", [inputs[i]]) for i, fixed in enumerate(same) if fixed]
        for i in changing:
            nodes += [
                _node(f"{name}/enter_{i}", "Enter", [inputs[i], *waits], frame_name=name.encode()),
                _node(f"{name}/merge_{i}", "Merge", [f"{name}/enter_{i}", f"{name}/next_{i}"]),
                _node(f"{name}/switch_{i}", "Switch", [f"{name}/merge_{i}", f"{name}/loop_cond"]),
                _node(names[i], "Identity", [f"{name}/switch_{i}:1"]),
                _node(f"{name}/next_{i}", "NextIteration", [body.outputs[i], *body.effects]),
                _node(f"{name}/exit_{i}", "Exit", [f"{name}/switch_{i}"]),
            ]
        nodes.append(_node(f"{name}/body/pivot", "Identity", [f"{name}/switch_{changing[0]}:1"]))
        outputs = [
            item if fixed else f"{name}/exit_{i}" for i, (item, fixed) in enumerate(zip(inputs, same, strict=True))
        ]
        return [*nodes, *body.nodes, _result(name, outputs, body.types, [])]


class _Body:
    """A function's nodes for one call.

    Attributes:
      nodes: the nodes, with prefixed names.
      outputs: the results, as inputs of other nodes.
      types: the results' types.
      effects: control inputs ``^node`` that represent the completion of the call.
    """

    def __init__(self, prefix: str, function: Any, inputs: Sequence[str], waits: Sequence[str]) -> None:
        self._prefix = prefix
        signature = function.signature
        self._args: dict[str, str] = dict(zip((arg.name for arg in signature.input_arg), inputs, strict=True))
        self._nodes: dict[str, NodeDef] = {node.name: node for node in function.node_def}
        self.nodes: list[NodeDef] = []
        for node in function.node_def:
            made = node_def_pb2.NodeDef()
            made.CopyFrom(node)
            made.name = prefix + node.name
            del made.input[:]
            made.input.extend(self._input(item) for item in node.input)
            if waits and not any(source_of(item) in self._nodes for item in node.input):
                made.input.extend(waits)
            if "_class" in made.attr:
                del made.attr["_class"]
            self.nodes.append(made)
        self.outputs: list[str] = [self._input(function.ret[arg.name]) for arg in signature.output_arg]
        self.types: list[int] = [arg.type for arg in signature.output_arg]
        self.effects: list[str] = [f"^{prefix}{node}" for node in function.control_ret.values()]

    def _input(self, item: str) -> str:
        caret = "^" if item.startswith("^") else ""
        name, *rest = item.removeprefix("^").split(":")
        if name in self._args:
            return f"^{source_of(self._args[name])}" if caret else self._args[name]
        if caret or not rest:
            return f"{caret}{self._prefix}{name}"
        node = self._nodes.get(name)
        if node is None:
            raise ValueError(f"The function of '{self._prefix}' has no node '{name}'")
        index = int(rest[-1]) if len(rest) == 1 else output_index(node, rest[0], int(rest[1]))
        return f"{self._prefix}{name}:{index}"

    def origin(self, item: str) -> str:
        """Returns the tensor that ``item`` is a copy of."""
        made = {node.name: node for node in self.nodes}
        while (node := made.get(source_of(item))) is not None and node.op == "Identity":
            item = node.input[0]
        return item


def _node(name: str, op: str, inputs: Iterable[str], **attrs: int | bytes) -> NodeDef:
    made = node_def_pb2.NodeDef(name=name, op=op, input=[item.removesuffix(":0") for item in inputs])
    for key, value in attrs.items():
        if isinstance(value, bytes):
            made.attr[key].s = value
        else:
            made.attr[key].type = value
    return made


def _result(name: str, outputs: Sequence[str], types: Sequence[int], effects: Sequence[str]) -> NodeDef:
    """Creates the node with the call's name."""
    made = _node(name, "IdentityN" if outputs else "NoOp", [*outputs, *effects])
    if outputs:
        made.attr["T"].list.type.extend(types)
    return made
