"""Variables of layers that are called in graphs: one variable of `tf` in each graph."""

from __future__ import annotations

import functools
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from weakref import WeakKeyDictionary

import keras

from headwater.dtypes import as_dtype
from headwater.errors import FailedPreconditionError
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, register_tensor_conversion_function
from headwater.graph.graph import Graph
from headwater.graph.operation import Operation, Tensor
from headwater.keras.backend.sessions import get_session
from headwater.keras.internals import in_stateless_scope
from headwater.keras.read_variables import ASSIGNED
from headwater.keras.types import Tree
from headwater.tf1.variables.variables import Variable


class GraphVariable(keras.Variable):
    """A variable of a layer that represents a variable of the default graph.

    Within a `keras.StatelessScope`, in which a whole layer is computed, it has the values of that scope.
    """

    by_graph: WeakKeyDictionary[Graph, Variable]

    __hash__ = object.__hash__  # a session keeps fetches in dictionaries

    def in_graph(self) -> bool:
        """Returns whether the default graph has its variable, and a graph is being built."""
        return not in_stateless_scope() and get_default_graph() in self.by_graph

    @property
    def variable(self) -> Variable:
        """The variable of the default graph; FailedPreconditionError if there is none."""
        known = self.by_graph.get(get_default_graph())
        if known is None:
            raise FailedPreconditionError(f"the layer with the variable {self.path!r} was not called in this graph")
        return known

    @property
    def value(self) -> Tree:
        """The value: of the graph's variable, or in a stateless scope."""
        return convert_to_tensor(self.variable) if self.in_graph() else super().value

    def assign(self, value: Tree) -> Tree:
        """Sets the value in a step, also as an update of the called layer, or immediately in the session."""
        if not self.in_graph():
            return super().assign(value)
        if not isinstance(value, Tensor):
            session: Tree = get_session()
            self.variable.load(value, session)
            return value
        assigned = self.variable.assign(value)
        record_update(assigned.op)
        return assigned

    def numpy(self) -> Tree:
        """Returns the value in the session."""
        return get_session().run(self.variable) if self.in_graph() else super().numpy()

    def _as_graph_element(self) -> Tree:
        return self.variable._as_graph_element()  # pyright: ignore[reportPrivateUsage]


def allocate(variable: Tree, scope: str, name: str, collections: Sequence[str] | None = None) -> Variable:
    """Creates the variable of the default graph for a variable of a layer, unless there is one.

    Args:
      variable: Keras's variable, which becomes a `GraphVariable`.
      scope: the name scope, with a trailing ``/``.
      name: its name within the scope.
      collections: as of `tf.Variable`.
    """
    if not isinstance(variable, GraphVariable):
        variable.__class__ = GraphVariable
        variable.by_graph = WeakKeyDictionary()
    graph = get_default_graph()
    if graph not in variable.by_graph:
        kind = as_dtype(variable._dtype)
        initializer = getattr(variable, "graph_initializer", None) or variable._initializer
        dims = [int(size) for size in variable.shape]
        if hasattr(variable, ASSIGNED):  # `fit` has trained it
            initializer = None
        initial = functools.partial(initializer, dims, dtype=kind) if initializer is not None else variable._value
        with graph.name_scope(scope or None):
            variable.by_graph[graph] = Variable(
                initial,
                trainable=variable.trainable,
                collections=collections,
                name=name,
                dtype=kind,
                constraint=variable.constraint,
            )
    return variable.by_graph[graph]


_stands: WeakKeyDictionary[Operation, GraphVariable] = WeakKeyDictionary()


def stand_in(variable: Variable, keras_variable: Tree = None) -> GraphVariable:
    """Returns the variable of Keras that represents a variable of the default graph.

    Args:
      variable: the variable of the graph.
      keras_variable: Keras's variable; created without a value if None.
    """
    if variable.op not in _stands or keras_variable is not None:
        if keras_variable is None:
            with keras.StatelessScope(initialize_variables=False):
                kind = variable.dtype.base_dtype.name
                keras_variable = keras.Variable("zeros", shape=tuple(variable.shape.as_list()), dtype=kind)
        keras_variable._path = variable.op.name
        keras_variable.__class__ = GraphVariable
        keras_variable.by_graph = WeakKeyDictionary({get_default_graph(): variable})
        _stands[variable.op] = keras_variable
    return _stands[variable.op]


def graph_value(variable: Tree) -> Tree:
    """Returns the value of a layer's variable in the default graph: a variable of `tf`, or an input of a function."""
    return variable.variable if isinstance(variable, GraphVariable) and variable.in_graph() else variable.value


_updates: ContextVar[list[Operation] | None] = ContextVar("updates of a layer", default=None)


@contextmanager
def updates_of(layer_updates: list[Operation]) -> Generator[None]:
    """A context in which assignments of variables are added to ``layer_updates``."""
    token = _updates.set(layer_updates)
    try:
        yield
    finally:
        _updates.reset(token)


def record_update(update: Operation) -> bool:
    """Adds an operation to the updates of the layer that is being called, and returns whether there is one."""
    updates = _updates.get()
    if updates is not None:
        updates.append(update)
    return updates is not None


def _converted(value: GraphVariable, dtype: Tree, name: str | None, as_ref: bool) -> Tree:
    return convert_to_tensor(value.variable, dtype, name, as_ref=as_ref)


register_tensor_conversion_function(GraphVariable, _converted, priority=90)
