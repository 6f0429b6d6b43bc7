"""Graphs of functions that are exported: variables are inputs of the function."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

import keras

from headwater.dtypes import DType, as_dtype
from headwater.graph.graph import Graph
from headwater.graph.operation import Tensor
from headwater.keras.internals import get_stateless_scope
from headwater.keras.types import Tree
from headwater.shapes import TensorShape

_scope = keras.StatelessScope


class FunctionGraph(Graph):
    """The graph of a function.

    Attributes:
      variables: the variables that the function reads, and the placeholder of each, by the variable's id.
    """

    def __init__(self) -> None:
        super().__init__()
        self.variables: dict[int, tuple[Tree, Tensor]] = {}
        self._inputs = 0

    def add_input(self, name: str, dtype: DType, shape: TensorShape) -> Tensor:
        """Adds a placeholder."""
        op = self.create_op("Placeholder", [], {"dtype": dtype, "shape": shape}, name)
        # Numbered before all other operations: a branch or loop body that is being built captures it from outside.
        self._inputs += 1
        op.count_as(-self._inputs)
        return op.outputs[0]

    def read(self, variable: Tree) -> Tensor:
        """Returns the placeholder for the value of a variable."""
        if id(variable) not in self.variables:
            kind, shape = as_dtype(str(variable.dtype)), TensorShape(list(variable.shape))
            self.variables[id(variable)] = variable, self.add_input("variable", kind, shape)
        return self.variables[id(variable)][1]


class _VariableScope(_scope):
    """A scope in which variables have the values of a graph.

    Attributes:
      written: variables that are assigned, by id.
      values: the current value of each variable that was used, by id.
    """

    def __init__(self, graph: FunctionGraph | None, values: Mapping[int, Tensor] = MappingProxyType({})) -> None:
        super().__init__()
        self._graph = graph
        self.values: dict[int, Tensor] = dict(values)
        self.written: dict[int, Tree] = {}

    def get_current_value(self, variable: Tree) -> Tensor | None:
        if id(variable) in self.values:
            return self.values[id(variable)]
        return None if self._graph is None else self._graph.read(variable)

    def add_update(self, update: Sequence[Tree]) -> None:
        variable, value = update
        self.written[id(variable)] = variable
        self.values[id(variable)] = value


def values_in_graph(pairs: Iterable[tuple[Tree, Tensor]]) -> _VariableScope:
    """Returns a context in which functions of Keras add operations to the default graph, and variables have values.

    Args:
      pairs: each variable of Keras, and the tensor that is its value.
    """
    return _VariableScope(None, {id(variable): value for variable, value in pairs})


def is_exporting() -> bool:
    """Returns whether variables have the values of a function's graph. They have not while a layer is computed."""
    return isinstance(get_stateless_scope(), _VariableScope)


@contextmanager
def function_graph() -> Generator[tuple[FunctionGraph, _VariableScope]]:
    """A context in which functions and layers add operations to a new graph, and variables have its values."""
    graph = FunctionGraph()
    with graph.as_default(), _VariableScope(graph) as scope:
        yield graph, scope
