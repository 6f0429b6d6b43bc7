"""Functions as graphs, to be exported: a Python function is called once with tensors of the given specs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.data.spec import TensorSpec
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Tensor
from headwater.keras.graphs.dispatch import accept_graphs
from headwater.keras.graphs.functions import function_graph
from headwater.keras.graphs.layers import accept_graphs_in_layers, inference
from headwater.tf1.functional import nest
from headwater.tf1.functional.autograph.conversion import as_converted
from headwater.tf2.at_once import building
from headwater.tf2.function import Function, names_of_tensors
from headwater.tf2.function_defs import FunctionParts

if TYPE_CHECKING:
    from headwater.keras.types import Tree


@dataclass(kw_only=True)
class Traced:
    """A function for one kind of arguments.

    Attributes:
      parts: its operations.
      args, kwargs: its arguments, with specs in the places of tensors.
      results: the structure of its results, with specs.
      names: the names of its tensors.
    """

    parts: FunctionParts
    args: Tree
    kwargs: Mapping[str, Tree]
    results: Tree
    names: Sequence[str]


def trace(name: str, function: Callable[..., Tree], args: Tree, kwargs: Mapping[str, Tree]) -> Traced:
    """Calls ``function`` with tensors.

    Args:
      name: the name in the library of functions.
      args, kwargs: the arguments, with specs in the places of tensors.

    Raises:
      TypeError: a result is not a tensor.
    """
    accept_graphs()
    accept_graphs_in_layers()
    python = function.python_function if isinstance(function, Function) else function
    names = names_of_tensors(python, args, kwargs)
    with function_graph() as (graph, scope), building(), inference():

        def placeholder(leaf: Tree) -> Tree:
            if not isinstance(leaf, TensorSpec):
                return leaf
            inputs.append(graph.add_input(leaf.name or "input", leaf.dtype, leaf.shape))
            return inputs[-1]

        inputs: list[Tensor] = []
        given, named = nest.map_structure(placeholder, (args, dict(kwargs)))
        found = as_converted(python)(*given, **named)
        leaves = [None if leaf is None else _as_tensor(leaf, name) for leaf in nest.flatten(found)]
        written = [(variable, scope.values[at]) for at, variable in scope.written.items()]
        outputs = [leaf for leaf in leaves if leaf is not None]
    parts = FunctionParts(name=name, graph=graph, inputs=inputs, outputs=outputs, written=written)
    specs = [None if leaf is None else TensorSpec(leaf.shape, leaf.dtype.base_dtype) for leaf in leaves]
    return Traced(parts=parts, args=args, kwargs=kwargs, results=nest.pack(found, specs), names=names)


def _as_tensor(leaf: Tree, name: str) -> Tensor:
    try:
        tensor = convert_to_tensor(leaf)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} cannot be exported: its result {leaf!r} is not a dense tensor") from error
    # An argument that is returned unchanged needs an operation, too: TensorFlow refers to results by operation.
    return tensor.graph.create_op("Identity", [tensor]).outputs[0] if tensor.op.type == "Placeholder" else tensor
