"""A disk that fails on purpose: full, torn, with a flipped bit, or its process killed, at any step."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable
from typing import Any

from headwater.data.io.disk import Change, Disk


class Killed(BaseException):
    """The process ended here. What it does afterwards, as it cleans up, changes nothing any more."""


class FaultyDisk(Disk):
    """Counts steps, each a change or a piece that is written, and fails at one of them.

    Args:
      kill_at: the step at which the process is killed, from 1. Of a piece that is written then, half gets to the disk.
      flip_at: the step whose piece gets to the disk with a bit flipped in its middle.
      room: how many bytes may be written; None for any number.

    Attributes:
      steps: how many there were.
    """

    def __init__(self, *, kill_at: int = 0, flip_at: int = 0, room: int | None = None) -> None:
        self._kill_at = kill_at
        self._flip_at = flip_at
        self._dead = False
        self.room = room
        self.steps = 0

    def before(self, change: Change, path: str) -> None:
        if self._dead:
            raise Killed
        self.steps += 1
        if self.steps == self._kill_at:
            self._dead = True
            raise Killed

    def stream(self, raw: io.FileIO, path: str) -> io.RawIOBase:
        return Stream(self.write, raw)

    def write(self, raw: io.FileIO, data: memoryview) -> int:
        """Writes a piece, or what the disk makes of it; how many bytes count as written."""
        if self._dead:
            return len(data)
        self.steps += 1
        if self.steps == self._kill_at:
            self._dead = True
            raw.write(data[: len(data) // 2])
            raise Killed
        if self.room is not None:
            if data and not self.room:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            data = data[: self.room]
            self.room -= len(data)
        if self.steps == self._flip_at and data:
            changed = bytearray(data)
            changed[len(changed) // 2] ^= 4
            data = memoryview(changed)
        return raw.write(data)


class Stream(io.RawIOBase):
    """A file whose pieces go through a function.

    Args:
      piece: writes a piece to the file, or something else; gives how many bytes count as written.
      raw: the file.
    """

    def __init__(self, piece: Callable[[io.FileIO, memoryview], int], raw: io.FileIO) -> None:
        self._piece = piece
        self._raw = raw

    def write(self, data: Any) -> int:
        return self._piece(self._raw, memoryview(data).cast("B"))

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._raw.seekable()

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._raw.seek(offset, whence)

    def tell(self) -> int:
        return self._raw.tell()

    def fileno(self) -> int:
        return self._raw.fileno()

    def close(self) -> None:
        super().close()
        self._raw.close()
