"""Metric objects of Keras in graphs: variables of the default graph, updates as operations, and values in a session."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import keras

from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.operation import Operation
from headwater.keras.graphs.calls import has_graph_value, map_leaves, plain
from headwater.keras.graphs.phase import builds_graph
from headwater.keras.graphs.states import as_eager_function, begin_state, computes_eagerly, is_own, state_of
from headwater.keras.graphs.weights import GraphVariable, allocate, updates_of
from headwater.keras.types import Tree
from headwater.tf1.compat.dialect import is_eager
from headwater.tf1.functional.control_flow import group
from headwater.tf1.functional.default_graph import control_dependencies

_keras: Tree = keras
_metric: Tree = keras.metrics.Metric
_COLLECTIONS = [GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES]

_ON_ARRAYS = "_has_been_updated_on_arrays"


def accept_graphs_in_metrics() -> None:
    """Gives metrics the attributes of TensorFlow 1.15's, and graph variables in place of their own in a graph."""
    _metric.__init__ = _wrap_init(_metric.__init__)
    _metric.__call__ = _wrap_call(_metric.__call__)
    _metric.add_weight = _wrap_add_variable(_metric.add_variable)
    variables = _metric.variables
    _metric.variables = property(lambda self: _as_graph_variables(variables.__get__(self)), doc=variables.__doc__)
    _metric.weights = _metric.variables
    _metric.updates = property(lambda self: list(getattr(state_of(self), "updates", ())))
    _metric.reset_states = lambda self: self.reset_state()


def _as_graph_variables(variables: Sequence[Tree]) -> list[Tree]:
    return [each.variable if isinstance(each, GraphVariable) and each.in_graph() else each for each in variables]


def _wrap_init(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def __init__(self: Tree, *args: Tree, **kwargs: Tree) -> None:
        original(self, *args, **kwargs)
        if not is_eager():
            # Keras would track attributes that are set as usual.
            object.__setattr__(self, "update_state", _wrap_update_state(self, self.update_state))
            object.__setattr__(self, "result", _wrap_result(self, self.result))

    return __init__


def _adopt(metric: Tree) -> None:
    """Creates the variables of ``metric`` in the default graph."""
    begin_state(metric)
    for each in metric._variables:
        allocate(each, "", each.name, collections=_COLLECTIONS)
    for inner in metric._metrics:
        _adopt(inner)


def _wrap_update_state(metric: Tree, method: Callable[..., Tree]) -> Callable[..., Tree]:
    """Returns ``update_state``, which in a graph returns an operation."""

    @functools.wraps(method)
    def update_state(*args: Tree, **kwargs: Tree) -> Tree:
        if not (builds_graph() and has_graph_value((args, kwargs))):
            object.__setattr__(metric, _ON_ARRAYS, True)
            return _of_arrays(metric, method)(*args, **kwargs)
        _adopt(metric)
        updates: list[Operation] = []
        positional, named = map_leaves(plain, (args, kwargs))
        with get_default_graph().name_scope(f"{metric.name}/update_state"), updates_of(updates):
            method(*positional, **named)
            update = group(*updates)
        begin_state(metric).updates.append(update)
        return update

    return update_state


def _of_arrays(metric: Tree, method: Callable[..., Tree]) -> Callable[..., Tree]:
    """Returns a method for arrays; methods of a program's class use functions of `tf`."""
    return method if is_own(metric) or computes_eagerly(type(metric).__module__) else as_eager_function(method)


def _wrap_result(metric: Tree, method: Callable[..., Tree]) -> Callable[..., Tree]:
    @functools.wraps(method)
    def result() -> Tree:
        unused = state_of(metric) is None
        if not builds_graph() or (unused and (hasattr(metric, _ON_ARRAYS) or not get_default_graph().version)):
            return _of_arrays(metric, method)()
        _adopt(metric)
        with get_default_graph().name_scope(f"{metric.name}/result"):
            return map_leaves(plain, method())

    return result


def _wrap_call(original: Callable[..., Tree]) -> Callable[..., Tree]:
    @functools.wraps(original)
    def __call__(self: Tree, *args: Tree, **kwargs: Tree) -> Tree:
        if not (builds_graph() and has_graph_value((args, kwargs))):
            return original(self, *args, **kwargs)
        self._check_super_called()
        with control_dependencies([self.update_state(*args, **kwargs)]):
            return self.result()

    return __call__


def _wrap_add_variable(add_variable: Callable[..., Tree]) -> Callable[..., Tree]:
    def add_weight(self: Tree, *args: Tree, **kwargs: Tree) -> Tree:
        """Adds a variable; a first argument that is text is its name, as in TensorFlow 1.15."""
        old = bool(args) and isinstance(args[0], str)
        kwargs.update(zip(("name", "shape") if old else ("shape", "initializer", "dtype", "name"), args, strict=False))
        for name in ("aggregation", "synchronization"):
            kwargs.pop(name, None)
        kwargs = {"shape": (), "initializer": "zeros", **map_leaves(plain, kwargs)}
        return add_variable(self, **kwargs)

    return add_weight
