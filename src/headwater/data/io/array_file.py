"""Arrays in an unnamed temporary file, for data that are too large for memory and not needed after the process."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwater.data.io import files

Array = NDArray[Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Stored:
    """Arrays in the file.

    Attributes:
      at: the offset of the arrays in the file, in bytes.
      arrays: dtype and shape of each.
    """

    at: int
    arrays: tuple[tuple[np.dtype[Any], tuple[int, ...]], ...]


class ArrayFile:
    """Arrays of numbers in a file in the folder for temporary files (``TMPDIR``); the file is deleted with this object.

    Raises:
      OpError: the file cannot be created. `add` and `read` raise `OpError`, too, for errors of the disk.
    """

    def __init__(self) -> None:
        self._folder = tempfile.gettempdir()
        with files.translated(self._folder):
            self._file, path = tempfile.mkstemp(prefix="headwater-arrays-")
            weakref.finalize(self, os.close, self._file)
            os.unlink(path)
        self._end = 0

    def add(self, arrays: Sequence[Array]) -> Stored:
        """Appends arrays to the file."""
        at = self._end
        with files.translated(self._folder):
            for array in arrays:
                left = _bytes_of(np.ascontiguousarray(array))
                while left:
                    count = os.pwrite(self._file, left, self._end)
                    left, self._end = left[count:], self._end + count
        return Stored(at=at, arrays=tuple((array.dtype, array.shape) for array in arrays))

    def read(self, stored: Stored) -> list[Array]:
        """Reads arrays that `add` has written."""
        arrays: list[Array] = []
        at = stored.at
        with files.translated(self._folder):
            for dtype, shape in stored.arrays:
                array = np.empty(shape, dtype)
                left = _bytes_of(array)
                while left:
                    count = os.preadv(self._file, [left], at)
                    if not count:
                        raise OSError(f"a temporary file there was cut short at byte {at}")
                    left, at = left[count:], at + count
                arrays.append(array)
        return arrays


def _bytes_of(array: Array) -> memoryview:
    return memoryview(array.reshape(-1).view(np.uint8).data)
