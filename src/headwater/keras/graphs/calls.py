"""Python functions that JAX can trace, as operations of a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import keras

from headwater.dtypes import DType, from_numpy
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Tensor
from headwater.graph.registry import HostFunction
from headwater.keras.graphs.functions import is_exporting
from headwater.keras.internals import backend, tree
from headwater.keras.types import Tree
from headwater.shapes import Dimension, TensorShape
from headwater.tf1.functional.apply import apply
from headwater.tf1.variables.partitioned import PartitionedVariable
from headwater.tf1.variables.variables import Variable

import numpy as np  # isort: skip

_FUNCTIONS = ("headwater", "jax functions")
"""Key of the collection by which a graph keeps its functions alive."""
_tree: Tree = tree


def is_graph_value(value: object) -> bool:
    """Returns whether ``value`` is a tensor or variable of a graph, also a variable of a layer in a graph."""
    if isinstance(value, Tensor | Variable | PartitionedVariable):
        return True
    if not isinstance(value, keras.Variable):
        return False
    return getattr(value, "in_graph", bool)() or is_exporting()


def has_graph_value(value: object) -> bool:
    """Returns whether ``value``, or a part of nested lists and dictionaries, is a value of a graph."""
    if isinstance(value, list | tuple):
        return any(map(has_graph_value, value))  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, dict):
        return any(map(has_graph_value, value.values()))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return is_graph_value(value)


def map_leaves(function: Callable[[Tree], Tree], value: Tree) -> Tree:
    """Applies ``function`` to all leaves of nested lists, tuples and dictionaries."""
    if isinstance(value, TensorShape):
        return function(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(map_leaves(function, item) for item in value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, list | tuple):
        return type(value)(map_leaves(function, item) for item in value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType, reportCallIssue]
    if isinstance(value, dict):
        return {key: map_leaves(function, item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return function(value)


def plain(leaf: Tree) -> Tree:
    """Returns a variable as a tensor, and a type, shape or dimension of `tf` as Keras's; other values unchanged."""
    if isinstance(leaf, Tensor):
        return leaf
    if is_graph_value(leaf):
        if is_exporting() and isinstance(leaf, keras.Variable):
            leaf = leaf.value
        return convert_to_tensor(leaf)
    if isinstance(leaf, DType):
        return leaf.base_dtype.name
    if isinstance(leaf, Dimension):
        return leaf.value
    return tuple(leaf.as_list()) if isinstance(leaf, TensorShape) else leaf


def keras_tensor(tensor: Tensor) -> Tree:
    """Returns Keras's description of a tensor.

    Raises:
      ValueError: the number of its dimensions is unknown.
    """
    if tensor.dims is None:
        raise ValueError(
            f"Keras needs the number of dimensions of {tensor.name!r}, which is unknown: set it with set_shape, for "
            "example to [None, 3]"
        )
    return keras.KerasTensor(tensor.dims, tensor.dtype.base_dtype.name)


def call_jax_function(
    function: Callable[..., Tree], values: Sequence[Tree], label: str, specs: Sequence[Tree] | None = None
) -> list[Tensor]:
    """Adds the operation that calls ``function`` with arrays.

    Args:
      function: takes an array for each of ``values``, and returns a list of arrays.
      values: values of a graph.
      label: its name, for the operation and for errors.
      specs: what it returns, as Keras's descriptions; found by tracing if None.
    """
    tensors = [convert_to_tensor(value) for value in values]
    for tensor in tensors:
        if tensor.dtype.base_dtype.name in ("string", "resource", "variant"):
            raise TypeError(f"{label} computes with numbers, but {tensor.name!r} has the type {tensor.dtype.name}")
    if specs is None:
        specs = _traced_specs(function, [keras_tensor(tensor) for tensor in tensors])
    held = HostFunction(function)
    get_default_graph().get_collection_ref(_FUNCTIONS).append(held)
    output_specs: Sequence[Tree] = specs or ()
    types = tuple(from_numpy(np.dtype(backend.standardize_dtype(spec.dtype))) for spec in output_specs)
    shapes = tuple(TensorShape(spec.shape) for spec in output_specs)
    return apply(
        "JaxFunction", tensors, token=held.token, label=label, Tout=types, output_shapes=shapes, name=label
    ).outputs


def _traced_specs(function: Callable[..., Tree], described: Sequence[Tree]) -> Sequence[Tree]:
    """Returns descriptions of the results of ``function``.

    If an argument has an unknown size where another one has a number, some functions refuse them. They are then traced
    with the size unknown in both.
    """

    def trace(arguments: Sequence[Tree]) -> Sequence[Tree]:
        return backend.compute_output_spec(lambda *arrays: list(function(*arrays)), *arguments)

    try:
        return trace(described)
    except (TypeError, ValueError):
        open_axes = {axis for each in described for axis, size in enumerate(each.shape) if size is None}
        widened = [
            keras.KerasTensor([None if axis in open_axes else size for axis, size in enumerate(each.shape)], each.dtype)
            for each in described
        ]
        if all(new.shape == old.shape for new, old in zip(widened, described, strict=True)):
            raise
        return trace(widened)


def call_with_graph_values(
    function: Callable[..., Tree], label: str, args: Tree, kwargs: Tree, variables: Sequence[Tree] = ()
) -> Tree:
    """Calls ``function`` in an operation, with arrays in place of the graph's values among its arguments.

    Args:
      variables: Keras's variables that ``function`` reads, and which have their values in this context only.

    Returns:
      Its result, with tensors in place of arrays.
    """
    tensors, fill = separate((tuple(args), dict(kwargs)))
    structure: list[Tree] = []
    is_double = any(each.dtype.base_dtype.name in ("float64", "complex128") for each in tensors)

    def run(*arrays: Tree) -> list[Tree]:
        filled_args, filled_kwargs = fill(arrays)
        result = function(*filled_args, **filled_kwargs)
        structure[:] = [_tree.map_structure(lambda _: 0, result)]
        leaves = [backend.convert_to_tensor(leaf) for leaf in _tree.flatten(result)]
        return leaves if is_double else [_single(leaf) for leaf in leaves]

    specs = None
    if variables:
        pairs = [(variable, variable.value) for variable in variables]

        def traced(*arrays: Tree) -> list[Tree]:
            with keras.StatelessScope(state_mapping=pairs):
                return run(*arrays)

        specs = _traced_specs(traced, [keras_tensor(convert_to_tensor(value)) for value in tensors])
    outputs = call_jax_function(run, tensors, label, specs)
    return _tree.pack_sequence_as(structure[0], outputs)


def _single(value: Tree) -> Tree:
    """Returns a result in single precision if it is double, which is JAX's default in some functions."""
    return backend.cast(value, "float32") if backend.standardize_dtype(value.dtype) == "float64" else value


def separate(arguments: Tree) -> tuple[list[Tree], Callable[[Sequence[Tree]], Tree]]:
    """Returns the graph's values among nested arguments, and a function that puts other values in their places."""
    tensors: list[Tree] = []

    def note(leaf: Tree) -> Tree:
        if is_graph_value(leaf):
            tensors.append(leaf)
            return _Place(len(tensors) - 1)
        return leaf

    held = map_leaves(note, arguments)
    return tensors, lambda values: map_leaves(
        lambda leaf: values[leaf.index] if isinstance(leaf, _Place) else leaf, held
    )


class _Place:
    """The place of a value among arguments."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index
