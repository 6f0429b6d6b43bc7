"""``tf.keras.backend``: the session in which variables and tensors of a graph have values."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, Protocol

import keras

from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph, get_default_session, in_graph_block, reset_default_graph
from headwater.graph.graph import Graph
from headwater.graph.session.session import Session
from headwater.keras.graphs.phase import builds_graph
from headwater.keras.learning_phase import restore_learning_phase
from headwater.keras.types import Value
from headwater.tf1.compat.dialect import is_eager
from headwater.tf1.variables.state import is_variable_initialized
from headwater.tf1.variables.variables import Variable


class RunsGraphs(Protocol):
    """The interface of a session that `set_session` stores."""

    def run(self, fetches: object, feed_dict: object = None) -> object:
        """Runs part of a graph."""


class _Kept:
    session: RunsGraphs | None = None
    by_graph: weakref.WeakKeyDictionary[Graph, Session] = weakref.WeakKeyDictionary()
    initialized: weakref.WeakKeyDictionary[Any, weakref.WeakSet[Variable]] = weakref.WeakKeyDictionary()
    by_hand = False


def get_session(op_input_list: Sequence[Value] = ()) -> RunsGraphs:
    """Returns the session of the default graph: the default session, the session that was passed to `set_session`, or
    a new one.

    The graph's variables without a value are initialised in it.

    Raises:
      ValueError: no session was set, no graph is built, and the default graph is empty.
    """
    del op_input_list
    graph = get_default_graph()
    session: Any = get_default_session() or _Kept.session
    if session is None or getattr(session, "graph", graph) is not graph:
        if not graph.get_operations() and not builds_graph():
            raise ValueError("No session was set with `keras.backend.set_session`; models of Keras 3 need none.")
        session = _Kept.by_graph.get(graph)
        if session is None:
            session = _Kept.by_graph[graph] = Session(graph=graph)
    _initialize(session, graph)
    return session


def _initialize(session: Any, graph: Graph) -> None:
    """Initialises the variables of ``graph`` and of metric objects that have no value in ``session``."""
    if _Kept.by_hand or getattr(session, "graph", None) is not graph or graph.finalized:
        return
    known = _Kept.initialized.setdefault(session, weakref.WeakSet())
    names = GraphKeys.GLOBAL_VARIABLES, GraphKeys.METRIC_VARIABLES
    variables = [each for name in names for each in graph.get_collection(name) if each not in known]
    if variables:
        has_values = session.run([is_variable_initialized(each) for each in variables])
        session.run([each.initializer for each, has_value in zip(variables, has_values, strict=True) if not has_value])
        known.update(variables)


def initialize_new_variables(known: int) -> None:
    """Initialises all variables but the first ``known`` in the sessions of the default graph that may have initialised
    the first ``known``: the default session, and the sessions of `get_session`."""
    graph = get_default_graph()
    new = graph.get_collection(GraphKeys.GLOBAL_VARIABLES)[known:]
    sessions: list[Any] = [get_default_session(), _Kept.session, _Kept.by_graph.get(graph)]
    for session in {id(each): each for each in sessions if getattr(each, "graph", None) is graph}.values():
        session.run([each.initializer for each in new])


def manual_variable_initialization(value: bool) -> None:
    """Sets whether `get_session` leaves variables of graphs without initial values to the program.

    Variables of models that Keras trains have values from the start.
    """
    _Kept.by_hand = bool(value)


def clear_session(free_memory: bool = True) -> None:
    """Resets Keras's state and, outside of ``with`` blocks of graphs, replaces the default graph by an empty one."""
    _Kept.session = None
    if not is_eager() and not in_graph_block():
        reset_default_graph()
        restore_learning_phase(None)
    keras.utils.clear_session(free_memory)


def set_session(session: RunsGraphs) -> None:
    """Keeps a session for `get_session`. Models of Keras 3 run without one."""
    _Kept.session = session
