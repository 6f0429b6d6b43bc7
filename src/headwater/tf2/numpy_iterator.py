"""The iterator of ``Dataset.as_numpy_iterator``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from headwater.data import structure as nest
from headwater.tf2 import composites

if TYPE_CHECKING:
    from headwater.keras.types import Tree


class NumpyIterator:
    """An iterator over NumPy values that also has the method `next`, as in TensorFlow.

    Args:
      elements: elements of a dataset.
    """

    def __init__(self, elements: Iterator[Any]) -> None:
        self._elements = elements

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        return nest.map_structure(_for_numpy, next(self._elements))

    next = __next__


def _for_numpy(part: object) -> Tree:
    """Converts a component to a scalar, an array, or for ragged components an array of arrays."""
    if isinstance(part, np.ndarray):
        return part[()]
    made = composites.with_values(part)
    return made.numpy() if isinstance(made, composites.EagerComposite) else made
