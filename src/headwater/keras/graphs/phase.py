"""Whether Keras's functions build a graph, and its learning phase."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

from headwater.graph.context import get_default_graph, in_graph_block
from headwater.graph.convert import convert_to_tensor
from headwater.graph.graph import Graph
from headwater.keras.internals import JAXTrainer, JaxVariable, global_state, in_stateless_scope
from headwater.keras.learning_phase import chosen_phase, marking
from headwater.keras.types import Tree
from headwater.tf1.compat.dialect import is_eager
from headwater.tf1.functional import arrays

_CALL = "current_call_ctx"
"""Keras's attribute of the call of a layer that is running."""
_computes: ContextVar[bool] = ContextVar("Keras computes arrays", default=False)
_trainer: Tree = JAXTrainer
_variable: Tree = JaxVariable
_KEY = ("headwater", "learning phase")


def builds_graph() -> bool:
    """Returns whether functions without tensors as arguments add operations to the default graph.

    True in programs of TensorFlow 1 and in the ``with`` block of a graph, except while Keras computes arrays: in layers
    that are called on arrays or symbolic tensors, in steps of `fit`, and for values of Keras's variables.
    """
    if is_eager() and not in_graph_block():
        return False
    computes_arrays = in_stateless_scope() or global_state.get_global_attribute(_CALL) or _computes.get()
    return type(get_default_graph()) is Graph and not computes_arrays


def compute_arrays_in_training() -> None:
    """Patches Keras so that functions compute arrays during training and during the initialization of variables."""
    _variable._initialize_with_initializer = computing_arrays(_variable._initialize_with_initializer)
    for name in ("fit", "evaluate", "predict", "train_on_batch", "test_on_batch", "predict_on_batch"):
        setattr(_trainer, name, computing_arrays(getattr(_trainer, name)))


def computing_arrays(function: Callable[..., Tree]) -> Callable[..., Tree]:
    """Wraps ``function`` so that functions of Keras compute arrays while it runs."""
    return marking(_computes, function)


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
    """Returns `learning_phase`; 0 where no graph is built and no phase was set."""
    return learning_phase() if builds_graph() else chosen_phase() or 0
