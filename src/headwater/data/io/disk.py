"""The seam between what Headwater writes and the operating system, where a simulated disk can be put underneath.

Everything in `headwater.data.io.files` that changes a file or folder asks the `Disk` of its path first. The real one
lets all of it happen. A simulated one overrides two methods: `before` to refuse a change or to end the process at it,
and `stream` to put a file of its own around the one that is written, which takes only a part, or something else than it
is given. For a full disk, a torn write, a flipped bit and a kill at any moment that is enough::

    with mounted(folder, MyDisk()):
        ...  # what is written below folder goes through it

Files at URLs do not pass here.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Generator
from typing import Final, Literal

Change = Literal["create", "sync", "name", "remove"]
"""A new file or folder; writing to the disk what the operating system still holds; another name; the end of a name."""


class Disk:
    """The real disk."""

    def before(self, change: Change, path: str) -> None:
        """Called before ``path`` is changed, with the new name for ``name``.

        Raises:
          OSError: what is to happen in its place.
        """

    def stream(self, raw: io.FileIO, path: str) -> io.RawIOBase:
        """What takes the bytes for a file that was opened to be written; it must have ``raw``'s descriptor."""
        del path
        return raw


_REAL: Final = Disk()
_mounted: Final[dict[str, Disk]] = {}


def disk_of(path: str) -> Disk:
    """The disk that ``path`` is on."""
    if not _mounted:
        return _REAL
    place = os.path.abspath(path)
    below = [folder for folder in _mounted if place == folder or place.startswith(folder + os.sep)]
    return _mounted[max(below, key=len)] if below else _REAL


@contextlib.contextmanager
def mounted(folder: str | os.PathLike[str], disk: Disk) -> Generator[None]:
    """``disk`` is what is below ``folder`` meanwhile, in all threads of this process."""
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
