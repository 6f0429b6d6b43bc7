"""Storage for the elements of queues: elements of equal shapes are rows of one array per component."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_FIRST_ROWS = 16


class Rows:
    """Rows for elements, allocated on `add` and freed on `pop`.

    Args:
      limit: maximum number of elements, which bounds the allocated memory.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._size = 0
        self._free: list[int] = []
        self._columns: list[Array] = []

    def add(self, batch: Sequence[Array]) -> list[int]:
        """Copies the rows of ``batch``; returns their places."""
        count = len(batch[0])
        if count > len(self._free):
            self._grow(batch, count - len(self._free))
        places = self._free[-count:]
        del self._free[-count:]
        where = np.array(places)
        for index, column in enumerate(batch):
            if column.dtype != self._columns[index].dtype:
                both = np.result_type(column.dtype, self._columns[index].dtype)
                self._columns[index] = self._columns[index].astype(both)
            self._columns[index][where] = column
        return places

    def pop(self, places: Sequence[int]) -> tuple[Array, ...]:
        """Returns copies of the elements at ``places`` as one batch, and frees the places."""
        where = np.array(places, np.intp)
        batch = self.peek(where)
        for column in self._columns:
            if column.dtype.hasobject:
                # Strings are objects: clear the references, so that a free row does not keep them in memory.
                column[where] = None
        self._free.extend(places)
        return batch

    def peek(self, places: Sequence[int] | Array) -> tuple[Array, ...]:
        """Returns copies of the elements at ``places`` as one batch."""
        return tuple(column.take(places, axis=0) for column in self._columns)

    def _grow(self, batch: Sequence[Array], missing: int) -> None:
        least = self._size + missing
        # Doubled, so that growing costs a constant time for each element; but never more rows than the queue can hold.
        size = int(max(least, min(max(2 * self._size, _FIRST_ROWS), self._limit)))
        old = self._columns or [np.empty((0, *given.shape[1:]), given.dtype) for given in batch]
        self._columns = [np.empty((size, *column.shape[1:]), column.dtype) for column in old]
        for column, before in zip(self._columns, old, strict=True):
            column[: self._size] = before
        # Places are allocated from the end of the list, the lowest first.
        self._free = [*range(size - 1, self._size - 1, -1), *self._free]
        self._size = size
