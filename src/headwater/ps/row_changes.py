"""Which rows of a table changed since they were saved last, and the rows of a save that is under way.

A save is of one moment, and training goes on meanwhile: a row that is to be saved and changes before its turn is put
aside first, as it was. The caller holds one lock in all methods.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headwater.ps.updater import Array

Numbers = NDArray[np.int64]


class RowChanges:
    """See above.

    Args:
      rows: how many the table has.
    """

    def __init__(self, rows: int) -> None:
        self._changed = np.ones(rows, np.bool_)
        self._waiting = np.zeros(rows, np.bool_)
        self._aside: list[tuple[Numbers, list[Array]]] = []
        # Rows before that have had their turn.
        self._next = rows

    def will_change(self, numbers: Numbers, parts: Sequence[Array]) -> None:
        """Rows of these numbers, of which none comes twice, are about to change.

        Args:
          numbers: of rows.
          parts: the table's arrays, as they are.
        """
        if self._next < len(self._waiting):
            found = numbers[self._waiting[numbers]]
            if len(found):
                self._aside.append((found, [part[found] for part in parts]))
                self._waiting[found] = False
        self._changed[numbers] = True

    def begin(self, *, whole: bool) -> int:
        """A save begins, of this moment: of all rows, or of those that changed since the one before; of how many."""
        self._aside.clear()
        if whole:
            self._waiting[:] = True
        else:
            self._waiting[:] = self._changed
        self._changed[:] = False
        self._next = 0
        return int(np.count_nonzero(self._waiting))

    def take(self, parts: Sequence[Array], count: int) -> tuple[Numbers, list[Array]] | None:
        """Some of the rows that are to be saved yet, with their numbers; None where there is none left.

        Args:
          parts: the table's arrays, as they are.
          count: rows to look at.
        """
        if self._aside:
            return self._aside.pop()
        while self._next < len(self._waiting):
            start, self._next = self._next, min(self._next + count, len(self._waiting))
            found = start + np.flatnonzero(self._waiting[start : self._next])
            if len(found):
                self._waiting[found] = False
                return found, [part[found] for part in parts]
        return None

    def failed(self) -> None:
        """What was to be saved is not: the next save is of all rows."""
        self._aside.clear()
        self._waiting[:] = False
        self._next = len(self._waiting)
        self._changed[:] = True
