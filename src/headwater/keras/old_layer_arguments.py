"""Arguments of layers in TensorFlow 1.15's ``tf.keras`` that Keras 3 has removed: the batch's shape, and weights."""

from __future__ import annotations

import functools
from collections.abc import Callable

import keras

from headwater.keras.internals import Layer
from headwater.keras.types import Tree

_keras: Tree = keras
_layer: Tree = Layer
_ARGUMENTS = ("weights", "batch_size", "batch_input_shape", "input_shape")
_WEIGHTS = "_values_of_weights"
_SHAPE = "_shape_of_batch"
_marked = "_accepts_old_arguments"


def accept_old_layer_arguments() -> None:
    """Makes layers accept ``weights`` and ``batch_input_shape``, and shapes without a warning. Idempotent."""
    if hasattr(_layer, _marked):
        return
    setattr(_layer, _marked, True)
    _layer.__init__ = _accepting(_layer.__init__)
    _layer._post_build = _setting_weights(_layer._post_build)
    _keras.Sequential.add = _adding_input(_keras.Sequential.add)


def _accepting(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def __init__(self: Tree, **kwargs: Tree) -> None:
        weights, size, shape, one = (kwargs.pop(name, None) for name in _ARGUMENTS)
        if kwargs.pop("dynamic", False):
            raise NotImplementedError(f"dynamic=True of {type(self).__name__}: use run_eagerly=True of compile")
        if kwargs.pop("time_major", False):
            raise NotImplementedError(f"time_major=True of {type(self).__name__}: transpose its input and its output")
        if one is None and "input_dim" in kwargs:
            one = (kwargs.pop("input_dim"),)
        original(self, **kwargs)
        if shape is None and one is not None:
            shape = (size, *one)
        # Keras would track these as state of the layer.
        object.__setattr__(self, _WEIGHTS, weights)
        object.__setattr__(self, _SHAPE, shape)

    return __init__


def _setting_weights(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def post_build(self: Tree) -> None:
        original(self)
        weights = vars(self).get(_WEIGHTS)
        if weights is not None:
            object.__setattr__(self, _WEIGHTS, None)
            self.set_weights(weights)

    return post_build


def _adding_input(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def add(self: Tree, layer: Tree, rebuild: bool = True) -> None:
        shape = getattr(layer, _SHAPE, None)
        if shape is not None and not self._layers:
            original(self, _keras.layers.InputLayer(batch_shape=tuple(shape)), rebuild=rebuild)
        original(self, layer, rebuild=rebuild)

    return add
