"""A disk with injected faults at any step: it is full, writes a part, flips a bit, or its process is killed."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable
from typing import Any

from headwater.data.io.disk import Change, Disk


class Killed(BaseException):
    """Simulates a kill of the process. Later actions, such as in handlers of this exception, do not change the disk."""


class FaultyDisk(Disk):
    """A disk that counts its steps, and fails at one of them. A step is a `Change`, or one write to a file.

    Args:
      kill_at: the step at which the process is killed, from 1. If the step is a write, half of its bytes are written.
      flip_at: the step at which a bit in the middle of the written bytes is flipped.
      room: the number of bytes that may be written; None for no limit.

    Attributes:
      room: the number of bytes that may still be written; None for no limit.
      steps: the number of steps so far.
    """

    def __init__(self, *, kill_at: int = 0, flip_at: int = 0, room: int | None = None) -> None:
        self._kill_at = kill_at
        self._flip_at = flip_at
        self._dead = False
        self.room = room
        self.steps = 0

    def check_change(self, change: Change, path: str) -> None:
        if self._dead:
            raise Killed
        self.steps += 1
        if self.steps == self._kill_at:
            self._dead = True
            raise Killed

    def stream(self, raw: io.FileIO, path: str) -> io.RawIOBase:
        return Stream(self.write, raw)

    def write(self, raw: io.FileIO, data: memoryview) -> int:
        """Writes bytes to a file, with the fault of this step; returns the number of bytes to report as written."""
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
    """A file whose writes are replaced by a function.

    Args:
      piece: called for each write with the file and the bytes; returns the number of bytes to report as written.
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
