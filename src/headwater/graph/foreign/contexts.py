"""Finds the conditions and loops that enclose each node of a ``GraphDef`` in the control flow of TensorFlow 1.

TensorFlow 1 represents a condition by ``Switch`` operations, which produce a value at one of their two outputs, and
``Merge`` operations, which return the value of the input that has a value. A loop is a *frame*: ``Enter`` passes a
value into it, ``Merge`` joins the initial value and the value of ``NextIteration``, and ``Switch`` passes a value to
the next iteration or to ``Exit``. See "Dynamic Control Flow in TensorFlow" (Yu et al., EuroSys 2018). From the edges,
this module derives which branches and frames contain each node.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from headwater.graph.tensor_names import full_name, source_of

if TYPE_CHECKING:
    from headwater.tensorboard_protos import NodeDef

_REFERENCE_FORMS: Final = {
    f"Ref{name}": name for name in ("Enter", "Exit", "Identity", "Merge", "NextIteration", "Switch")
}


@dataclass(frozen=True, slots=True)
class Frame:
    """An iteration of the loop called ``name``."""

    name: str


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch of a condition, which runs if the tensor ``predicate`` is ``side``."""

    predicate: str
    side: bool


Context = tuple["Frame | Branch", ...]
"""The frames and branches that enclose a node, from the outermost to the innermost."""


def kind(node: NodeDef) -> str:
    """Returns the operation type of a node; for reference forms, the plain type."""
    op_type: str = node.op
    return _REFERENCE_FORMS.get(op_type, op_type)


def data_inputs(node: NodeDef) -> list[str]:
    """Returns a node's inputs without control inputs."""
    return [item for item in node.input if not item.startswith("^")]


@dataclass(frozen=True, slots=True)
class Merge:
    """The end of a condition: selects the tensor of the branch that ran.

    Attributes:
      predicate: the tensor that selects the branch.
      values: the tensors of the branch for false, and of the branch for true.
      first: the side (false or true) to which the first input belongs.
    """

    predicate: str
    values: tuple[str, str]
    first: bool


@dataclass(frozen=True, slots=True)
class Contexts:
    """A graph's conditions and loops.

    Attributes:
      of: the context of each node's operation. A ``Merge`` is outside of the branches that it joins, ``Enter`` and
        ``Exit`` are outside of their frame.
      inputs: for each node, its inputs that are nodes of this graph, without back edges of loops and without pivots.
        Pivots are control inputs whose only purpose is to put a node into a branch or an iteration.
      merges: the ``Merge`` nodes of conditions.
      loop_merges: for each ``Merge`` of a loop, the initial tensor and the ``NextIteration``.
      order: the nodes, sorted topologically without back edges of loops.
    """

    of: Mapping[str, Context]
    inputs: Mapping[str, Sequence[str]]
    merges: Mapping[str, Merge]
    loop_merges: Mapping[str, tuple[str, str]]
    order: Sequence[str]


def find_contexts(nodes: Mapping[str, NodeDef], mapped: Container[str] = ()) -> Contexts:
    """Finds the contexts of ``nodes``.

    Args:
      mapped: inputs that the import replaces by other tensors, as full names of tensors or ``^node``.

    Raises:
      ValueError: a cycle that is not a loop, or a ``Merge`` that does not join the branches of one condition; the
        message names the node.
    """
    return _Finder(nodes, mapped).run()


class _Finder:
    def __init__(self, nodes: Mapping[str, NodeDef], mapped: Container[str]) -> None:
        self._nodes, self._mapped = nodes, mapped
        self._of: dict[str, Context] = {}
        self._inputs: dict[str, list[str]] = {}
        self._merges: dict[str, Merge] = {}
        self._loop_merges: dict[str, tuple[str, str]] = {}

    def run(self) -> Contexts:
        for name, node in self._nodes.items():
            if kind(node) == "Merge":
                back = [item for item in data_inputs(node) if self._kind(item) == "NextIteration"]
                if back:
                    first = next(item for item in data_inputs(node) if item not in back)
                    self._loop_merges[name] = first, back[0]
            self._inputs[name] = self._forward_inputs(name)
        order = self._ordered()
        for name in order:
            self._of[name] = self._context(name)
        inputs = {name: [item for item in items if not self._is_pivot(item)] for name, items in self._inputs.items()}
        return Contexts(self._of, inputs, self._merges, self._loop_merges, order)

    def _is_pivot(self, item: str) -> bool:
        if not item.startswith("^") or self._kind(item) != "Identity":
            return False
        return self._kind(data_inputs(self._nodes[source_of(item)])[0]) == "Switch"

    def _kind(self, item: str) -> str:
        node = self._nodes.get(source_of(item))
        return "" if node is None else kind(node)

    def _forward_inputs(self, name: str) -> list[str]:
        """Returns the inputs of a node that are nodes of this graph, without back edges of loops."""
        items = [
            item
            for item in self._nodes[name].input
            if source_of(item) in self._nodes and full_name(item) not in self._mapped
        ]
        if name in self._loop_merges:
            return [item for item in items if self._kind(item) != "NextIteration"]
        return items

    def _ordered(self) -> list[str]:
        order: list[str] = []
        done: set[str] = set()
        pending: set[str] = set()
        for first in self._nodes:
            stack = [first]
            while stack:
                name = stack[-1]
                missing = [] if name in done else [d for d in map(source_of, self._inputs[name]) if d not in done]
                if missing and name in pending:
                    raise ValueError(f"Node '{name}' lies on a cycle that is not a loop")
                if missing:
                    pending.add(name)
                    stack.extend(missing)
                else:
                    stack.pop()
                    pending.discard(name)
                    if name not in done:
                        done.add(name)
                        order.append(name)
        return order

    def predicate(self, item: str) -> str:
        """Returns the tensor of which ``item`` is a copy, following ``Identity`` operations."""
        while self._kind(item) in ("Identity", "Enter"):
            item = data_inputs(self._nodes[source_of(item)])[0]
        return full_name(item)

    def leads_on(self, name: str) -> bool:
        """Returns whether a ``Switch`` continues a loop, rather than selecting a branch of a condition."""
        return self._kind(self.predicate(data_inputs(self._nodes[name])[1])) == "LoopCond"

    def _context_of_users(self, item: str) -> Context:
        """Returns the context of users of ``item``."""
        source = source_of(item)
        context, node = self._of[source], self._nodes[source]
        if kind(node) == "Enter":
            return (*context, Frame(node.attr["frame_name"].s.decode()))
        if kind(node) == "Switch" and not item.startswith("^") and not self.leads_on(source):
            branch = Branch(self.predicate(data_inputs(node)[1]), item.endswith(":1"))
            return context if branch in context else (*context, branch)
        return context

    def _context(self, name: str) -> Context:
        node = self._nodes[name]
        if kind(node) == "Merge" and name not in self._loop_merges:
            return self._merged(name)
        joined: Context = ()
        for item in self._inputs[name]:
            joined = _join(joined, self._context_of_users(item), name)
        frames = [index for index, part in enumerate(joined) if isinstance(part, Frame)]
        if kind(node) == "ControlTrigger":  # runs when each of its inputs has run or is known not to run
            return joined[: frames[-1] + 1] if frames else ()
        if kind(node) == "Exit":
            if not frames:
                raise ValueError(f"Node '{name}' is the end of a loop, but is not inside a loop")
            return joined[: frames[-1]]
        return joined

    def _merged(self, name: str) -> Context:
        items = [item for item in self._inputs[name] if not item.startswith("^")]
        sides = [self._context_of_users(item) for item in items]
        if len(sides) == 2:
            for part in sides[1]:
                if not isinstance(part, Branch):
                    continue
                other = Branch(part.predicate, not part.side)
                rest = [tuple(each for each in side if each not in (part, other)) for side in sides]
                if other in sides[0] and rest[0] == rest[1]:
                    values = (items[0], items[1]) if part.side else (items[1], items[0])
                    self._merges[name] = Merge(part.predicate, values, not part.side)
                    joined = rest[0]
                    for item in self._inputs[name]:
                        if item.startswith("^"):  # a control input may be a node of one branch only
                            context = tuple(each for each in self._context_of_users(item) if each not in (part, other))
                            joined = _join(joined, context, name)
                    return joined
        raise ValueError(f"Node '{name}' (Merge) joins values that are not from the two branches of one condition")


def _join(first: Context, second: Context, name: str) -> Context:
    """Returns the context of a node with inputs from two contexts."""
    if len(second) > len(first):
        first, second = second, first
    joined = (*first, *(part for part in second if part not in first))
    for part in joined:
        if isinstance(part, Branch) and Branch(part.predicate, not part.side) in joined:
            raise ValueError(f"Node '{name}' never runs: it needs both branches of the condition {part.predicate!r}")
    return joined
