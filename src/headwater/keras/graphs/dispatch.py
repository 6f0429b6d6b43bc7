"""Makes the functions of Keras's backend accept tensors of graphs.

Keras's functions, losses, metrics, regularizers and layers compute by functions of its backend. This module wraps each
backend function so that a call with a value of a graph adds operations. If `headwater.keras.graphs.natives` has a
function of `tf` with the same result, that function's operations are added: they run on every task and are exported.
Otherwise the backend function becomes a ``JaxFunction``, which runs only in the task that has built the graph.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import ModuleType

import keras

from headwater.dtypes import DType
from headwater.keras.graphs.calls import call_with_graph_values, has_graph_value, map_leaves, plain
from headwater.keras.internals import backend
from headwater.keras.types import Tree
from headwater.shapes import TensorShape

_MODULES = ("core", "image", "linalg", "math", "nn", "numpy", "random")
_NOT_TRACED = frozenset({"compute_output_spec", "device_scope", "random_seed_dtype", "should_shard_at_init"})
"""Functions without a tensor as an argument."""
_REFUSED = {
    "associative_scan": "tf.scan",
    "convert_to_numpy": "Session.run",
    "fori_loop": "tf.while_loop",
    "map": "tf.map_fn",
    "scan": "tf.scan",
    "switch": "tf.switch_case",
    "vectorized_map": "tf.map_fn",
    "while_loop": "tf.while_loop",
}
"""Functions of functions, and the function of a graph or session to use in place of each."""
_marked = "_accepts_graphs"


def accept_graphs() -> None:
    """Wraps the functions of Keras's backend, and the objects that are called with tensors. Idempotent."""
    if hasattr(backend, _marked):
        return
    setattr(backend, _marked, True)
    replaced: dict[Tree, Tree] = {
        backend.standardize_dtype: _dtype(backend.standardize_dtype),
        backend.standardize_shape: _shape(backend.standardize_shape),
    }
    for name in _MODULES:
        module: ModuleType = getattr(backend, name)
        for key, function in vars(module).items():
            own = inspect.isfunction(function) and function.__module__ == module.__name__
            if own and not key.startswith("_") and key not in _NOT_TRACED:
                replaced[function] = _dispatching(function, f"{name}.{key}")
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "keras":
            for key, function in list(vars(module).items()):
                if inspect.isfunction(function) and function in replaced:
                    setattr(module, key, replaced[function])
    for space, base in (("regularizers", "Regularizer"), ("constraints", "Constraint"), ("losses", "Loss")):
        for kind in classes(getattr(keras, space), base):
            if "__call__" in vars(kind):
                kind.__call__ = with_plain_arguments(vars(kind)["__call__"])


def classes(module: ModuleType, base: str) -> set[Tree]:
    """Returns the class ``base`` of a module, and the classes derived from it that the module names."""
    base_class: Tree = getattr(module, base)
    return {kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, base_class)}


def with_plain_arguments(function: Callable[..., Tree]) -> Callable[..., Tree]:
    """Wraps ``function``: variables and types of a graph among its arguments become tensors and Keras's types."""

    @functools.wraps(function)
    def call(*args: Tree, **kwargs: Tree) -> Tree:
        if has_graph_value((args, kwargs)):
            return function(*map_leaves(plain, args), **map_leaves(plain, kwargs))
        return function(*args, **kwargs)

    return call


def _dispatching(function: Callable[..., Tree], path: str) -> Callable[..., Tree]:
    name = path.partition(".")[2]

    @functools.wraps(function)
    def call(*args: Tree, **kwargs: Tree) -> Tree:
        if not has_graph_value(args) and not (kwargs and has_graph_value(kwargs)):
            return function(*args, **kwargs)
        from headwater.keras.graphs import natives  # noqa: PLC0415  functions of `tf`, which few Keras programs need

        if name in _REFUSED:
            raise NotImplementedError(
                f"keras.ops.{name} got a tensor of a graph, which has no values yet: use {_REFUSED[name]}"
            )
        args, kwargs = map_leaves(plain, args), map_leaves(plain, kwargs)
        native = natives.FUNCTIONS.get(path) or natives.FUNCTIONS.get(name)
        result = NotImplemented if native is None else native(*args, **kwargs)
        return call_with_graph_values(function, name, args, kwargs) if result is NotImplemented else result

    return call


def _dtype(standardize: Callable[[object], str]) -> Callable[[object], str]:
    @functools.wraps(standardize)
    def call(dtype: object) -> str:
        return standardize(dtype.base_dtype.name if isinstance(dtype, DType) else dtype)

    return call


def _shape(standardize: Callable[[object], tuple[int | None, ...]]) -> Callable[[object], tuple[int | None, ...]]:
    @functools.wraps(standardize)
    def call(shape: Tree) -> tuple[int | None, ...]:
        return standardize(tuple(shape.as_list()) if isinstance(shape, TensorShape) else shape)

    return call
