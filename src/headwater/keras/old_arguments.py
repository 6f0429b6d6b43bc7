"""Classes and functions of Keras 3 with the arguments and defaults of TensorFlow 1.15's ``tf.keras``.

`adapted` returns a subclass, or a function, that translates arguments; saved models contain the class of Keras 3.
Programs of TensorFlow 2 use Keras 3's own classes.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np

from headwater.keras import old_losses, old_optimizers
from headwater.keras.internals import name_as, replace_class
from headwater.keras.old_activations import hard_sigmoid
from headwater.keras.types import Tree

_keras: Any = keras
_HARD = {"recurrent_activation": hard_sigmoid}
_DEFAULTS: Mapping[str, Mapping[str, object]] = {
    "layers.ConvLSTM2D": _HARD,
    "layers.GRU": {**_HARD, "reset_after": False},
    "layers.GRUCell": {**_HARD, "reset_after": False},
    "layers.LSTM": _HARD,
    "layers.LSTMCell": _HARD,
    "experimental.PeepholeLSTMCell": _HARD,
    "regularizers.l1_l2": {"l1": 0.01, "l2": 0.01},
    **{f"layers.{name}{n}D": {"pool_size": (2,) * n} for name in ("AvgPool", "AveragePooling") for n in (1, 2, 3)},
}
"""Arguments with other defaults in TensorFlow 1.15."""
_INITIALIZERS = (
    *("Constant", "Identity", "Ones", "Orthogonal", "RandomNormal", "RandomUniform", "TruncatedNormal"),
    *("VarianceScaling", "Zeros", "constant", "glorot_normal", "glorot_uniform", "identity", "ones", "orthogonal"),
    *("random_normal", "random_uniform", "truncated_normal", "zeros", "GlorotNormal", "GlorotUniform"),
)
_RENAMED: Mapping[str, Mapping[str, str]] = {
    "activations.relu": {"alpha": "negative_slope"},
    "regularizers.l1": {"l": "l1"},
    "regularizers.l2": {"l": "l2"},
    "utils.to_categorical": {"y": "x"},
}
"""Arguments with other names in Keras 3."""
_WITHOUT_EFFECT: Mapping[str, Mapping[str, tuple[object, ...] | None]] = {
    "layers.BatchNormalization": {"fused": None, "virtual_batch_size": (None,), "adjustment": (None,)},
    "layers.Embedding": {},
    **{f"initializers.{name}": {"dtype": None, "verify_shape": None} for name in _INITIALIZERS},
    "callbacks.ModelCheckpoint": {"period": (1,), "load_weights_on_restart": (False,)},
    "callbacks.TensorBoard": {
        "batch_size": None,
        "write_grads": (False,),
        "embeddings_layer_names": (None,),
        "embeddings_data": (None,),
    },
}
"""Arguments that Keras 3 does not have, and the values with which they have no effect; None for any."""
_REPLACED = {
    "losses.CosineSimilarity": old_losses.CosineSimilarity,
    "losses.cosine_similarity": old_losses.cosine_proximity,
    **{f"optimizers.{kind.__name__}": kind for kind in old_optimizers.CLASSES},
}
"""Losses with another sign, and optimizers with other updates."""
MODULES = {path.partition(".")[0] for path in (*_DEFAULTS, *_RENAMED, *_REPLACED, *_WITHOUT_EFFECT)}
"""Modules of ``tf.keras`` with such classes or functions."""


def adapted(path: str, value: Any) -> Any:
    """Returns the class or function ``value`` of Keras with the arguments of TensorFlow 1.15.

    Args:
      path: its path within ``tf.keras``, such as ``layers.LSTM``.
    """
    value = _REPLACED.get(path, value)
    is_class = inspect.isclass(value)
    if path not in {*_DEFAULTS, *_RENAMED, *_WITHOUT_EFFECT} and not (is_class and path.startswith("losses.")):
        return value
    return (_class if is_class else _function)(path, value)


def accept_old_configurations() -> None:
    """Makes configurations in saved models of TensorFlow 1.15 accepted, whose classes have the arguments above."""
    for path in {*_RENAMED, *_WITHOUT_EFFECT}:
        module, _, name = path.partition(".")
        value = getattr(getattr(_keras, module), name, None)
        if inspect.isclass(value):
            replace_class(value, adapted(path, value))


def _translated(
    path: str, make: Callable[..., Tree], args: tuple[Tree, ...], kwargs: dict[str, Tree]
) -> dict[str, Tree]:
    """Returns the named arguments for ``make``.

    Raises:
      NotImplementedError: an argument that Keras 3 does not have has a value with an effect.
    """
    known = inspect.signature(make).parameters
    if len(args) > len(known):
        make(*args, **kwargs)  # which raises the error
    kwargs |= zip(known, args, strict=False)
    for old, new in _RENAMED.get(path, {}).items():
        if old in kwargs:
            kwargs[new] = kwargs.pop(old)
    for name, values in _WITHOUT_EFFECT.get(path, {}).items():
        value = kwargs.pop(name, None)
        if values is not None and value is not None and value not in values:
            raise NotImplementedError(f"{name}={value!r} of tf.keras.{path} is not supported")
    if path == "layers.Embedding" and kwargs.get("input_length") is not None:
        length = kwargs.pop("input_length")
        kwargs["input_shape"] = tuple(length) if isinstance(length, list | tuple) else (length,)
    if path.startswith("losses.") and kwargs.get("reduction") == "auto":
        kwargs["reduction"] = "sum_over_batch_size"
    return {**_DEFAULTS.get(path, {}), **kwargs}


@functools.cache
def _class(path: str, kind: Any) -> Any:
    original = kind.__init__

    @functools.wraps(original)
    def __init__(self: Any, *args: Tree, **kwargs: Tree) -> None:
        make = functools.partial(original, self)
        original(self, **_translated(path, make, args, kwargs))

    # Keras reads the signature.
    __init__.__signature__ = inspect.signature(original)  # pyright: ignore[reportAttributeAccessIssue]

    class Adapted(type):
        """Classes that `isinstance` and `issubclass` take for ``kind``: loaded models have instances of ``kind``, and
        its subclasses in Keras do not derive from the adapted class."""

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, kind) if cls is adapted_class else super().__instancecheck__(instance)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, kind) if cls is adapted_class else super().__subclasscheck__(subclass)

    space = {"__init__": __init__, "__module__": kind.__module__, "__doc__": kind.__doc__}
    adapted_class: Any = Adapted(kind.__name__, (kind,), space)
    adapted_class.__qualname__ = kind.__qualname__
    name_as(kind, adapted_class)
    return adapted_class


@functools.cache
def _function(path: str, function: Any) -> Any:
    @functools.wraps(function)
    def call(*args: Tree, **kwargs: Tree) -> Tree:
        dtype = kwargs.pop("dtype", "float32") if path == "utils.to_categorical" else None
        result = function(**_translated(path, function, args, kwargs))
        return result if dtype is None else np.asarray(result, dtype)

    return call
