"""Runs operations on a dataset's element before the step that uses the element.

An iterator's thread produces elements in advance. Operations on the host that depend only on the element, such as
hashes of its features, then run in that thread, too, while a step updates the model in its own thread. If one of them
fails, the step runs all of them as usual, and raises the error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from headwater.data.node import Element
from headwater.graph.ops.datasets import checked_element, specs_of
from headwater.graph.ops.straight_lines import as_array
from headwater.graph.passes.merge import DETERMINISTIC
from headwater.graph.passes.plan import Host, Node, TaskPlan
from headwater.graph.registry import Kind, as_outputs
from headwater.graph.resources.host_context import HostContext

_GET_NEXT: Final = "IteratorGetNext"
_SPECS: Final = ("output_types", "output_shapes", "output_classes")


class ElementWork:
    """The operations of a plan that depend only on the element of an iterator and on constants.

    Args:
      source: the operation that gets the element.
      count: number of its outputs in use.
      nodes: the operations, in order.
      outputs: the outputs of ``nodes`` in use.
      constants: values of the plan's constants, by tensor name.
    """

    def __init__(
        self, source: Node, count: int, nodes: Sequence[Node], outputs: Sequence[str], constants: Mapping[str, Any]
    ) -> None:
        self.outputs: Sequence[str] = outputs
        self._count = count
        self._source = source.name
        self._specs = specs_of(*(source.attrs.get(key, ()) for key in _SPECS))
        inputs = {name for node in nodes for name in node.inputs}
        self._constants = {name: value for name, value in constants.items() if name in inputs}
        calls = [(node, node.definition.lower, attributes_of(node)) for node in nodes]
        self._calls: Sequence[tuple[Node, Any, dict[str, Any]]] = calls

    def next(self, context: HostContext, iterator: Any, **attrs: object) -> Sequence[Any]:
        """Returns the components of the next element; if they are known already, the `outputs` follow."""
        del attrs
        element, results = iterator.item().next_prepared(context, self)
        return checked_element(element, self._specs)[: self._count] if results is None else results

    def __call__(self, element: Element) -> Sequence[Any] | None:
        """Returns the result of `next` for an element; None if an operation fails."""
        try:
            given = checked_element(element, self._specs)
            values = {**self._constants, **{f"{self._source}:{index}": part for index, part in enumerate(given)}}
            for node, lower, attrs in self._calls:
                found = as_outputs(lower(None, *map(values.__getitem__, node.inputs), **attrs))
                values.update((f"{node.name}:{index}", as_array(value)) for index, value in enumerate(found))
        except Exception:  # noqa: BLE001 - the step raises it
            return None
        return (*given[: self._count], *map(values.__getitem__, self.outputs))


def attributes_of(node: Node) -> dict[str, Any]:
    """Returns the attributes that the operation's lowering takes."""
    return {key: value for key, value in node.attrs.items() if key in node.definition.attrs}


def element_work(plan: TaskPlan, outputs_of: Callable[[Node], Sequence[str]]) -> dict[str, ElementWork]:
    """Returns the work on the elements that a plan gets, by the name of each operation that gets elements.

    Args:
      outputs_of: returns the outputs of an operation that are in use.
    """
    nodes = [item.node for item in plan.instructions if isinstance(item, Host)]
    found: dict[str, ElementWork] = {}
    for source in (node for node in nodes if node.type == _GET_NEXT):
        outputs = outputs_of(source)
        known, chosen = {*plan.constants, *outputs}, list[Node]()
        for node in nodes:
            if node.type not in DETERMINISTIC or node.definition.kind is not Kind.HOST or node.refs:
                continue
            # An operation on constants only is no work on the element.
            if known.issuperset(node.inputs) and not plan.constants.keys() >= set(node.inputs) and outputs_of(node):
                chosen.append(node)
                known.update(outputs_of(node))
        if chosen:
            results = [name for node in chosen for name in outputs_of(node)]
            found[source.name] = ElementWork(source, len(outputs), chosen, results, plan.constants)
    return found
