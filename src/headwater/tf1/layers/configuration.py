"""Descriptions of layers by their arguments, which `get_config` returns and `from_config` reads."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from headwater.dtypes import DType
from headwater.tf1.functional import math, nn
from headwater.tf1.variables import initializers
from headwater.tf1.variables.initializers import Initializer

if TYPE_CHECKING:
    from headwater.graph.operation import Tensor
    from headwater.tf1.layers.base import Layer

_ACTIVATIONS: dict[str, Callable[..., Tensor] | None] = {
    "linear": None,
    "elu": nn.elu,
    "exponential": math.exp,
    "relu": nn.relu,
    "selu": nn.selu,
    "sigmoid": math.sigmoid,
    "softmax": nn.softmax,
    "softplus": nn.softplus,
    "softsign": nn.softsign,
    "tanh": math.tanh,
}


def activation_of(given: Any) -> Any:
    """Returns the function with a name, None for ``linear``; an object that is not a string is returned unchanged.

    Raises:
      ValueError: the name is unknown.
    """
    if not isinstance(given, str):
        return given
    if given not in _ACTIVATIONS:
        raise ValueError(f"Unknown activation function: {given}; known are {', '.join(sorted(_ACTIVATIONS))}")
    return _ACTIVATIONS[given]


def described(layer: Layer, given: tuple[tuple[object, ...], dict[str, object]]) -> dict[str, object]:
    """Returns the arguments with which ``layer`` was made, ``given`` by position and name, and their defaults.

    Initializers are described by class and arguments, activations and types by name.
    """
    signature = inspect.signature(type(layer).__init__)
    bound = signature.bind(layer, *given[0], **given[1])
    bound.apply_defaults()
    kinds = {name: parameter.kind for name, parameter in signature.parameters.items()}
    named = {name: value for name, value in bound.arguments.items() if kinds[name].name == "POSITIONAL_OR_KEYWORD"}
    del named[next(iter(named))]  # the layer itself
    for name, value in named.items():
        if name == "activation":
            # The namespace's functions wrap the functions of this package.
            function = inspect.unwrap(getattr(layer, "activation", getattr(layer, "_activation", value)))
            named[name] = next((key for key, each in _ACTIVATIONS.items() if each is function), value)
        elif isinstance(value, Initializer):
            named[name] = {"class_name": type(value).__name__, "config": value.get_config()}
        elif isinstance(value, DType):
            named[name] = value.name
    dtype = layer.dtype or named.get("dtype")
    return {**named, "name": layer.name, "trainable": layer.trainable, "dtype": dtype}


def restored(value: Any, classes: Mapping[str, Any]) -> Any:
    """Returns the object that ``value``, an argument in a result of `described`, describes.

    Args:
      value: an object is described by a dictionary of ``class_name`` and ``config``; other values are returned.
      classes: by name the classes that it may name, besides initializers.

    Raises:
      ValueError: the class is unknown.
    """
    fields: Any = value
    if not isinstance(value, dict) or fields.keys() != {"class_name", "config"}:
        return fields
    kind = classes.get(fields["class_name"]) or getattr(initializers, fields["class_name"], None)
    if kind is None:
        raise ValueError(f"unknown class {fields['class_name']} of a layer's argument; pass it in custom_objects")
    return kind.from_config(fields["config"])
