"""Growing memory: mappings that the kernel can enlarge and move without copying.

Pages that were never written take no memory, so a mapping may be larger than its content.
"""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from headwater.data.io.files import as_op_error
from headwater.errors import ResourceExhaustedError

#: Blocks of this size and more use huge pages, so that accesses to random rows need fewer entries of the TLB.
_HUGE_PAGES_FROM_BYTES: Final = 8 << 20


class Block:
    """A block of bytes, initially zero. Not thread-safe: a shard's lock guards it.

    Args:
      nbytes: the size, in bytes.
      folder: the folder of an unnamed file for the bytes, which is freed with the process; None for memory.

    Attributes:
      address: the address of the first byte; `grow` may change it.
      nbytes: size of the mapping, a multiple of the page size.

    Raises:
      ResourceExhaustedError: there is no memory, or no space on the disk.
    """

    def __init__(self, nbytes: int, folder: str | None = None) -> None:
        self._folder = folder
        self._file: Any = None
        self.nbytes: int = _pages(nbytes)
        try:
            if folder is None:
                self._map = mmap.mmap(-1, self.nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            else:
                self._file = tempfile.TemporaryFile(prefix="headwater-rows-", dir=folder)  # noqa: SIM115
                os.posix_fallocate(self._file.fileno(), 0, self.nbytes)
                self._map = mmap.mmap(self._file.fileno(), self.nbytes)
        except OSError as error:
            raise self._translated(error, self.nbytes) from error
        self.address: int = self._address()

    def grow(self, nbytes: int) -> None:
        """Grows the block to at least ``nbytes``; keeps its content, but the address may change."""
        nbytes = _pages(nbytes)
        if nbytes <= self.nbytes:
            return
        try:
            if self._file is not None:
                # Reserve the space: writing to a page for which the disk has none would kill the process (SIGBUS).
                os.posix_fallocate(self._file.fileno(), self.nbytes, nbytes - self.nbytes)
            self._map.resize(nbytes)
        except OSError as error:
            raise self._translated(error, nbytes) from error
        self.nbytes = nbytes
        self.address = self._address()

    @property
    def words(self) -> NDArray[np.int64]:
        """A copy of the content."""
        return np.frombuffer(self._map, np.int64).copy()

    @words.setter
    def words(self, words: NDArray[np.int64]) -> None:
        np.frombuffer(self._map, np.int64)[:] = words

    def close(self) -> None:
        """Frees the bytes."""
        self._map.close()
        if self._file is not None:
            self._file.close()

    def _address(self) -> int:
        if self._file is None and self.nbytes >= _HUGE_PAGES_FROM_BYTES:
            self._map.madvise(mmap.MADV_HUGEPAGE)
        view: NDArray[np.uint8] = np.frombuffer(self._map, np.uint8)
        return int(view.ctypes.data)

    def _translated(self, error: OSError, nbytes: int) -> Exception:
        if self._folder is None and error.errno in (errno.ENOMEM, errno.EAGAIN):
            return ResourceExhaustedError(f"the machine does not have {nbytes} bytes of memory for rows")
        return as_op_error(error, self._folder or "memory")


def _pages(nbytes: int) -> int:
    return max(1, -(-nbytes // mmap.PAGESIZE)) * mmap.PAGESIZE
