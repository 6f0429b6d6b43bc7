"""Update counts of a task's variables, in a file that remains when the task is killed.

The file is mapped into memory. Counting an update is an increment in memory, and the operating system keeps the page
when the process is killed. So when the next incarnation of a ``ps`` restores a state that is some seconds old, it knows
exactly which updates are lost. If the machine fails, the file has the counts of the last moment at which the operating
system wrote the page to disk.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Sequence
from typing import Final

from headwater.data.io import files

#: Number of variables in a file; further variables are counted in memory only.
SLOTS: Final = 1 << 14
_MAGIC: Final = 0x5354_4E55_4F43_5748  # HWCOUNTS
_HEAD: Final = 2
_WORD: Final = struct.calcsize("Q")


class UpdateCounts:
    """A new file of counts, which replaces an existing one. A process that has mapped the old file continues to count
    in that file and does not change the new one.

    Args:
      path: path of the file.
      incarnation: identifies the assignment of slots to variables: saved states with the same value use the same slots.
      begun: initial counts of the first slots.

    Attributes:
      numbers: a count for each slot.

    Raises:
      OpError: the file cannot be created.
    """

    def __init__(self, path: str, incarnation: int, begun: Sequence[int] = ()) -> None:
        nbytes = (_HEAD + SLOTS) * _WORD
        with files.translated(path):
            unfinished = f"{path}.tmp"
            descriptor = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o666)
            try:
                # Allocate the whole file on disk: on a full disk, a write to an unallocated page would kill the process
                # (SIGBUS).
                os.posix_fallocate(descriptor, 0, nbytes)
                self._map = mmap.mmap(descriptor, nbytes)
            finally:
                os.close(descriptor)
            words = memoryview(self._map).cast("Q")
            words[0], words[1] = _MAGIC, incarnation
            self.numbers: memoryview[int] = words[_HEAD:]
            for slot, count in enumerate(begun[:SLOTS]):
                self.numbers[slot] = count
            # Rename only a complete file, so that a process that is killed before this line leaves the previous counts.
            os.replace(unfinished, path)


def read_counts(path: str, incarnation: int) -> Sequence[int] | None:
    """Reads the counts of a file; None if there is no file with this ``incarnation``."""
    if not files.exists(path):
        return None
    with files.open_file(path, "rb") as file:
        data = file.read()
    if len(data) != (_HEAD + SLOTS) * _WORD:
        return None
    words = memoryview(data).cast("Q")
    return words[_HEAD:] if (words[0], words[1]) == (_MAGIC, incarnation) else None
