"""Arithmetic on sizes that are numbers if known when the graph is built, else tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from headwater.graph.constants import get_static_value
from headwater.graph.operation import Tensor
from headwater.tf1.functional import arrays, math

Size = Any
"""An int, or a scalar tensor of integers; operators of Python serve both."""


def known(value: Any) -> Size:
    """Returns a number as an int if its value is known, else as the tensor.

    Raises:
      ValueError: it is not an integer.
    """
    if isinstance(value, Tensor):
        static = get_static_value(value)
        return value if static is None else int(static)
    if np.asarray(value).dtype.kind not in "iu":
        raise ValueError(f"{value!r} must be an integer")
    return int(value)


def size_of(tensor: Tensor, axis: int) -> Size:
    """The size of a dimension."""
    size = None if tensor.dims is None else tensor.dims[axis]
    return arrays.shape(tensor)[axis] if size is None else size


def greater(x: Size, y: Size) -> Size:
    """The greater of two."""
    return max(x, y) if isinstance(x, int) and isinstance(y, int) else math.maximum(x, y)


def ceiling(x: Size, y: Size) -> Size:
    """``x / y``, rounded up."""
    return -(-x // y)
