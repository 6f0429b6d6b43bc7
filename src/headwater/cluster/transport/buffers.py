"""Pools of receive buffers. A buffer is reused once no array refers to it.

Allocating 100 MB takes longer than receiving 100 MB, because the kernel provides new memory page by page at the first
access. So a channel keeps the buffers of its large frames. The reference count of a buffer shows whether it is in
use: every array over the buffer, and every view of such an array, holds a reference to it.
"""

from __future__ import annotations

import contextlib
import mmap
import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: A buffer that was not used during this many calls of `acquire` is dropped from the pool.
_MAX_IDLE_TAKES = 64
#: Maximum number of buffers in a pool. A dropped buffer is freed with the last array over it.
_MAX_REMEMBERED = 8
#: A buffer is used for a frame only if it is at most this many times as long as the frame.
_MAX_WASTE = 2


@dataclass(slots=True)
class _Remembered:
    buffer: NDArray[np.uint8]
    last_take: int

    def references(self) -> int:
        return sys.getrefcount(self.buffer)


#: The count of `_Remembered.references` when no other object holds the buffer: measured, as Python versions differ.
_IDLE_REFERENCES = _Remembered(np.empty(1, np.uint8), 0).references()


def fresh_buffer(nbytes: int) -> NDArray[np.uint8]:
    """Allocates ``nbytes`` of page-aligned, uninitialised memory.

    Every array over the returned array holds a reference to it, so its reference count shows whether it is in use. This
    works because the base of the returned array is not an array: otherwise NumPy would make views refer to that base
    directly, and the reference count would not include them.
    """
    pages = mmap.mmap(-1, max(nbytes, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE") and nbytes >= 4 << 20:
        with contextlib.suppress(OSError):  # a kernel without huge pages: slower, not wrong
            pages.madvise(mmap.MADV_HUGEPAGE)
    return np.ndarray((nbytes,), np.uint8, pages)


class BufferPool:
    """The buffers of one receiving end. Not thread-safe."""

    def __init__(self) -> None:
        self._remembered: list[_Remembered] = []
        self._takes = 0

    def acquire(self, nbytes: int) -> NDArray[np.uint8]:
        """Returns a page-aligned buffer of at least ``nbytes`` that no array refers to."""
        self._takes += 1
        best: _Remembered | None = None
        for entry in self._remembered:
            size = len(entry.buffer)
            fits = nbytes <= size <= _MAX_WASTE * nbytes and entry.references() <= _IDLE_REFERENCES
            if fits and (best is None or size < len(best.buffer)):
                best = entry
        if best is None:
            best = _Remembered(fresh_buffer(nbytes), self._takes)
            self._remembered.append(best)
        best.last_take = self._takes
        self._remembered = [e for e in self._remembered if self._takes - e.last_take <= _MAX_IDLE_TAKES]
        if len(self._remembered) > _MAX_REMEMBERED:
            self._remembered.remove(min(self._remembered, key=lambda entry: entry.last_take))
        return best.buffer

    def remembered_bytes(self) -> int:
        """Returns the size of all buffers in the pool, in use or idle, in bytes."""
        return sum(len(entry.buffer) for entry in self._remembered)
