"""Names of layers, numbered in each graph, so that a model has the same names each time that a graph is built."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from headwater.graph.context import get_default_graph
from headwater.keras.internals import global_state, naming
from headwater.keras.types import Tree

_KEY = "uids_of_graphs"


def number_names_by_graph() -> None:
    """Makes Keras number the names of layers in each graph separately. Idempotent."""
    naming.uniquify = _uniquify


def _uniquify(name: str) -> str:
    # Kept in Keras's state, which `clear_session` resets.
    tables: Tree = global_state.get_global_attribute(_KEY, default=WeakKeyDictionary(), set_to_default=True)
    table = tables.setdefault(get_default_graph(), {})
    count = table[name] = table.get(name, -1) + 1
    return f"{name}_{count}" if count else name
