"""Initializers of Keras for variables of graphs, which are drawn where the variables are."""

from __future__ import annotations

import functools
from collections.abc import Callable

import keras

from headwater.dtypes import DType
from headwater.keras.graphs.dispatch import classes
from headwater.keras.types import Tree
from headwater.tf1.variables import initializers
from headwater.tf1.variables.partitioned import PartitionInfo

_SCALED = ("scale", "mode", "distribution")
_SETTINGS: dict[str, tuple[str, ...]] = {
    "Zeros": (),
    "Ones": (),
    "Constant": ("value",),
    "RandomNormal": ("mean", "stddev"),
    "RandomUniform": ("minval", "maxval"),
    "TruncatedNormal": ("mean", "stddev"),
    "VarianceScaling": _SCALED,
    "Orthogonal": ("gain",),
    "Identity": ("gain",),
}
"""The attributes of each of Keras's initializers that are arguments of the initializer of the same name of `tf`."""


def accept_graph_types() -> None:
    """Makes Keras's initializers return a tensor of a graph where one is created, which passes its element type."""
    for kind in classes(keras.initializers, "Initializer"):
        if "__call__" in vars(kind):
            kind.__call__ = _of_graphs(vars(kind)["__call__"])


def _of_tf(initializer: Tree) -> Callable[..., Tree] | None:
    """Returns the initializer of `tf` that has the values of one of Keras's; None if there is none."""
    name = next((kind.__name__ for kind in type(initializer).__mro__ if kind.__name__ in _SETTINGS), None)
    if name is None:
        return None
    arguments = {key: getattr(initializer, key) for key in _SETTINGS[name]}
    seed = getattr(initializer, "_init_seed", None)
    if isinstance(seed, int):
        arguments["seed"] = seed
    return getattr(initializers, name)(**arguments)


def _of_graphs(function: Callable[..., Tree]) -> Callable[..., Tree]:
    def __call__(
        self: Tree, shape: Tree, dtype: Tree = None, partition_info: PartitionInfo | None = None, **kwargs: Tree
    ) -> Tree:
        if isinstance(dtype, DType):
            converted = _of_tf(self)
            if converted is not None:
                return converted(shape, dtype, partition_info)
            dtype = dtype.base_dtype.name
        return function(self, shape, dtype=dtype, **kwargs)

    # Not functools.wraps: Keras and get_variable read which arguments there are.
    functools.update_wrapper(__call__, function, updated=())
    del __call__.__wrapped__  # pyright: ignore[reportFunctionMemberAccess]
    return __call__
