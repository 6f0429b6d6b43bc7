"""Updates of many small variables by one rule, as one update of all their elements.

NumPy's time for a small array is the time of its calls, and a rule makes up to 15. So the arrays of variables that are
updated one after the other by the same rule and rate are joined for the calls. The results are the same bits, because
such a rule computes each element by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter, is_
from sys import getrefcount
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from headwater.graph.kernels.registry import ElementRule, element_rule_of
from headwater.graph.ops.faults import can_fail
from headwater.graph.passes.plan import Node
from headwater.graph.resources.containers import Cell
from headwater.graph.runtime.host_values import changed, current, writable

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray

#: Larger arrays are updated alone: joining them saves little.
_MOST_ELEMENTS: Final = 4096
_value_of: Final[Callable[[Cell], Any]] = attrgetter("value")
_shape_of: Final[Callable[[Any], Any]] = attrgetter("shape")


class JoinedUpdate:
    """Updates several variables. The caller holds the lock of the variables.

    After the first update, the variables' arrays are views of one array for each input of the rule, so that later
    updates need no copies. If a variable has got another array since, or a reader refers to one of the views, all
    arrays are copied again.

    Args:
      update: the kernel of one update.
      rule: its inputs.
      cells: for each input that is a variable, the cells of all updates.
    """

    def __init__(self, update: Callable[..., None], rule: ElementRule, cells: Sequence[Sequence[Cell]]) -> None:
        self._update = update
        self._rule = rule
        self._cells = cells
        self._alone: Sequence[int] = ()
        self._joined: Sequence[int] = ()
        self._joined_cells: Sequence[Cell] = ()
        self._shapes: Sequence[tuple[int, ...]] = ()
        self._wholes: Sequence[HostArray] = ()
        self._views: Sequence[HostArray] = ()
        self._references = 0

    def __call__(self, grads: Sequence[HostArray], *others: HostArray, **attrs: Any) -> None:
        """Updates the variables.

        Args:
          grads: a gradient for each variable.
          others: the inputs that all updates share, in order.
          attrs: attributes of the operation.

        Raises:
          FailedPreconditionError: a variable has no value.
          InvalidArgumentError: a slot or gradient has a different shape than its variable.
        """
        if not self._are_views():
            self._join()
            self._references = self._count_references()
        given = [grads[index] for index in self._joined] if self._alone else grads
        alone: Sequence[int] = self._alone
        if list(map(_shape_of, given)) != self._shapes:
            alone = range(len(grads))  # one of them raises an error
        for index in alone:
            cells = [column[index] for column in self._cells]
            values = [*map(writable, cells)]
            self._run(values, grads[index], others, attrs)
            for cell, value in zip(cells, values, strict=True):
                changed(cell, value)
        if self._joined:
            self._run(self._wholes, _join(given), others, attrs)
            for cell in self._joined_cells:
                cell.counts[cell.slot] += 1

    def _run(
        self, variables: Sequence[HostArray], grad: HostArray, others: Sequence[HostArray], attrs: dict[str, Any]
    ) -> None:
        inputs = [*variables, *others]
        inputs.insert(self._rule.gradient, grad)
        self._update(*inputs, **attrs)

    def _are_views(self) -> bool:
        """Returns whether the cells have the views of the last update, and nothing else refers to their memory."""
        same = all(map(is_, map(_value_of, self._joined_cells), self._views))
        return same and bool(self._views) and self._count_references() == self._references

    def _count_references(self) -> int:
        return sum(map(getrefcount, self._views)) + sum(map(getrefcount, self._wholes))

    def _join(self) -> None:
        """Replaces the values of small variables by views of new arrays."""
        rows = [[current(cell) for cell in row] for row in zip(*self._cells, strict=True)]
        small = [row[0].size <= _MOST_ELEMENTS and len(set(map(_shape_of, row))) == 1 for row in rows]
        self._joined = [index for index, fits in enumerate(small) if fits]
        self._alone = [index for index, fits in enumerate(small) if not fits]
        self._shapes = [rows[index][0].shape for index in self._joined]
        self._joined_cells = [cells[index] for cells in self._cells for index in self._joined]
        columns = [[rows[index][at] for index in self._joined] for at in range(len(self._cells))]
        self._wholes = [_join(column) for column in columns if column]
        self._views = [view for whole in self._wholes for view in _views(whole, self._shapes)]
        for cell, view in zip(self._joined_cells, self._views, strict=True):
            cell.value = view


def _join(arrays: Sequence[HostArray]) -> HostArray:
    return np.concatenate(arrays, axis=None, dtype=arrays[0].dtype, casting="no")


def _views(whole: HostArray, shapes: Iterable[tuple[int, ...]]) -> Iterator[HostArray]:
    """Yields read-only views of consecutive parts of ``whole``."""
    begin = 0
    for shape in shapes:
        end = begin + math.prod(shape)
        view = whole[begin:end].reshape(shape)
        view.setflags(write=False)
        yield view
        begin = end


def joinable(nodes: Sequence[Node]) -> int:
    """Returns how many of the first operations of ``nodes`` can be one `JoinedUpdate`; at least 1.

    They have the same type, attributes and inputs, except for variables and gradients. No operation changes a variable
    that another operation updates, or uses the result of another operation.
    """
    first = nodes[0]
    rule = element_rule_of(first.type)
    if rule is None or can_fail(first.type, first.attrs):
        return 1
    shared = shared_inputs(first, rule)
    results: set[str] = set()
    variables: set[str] = set()
    for count, node in enumerate(nodes):
        same = node.type == first.type and node.attrs == first.attrs and shared_inputs(node, rule) == shared
        refs = node.refs.values()
        if not same or not variables.isdisjoint(refs) or not results.isdisjoint(node.inputs):
            return count
        variables.update(refs)
        results.add(f"{node.name}:0")
    return len(nodes)


def shared_inputs(node: Node, rule: ElementRule) -> Sequence[str]:
    """Returns the inputs that are neither variables nor the gradient."""
    return [name for at, name in enumerate(node.inputs) if at >= rule.variables and at != rule.gradient]
