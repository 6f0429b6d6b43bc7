"""Types that modules of Keras programs share. Keras itself declares few."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import jax
    import keras

Tree: TypeAlias = Any
"""A nested structure of tuples, lists and dicts whose leaves are arrays, tensors or datasets' elements, or one leaf by
itself: what Keras and JAX take as data and as results. Their own functions for it declare no type either."""

Value: TypeAlias = "jax.Array | keras.KerasTensor"
"""A tensor of Keras: an array, or in a model that is being built what stands for one."""
