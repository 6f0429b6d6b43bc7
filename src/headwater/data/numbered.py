"""Access to elements of a dataset by their numbers, in the program's structure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.data.dataset import Dataset
from headwater.data.indexed import counted, indexed, unrepeatable
from headwater.data.node import Context

if TYPE_CHECKING:
    from headwater.graph.types import Structure


class NumberedElements:
    """The elements of a dataset, by their number and the number of the iteration; see
    `headwater.data.indexed`.

    Args:
      dataset: the dataset of the elements.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._indexed = indexed(dataset.node)

    @cached_property
    def count(self) -> int:
        """Number of elements of an iteration, or `INFINITE`; iterates over the dataset if its length is unknown."""
        return counted(self._dataset.node)

    @property
    def changes(self) -> str:
        """Reason why the elements may differ in another process; empty if they are the same."""
        return unrepeatable(self._dataset.node)

    def element(self, number: int, iteration: int = 0) -> Structure:
        """Returns one element.

        Raises:
          NoElementError: there is no element with this number.
        """
        return self._dataset.packed(self._indexed.element(Context(), number, iteration))

    def rows(self, numbers: Sequence[int] | np.ndarray[Any, Any], iteration: int = 0) -> Structure:
        """Returns several elements, stacked."""
        return self._dataset.packed(self._indexed.rows(Context(), np.asarray(numbers), iteration))
