"""Lines out of what a process writes."""

from __future__ import annotations

# Longer lines are cut into pieces, so that a task that never ends a line cannot fill its reader's memory.
MAX_LINE = 64 * 1024


class LineBuffer:
    """Cuts what comes from a pipe into lines."""

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
