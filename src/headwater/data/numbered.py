"""Elements of a dataset by their numbers, in the structure that the program gave them."""

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
    """The elements of a dataset, by number and turn; see `headwater.data.indexed`.

    Args:
      dataset: whose elements.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._indexed = indexed(dataset.node)

    @cached_property
    def count(self) -> int:
        """How many there are in a turn, or `INFINITE`; a dataset that cannot tell is gone over."""
        return counted(self._dataset.node)

    @property
    def changes(self) -> str:
        """Why they may be others in another process, in words; empty where they are not."""
        return unrepeatable(self._dataset.node)

    def element(self, number: int, turn: int = 0) -> Structure:
        """One of them.

        Raises:
          NoElementError: there is none of this number.
        """
        return self._dataset.packed(self._indexed.element(Context(), number, turn))

    def rows(self, numbers: Sequence[int] | np.ndarray[Any, Any], turn: int = 0) -> Structure:
        """Several of them, stacked."""
        return self._dataset.packed(self._indexed.rows(Context(), np.asarray(numbers), turn))
