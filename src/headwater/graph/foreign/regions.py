"""Orders the parts of a graph with conditions and loops for building.

A *region* is the contents of one context: the graph itself, an iteration of a loop, or a branch of a condition. Its
*items* are its own nodes, its loops, and its conditions. ``Merge`` nodes with one predicate whose branches share nodes
become one operation, unless one ``Merge`` depends on another. A dependent ``Merge`` becomes a separate operation, which
takes the values that it needs from the first operation. This occurs in gradients made by TensorFlow, which use values
of the forward pass's branches. Conditions without common nodes stay separate operations, because fetching the value of
one must not run an update that belongs to another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from headwater.graph.foreign.contexts import Branch, Context, Contexts, Frame
from headwater.graph.tensor_names import full_name, source_of

_NEVER: Final = 1 << 30


@dataclass(slots=True)
class Loop:
    """A loop of a region.

    Attributes:
      frame: its frame.
      nodes: its nodes, in order.
    """

    frame: Frame
    nodes: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class Condition:
    """A condition of a region.

    Attributes:
      predicate: the tensor that selects the branch.
      nodes: the nodes of the branch for false, and of the branch for true.
      merges: its ``Merge`` nodes.
      given: outputs of nodes in its branches that are used elsewhere in the graph, each with its side.
      awaited: nodes in its branches that are control inputs elsewhere in the graph, each with its side.
    """

    predicate: str
    nodes: tuple[list[str], list[str]] = field(default_factory=lambda: ([], []))
    merges: list[str] = field(default_factory=list[str])
    given: dict[str, bool] = field(default_factory=dict[str, bool])
    awaited: dict[str, bool] = field(default_factory=dict[str, bool])


Item = str | Loop | Condition


def items_of(region: Context, names: Sequence[str], contexts: Contexts) -> list[Item]:
    """Returns the items of a region, sorted topologically.

    Args:
      region: the region's context.
      names: the nodes in it, including nested regions, in order.

    Raises:
      ValueError: parts depend on each other in a cycle.
    """
    return _Region(region, names, contexts).ordered()


class _Region:
    def __init__(self, region: Context, names: Sequence[str], contexts: Contexts) -> None:
        self._region, self._names, self._contexts = region, names, contexts
        self._members = set(names)
        self._levels = self._find_levels()
        self._item_of: dict[str, Item] = {}
        self._assign(self._find_units())

    def _inner(self, name: str) -> Frame | Branch | None:
        """Returns the frame or branch of the region that contains a node; None for a node of the region itself."""
        context = self._contexts.of[name]
        return context[len(self._region)] if len(context) > len(self._region) else None

    def _sources(self, name: str) -> Iterable[str]:
        """Returns the nodes that a node uses, without back edges of loops."""
        return (source for source in map(source_of, self._contexts.inputs[name]) if source in self._members)

    def _predicate(self, name: str) -> str | None:
        """Returns the predicate of a ``Merge`` of the region itself; else None."""
        merge = None if self._inner(name) else self._contexts.merges.get(name)
        return None if merge is None else merge.predicate

    def _find_levels(self) -> dict[str, int]:
        """Returns, for each node, the maximum number of this region's ``Merge`` nodes on a path to it, including
        itself."""
        levels: dict[str, int] = {}
        for name in self._names:
            before = max((levels[source] for source in self._sources(name)), default=0)
            levels[name] = before + (self._predicate(name) is not None)
        return levels

    def _find_units(self) -> dict[str, int]:
        """Returns, for each node of a branch, the lowest level of a ``Merge`` that needs the node. All nodes of a loop
        in a branch get one level."""
        units: dict[str, int] = {}
        loops = self._loops_in_branches()
        while True:
            before = dict(units)
            for name in reversed(self._names):
                predicate, inner = self._predicate(name), self._inner(name)
                level = self._levels[name] if predicate is not None else units.get(name, _NEVER)
                for source in self._sources(name):
                    part = self._inner(source)
                    same = part.predicate == predicate if isinstance(part, Branch) else False
                    if isinstance(part, Branch) and (same or part == inner):
                        units[source] = min(units.get(source, _NEVER), level)
            for members in loops:
                first = min(units.get(name, _NEVER) for name in members)
                units.update(dict.fromkeys(members, first))
            if units == before:
                return units

    def _find_roots(self, units: Mapping[str, int]) -> dict[str, str]:
        """Returns a disjoint-set forest of the nodes of branches and ``Merge`` nodes that belong to one operation."""
        roots: dict[str, str] = {}

        def join(first: str, second: str) -> None:
            roots[_root(roots, first)] = _root(roots, second)

        for name in self._names:
            predicate, inner = self._predicate(name), self._inner(name)
            level = self._levels[name] if predicate is not None else units.get(name, _NEVER)
            for source in self._sources(name):
                part = self._inner(source)
                if not isinstance(part, Branch) or units.get(source, _NEVER) != level:
                    continue
                if part == inner or part.predicate == predicate:
                    join(name, source)
        for members in self._loops_in_branches():
            for member in members:
                join(member, members[0])
        return roots

    def _loops_in_branches(self) -> list[list[str]]:
        """Returns the nodes of each loop in a branch, with its ``Exit`` nodes."""
        loops: dict[Context, list[str]] = {}
        for name in self._names:
            if not isinstance(self._inner(name), Branch):
                continue
            frame = self._first_frame(name)
            if frame is None:
                frame = next(filter(None, map(self._first_frame, self._sources(name))), None)
            if frame is not None:
                loops.setdefault(frame, []).append(name)
        return list(loops.values())

    def _first_frame(self, name: str) -> Context | None:
        """Returns the context of the region's outermost loop that contains a node."""
        context = self._contexts.of[name]
        inner = range(len(self._region), len(context))
        return next((context[: index + 1] for index in inner if isinstance(context[index], Frame)), None)

    def _assign(self, units: Mapping[str, int]) -> None:
        loops: dict[Frame, Loop] = {}
        conditions: dict[tuple[str, int, str], Condition] = {}
        roots = self._find_roots(units)
        for name in self._names:
            part = self._inner(name)
            predicate = self._predicate(name)
            if isinstance(part, Frame):
                loop = self._item_of[name] = loops.setdefault(part, Loop(part))
                loop.nodes.append(name)
            elif isinstance(part, Branch):
                key = part.predicate, units.get(name, _NEVER), _root(roots, name)
                condition = self._item_of[name] = conditions.setdefault(key, Condition(part.predicate))
                condition.nodes[part.side].append(name)
            elif predicate is not None:
                key = predicate, self._levels[name], _root(roots, name)
                condition = self._item_of[name] = conditions.setdefault(key, Condition(predicate))
                condition.merges.append(name)
            else:
                self._item_of[name] = name
        for name in self._names:
            item = self._item_of[name]
            for source in self._contexts.inputs[name]:
                giver = self._item_of.get(source_of(source))
                part = self._inner(source_of(source)) if giver is not None else None
                if not isinstance(giver, Condition) or not isinstance(part, Branch):
                    continue
                if source.startswith("^"):
                    if giver is not item or self._predicate(name) is not None:
                        giver.awaited[source_of(source)] = part.side
                elif giver is not item:
                    giver.given[full_name(source)] = part.side

    def ordered(self) -> list[Item]:
        items = {_key(item): item for item in self._item_of.values()}
        needs: dict[str | int, dict[str | int, None]] = {key: {} for key in items}
        for name in self._names:
            key = _key(self._item_of[name])
            for source in self._sources(name):
                if _key(self._item_of[source]) != key:
                    needs[key][_key(self._item_of[source])] = None
        for item in items.values():
            if isinstance(item, Condition):
                source = self._item_of.get(source_of(item.predicate))
                if source is not None and source is not item:
                    needs[_key(item)][_key(source)] = None
        order: list[Item] = []
        done: set[str | int] = set()
        for first in items:
            stack = [first]
            waiting: set[str | int] = set()
            while stack:
                key = stack[-1]
                missing = [] if key in done else [need for need in needs[key] if need not in done]
                if missing and key in waiting:
                    raise ValueError(f"The part of the graph with {_described(items[key])} depends on itself")
                if missing:
                    waiting.add(key)
                    stack.extend(missing)
                    continue
                stack.pop()
                if key not in done:
                    done.add(key)
                    order.append(items[key])
        return order


def _root(roots: Mapping[str, str], name: str) -> str:
    while (following := roots.get(name, name)) != name:
        name = following
    return name


def _key(item: Item) -> str | int:
    return item if isinstance(item, str) else id(item)


def _described(item: Item) -> str:
    if isinstance(item, str):
        return f"node '{item}'"
    if isinstance(item, Loop):
        return f"the loop '{item.frame.name}'"
    return f"the condition '{item.predicate}'"
