"""Types that modules of Keras programs share. Keras itself declares few."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import jax
    import keras

Tree: TypeAlias = Any
"""Data and results of Keras and JAX: nested tuples, lists and dicts, with arrays, tensors or elements of datasets as
leaves, or a single leaf. The functions of Keras and JAX declare no type for it either."""

Value: TypeAlias = "jax.Array | keras.KerasTensor"
"""A tensor of Keras: an array, or a symbolic tensor of a model that is being built."""
