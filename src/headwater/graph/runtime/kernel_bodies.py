"""Functions on kernels for the bodies of loops and branches, and their gradients.

The gradient's code is generated once, by traversing the body's operations in reverse order. A run of the forward
function keeps the values that the gradient needs; these are its *tape*. A body changes no state.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

from headwater.graph.kernels.blocks import write_gradient_in_place
from headwater.graph.kernels.random import body_key
from headwater.graph.kernels.registry import takes_outputs
from headwater.graph.ops.bodies import Body, BodyNode, decode_body, needed
from headwater.graph.passes.plan import Node
from headwater.graph.registry import FunctionAttr, Kind
from headwater.graph.runtime.kernel_code import ALIASES, Code, as_tuple, join_names, outputs_used
from headwater.graph.runtime.kernel_lookup import GRADIENT_MAKERS, WithoutKernel, gradient_function_of, own_attrs

Run = Callable[..., tuple[Any, ...]]

#: Operations whose results are booleans, integers or constants, so that no gradient passes through them. The backward
#: pass skips them, although the registry does not mark all of them as not differentiable.
_WITHOUT_GRADIENT: Final = frozenset(
    {
        *("ApproximateEqual", "Equal", "Greater", "GreaterEqual", "Less", "LessEqual", "NotEqual"),
        *("ArgMax", "ArgMin", "IsFinite", "IsInf", "IsNan", "OnesLike", "Rank", "Shape", "ShapeN", "Size", "ZerosLike"),
    }
)


class Gradient(NamedTuple):
    """A body's forward function and its gradient.

    Attributes:
      forward: takes the body's inputs; returns its outputs and the tape.
      backward: takes the tape, and for each output a gradient or None; returns a gradient or None for each input. Its
        third argument says whether it may change, in place, the gradients that it returned for the previous iteration.
    """

    forward: Callable[..., tuple[tuple[Any, ...], tuple[Any, ...]]]
    backward: Callable[[tuple[Any, ...], Sequence[Any]], tuple[Any, ...]]


@lru_cache(maxsize=256)
def body_function(function: FunctionAttr, outputs: tuple[str, ...] | None = None, carried: int = 0) -> Run:
    """Returns a function from a body's inputs to its outputs; in a loop it also takes ``turn``, the number of the
    iteration.

    Args:
      function: the attribute that holds the body.
      outputs: the results to return; the body's outputs if None.
      carried: number of leading outputs that become the leading inputs of the next iteration.

    Raises:
      WithoutKernel: an operation has no kernel.
    """
    body = decode_body(function)
    wanted = body.outputs if outputs is None else outputs
    code = Code()
    _forward(code, body, wanted, _owned_writes(body, carried))
    results = [code.names[name] for name in wanted]
    return code.function("*inputs, turn=None", f"({join_names(results)})", results).run


@lru_cache(maxsize=256)
def body_gradient(function: FunctionAttr, wanted: tuple[bool, ...], carried: int = 0) -> Gradient:
    """Returns the gradient of a body.

    Args:
      function: the attribute that holds the body.
      wanted: for each input, whether to compute its gradient; only floating-point inputs have one.
      carried: number of leading outputs that become the leading inputs of the next iteration.

    Raises:
      WithoutKernel: an operation, or its gradient, has no kernel.
    """
    body = decode_body(function)
    code = Code()
    code.keep_tapes()
    owned = _owned_writes(body, carried)
    nodes = _forward(code, body, body.outputs, owned)
    back = Code(names=dict(code.names), space=code.space, numbers=code.numbers)
    given = [back.local() for _ in body.outputs]
    back.add(f"{join_names(given)} = grads", defines=given)
    _Backward(back, code, body, nodes, wanted, owned).run(given)
    made = {name for statement in back.statements for name in statement.defines}
    here = {name for statement in code.statements for name in statement.defines}
    used = {name for statement in back.statements for name in statement.uses}
    # The tape has exactly the values of the forward pass that the backward pass uses. Sorted, so that generated code is
    # the same in each run.
    tape = sorted((used - made) & here)
    outputs = [code.names[name] for name in body.outputs]
    forward = code.function("*inputs, turn=None", f"({join_names(outputs)}), ({join_names(tape)})", [*outputs, *tape])
    if tape:
        back.add(f"{join_names(tape)} = tape", defines=tape)
        # This statement is known only after the backward pass was generated, but it is needed at the beginning.
        back.statements.insert(0, back.statements.pop())
    grads = [
        back.names.get(f"grad {name}", "None") if want else "None"
        for name, want in zip(body.inputs, wanted, strict=True)
    ]
    backward = back.function("tape, grads, owned=False", f"({join_names(grads)})", grads)
    return Gradient(forward.run, backward.run)


def _owned_writes(body: Body, carried: int) -> set[str]:
    """Returns the names of the writes to tensor arrays that can be made in place.

    After the first iteration, only the loop refers to the arrays of these writes, because no other operation of the
    body uses them.
    """
    sources = {f"{node.name}:0": node.inputs[0] for node in body.nodes if node.definition.name in ALIASES}

    def source(tensor: str) -> str:
        while tensor in sources:
            tensor = sources[tensor]
        return tensor

    nodes = [node for node in body.nodes if node.definition.name not in ALIASES]
    outputs = [source(name) for name in body.outputs]
    uses = Counter([*(source(name) for node in nodes for name in node.inputs), *outputs])
    pairs = set(zip(body.inputs[:carried], outputs[:carried], strict=True))
    return {
        node.name
        for node in nodes
        if node.definition.name == "TensorArrayWrite"
        and (source(node.inputs[0]), f"{node.name}:0") in pairs
        and uses[source(node.inputs[0])] == uses[f"{node.name}:0"] == 1
    }


def _forward(code: Code, body: Body, outputs: Sequence[str], owned: Collection[str]) -> list[Node]:
    """Adds the operations that ``outputs`` need, and returns them; ``owned`` is the result of `_owned_writes`."""
    if "" in outputs:  # a branch of an imported condition that leaves an output undefined
        raise WithoutKernel("a branch without one of the outputs")
    arguments = [code.local() for _ in body.inputs]
    if arguments:
        code.add(f"{join_names(arguments)} = inputs", defines=arguments)
    code.names.update(zip(body.inputs, arguments, strict=True))
    nodes = [_node(node) for node in needed(body, outputs)]
    used = outputs_used(nodes, outputs)
    code.keep_tapes_for(nodes, used)
    code.space["body_key"] = body_key
    for node in nodes:
        args = [code.names[name] for name in node.inputs]
        if node.definition.kind is Kind.RANDOM:
            key = f"body_key({code.names[body.key]}, {zlib.crc32(node.name.encode())}, turn)"
            code.random(node, key, args, used.get(node.name, []), [code.names[body.key]])
        else:
            code.pure(node, args, used.get(node.name, []), more="owned=turn" if node.name in owned else "")
    return nodes


def _node(node: BodyNode) -> Node:
    if node.definition.kind not in (Kind.PURE, Kind.RANDOM) and node.definition.traced is None:
        raise WithoutKernel(node.definition.name)
    return Node(node.name, node.definition.name, node.inputs, {}, node.attrs)


@dataclass(slots=True)
class _Backward:
    """The backward pass over the operations."""

    back: Code
    forward: Code
    body: Body
    nodes: Sequence[Node]
    wanted: Sequence[bool]
    owned: Collection[str]

    def run(self, given: Sequence[str]) -> None:
        """Adds the statements; ``given`` are the local variables with the gradients of the body's outputs."""
        self.back.space.update(added=added, as_tuple=as_tuple, padded=padded)
        active = self._active()
        for name, grad in zip(self.body.outputs, given, strict=True):
            if name in active:
                self._add(name, grad)
        used = outputs_used(self.nodes, self.body.outputs)
        for node in reversed(self.nodes):
            outputs = used.get(node.name, [])
            grads = [f"grad {node.name}:{index}" for index in range(max(outputs, default=-1) + 1)]
            if any(name in self.back.names for name in grads):
                self._through(node, [self.back.names.get(name, "None") for name in grads], active)

    def _active(self) -> set[str]:
        """Returns the tensors that depend differentiably on inputs with gradients."""
        found = {name for name, want in zip(self.body.inputs, self.wanted, strict=True) if want}
        used = outputs_used(self.nodes, self.body.outputs)
        for node in self.nodes:
            definition = node.definition
            leads = any(n in found and index not in definition.constants for index, n in enumerate(node.inputs))
            if leads and definition.differentiable and not _blocks_gradient(node):
                found.update(f"{node.name}:{index}" for index in used.get(node.name, ()))
        return found

    def _add(self, tensor: str, grad: str) -> None:
        """Adds to the gradient of a tensor."""
        key = f"grad {tensor}"
        before = self.back.names.get(key)
        if before is not None:
            total = self.back.local()
            self.back.add(f"{total} = added({before}, {grad})", defines=[total], uses=[before, grad])
            grad = total
        self.back.names[key] = grad

    def _through(self, node: Node, grads: Sequence[str], active: set[str]) -> None:
        blocked = node.definition.constants
        wants = tuple(name in active and index not in blocked for index, name in enumerate(node.inputs))
        if node.type in ALIASES:
            for name, want, grad in zip(node.inputs, wants, grads, strict=False):
                if want and grad != "None":
                    self._add(name, grad)
            return
        if not any(wants):
            return
        if node.definition.kind is Kind.RANDOM:
            raise WithoutKernel(f"the gradient of {node.type}")
        attrs = own_attrs(node)
        args = [self.forward.names[name] for name in node.inputs]
        forward = self.forward.result_of(node.type, args, attrs)
        assert forward is not None, node
        present = [grad for grad in grads if grad != "None"]
        uses = [*args, *present]
        gradients = f"({join_names(grads)})"
        if len(grads) > 1:
            # A vector-Jacobian product needs an entry for every output, including unused ones.
            gradients = f"padded({gradients}, {forward})"
            uses.append(forward)
        run = self.back.bind(gradient_function_of(node.type, attrs), "g")
        if node.name in self.owned:
            run = f"{self.back.bind(write_gradient_in_place, 'g')} if owned else {run}"
        given = [f"({join_names(args)})", gradients, self.back.bind(wants, "a"), self.back.bind(attrs, "a")]
        if takes_outputs(node.type) or node.type in GRADIENT_MAKERS:
            given.append(f"as_tuple({forward})")
            uses.append(forward)
        result = self.back.local()
        # The gradients of a loop's results are None in some runs of the same code.
        absent = " is None and ".join(present) + " is None"
        nothing = self.back.bind((None,) * len(wants), "a")
        text = f"{result} = {nothing} if {absent} else ({run})({', '.join(given)})"
        self.back.add(text, node, defines=[result], uses=uses)
        for index, (name, want) in enumerate(zip(node.inputs, wants, strict=True)):
            if want:
                part = self.back.local()
                self.back.add(f"{part} = {result}[{index}]", defines=[part], uses=[result])
                self._add(name, part)


def _blocks_gradient(node: Node) -> bool:
    """Returns whether no gradient passes through an operation: its results are booleans, integers or constants."""
    if node.type == "Cast":
        return not (node.attrs["DstT"].is_floating or node.attrs["DstT"].is_complex)
    return node.type in _WITHOUT_GRADIENT


def padded(grads: tuple[Any, ...], outputs: Sequence[Any]) -> tuple[Any, ...]:
    """Returns ``grads`` with None appended for the last outputs: nothing reads these."""
    return grads + (None,) * (len(outputs) - len(grads))


def added(a: Any, b: Any) -> Any:
    """Adds two gradients; None represents zeros."""
    if a is None or b is None:
        return b if a is None else a
    return a + b
