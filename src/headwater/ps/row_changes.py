"""Tracks the rows of a table that changed since the last save, and the rows of a save in progress.

A save contains the state of one moment, although training continues: if a row changes before the save has copied it,
the old values of the row are first set aside. The caller holds the same lock during all methods.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headwater.ps.updater import Array

Numbers = NDArray[np.int64]


class RowChanges:
    """Changed rows of a table, and the rows that a save in progress has yet to copy.

    Args:
      rows: number of rows of the table.
    """

    def __init__(self, rows: int) -> None:
        self._changed = np.ones(rows, np.bool_)
        self._waiting = np.zeros(rows, np.bool_)
        self._aside: list[tuple[Numbers, list[Array]]] = []
        # Rows before this one have been copied.
        self._next = rows

    def will_change(self, numbers: Numbers, parts: Sequence[Array]) -> None:
        """Records that rows, none listed twice, are about to change.

        Args:
          numbers: the numbers of rows.
          parts: the table's arrays, before the change.
        """
        # Set rows aside only during a save, and only if they are still in `_waiting`: all other rows were already
        # copied or set aside.
        if self._next < len(self._waiting):
            changing = numbers[self._waiting[numbers]]
            if len(changing):
                self._aside.append((changing, [part[changing] for part in parts]))
                self._waiting[changing] = False
        self._changed[numbers] = True

    def start_save(self, *, whole: bool) -> int:
        """Begins a save of this moment, of all rows or of those changed since the last save; returns their number."""
        self._aside.clear()
        if whole:
            self._waiting[:] = True
        else:
            self._waiting[:] = self._changed
        self._changed[:] = False  # reset this now: rows that change during the save belong to the next save
        self._next = 0
        return int(np.count_nonzero(self._waiting))

    def next_rows(self, parts: Sequence[Array], count: int) -> tuple[Numbers, list[Array]] | None:
        """Returns some of the rows that are still to be saved, with their numbers; None when no rows are left.

        Args:
          parts: the table's current arrays.
          count: number of rows to check at a time.
        """
        if self._aside:
            return self._aside.pop()
        while self._next < len(self._waiting):
            start, self._next = self._next, min(self._next + count, len(self._waiting))
            rows = start + np.flatnonzero(self._waiting[start : self._next])
            if len(rows):
                self._waiting[rows] = False
                return rows, [part[rows] for part in parts]
        return None

    def abandon_save(self) -> None:
        """Abandons a save that failed: the next save is of all rows."""
        self._aside.clear()
        self._waiting[:] = False
        self._next = len(self._waiting)
        self._changed[:] = True
