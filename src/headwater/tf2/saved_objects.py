"""The objects of a program in a saved model: nodes of ``SavedObjectGraph``, and their values in a checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import keras

from headwater.tf1.training.object_checkpoints import Trackable
from headwater.tf1.variables.module import Module
from headwater.tf2.function import Function
from headwater.tf2.lookup_tables import table_of

if TYPE_CHECKING:
    from headwater.keras.types import Tree

_Variable = keras.Variable
_Layer: Tree = keras.layers.Layer
LISTS = ("variables", "trainable_variables", "non_trainable_variables")


def parts_of(value: Tree) -> list[tuple[str, Tree]]:
    """Returns the parts of an object that a saved model contains, by the names of attributes."""
    if isinstance(value, Mapping | list | tuple):
        found: Iterable[tuple[Tree, Tree]] = _items(value)
    elif isinstance(value, _Variable | Function):
        found = ()
    elif isinstance(value, _Layer | keras.optimizers.Optimizer):
        found = [(name, getattr(value, name)) for name in LISTS if hasattr(value, name)]
        found += _functions_of(value)
    else:
        found = [*vars(value).items(), *_functions_of(value)] if hasattr(value, "__dict__") else ()
    return [(str(name), part) for name, part in found if _is_saved(str(name), part)]


def _functions_of(value: Tree) -> list[tuple[str, Tree]]:
    """Returns the functions that are methods of an object."""
    names = {name for base in type(value).__mro__ for name, part in vars(base).items() if isinstance(part, Function)}
    return [(name, getattr(value, name)) for name in sorted(names)]


def _is_saved(name: str, part: Tree) -> bool:
    if isinstance(part, _Variable | Function | Module | _Layer | keras.optimizers.Optimizer | Trackable):
        return True
    if table_of(part) is not None:
        return True
    if name in LISTS:
        return True
    return isinstance(part, Mapping | list | tuple) and any(_is_saved("", inner) for _, inner in _items(part))


def _items(value: Tree) -> Iterable[tuple[Tree, Tree]]:
    return value.items() if isinstance(value, Mapping) else enumerate(value)  # pyright: ignore[reportUnknownVariableType]
