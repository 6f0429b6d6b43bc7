"""Splits a process's output into lines, and puts the time before each line of a log file::

    2026-01-31T09:30:00.000123Z Step: 100, loss: 0.25

The time is when the beginning of the line was received. It has a fixed length, so that it can be removed again; a line
without a time, as in logs of earlier versions, is used unchanged.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime

# Longer lines are split, so that a task that never ends a line cannot exhaust the memory of the reader.
MAX_LINE = 64 * 1024
#: The length of the time before a line, including the space after it, in bytes.
STAMP_LENGTH = 28
_STAMP = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z ")


def stamp(at: float) -> bytes:
    """Formats a time, in seconds since 1970, as the prefix of a line."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ ").encode()


def split_stamp(line: bytes) -> tuple[float | None, bytes]:
    """Splits a line into its time, None without one, and the printed text."""
    if _STAMP.match(line) is None:
        return None, line
    try:
        at = datetime.fromisoformat(line[: STAMP_LENGTH - 1].decode()).timestamp()
    except ValueError:  # the digits are not a valid time
        return None, line
    return at, line[STAMP_LENGTH:]


class Stamper:
    """Puts the time before each line of a process's output.

    Args:
      clock: returns seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._within = False
        self._clock = clock

    def feed(self, data: bytes) -> bytes:
        """Returns ``data`` with the time before each line that begins in it."""
        if not data:
            return data
        now = stamp(self._clock())
        head = b"" if self._within else now
        body, end = (data[:-1], b"\n") if data.endswith(b"\n") else (data, b"")
        self._within = not end
        return head + body.replace(b"\n", b"\n" + now) + end

    def finish(self) -> bytes:
        """Returns the line break that terminates a partial last line, or nothing."""
        return b"\n" if self._within else b""


class LineBuffer:
    """Splits a pipe's bytes into lines."""

    def __init__(self) -> None:
        self._pending = b""

    def feed(self, data: bytes) -> list[str]:
        """Returns the lines that ``data`` completes, without line breaks."""
        *lines, self._pending = (self._pending + data).split(b"\n")
        while len(self._pending) > MAX_LINE:
            lines.append(self._pending[:MAX_LINE])
            self._pending = self._pending[MAX_LINE:]
        return [_text(line) for line in lines]

    def close(self) -> list[str]:
        """Returns the last line, if it had no line break."""
        pending, self._pending = self._pending, b""
        return [_text(pending)] if pending else []


def _text(line: bytes) -> str:
    # Progress bars overwrite their line with carriage returns: keep only the last, visible part.
    return line.decode("utf-8", "replace").rstrip("\r").rpartition("\r")[2]
