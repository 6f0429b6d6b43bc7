"""The part of a layer in a graph: its variables, losses and updates."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from contextvars import ContextVar
from weakref import WeakKeyDictionary

import keras

from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Operation, Tensor
from headwater.keras.graphs.weights import GraphVariable, allocate
from headwater.keras.internals import backend, tree
from headwater.keras.types import Tree
from headwater.tf1.variables.variables import Variable

_keras: Tree = keras
_ATTRIBUTE = "_states_of_graphs"

#: Modules of the package above, which programs in TensorFlow 1's dialect need only for such layers.
EAGER_FUNCTIONS = "headwater.tf2.at_once"
SYMBOLIC_CALLS = "headwater.tf2.symbolic_calls"

building: ContextVar[tuple[Tree, str] | None] = ContextVar("layer that creates variables", default=None)
"""The layer whose `build` creates variables in the default graph, and their name scope."""


class _Process:
    """Whether a layer of this process was called in a graph; otherwise attributes of layers are Keras's own."""

    used = False


class State:
    """The part of a layer in one graph.

    Attributes:
      scope: the name scope of its variables, with a trailing ``/``.
      losses: of its regularizers and calls.
      updates: of its calls.
    """

    def __init__(self, scope: str) -> None:
        self.scope = scope
        self.losses: list[Tensor] = []
        self.updates: list[Operation] = []


def state_of(layer: Tree) -> State | None:
    """Returns the part of ``layer`` in the default graph; None if it was not called there."""
    held = vars(layer).get(_ATTRIBUTE)
    return None if held is None else held.get(get_default_graph())


def begin_state(layer: Tree, scope: str = "") -> State:
    """Returns the part of ``layer`` in the default graph, created at the first call."""
    _Process.used = True
    held = vars(layer).get(_ATTRIBUTE)
    if held is None:
        held = WeakKeyDictionary()
        object.__setattr__(layer, _ATTRIBUTE, held)  # Keras would track it
    return held.setdefault(get_default_graph(), State(scope))


def in_graph(layer: Tree) -> bool:
    """Returns whether ``layer``, or a layer in it, was called in the default graph."""
    if not _Process.used or backend.in_stateless_scope():
        return False
    return any(state_of(each) for each in layer._flatten_layers())


def is_own(layer: Tree) -> bool:
    """Returns whether the class of ``layer`` belongs to Keras."""
    return type(layer).__module__.startswith("keras.")


def is_container(layer: Tree) -> bool:
    """Returns whether the layers within ``layer`` are called one by one."""
    return isinstance(layer, _keras.Model) or not is_own(layer)


def as_eager_function(function: Callable[..., Tree]) -> Callable[..., Tree]:
    """Returns ``function``, which uses functions of `tf`, as a function of arrays."""
    return importlib.import_module(EAGER_FUNCTIONS).at_once(function)


def computes_eagerly(module: str) -> bool:
    """Returns whether a module uses TensorFlow 2's functions, which accept arrays, or is Headwater's own."""
    dialect: Tree = sys.modules.get("headwater.tf2.namespace")
    names = vars(sys.modules[module]).values() if module in sys.modules else ()
    return module.startswith("headwater.") or (
        dialect is not None and any(isinstance(value, dialect.Namespace) for value in names)
    )


def weights_of(layer: Tree) -> list[Tree]:
    """Returns the variables of a layer and the layers in it, without the states of random numbers."""
    weights: dict[int, Tree] = {}
    for each in layer._flatten_layers():
        for variable in (*each._trainable_variables, *each._non_trainable_variables):
            weights.setdefault(id(variable), variable)
    return list(weights.values())


def states_of(layer: Tree) -> list[Tree]:
    """Returns the states that the stateful recurrent layers in ``layer`` keep between calls."""
    return [
        state
        for each in layer._flatten_layers()
        if getattr(each, "stateful", False)
        for state in tree.flatten(each.states or ())
    ]


def name_of(layer: Tree, variable: Tree) -> str:
    """Returns the name of a variable within the scope of its layer, as in TensorFlow 1.15."""
    if isinstance(layer, _keras.layers.Bidirectional):
        for part in (layer.forward_layer, layer.backward_layer):
            if any(variable is each for each in weights_of(part)):
                return f"{part.name}/{variable.name}"
    return "depthwise_kernel" if "Depthwise" in type(layer).__name__ and variable.name == "kernel" else variable.name


def create_variable(layer: Tree, variable: Tree, scope: str) -> Variable:
    """Creates the variable of the default graph for a variable of ``layer``, and its loss, unless there is one."""
    known = isinstance(variable, GraphVariable) and get_default_graph() in variable.by_graph
    created = allocate(variable, scope, name_of(layer, variable))
    if not known and variable.regularizer is not None:
        state = begin_state(layer, scope)
        with get_default_graph().name_scope(f"{created.op.name}/Regularizer/"):
            state.losses.append(convert_to_tensor(variable.regularizer(created)))
    return created
