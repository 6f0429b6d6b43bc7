"""The default graph and the default session of each thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from headwater.graph.graph import Graph
    from headwater.graph.types import SessionLike

SessionT = TypeVar("SessionT", bound="SessionLike")
Item = TypeVar("Item")


class _Stacks(threading.local):
    def __init__(self) -> None:
        self.graphs: list[Graph] = []
        self.sessions: list[SessionLike] = []


_stacks = _Stacks()
_global_graph: Graph | None = None
_global_lock = threading.Lock()
_make_graph: Callable[[], Graph] | None = None


def graphs_are_made_by(make: Callable[[], Graph]) -> None:
    """Registers the factory of the process's default graph. `Graph` imports this module, so it cannot be imported
    here."""
    global _make_graph
    _make_graph = make


def get_default_graph() -> Graph:
    """Returns the graph of this thread's innermost ``with graph.as_default()`` block, else the process's default
    graph."""
    global _global_graph
    if _stacks.graphs:
        return _stacks.graphs[-1]
    with _global_lock:
        if _global_graph is None:
            assert _make_graph is not None, "no function that makes the default graph is registered"
            _global_graph = _make_graph()
        return _global_graph


def in_graph_block() -> bool:
    """Returns whether this thread is in a ``with graph.as_default()`` block."""
    return bool(_stacks.graphs)


def reset_default_graph() -> None:
    """Replaces the process's default graph by an empty one.

    Raises:
      AssertionError: it is called inside a ``with graph.as_default()`` block.
    """
    global _global_graph
    if _stacks.graphs:
        raise AssertionError("Do not use tf.reset_default_graph() to clear nested graphs.")
    with _global_lock:
        _global_graph = None


def clear_default_graphs() -> None:
    """Leaves all graphs that this thread has entered, and replaces the process's default graph by an empty one. Used by
    tests, because an earlier test may have failed within a ``with graph.as_default()`` block."""
    _stacks.graphs.clear()
    reset_default_graph()


@contextmanager
def default_graph(graph: Graph) -> Generator[Graph]:
    """Makes ``graph`` this thread's default within the block."""
    _stacks.graphs.append(graph)
    try:
        yield graph
    finally:
        _exit(_stacks.graphs, graph, "graph")


def get_default_session() -> SessionLike | None:
    """Returns the session of this thread's innermost ``with session.as_default()`` block, or None."""
    return _stacks.sessions[-1] if _stacks.sessions else None


def require_session(session: SessionLike | None, graph: Graph, what: str) -> SessionLike:
    """Returns ``session``, or the default one; ValueError if there is neither, or if it runs another graph."""
    session = session or get_default_session()
    if session is None:
        raise ValueError(
            f"Cannot {what}: No default session is registered. Use `with sess.as_default()` or pass the session."
        )
    if session.graph is not graph:
        raise ValueError(f"Cannot {what}: the session runs another graph. Pass one that was made for this graph.")
    return session


@contextmanager
def default_session(session: SessionT) -> Generator[SessionT]:
    """Makes ``session`` this thread's default within the block."""
    enter_session(session)
    try:
        yield session
    finally:
        exit_session(session)


def enter_session(session: SessionLike) -> None:
    """Makes ``session`` the default until `exit_session`."""
    _stacks.sessions.append(session)


def exit_session(session: SessionLike) -> None:
    """Reverts `enter_session`."""
    _exit(_stacks.sessions, session, "session")


def _exit(stack: list[Item], item: Item, what: str) -> None:
    if not stack or stack[-1] is not item:
        raise AssertionError(f"Nesting of default {what}s is wrong: another {what} was entered and not left")
    stack.pop()
