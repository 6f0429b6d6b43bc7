"""Finds the initialisation of variables in a `Compute` that cannot run on kernels as a whole.

The initialisation runs on kernels. If XLA compiled it with the rest, it would generate code of a random number
generator for each variable, although a program usually initialises its variables once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from headwater.graph.kernels.random import DRAWS
from headwater.graph.passes.plan import Compute, Node
from headwater.graph.tensor_names import operation_of

#: Number of runs after which the operations are no longer treated as initialisation: compiling them is then worthwhile.
MAX_RUNS: Final = 16
_FORMS: Final = frozenset({"Add", "AddV2", "Const", "Fill", "Identity", "Mul", "Reshape", "Sub", *DRAWS})


def _has_form(node: Node) -> bool:
    return node.type == "Assign" or (node.type in _FORMS and not node.refs)


def split(compute: Compute) -> tuple[Compute | None, Compute | None]:
    """Divides a `Compute` into assignments of initial values, and the other operations, which can run after them.

    Returns:
      The assignments, with the operations that only they use; and the other operations, or None if there are none.
      Both results are None if dividing gains nothing: there are no such assignments, or there are other operations and
      the assignments draw no random numbers.
    """
    made_by = {f"{node.name}:0": node for node in compute.nodes}
    needs: dict[str, set[str]] = {}  # operations that an assignment needs, itself included
    touched: set[str] = set()
    for node in compute.nodes:
        if node.type == "Assign" and node.refs[0] not in touched:
            needed = _needed(node, made_by)
            if needed is not None:
                needs[node.name] = needed
        touched.update((node.name, *node.refs.values()))
    constants = {node.name for node in compute.nodes if node.type == "Const"}
    while True:
        first = set[str]().union(*needs.values())
        names = {name for node in compute.nodes if node.name not in first for name in node.inputs}
        # An operation that is also used outside of the assignments has to stay with the other operations, and so do the
        # assignments that need it. Their removal may make further operations shared, so repeat.
        shared = first.intersection(made_by[name].name for name in names if name in made_by) - constants
        if not shared:
            break
        needs = {name: needed for name, needed in needs.items() if shared.isdisjoint(needed)}
    rest = {node.name for node in compute.nodes} - first
    draws = any(node.type in DRAWS for node in compute.nodes if node.name in first)
    if not first or (rest - constants and not draws):
        return None, None
    return _part(compute, first), _part(compute, rest | constants) if rest - constants else None


def _needed(node: Node, made_by: Mapping[str, Node]) -> set[str] | None:
    """Returns the names of an assignment and of the operations that it needs; None if one of them is not supported
    here."""
    names: set[str] = set()
    waiting = [node]
    while waiting:
        at = waiting.pop()
        if at.name in names:
            continue
        if not _has_form(at) or (at.type == "Assign" and at is not node):
            return None
        names.add(at.name)
        waiting += [made_by[name] for index, name in enumerate(at.inputs) if index not in at.refs and name in made_by]
    return names


def _part(compute: Compute, names: Collection[str]) -> Compute:
    nodes = tuple(node for node in compute.nodes if node.name in names)
    used = {name for node in nodes for name in node.inputs}
    return replace(
        compute,
        nodes=nodes,
        inputs=tuple(name for name in compute.inputs if name in used),
        static=tuple(name for name in compute.static if name in used),
        outputs=tuple(name for name in compute.outputs if operation_of(name) in names),
    )
