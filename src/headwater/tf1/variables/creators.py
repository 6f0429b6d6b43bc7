"""`variable_creator_scope`: functions that intercept the creation of variables."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from headwater.graph.context import get_default_graph

if TYPE_CHECKING:
    from headwater.graph.graph import Graph

Creator = Callable[..., Any]
_KEY = ("__variable_creators",)


class _Creators(threading.local):
    """Variable creators of a graph in this thread, the outermost first."""

    def __init__(self) -> None:
        self.open: tuple[Creator, ...] = ()


def _held(graph: Graph) -> _Creators | None:
    found = graph.get_collection_ref(_KEY)
    return found[0] if found else None


@contextmanager
def variable_creator_scope(variable_creator: Creator) -> Generator[None]:
    """Returns a context in which ``variable_creator`` creates the variables of the default graph.

    Args:
      variable_creator: ``f(next_creator, **kwargs)`` returns a variable; ``kwargs`` are all arguments of `tf.Variable`,
        to be passed to ``next_creator(**kwargs)``: the creator of the enclosing scope, or the default creator.
    """
    graph = get_default_graph()
    held = _held(graph)
    if held is None:
        held = _Creators()
        graph.get_collection_ref(_KEY).append(held)
    before = held.open
    held.open = (*before, variable_creator)
    try:
        yield
    finally:
        held.open = before


def create_with_creators(make: Creator, **arguments: object) -> Any:
    """Calls the creators of the open scopes with ``arguments``; calls ``make`` if there are none."""
    held = _held(get_default_graph())
    for creator in () if held is None else held.open:
        make = _before(creator, make)
    return make(**arguments)


def _before(creator: Creator, following: Creator) -> Creator:
    def make(**arguments: object) -> Any:
        return creator(following, **arguments)

    return make


def any_creators() -> bool:
    """Returns whether a scope is open in the default graph."""
    held = _held(get_default_graph())
    return held is not None and bool(held.open)
