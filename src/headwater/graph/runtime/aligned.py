"""Feeds that XLA computes on where they are.

XLA copies an array of 100 KiB or more that does not start at a multiple of 64 bytes, in another thread, and computes
there: two wake-ups for a copy. A batch that is a part of a larger array rarely starts so. A copy made here, into memory
that is used again, costs a tenth of that.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from headwater.graph.ops.common import AnyArray


ALIGNMENT = 64
FROM_BYTES = 100 << 10
_MAX_SPARE = 4


class AlignedCopies:
    """Makes copies of arrays that XLA would copy, in memory that it keeps. Any thread may use it.

    Args:
      positions: which of the arrays that `replace` is given go to XLA.
    """

    def __init__(self, positions: Sequence[int]) -> None:
        self._positions = positions
        self._spare: list[NDArray[np.uint8]] = []

    def replace(self, arrays: list[AnyArray]) -> list[NDArray[np.uint8]]:
        """Puts aligned copies in place of arrays that need them.

        Returns:
          The memory that this took, for `give_back`.
        """
        taken: list[NDArray[np.uint8]] = []
        for position in self._positions:
            value = arrays[position]
            if value.nbytes >= FROM_BYTES and type(value) is np.ndarray:  # pyright: ignore[reportUnknownMemberType]
                if value.dtype.hasobject or value.__array_interface__["data"][0] % ALIGNMENT == 0:
                    continue
                memory = self._take(value.nbytes + ALIGNMENT)
                start = -memory.__array_interface__["data"][0] % ALIGNMENT
                copy = memory[start : start + value.nbytes].view(value.dtype).reshape(value.shape)
                copy[...] = value
                arrays[position] = copy
                taken.append(memory)
        return taken

    def give_back(self, memory: list[NDArray[np.uint8]]) -> None:
        """The arrays over ``memory`` were used; it serves again when none of them is left."""
        self._spare.extend(memory)
        if len(self._spare) > _MAX_SPARE:
            del self._spare[:-_MAX_SPARE]

    def _take(self, nbytes: int) -> NDArray[np.uint8]:
        for _ in range(len(self._spare)):
            try:
                memory = self._spare.pop(0)  # one step, so that no two threads get the same
            except IndexError:
                break
            if len(memory) == nbytes and sys.getrefcount(memory) <= _IDLE_REFERENCES:
                return memory
            self._spare.append(memory)
        return np.empty(nbytes, np.uint8)


def _references() -> int:
    """What `sys.getrefcount` says of memory to which nothing but a local variable refers."""
    memory = np.empty(1, np.uint8)
    return sys.getrefcount(memory)


#: Counted, as it differs between Pythons.
_IDLE_REFERENCES = _references()
