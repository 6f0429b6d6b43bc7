"""Aligned copies of feeds, which XLA uses without a copy of its own.

XLA copies an array of 100 KiB or more if the array does not start at a multiple of 64 bytes. XLA makes this copy in
another thread and waits for it, which costs two wake-ups. Feeds are often unaligned, since a batch that is a slice of a
larger array rarely starts at such an address. A copy made here, into memory that is reused, takes a tenth of the time.
docs/decisions/step-floor.md has the measurements.
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
    """Copies arrays that XLA would copy, into memory that it reuses. Thread-safe.

    Args:
      positions: positions of the arrays passed to XLA, in the list that `replace` takes.
    """

    def __init__(self, positions: Sequence[int]) -> None:
        self._positions = positions
        self._spare: list[NDArray[np.uint8]] = []

    def replace(self, arrays: list[AnyArray]) -> list[NDArray[np.uint8]]:
        """Replaces unaligned arrays by aligned copies.

        Returns:
          The memory of the copies, for `recycle`.
        """
        taken: list[NDArray[np.uint8]] = []
        for position in self._positions:
            value = arrays[position]
            if value.nbytes >= FROM_BYTES and type(value) is np.ndarray:  # pyright: ignore[reportUnknownMemberType]
                # Leave arrays of strings alone, since they never reach XLA. The type check above has excluded JAX's own
                # arrays, which are always aligned.
                if value.dtype.hasobject or value.__array_interface__["data"][0] % ALIGNMENT == 0:
                    continue
                # NumPy cannot allocate aligned memory: take up to 64 bytes more, and begin at the first aligned byte.
                memory = self._allocate(value.nbytes + ALIGNMENT)
                start = -memory.__array_interface__["data"][0] % ALIGNMENT
                copy = memory[start : start + value.nbytes].view(value.dtype).reshape(value.shape)
                copy[...] = value
                arrays[position] = copy
                taken.append(memory)
        return taken

    def recycle(self, memory: list[NDArray[np.uint8]]) -> None:
        """Returns the memory of copies after the run; it is reused as soon as no array refers to it."""
        self._spare.extend(memory)
        # A program with feeds of many sizes must not keep memory for each of them.
        if len(self._spare) > _MAX_SPARE:
            del self._spare[:-_MAX_SPARE]

    def _allocate(self, nbytes: int) -> NDArray[np.uint8]:
        for _ in range(len(self._spare)):
            try:
                memory = self._spare.pop(0)  # atomic, so that no two threads get the same memory
            except IndexError:
                break
            # Reuse memory only if nothing else refers to it: results of the step may be views of it, and an executable
            # that still runs may read it.
            if len(memory) == nbytes and sys.getrefcount(memory) <= _IDLE_REFERENCES:
                return memory
            self._spare.append(memory)
        return np.empty(nbytes, np.uint8)


def _references() -> int:
    """Measures `sys.getrefcount` of memory that only a local variable refers to."""
    memory = np.empty(1, np.uint8)
    return sys.getrefcount(memory)


#: Measured, since it differs between versions of Python.
_IDLE_REFERENCES = _references()
