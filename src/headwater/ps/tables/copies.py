"""File-backed copies of tables that are too large for a worker's memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from headwater.data.io.array_file import ArrayFile, Stored
from headwater.ps.layout import VariableSpec
from headwater.ps.updater import Array

#: Size of the values of a table that one frame carries, in bytes.
AT_ONCE_BYTES: Final = 1 << 20


def row_bytes(spec: VariableSpec) -> int:
    """Returns the size of a row of a table, in bytes."""
    return max(1, math.prod(spec.shape[1:]) * np.dtype(spec.dtype).itemsize)


def rows_of(arrays: Sequence[object]) -> Iterator[tuple[int, list[Array]]]:
    """Yields some rows at a time of arrays with equally many rows, each with the number of the first row."""
    whole = [np.asarray(array) for array in arrays]
    step = max(1, AT_ONCE_BYTES // max(1, whole[0][:1].nbytes))
    for start in range(0, len(whole[0]), step):
        yield start, [array[start : start + step] for array in whole]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Piece:
    """Some rows in the file.

    Attributes:
      start: number of the first row.
      arrays: positions of the arrays in the file.
    """

    start: int
    arrays: Stored


class TableCopy:
    """Rows of tables of all ``ps``, in a file in the folder for temporary files (``TMPDIR``)."""

    def __init__(self) -> None:
        self._file = ArrayFile()
        self._pieces: dict[tuple[int, int], list[_Piece]] = {}

    def add(self, server: int, table: int, start: int, arrays: Sequence[Array]) -> None:
        """Adds rows of a table of a ``ps``, both by number, beginning at row ``start``."""
        piece = _Piece(start=start, arrays=self._file.add(arrays))
        self._pieces.setdefault((server, table), []).append(piece)

    def rows(self, server: int, table: int) -> Iterator[tuple[int, list[Array]]]:
        """Yields all rows of a table of a ``ps``, some at a time, each with the number of the first row."""
        for piece in self._pieces.get((server, table), ()):
            yield piece.start, self._file.read(piece.arrays)
