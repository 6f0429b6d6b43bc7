"""The interface through which Headwater writes to the operating system. Tests insert a simulated disk here.

All code in `headwater.data.io.files` that changes a file or folder first calls the `Disk` of the file's path. The real
disk allows everything. A simulated disk overrides two methods: `check_change`, to refuse a change or to end the process
before the change, and `stream`, to wrap the written file in an object that writes only a part of its data, or other
data. These two methods can simulate a full disk, a torn write, a flipped bit and a kill at any moment::

    with mounted(folder, MyDisk()):
        ...  # what is written below folder goes through it

Files at URLs do not use a `Disk`.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Generator
from typing import Final, Literal

Change = Literal["create", "sync", "name", "remove"]
"""Creation of a file or folder; flush of the operating system's buffers to the disk; renaming; deletion."""


class Disk:
    """The real disk."""

    def check_change(self, change: Change, path: str) -> None:
        """Allows or refuses a change of ``path``, before it is made; for ``name``, ``path`` is the new name.

        Raises:
          OSError: to make the change fail with this error.
        """

    def stream(self, raw: io.FileIO, path: str) -> io.RawIOBase:
        """Returns the stream for the bytes of a file that was opened for writing; it must have ``raw``'s descriptor."""
        del path
        return raw


_REAL: Final = Disk()
_mounted: Final[dict[str, Disk]] = {}


def disk_of(path: str) -> Disk:
    """Returns the disk of ``path``."""
    if not _mounted:
        return _REAL
    place = os.path.abspath(path)
    below = [folder for folder in _mounted if place == folder or place.startswith(folder + os.sep)]
    return _mounted[max(below, key=len)] if below else _REAL


@contextlib.contextmanager
def mounted(folder: str | os.PathLike[str], disk: Disk) -> Generator[None]:
    """Inserts ``disk`` below ``folder`` for the duration of the context, in all threads of this process."""
    place = os.path.abspath(folder)
    before = _mounted.get(place)
    _mounted[place] = disk
    try:
        yield
    finally:
        if before is None:
            del _mounted[place]
        else:
            _mounted[place] = before
