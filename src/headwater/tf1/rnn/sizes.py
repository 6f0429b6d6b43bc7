"""Functions of TensorFlow's module of cells, which programs with their own recurrent networks import."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headwater import dtypes
from headwater.graph.constants import constant_value
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Tensor
from headwater.shapes import as_shape
from headwater.tf1.functional import arrays

if TYPE_CHECKING:
    from headwater.shapes import ShapeLike


def concat_shapes(
    prefix: ShapeLike | Tensor, suffix: ShapeLike | Tensor, static: bool = False
) -> Tensor | list[int | None] | None:
    """Joins two shapes, such as the size of a batch and of a state.

    Args:
      prefix, suffix: a size, a shape, or a tensor of one.
      static: whether to return a list, or None for an unknown rank; otherwise a tensor.

    Raises:
      ValueError: a shape is not fully known, and ``static`` is False.
    """
    if static:
        joined = as_shape(_known(prefix)).concatenate(_known(suffix))
        return None if joined.ndims is None else joined.as_list()
    return arrays.concat([_vector(prefix), _vector(suffix)], 0)


def _known(shape: ShapeLike | Tensor) -> ShapeLike:
    if not isinstance(shape, Tensor):
        return shape
    value = constant_value(shape)
    return None if value is None else value.reshape(-1).tolist()


def _vector(shape: ShapeLike | Tensor) -> Tensor:
    if isinstance(shape, Tensor):
        return arrays.reshape(shape, [-1])
    known = as_shape(shape)
    if not known.is_fully_defined():
        raise ValueError(f"Provided a prefix or suffix of None: {shape}")
    return convert_to_tensor(np.array(known.as_list()), dtypes.int32)


def is_like_cell(cell: object) -> bool:
    """Returns whether ``cell`` has the interface of a cell."""
    return all(hasattr(cell, name) for name in ("output_size", "state_size", "zero_state")) and callable(cell)


# The names in TensorFlow's module.
_concat = concat_shapes
_like_rnncell = is_like_cell
