"""Attributes and methods of layers in graphs: variables, losses, updates, and values in a session."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

import keras
import numpy as np

from headwater.graph.operation import Operation, Tensor
from headwater.keras.backend.sessions import get_session
from headwater.keras.graphs.calls import has_graph_value, map_leaves, plain
from headwater.keras.graphs.captured import note_owner
from headwater.keras.graphs.states import (
    as_eager_function,
    begin_state,
    building,
    create_variable,
    in_graph,
    is_container,
    state_of,
    states_of,
)
from headwater.keras.graphs.weights import GraphVariable, record_update
from headwater.keras.internals import JAXTrainer, Layer, get_stateless_scope, global_state, tree
from headwater.keras.types import Tree
from headwater.tf1.functional import arrays
from headwater.tf1.variables.initializers import Initializer
from headwater.tf1.variables.variables import Variable

_keras: Tree = keras
_layer: Tree = Layer
_tree: Tree = tree


def extend_layers() -> None:
    """Adds the attributes of TensorFlow 1.15's layers to Keras's; in a graph, a layer has variables of the graph."""
    _layer.__setattr__ = _setting_attributes(_layer.__setattr__)
    _layer.add_weight = _adding_weights(_layer.add_weight)
    _layer.updates = property(lambda self: _collected(self, "updates"))
    _layer.add_update = _add_update
    _keras.StatelessScope.add_update = _remembering(_keras.StatelessScope.add_update)
    _layer.add_loss = _adding_losses(_layer.add_loss)
    losses = _layer.losses
    _layer.losses = property(
        lambda self: _collected(self, "losses") if in_graph(self) else losses.__get__(self), losses.fset
    )
    for name in ("variables", "weights"):
        for prefix in ("", "trainable_", "non_trainable_"):
            _layer_property(prefix + name)
    for name in ("GRUCell", "LSTMCell", "SimpleRNNCell", "StackedRNNCells"):
        getattr(_keras.layers, name).zero_state = _zero_state
    for name in ("make_train_function", "make_test_function", "make_predict_function"):
        setattr(JAXTrainer, name, _outside_of_graphs(getattr(JAXTrainer, name)))
    _keras.layers.RNN.reset_state = _resetting(_keras.layers.RNN.reset_state)
    _layer.get_weights = _getting(_layer.get_weights)
    _layer.set_weights = _setting(_layer.set_weights)


def _setting_attributes(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def set_attribute(self: Tree, name: str, value: Tree) -> None:
        original(self, name, value)
        if isinstance(value, Variable):
            note_owner(self, value)

    return set_attribute


def _collected(layer: Tree, what: str) -> list[Tree]:
    values: list[Tree] = []
    for each in layer._flatten_layers():
        state = state_of(each)
        values.extend(getattr(state, what) if state is not None else ())
    return values


def _layer_property(name: str) -> None:
    original = getattr(_layer, name)

    def get(self: Tree) -> list[Tree]:
        values = original.__get__(self)
        if not in_graph(self):
            return values
        mapped = [each.variable if isinstance(each, GraphVariable) else each for each in values]
        return [each for each in mapped if isinstance(each, Variable)]

    setattr(_layer, name, property(get, original.fset, doc=original.__doc__))


def _outside_of_graphs(original: Callable[..., Tree]) -> Callable[..., Tree]:
    @functools.wraps(original)
    def make(self: Tree, *args: Tree, **kwargs: Tree) -> Tree:
        if in_graph(self):
            raise NotImplementedError(
                f"the model {self.name!r} was called on tensors of this graph, so its variables belong to sessions: "
                "train and run it in a session, or use another model for fit, evaluate and predict"
            )
        return original(self, *args, **kwargs)

    return make


def _zero_state(self: Tree, batch_size: Tree, dtype: Tree) -> Tree:
    """Returns the state before the first step, for `tf.nn.dynamic_rnn`."""
    return _tree.map_structure(lambda size: arrays.zeros(arrays.stack([batch_size, size]), dtype), self.state_size)


def _add_update(self: Tree, updates: Tree, inputs: Tree = None) -> None:
    """Adds operations to `updates`; if Keras computes arrays, updates the layer's variables in training only.

    Args:
      updates: an operation, the result of an assignment, or a function that assigns; or a list of these.
      inputs: ignored, as an update belongs to the call.

    Raises:
      NotImplementedError: an operation belongs to the program's graph, which `fit` does not run.
    """
    del inputs
    is_training = _is_training(self)
    for update in updates if isinstance(updates, list | tuple) else [updates]:
        if isinstance(update, Operation | Tensor):
            if not record_update(update if isinstance(update, Operation) else update.op):
                raise NotImplementedError(
                    f"add_update({update.name!r}) of {self.name!r} outside of call(): fit does not run operations of "
                    "the program's graph; assign in the call of a layer, or run the operation in a callback"
                )
        elif not callable(update):
            if not is_training:
                _undo(update)
        elif is_training:
            update()


def _is_training(layer: Tree) -> bool:
    """Returns whether the layer is being called in a step of training, or in a graph."""
    context = global_state.get_global_attribute("current_call_ctx")
    return in_graph(layer) or bool(getattr(context, "training", False))


class _Assigned:
    """An assignment in a stateless scope, by the identity of its result."""

    def __init__(self, variable: Tree, result: Tree, before: Tree) -> None:
        self.variable, self.result, self.before = variable, result, before


_ASSIGNMENTS = "_assignments"


def _remembering(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def add_update(self: Tree, update: tuple[Tree, Tree]) -> None:
        variable, result = update
        assignments = vars(self).setdefault(_ASSIGNMENTS, {})
        assignments[id(result)] = _Assigned(variable, result, self.state_mapping.get(id(variable)))
        original(self, update)

    return add_update


def _undo(result: Tree) -> None:
    """Restores the variable that an assignment with this result has changed in this step."""
    scope = get_stateless_scope()
    assignment: _Assigned | None = vars(scope).get(_ASSIGNMENTS, {}).get(id(result)) if scope is not None else None
    if scope is not None and assignment is not None:
        if assignment.before is None:
            scope.state_mapping.pop(id(assignment.variable), None)
        else:
            scope.state_mapping[id(assignment.variable)] = assignment.before


def _adding_losses(original: Callable[..., Tree]) -> Callable[..., Tree]:
    @functools.wraps(original)
    def add_loss(self: Tree, losses: Tree = None, inputs: Tree = None, **kwargs: Tree) -> None:
        values = losses if losses is not None else kwargs.get("loss")
        if not has_graph_value(values):
            original(self, values)
            return
        del inputs
        new_losses: Tree = values if isinstance(values, list | tuple) else [values]
        begin_state(self).losses.extend(new_losses)

    return add_loss


_OLD_ORDER = ("name", "shape", "dtype", "initializer", "regularizer", "trainable", "constraint")
_IGNORED = ("partitioner", "use_resource", "getter", "collections", "experimental_autocast")


def _adding_weights(original: Callable[..., Tree]) -> Callable[..., Tree]:
    @functools.wraps(original)
    def add_weight(self: Tree, *args: Tree, **kwargs: Tree) -> Tree:
        if len(args) > 3 and not isinstance(args[0], str):
            return original(self, *args, **kwargs)  # which raises the error
        # TensorFlow 1.15's order begins with the name.
        old = bool(args) and (isinstance(args[0], str) or "shape" in kwargs)
        kwargs.update(zip(_OLD_ORDER if old else ("shape", "initializer", "dtype"), args, strict=False))
        for name in _IGNORED:
            kwargs.pop(name, None)
        if kwargs.get("trainable", True) is None:
            kwargs["trainable"] = True
        kwargs = map_leaves(plain, kwargs)
        initializer = kwargs.pop("initializer", None)
        adapted = as_eager_function(initializer) if isinstance(initializer, Initializer) else initializer
        variable = original(self, initializer=adapted, **kwargs)
        if initializer is None:
            initializer = "glorot_uniform" if "float" in variable.dtype else "zeros"
        variable.graph_initializer = _keras.initializers.get(initializer)
        current = building.get()
        if current is None or current[0] is not self or not is_container(self):
            return variable
        with _outside_of_stateless_scopes():
            return create_variable(self, variable, current[1])

    return add_weight


@contextmanager
def _outside_of_stateless_scopes() -> Generator[None]:
    held = global_state.get_global_attribute("stateless_scope")
    global_state.set_global_attribute("stateless_scope", None)
    try:
        yield
    finally:
        global_state.set_global_attribute("stateless_scope", held)


def _resetting(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def reset_state(self: Tree) -> None:
        if not in_graph(self):
            original(self)
            return
        for state in states_of(self):
            state.assign(np.zeros(state.shape, state.dtype))

    return reset_state


def _getting(original: Callable[..., Tree]) -> Callable[..., Tree]:
    @functools.wraps(original)
    def get_weights(self: Tree) -> Tree:
        return get_session().run(list(self.weights)) if in_graph(self) else original(self)

    return get_weights


def _setting(original: Callable[..., Tree]) -> Callable[..., Tree]:
    @functools.wraps(original)
    def set_weights(self: Tree, weights: Sequence[Tree]) -> None:
        if not in_graph(self):
            original(self, weights)
            return
        variables = self.weights
        if len(variables) != len(weights):
            raise ValueError(f"{self.name!r} has {len(variables)} weights, but {len(weights)} values are given")
        for variable, value in zip(variables, weights, strict=True):
            variable.load(value, get_session())

    return set_weights
