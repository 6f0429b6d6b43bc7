"""Operators on tensors in a program's own code, with the errors of TensorFlow 2 that JAX does not raise.

JAX clamps an index that is out of range, divides integers by zero, and promotes mixed types. Operators in the code of
Keras, JAX and other libraries are unchanged.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Any, Final

import jax.numpy as jnp
import numpy as np

from headwater.errors import InvalidArgumentError
from headwater.graph.runtime.jax_internals import ArrayImpl

_ArrayImpl: Any = ArrayImpl
_LIBRARIES: Final = frozenset({"flax", "headwater", "jax", "keras", "numpy", "optax"})
_BINARY: Final = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "le", "gt", "ge"]
_DIVIDES: Final = frozenset({"floordiv", "mod"})


def attach() -> None:
    """Installs these operators on JAX's arrays. Idempotent."""
    if getattr(_ArrayImpl.__getitem__, "__module__", "") == __name__:
        return
    _ArrayImpl.__getitem__ = _checked_item(_ArrayImpl.__getitem__)
    for word in _BINARY:
        setattr(_ArrayImpl, f"__{word}__", _checked(word, getattr(_ArrayImpl, f"__{word}__")))


def called_by_library() -> bool:
    """Returns whether the caller of the function that calls this one belongs to a library."""
    name: str = sys._getframe(2).f_globals.get("__name__", "")  # pyright: ignore[reportPrivateUsage]
    return name.partition(".")[0] in _LIBRARIES


def _checked(word: str, compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def binary(x: Any, y: Any) -> Any:
        if not called_by_library():
            if isinstance(y, _ArrayImpl) and x.dtype != y.dtype:
                raise InvalidArgumentError(
                    f"cannot compute {word} of tensors of different types: {x.dtype.name} and {y.dtype.name}"
                )
            if word in _DIVIDES and x.dtype.kind in "iu" and x.size and _has_zero(y):
                raise InvalidArgumentError("Integer division by zero")
        return compute(x, y)

    return binary


def _has_zero(divisor: object) -> bool:
    if isinstance(divisor, int | float | np.ndarray | np.generic | _ArrayImpl):
        return bool((np.asarray(divisor) == 0).any())
    return False  # a traced array, which has no value yet


def _checked_item(take: Callable[[object, object], object]) -> Callable[[Any, Any], Any]:
    def item(array: object, key: object) -> Any:
        if not called_by_library():
            _check_key(array, key if isinstance(key, tuple) else (key,))  # pyright: ignore[reportUnknownArgumentType]
        return take(array, key)

    return item


def _check_key(array: Any, keys: tuple[object, ...]) -> None:
    """Raises InvalidArgumentError if an index in ``keys`` is out of range."""
    taken = sum(key is not None and key is not Ellipsis for key in keys)
    axis = 0
    for key in keys:
        if key is Ellipsis:
            axis += array.ndim - taken
        elif key is not None:
            place = _place(key)
            if place is not None and axis < array.ndim and not -array.shape[axis] <= place < array.shape[axis]:
                raise InvalidArgumentError(
                    f"slice index {place} of dimension {axis} out of bounds: the tensor has shape {tuple(array.shape)}"
                )
            axis += 1


def _place(key: Any) -> int | None:
    """Returns ``key`` as an index, if it is a single number with a known value."""
    if isinstance(key, bool | np.bool_) or getattr(key, "ndim", 0):
        return None
    if isinstance(key, int | np.integer):
        return int(key)
    if isinstance(key, _ArrayImpl) and jnp.issubdtype(key.dtype, np.integer):
        return operator.index(key)
    return None
