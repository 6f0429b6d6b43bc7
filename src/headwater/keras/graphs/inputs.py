"""``tf.keras.Input`` with a tensor of a graph."""

from __future__ import annotations

import functools

import keras

from headwater.graph.operation import Tensor
from headwater.keras.types import Tree

_keras: Tree = keras


@functools.wraps(_keras.Input)
def Input(*args: Tree, **kwargs: Tree) -> Tree:
    tensor = kwargs.get("tensor")
    return tensor if isinstance(tensor, Tensor) else _keras.Input(*args, **kwargs)
