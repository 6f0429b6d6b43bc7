"""Output of the tasks: lines read from pipes, stored, and shown with the task's name.

On a terminal, the names are coloured, and a status line below shows the job's progress (rich). Elsewhere, lines are
plain. The standard output of a task is written to the launcher's standard output, and likewise its standard error.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Protocol

from headwater.cluster.names import TaskName
from headwater.platform.cli.launcher.job import label

STREAMS = ("stdout", "stderr")
_LAST_LINES = 20
# While the job ends, output is discarded once its reader has been stuck for this many seconds.
_STUCK_AFTER_S = 0.5
_COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "bright_cyan", "bright_green", "bright_magenta")


class TaskLog:
    """The last lines of one task, and its log file if there is one."""

    def __init__(self, task: TaskName, directory: Path | None) -> None:
        self._last: deque[str] = deque(maxlen=_LAST_LINES)
        self.path: Path | None = directory / f"{task.job}-{task.index}.log" if directory is not None else None
        self._file: IO[bytes] | None = self.path.open("wb", buffering=0) if self.path is not None else None
        self._missing = 0

    def write(self, data: bytes) -> None:
        """Appends ``data`` to the file, unchanged.

        While the disk is full, data is dropped. Once there is room again, a line states the number of missing bytes.

        Raises:
          OSError: the data cannot be written. Raised once for each time that the disk is full. After any other error,
            the file is closed and nothing more is written.
        """
        if self._file is None or not data:
            return
        gap = b"\n[headwater: %d bytes are missing here: the disk was full]\n" % self._missing if self._missing else b""
        left = memoryview(gap + data)
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                self.close()
                raise
            first, self._missing = not self._missing, self._missing + min(len(left), len(data))
            if first:
                raise
        else:
            self._missing = 0

    def add(self, line: str) -> None:
        """Stores ``line`` as the latest one."""
        self._last.append(line)

    def last_lines(self) -> Sequence[str]:
        """Returns the last lines that the task printed to either stream."""
        return tuple(self._last)

    def close(self) -> None:
        """Closes the file."""
        file, self._file = self._file, None
        if file is not None:
            # Closing the file retries a failed write, and fails again; `write` has reported the error already.
            with contextlib.suppress(OSError):
                file.close()


class OutputView(Protocol):
    """The destination of lines. Every method raises OSError if the reader is gone.

    Attributes:
      live: whether `status` has an effect.
    """

    live: bool

    def line(self, task: TaskName, stream: str, text: str) -> None:
        """Shows a line of ``task``'s ``stream``."""
        ...

    def show_message(self, text: str) -> None:
        """Shows a message of the launcher."""
        ...

    def status(self, text: str) -> None:
        """Shows the job's progress, if there is a status line."""
        ...

    def flush(self) -> None:
        """Flushes the output."""
        ...

    def close(self) -> None:
        """Removes the status line."""
        ...


class PlainView:
    """Plain lines for files, pipes and simple terminals."""

    live = False

    def line(self, task: TaskName, stream: str, text: str) -> None:
        print(f"[{label(task)}] {text}", file=sys.stdout if stream == "stdout" else sys.stderr)

    def show_message(self, text: str) -> None:
        sys.stdout.flush()
        print(f"headwater run: {text}", file=sys.stderr)

    def status(self, text: str) -> None:
        del text

    def flush(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()

    def close(self) -> None:
        self.flush()


class TerminalView(PlainView):
    """Coloured lines above a status line, on the standard streams that are terminals.

    Args:
      tasks: all tasks, in the order in which they get colours.
    """

    live = True

    def __init__(self, tasks: Sequence[TaskName]) -> None:
        # Importing rich takes 50 ms: only for terminals.
        from rich.console import Console  # noqa: PLC0415
        from rich.live import Live  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        self._text = Text
        self._terminals = {name for name in STREAMS if getattr(sys, name).isatty()}
        self._console = Console(file=sys.stdout if "stdout" in self._terminals else sys.stderr, highlight=False)
        self._styles = {task: _COLOURS[place % len(_COLOURS)] for place, task in enumerate(tasks)}
        self._width = max(len(label(task)) for task in tasks)
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
        )
        self._live.start()

    def line(self, task: TaskName, stream: str, text: str) -> None:
        if stream not in self._terminals:
            super().line(task, stream, text)
            return
        prefix = (f"{label(task):<{self._width}} │ ", self._styles[task])
        self._print(self._text.assemble(prefix, self._text.from_ansi(text)))

    def show_message(self, text: str) -> None:
        if "stderr" not in self._terminals:
            super().show_message(text)
            return
        self._print(self._text(f"headwater run: {text}", style="bold"))

    def status(self, text: str) -> None:
        self._live.update(self._text(text, style="bold", no_wrap=True, overflow="ellipsis"), refresh=True)

    def close(self) -> None:
        self._live.update("")
        self._live.stop()
        super().close()

    def _print(self, text: object) -> None:
        self._console.print(text, soft_wrap=True)


class Outlet:
    """A view that discards all output once its reader is gone.

    Args:
      clock: returns monotonic seconds.
    """

    def __init__(self, view: OutputView, clock: Callable[[], float] = time.monotonic) -> None:
        self._view = view
        self._clock = clock
        self._since: float | None = None
        self.lost = False

    @property
    def live(self) -> bool:
        """Whether a status line is shown."""
        return self._view.live and not self.lost

    def line(self, task: TaskName, stream: str, text: str) -> None:
        """See `OutputView.line`."""
        self._show(lambda: self._view.line(task, stream, text))

    def show_message(self, text: str) -> None:
        """See `OutputView.show_message`."""
        self._show(lambda: self._view.show_message(text))

    def status(self, text: str) -> None:
        """See `OutputView.status`."""
        self._show(lambda: self._view.status(text))

    def flush(self) -> None:
        """See `OutputView.flush`."""
        self._show(self._view.flush)

    def close(self) -> None:
        """See `OutputView.close`."""
        self._show(self._view.close)

    def abort_if_stuck(self) -> None:
        """Gives up on a reader that has blocked `line` or another method for long; called by a signal handler.

        Raises:
          OSError: the reader is stuck. Raised inside the blocked method, which handles it.
        """
        if self._since is not None and self._clock() - self._since > _STUCK_AFTER_S:
            raise TimeoutError("the output is not read")

    def _show(self, show: Callable[[], None]) -> None:
        if self.lost:
            return
        self._since = self._clock()
        try:
            show()
        except OSError:  # the reader of the output is gone or stuck
            self.lost: bool = True
            # Later flushes of the streams' buffers must neither fail nor block again.
            with open(os.devnull, "wb") as nowhere:
                for stream in (sys.stdout, sys.stderr):
                    os.dup2(nowhere.fileno(), stream.fileno())
        finally:
            self._since = None


def make_view(tasks: Sequence[TaskName]) -> OutputView:
    """Returns the view for the standard streams of this process."""
    if os.environ.get("TERM") != "dumb" and any(getattr(sys, name).isatty() for name in STREAMS):
        return TerminalView(tasks)
    return PlainView()
