"""What tasks print: their log files, in parts, from the end, and as they grow."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from headwater.platform.host.lines import LineBuffer

MAX_PART = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class LogPart:
    """A part of a log file.

    Attributes:
      data: its bytes.
      offset: where it begins.
      size: the size of the whole file.
    """

    data: bytes
    offset: int
    size: int


def read_part(path: Path, *, offset: int | None = None, tail: int | None = None, limit: int = MAX_PART) -> LogPart:
    """A part of a log file; nothing where there is no file yet.

    Args:
      path: the file.
      offset: where to begin, in bytes; negative ones count from the end.
      tail: instead, the last so many lines.
      limit: at most so many bytes.
    """
    limit = max(0, min(limit, MAX_PART))
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if tail is None:
                start = offset or 0
                start = max(0, size + start) if start < 0 else min(start, size)
                file.seek(start)
                return LogPart(data=file.read(limit), offset=start, size=size)
            start = max(0, size - limit)
            file.seek(start)
            data = file.read(size - start)
            lines = data.splitlines(keepends=True)
            kept = b"".join(lines[len(lines) - tail :]) if 0 < tail < len(lines) else data if tail > 0 else b""
            return LogPart(data=kept, offset=size - len(kept), size=size)
    except FileNotFoundError:
        return LogPart(data=b"", offset=0, size=0)


class Follower:
    """The lines of a log file, those that are there and those that come.

    Args:
      path: the file; it need not be there yet.
      tail: begin with the last so many lines; all unless given.
    """

    def __init__(self, path: Path, *, tail: int | None = None) -> None:
        self._path = path
        self._buffer = LineBuffer()
        self._offset = read_part(path, tail=tail).offset if tail is not None else 0

    def lines(self) -> list[str]:
        """The lines since the last call, at most about a megabyte of them."""
        part = read_part(self._path, offset=self._offset)
        if part.size < self._offset:  # the file was begun anew
            self._offset = 0
            return self.lines()
        self._offset = part.offset + len(part.data)
        return self._buffer.feed(part.data)

    def close(self) -> list[str]:
        """What is left of a last line without an end."""
        return self._buffer.close()
