"""Lines out of what a process writes, and the time before each of them in a log file::

    2026-01-31T09:30:00.000123Z Step: 100, loss: 0.25

The time is that at which the beginning of the line came from the process. It has always the same length, so that it can
be taken off again; a line without one, as in older logs, is what it is.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime

# Longer lines are cut into pieces, so that a task that never ends a line cannot fill its reader's memory.
MAX_LINE = 64 * 1024
#: How long the time before a line is, with the blank behind it, in bytes.
STAMP_LENGTH = 28
_STAMP = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z ")


def stamp(at: float) -> bytes:
    """A time, in seconds since 1970, as it stands before a line."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ ").encode()


def split_stamp(line: bytes) -> tuple[float | None, bytes]:
    """A line's time, None where it has none, and what was printed."""
    if _STAMP.match(line) is None:
        return None, line
    try:
        at = datetime.fromisoformat(line[: STAMP_LENGTH - 1].decode()).timestamp()
    except ValueError:  # digits that are no time
        return None, line
    return at, line[STAMP_LENGTH:]


class Stamper:
    """Puts the time before each line of what a process writes.

    Args:
      clock: gives seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._within = False
        self._clock = clock

    def feed(self, data: bytes) -> bytes:
        """``data`` with the time before each line that begins in it."""
        if not data:
            return data
        now = stamp(self._clock())
        head = b"" if self._within else now
        body, end = (data[:-1], b"\n") if data.endswith(b"\n") else (data, b"")
        self._within = not end
        return head + body.replace(b"\n", b"\n" + now) + end

    def finish(self) -> bytes:
        """What ends a last line that has no end."""
        return b"\n" if self._within else b""


class LineBuffer:
    """Cuts a pipe's bytes into lines."""

    def __init__(self) -> None:
        self._pending = b""

    def feed(self, data: bytes) -> list[str]:
        """The lines that ``data`` completes, without their ends."""
        *lines, self._pending = (self._pending + data).split(b"\n")
        while len(self._pending) > MAX_LINE:
            lines.append(self._pending[:MAX_LINE])
            self._pending = self._pending[MAX_LINE:]
        return [_text(line) for line in lines]

    def close(self) -> list[str]:
        """The last line, if it had no end."""
        pending, self._pending = self._pending, b""
        return [_text(pending)] if pending else []


def _text(line: bytes) -> str:
    # A progress bar draws over itself: only what is seen last is a line.
    return line.decode("utf-8", "replace").rstrip("\r").rpartition("\r")[2]
