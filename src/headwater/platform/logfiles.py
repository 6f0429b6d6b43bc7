"""Log files of tasks: read in parts, from the end, while they grow, merged by time, and searched.

Each line of a file begins with its time (`headwater.platform.host.lines`). Lines of one task keep the order in which
they were printed, even if the clock of its host was set back; lines of several tasks are merged by their times.
"""

from __future__ import annotations

import heapq
import io
import os
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from headwater.platform.host.lines import MAX_LINE, STAMP_LENGTH, split_stamp

MAX_PART = 1 << 20
_PIECE = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class LogPart:
    """A part of a log file.

    Attributes:
      data: its bytes, including times.
      offset: the offset of the part in the file.
      size: the size of the whole file.
    """

    data: bytes
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line that a task printed.

    Attributes:
      text: the line, without line break.
      at: when it was printed, in seconds since 1970 by the clock of the task's host; None if unknown.
      offset: its offset in the log file, in bytes.
    """

    text: str
    at: float | None = None
    offset: int = 0


def read_part(path: Path, *, offset: int | None = None, tail: int | None = None, limit: int = MAX_PART) -> LogPart:
    """Returns a part of a log file; an empty one if there is no file yet.

    Args:
      offset: where to begin, in bytes; negative values count from the end.
      tail: return this number of last lines instead.
      limit: maximum number of bytes.
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
            lines = list(io.BytesIO(data))
            selected = b"".join(lines[len(lines) - tail :]) if 0 < tail < len(lines) else data if tail > 0 else b""
            return LogPart(data=selected, offset=size - len(selected), size=size)
    except FileNotFoundError:
        return LogPart(data=b"", offset=0, size=0)


def plain(data: bytes, *, times: bool = False) -> str:
    """Returns a part of a log as text, without the times before its lines unless requested."""
    if not times:
        data = b"".join(split_stamp(line)[1] for line in io.BytesIO(data))
    return data.decode("utf-8", "replace")


def lines_of(data: bytes, offset: int) -> Iterator[LogLine]:
    """Yields the lines of ``data``, which begins at ``offset`` of its file; the last one may lack a line break."""
    for raw in io.BytesIO(data):
        for at, text, start in _pieces(raw):
            yield LogLine(_text(text), at, offset + start)
        offset += len(raw)


class Follower:
    """Reads a log file line by line while it grows.

    Args:
      path: the file; it need not exist yet.
      tail: number of last lines to begin with; all unless given.
    """

    def __init__(self, path: Path, *, tail: int | None = None) -> None:
        self._path = path
        self._offset = read_part(path, tail=tail).offset if tail is not None else 0

    def lines(self) -> list[LogLine]:
        """Returns the lines since the last call, at most about a megabyte of them."""
        part = read_part(self._path, offset=self._offset)
        if part.size < self._offset:  # the file was truncated or replaced
            self._offset = 0
            return self.lines()
        whole = part.data.rfind(b"\n") + 1
        if not whole and len(part.data) > MAX_LINE + STAMP_LENGTH:
            whole = len(part.data)  # a very long line: do not wait for its end
        self._offset = part.offset + whole
        return list(lines_of(part.data[:whole], part.offset))

    def close(self) -> list[LogLine]:
        """Returns the remainder of a last line without line break."""
        part = read_part(self._path, offset=self._offset)
        self._offset = part.offset + len(part.data)
        return list(lines_of(part.data, part.offset))


def in_order(lines: Mapping[str, Iterable[LogLine]]) -> Iterator[tuple[str, LogLine]]:
    """Merges the lines of several tasks by time; yields each with its task.

    The lines of each task keep their order: a line without a time, or with an earlier time than the line before it,
    counts as written at the time of that line.
    """
    return ((name, line) for _, name, line in heapq.merge(*(_timed(name, of) for name, of in lines.items()), key=_time))


def all_lines(path: Path, *, start: int = 0) -> Generator[LogLine]:
    """Yields the lines of a log file, beginning with the line at ``start``."""
    offset, rest = start, b""
    try:
        with path.open("rb") as file:
            file.seek(start)
            while piece := file.read(_PIECE):
                data = rest + piece
                whole = data.rfind(b"\n") + 1
                yield from lines_of(data[:whole], offset)
                offset, rest = offset + whole, data[whole:]
            yield from lines_of(rest, offset)
    except FileNotFoundError:
        return


def search(path: Path, text: str, *, start: int = 0, limit: int, budget: int) -> tuple[list[LogLine], int | None]:
    """Finds the lines that contain ``text``, case-insensitively.

    Args:
      text: the text to find.
      start: where to begin, in bytes: the beginning of a line.
      limit: maximum number of lines.
      budget: about the maximum number of bytes to search.

    Returns:
      The lines, and where to continue; None if the end of the file was reached.
    """
    wanted, matches = text.lower(), list[LogLine]()
    folded = wanted.encode()
    try:
        with path.open("rb") as file:
            file.seek(start)
            offset, rest, looked = start, b"", 0
            while piece := file.read(_PIECE):
                looked += len(piece)
                data = rest + piece
                whole = data.rfind(b"\n") + 1 or (len(data) if len(data) > MAX_LINE else 0)
                # Most parts do not contain the text, and folding ASCII bytes is about a hundred times as fast as
                # parsing lines.
                if not wanted.isascii() or folded in data[:whole].lower():
                    for line in lines_of(data[:whole], offset):
                        if len(matches) == limit:
                            return matches, line.offset
                        if wanted in line.text.lower():
                            matches.append(line)
                offset, rest = offset + whole, data[whole:]
                if looked >= budget:
                    return matches, offset
            if len(matches) == limit and rest:
                return matches, offset
            matches += [line for line in lines_of(rest, offset) if wanted in line.text.lower()]
            return matches, None
    except FileNotFoundError:
        return [], None


def _pieces(raw: bytes) -> Iterator[tuple[float | None, bytes, int]]:
    """Yields a line, or the pieces of a line that is too long."""
    at, text = split_stamp(raw.rstrip(b"\n"))
    if len(text) <= MAX_LINE:
        yield at, text, 0
        return
    head = len(raw.rstrip(b"\n")) - len(text)
    for start in range(0, len(text), MAX_LINE):
        yield at, text[start : start + MAX_LINE], head + start if start else 0


def _text(line: bytes) -> str:
    # Progress bars overwrite their line with carriage returns: keep only the last, visible part.
    return line.decode("utf-8", "replace").rstrip("\r").rpartition("\r")[2]


def _timed(name: str, lines: Iterable[LogLine]) -> Iterator[tuple[float, str, LogLine]]:
    latest = 0.0
    for line in lines:
        latest = max(latest, line.at or 0.0)
        yield latest, name, line


def _time(entry: tuple[float, str, LogLine]) -> float:
    return entry[0]
