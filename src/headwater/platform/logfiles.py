"""What tasks print: their log files, in parts, from the end, as they grow, in the order of time, and searched.

Each line of a file begins with its time (`headwater.platform.host.lines`). Lines of one task stand in the order in
which they were printed, whatever the clock of its host did; lines of several tasks are put in the order of their times.
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
      data: its bytes, times included.
      offset: where it begins.
      size: the size of the whole file.
    """

    data: bytes
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line that a task printed.

    Attributes:
      text: the line, without its end.
      at: when it was printed, in seconds since 1970 by its host's clock; None where that is not known.
      offset: where in the log file it begins, in bytes.
    """

    text: str
    at: float | None = None
    offset: int = 0


def read_part(path: Path, *, offset: int | None = None, tail: int | None = None, limit: int = MAX_PART) -> LogPart:
    """A part of a log file; nothing where there is no file yet.

    Args:
      path: the file.
      offset: where to begin, in bytes; negative ones count from the end.
      tail: instead, the number of last lines.
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
            kept = b"".join(lines[len(lines) - tail :]) if 0 < tail < len(lines) else data if tail > 0 else b""
            return LogPart(data=kept, offset=size - len(kept), size=size)
    except FileNotFoundError:
        return LogPart(data=b"", offset=0, size=0)


def plain(data: bytes, *, times: bool = False) -> str:
    """A part of a log as text, without the times before its lines unless they are asked for."""
    if not times:
        data = b"".join(split_stamp(line)[1] for line in io.BytesIO(data))
    return data.decode("utf-8", "replace")


def lines_of(data: bytes, offset: int) -> Iterator[LogLine]:
    """The lines of ``data``, which begins at ``offset`` of its file; the last one need not have an end."""
    for raw in io.BytesIO(data):
        for at, text, start in _pieces(raw):
            yield LogLine(_text(text), at, offset + start)
        offset += len(raw)


class Follower:
    """The lines of a log file, those that are there and those that come.

    Args:
      path: the file; it need not be there yet.
      tail: number of last lines to begin with; all unless given.
    """

    def __init__(self, path: Path, *, tail: int | None = None) -> None:
        self._path = path
        self._offset = read_part(path, tail=tail).offset if tail is not None else 0

    def lines(self) -> list[LogLine]:
        """The lines since the last call, at most about a megabyte of them."""
        part = read_part(self._path, offset=self._offset)
        if part.size < self._offset:  # the file was begun anew
            self._offset = 0
            return self.lines()
        whole = part.data.rfind(b"\n") + 1
        if not whole and len(part.data) > MAX_LINE + STAMP_LENGTH:
            whole = len(part.data)  # a line without an end
        self._offset = part.offset + whole
        return list(lines_of(part.data[:whole], part.offset))

    def close(self) -> list[LogLine]:
        """What is left of a last line without an end."""
        part = read_part(self._path, offset=self._offset)
        self._offset = part.offset + len(part.data)
        return list(lines_of(part.data, part.offset))


def in_order(lines: Mapping[str, Iterable[LogLine]]) -> Iterator[tuple[str, LogLine]]:
    """The lines of several tasks in the order of their times, each with its task.

    One whose time is not known, or goes back, stays behind the line before it.
    """
    return ((name, line) for _, name, line in heapq.merge(*(_timed(name, of) for name, of in lines.items()), key=_time))


def all_lines(path: Path, *, start: int = 0) -> Generator[LogLine]:
    """The lines of a log file, from the one that begins at ``start`` on."""
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
    """The lines that hold ``text``, whatever its case.

    Args:
      path: the file.
      text: what is looked for.
      start: where to begin, in bytes: the beginning of a line.
      limit: maximum number of lines.
      budget: about the maximum number of bytes that are looked at.

    Returns:
      The lines, and where to go on; None where the file was looked through to its end.
    """
    wanted, found = text.lower(), list[LogLine]()
    folded = wanted.encode()
    try:
        with path.open("rb") as file:
            file.seek(start)
            offset, rest, looked = start, b"", 0
            while piece := file.read(_PIECE):
                looked += len(piece)
                data = rest + piece
                whole = data.rfind(b"\n") + 1 or (len(data) if len(data) > MAX_LINE else 0)
                # Most parts hold nothing of it, and ASCII is folded a hundred times as fast as lines are made.
                if not wanted.isascii() or folded in data[:whole].lower():
                    for line in lines_of(data[:whole], offset):
                        if len(found) == limit:
                            return found, line.offset
                        if wanted in line.text.lower():
                            found.append(line)
                offset, rest = offset + whole, data[whole:]
                if looked >= budget:
                    return found, offset
            if len(found) == limit and rest:
                return found, offset
            found += [line for line in lines_of(rest, offset) if wanted in line.text.lower()]
            return found, None
    except FileNotFoundError:
        return [], None


def _pieces(raw: bytes) -> Iterator[tuple[float | None, bytes, int]]:
    """A line, or the parts of one that is too long for one."""
    at, text = split_stamp(raw.rstrip(b"\n"))
    if len(text) <= MAX_LINE:
        yield at, text, 0
        return
    head = len(raw.rstrip(b"\n")) - len(text)
    for start in range(0, len(text), MAX_LINE):
        yield at, text[start : start + MAX_LINE], head + start if start else 0


def _text(line: bytes) -> str:
    # A progress bar draws over itself: only what is seen last is a line.
    return line.decode("utf-8", "replace").rstrip("\r").rpartition("\r")[2]


def _timed(name: str, lines: Iterable[LogLine]) -> Iterator[tuple[float, str, LogLine]]:
    latest = 0.0
    for line in lines:
        latest = max(latest, line.at or 0.0)
        yield latest, name, line


def _time(entry: tuple[float, str, LogLine]) -> float:
    return entry[0]
