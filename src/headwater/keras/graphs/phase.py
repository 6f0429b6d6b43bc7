"""The learning phase of a graph."""

from __future__ import annotations

from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor
from headwater.keras.learning_phase import chosen_phase
from headwater.keras.types import Tree
from headwater.tf1.functional import arrays

_KEY = ("headwater", "learning phase")


def learning_phase() -> Tree:
    """Returns the phase that `set_learning_phase` has chosen; otherwise the graph's placeholder, False by default."""
    chosen = chosen_phase()
    if chosen is not None:
        return chosen
    graph = get_default_graph()
    held = graph.get_collection_ref(_KEY)
    if not held:
        with graph.name_scope(None), graph.control_dependencies(None):
            held.append(arrays.placeholder_with_default(convert_to_tensor(False), [], name="keras_learning_phase"))
    return held[0]


def learning_phase_of_program() -> Tree:
    """Returns `learning_phase`; 0 in a program without a graph whose phase was not set."""
    return learning_phase() if get_default_graph().get_operations() else chosen_phase() or 0
