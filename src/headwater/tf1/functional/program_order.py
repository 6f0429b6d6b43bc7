"""The order of side effects in a `function` and in functions of datasets: the order of the program's statements.

The same rule as TensorFlow's ``automatic_control_dependencies``, which orders the operations of each resource; here all
operations with state are in one order. A function of a dataset has no such operations except those in
`visible_effects`, which run although no result needs them.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from headwater.graph.registry import Kind

if TYPE_CHECKING:
    from headwater.graph.graph import Graph
    from headwater.graph.operation import Operation


class _Functions(threading.local):
    """The functions that a thread is tracing.

    Attributes:
      depth: their number.
      dataset_depth: the number of functions of datasets.
      recorded: operations of branches, iterations and functions of datasets, which run within other operations.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.dataset_depth = 0
        self.recorded: set[Operation] = set()


_functions = _Functions()


@contextmanager
def within_function() -> Generator[bool]:
    """A context in which side effects are ordered; yields whether it is the outermost one of its thread."""
    _functions.depth += 1
    try:
        yield _functions.depth == 1
    finally:
        _functions.depth -= 1
        _forget_recorded()


@contextmanager
def within_dataset_function() -> Generator[None]:
    """A context in which branches and iterations run operations for their visible effects."""
    _functions.dataset_depth += 1
    try:
        yield
    finally:
        _functions.dataset_depth -= 1
        _forget_recorded()


def _forget_recorded() -> None:
    if not _functions.depth and not _functions.dataset_depth:
        _functions.recorded.clear()


def is_in_function() -> bool:
    """Returns whether this thread is tracing a function."""
    return _functions.depth > 0


def effects_of_body(graph: Graph, first: int) -> list[Operation]:
    """Orders the side effects of a branch or an iteration, whose operations were created since the graph's version
    ``first``.

    Returns:
      The operations with side effects for which the results have to wait. Empty outside of functions.
    """
    if not _functions.depth:
        return visible_effects(graph, first) if _functions.dataset_depth else []
    added = created_since(graph, first)
    _functions.recorded.update(added)
    return effects(added)


def visible_effects(graph: Graph, first: int) -> list[Operation]:
    """Returns the operations of a function of a dataset, created since the graph's version ``first``, that have visible
    effects (`OpDef.has_effect`)."""
    added = created_since(graph, first)
    _functions.recorded.update(added)
    return [op for op in added if op.definition.has_effect(op.attrs)]


def effects(added: Sequence[Operation]) -> list[Operation]:
    """Makes the operations with side effects among ``added`` run in this order, and each read of a variable between the
    changes before and after it.

    Returns:
      The last operation with side effects, if there is any.
    """
    # The initial values of variables made here are computed when the variables are initialized.
    variables = {op for op in added if op.type == "VariableV2"}
    last: list[Operation] = []
    reads: list[Operation] = []
    for op in added:
        if not variables.isdisjoint(tensor.op for tensor in op.inputs):
            continue
        if op.read_reference is not None:
            reads.append(op)
            op.add_control_inputs(last)
        elif op.definition.ref_positions(op.attrs) or op.definition.kind is Kind.HOST:
            op.add_control_inputs([*last, *reads])
            last, reads = [op], []
    return last


def created_since(graph: Graph, first: int) -> list[Operation]:
    """Returns the operations created since the graph's version ``first``, without those of branches and iterations."""
    return [op for op in graph.get_operations() if op.number >= first and op not in _functions.recorded]
