"""How often each variable of a task was updated, in a file that a task which was killed leaves behind.

The file is mapped into memory: to count an update is to add one to a number there, and the kernel keeps the page
whatever becomes of the process. So the next life of a ``ps`` that goes back to a state of some seconds ago knows to the
last update what is lost. When the machine is lost, the file is as old as the kernel's last write of it.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Sequence
from typing import Final

from headwater.data.io import files

#: How many variables a file has room for; further ones are counted in memory alone.
SLOTS: Final = 1 << 14
_MAGIC: Final = 0x5354_4E55_4F43_5748  # HWCOUNTS
_HEAD: Final = 2
_WORD: Final = struct.calcsize("Q")


class UpdateCounts:
    """Makes such a file, in place of one that is there, which stays as it is for who has it open.

    Args:
      path: of the file.
      life: names the numbers of the variables: states that name the same one number them alike.
      begun: the counts of the first variables.

    Attributes:
      numbers: one for each slot.

    Raises:
      OpError: it cannot be made.
    """

    def __init__(self, path: str, life: int, begun: Sequence[int] = ()) -> None:
        nbytes = (_HEAD + SLOTS) * _WORD
        with files.translated(path):
            unfinished = f"{path}.tmp"
            descriptor = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o666)
            try:
                # With room on the disk for all of it: a page that finds none would end the process.
                os.posix_fallocate(descriptor, 0, nbytes)
                self._map = mmap.mmap(descriptor, nbytes)
            finally:
                os.close(descriptor)
            words = memoryview(self._map).cast("Q")
            words[0], words[1] = _MAGIC, life
            self.numbers: memoryview[int] = words[_HEAD:]
            for slot, count in enumerate(begun[:SLOTS]):
                self.numbers[slot] = count
            os.replace(unfinished, path)


def read_counts(path: str, life: int) -> Sequence[int] | None:
    """The numbers of a file; None where there is no file of that life."""
    if not files.exists(path):
        return None
    with files.open_file(path, "rb") as file:
        data = file.read()
    if len(data) != (_HEAD + SLOTS) * _WORD:
        return None
    words = memoryview(data).cast("Q")
    return words[_HEAD:] if (words[0], words[1]) == (_MAGIC, life) else None
