"""The first process of a pod: runs the task, and writes its progress to the pod's log.

A pod shares no disk with the server and receives no requests from it, but the server fetches the pod's log anyway. So
the task's progress reports (see `headwater.cluster.telemetry.progress`) are written to the log, as lines that begin
with `PROGRESS_PREFIX`; the reader of the log removes these lines. A report is placed between lines of the task, never
within a line, and there is at most one report every two seconds.

Usage: python -P -m headwater.platform.host.pod_task COMMAND...
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from headwater.cluster.telemetry.printed import TaskProgress
from headwater.cluster.telemetry.progress import MAX_DATAGRAM, STATUS_VARIABLE
from headwater.platform.host.end_request import EndRequest, processes_below
from headwater.platform.host.lines import LineBuffer
from headwater.platform.host.processes import adopt_orphans
from headwater.platform.host.programs import missing_program
from headwater.platform.host.signals import signal_socket

#: The prefix of progress lines, and of no others.
PROGRESS_PREFIX = "::headwater-progress:: "

_PROGRESS_INTERVAL_S = 2.0
# The interval of checks on the processes of a task that was asked to end.
_END_INTERVAL_S = 0.1
_READ_SIZE = 64 * 1024
_CANNOT_START = 127


class Marker:
    """Inserts progress lines between the lines of a task.

    Args:
      write: writes bytes to the log.
      environment: the task's environment, which may configure how steps and losses are read from its lines.
      clock: returns monotonic seconds.
    """

    def __init__(
        self,
        write: Callable[[bytes], None],
        environment: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write = write
        self._clock = clock
        self._due_at = clock()
        self._lines = LineBuffer()
        self._progress = TaskProgress(environment or {})
        self._unreported = False
        self._within = False

    def output(self, data: bytes) -> None:
        """Handles output of the task."""
        self._parse_lines(self._lines.feed(data))
        head, newline, tail = data.rpartition(b"\n")
        if newline:
            self._write(head + newline)
            self._within = False
            self.write_if_due()
        if tail:
            self._write(tail)
            self._within = True

    def report(self, datagram: bytes) -> None:
        """Handles a progress report of the task."""
        if self._progress.report(datagram):
            self._unreported = True
            self.write_if_due()

    def write_if_due(self) -> float | None:
        """Writes a progress line if one is due; returns the seconds until the next one, None if none is scheduled."""
        if not self._unreported or self._within:
            return None
        now = self._clock()
        if now < self._due_at:
            return self._due_at - now
        self._due_at = now + _PROGRESS_INTERVAL_S
        self._write_mark()
        return None

    def close(self) -> None:
        """Writes the latest progress even if it is not due, because the task has ended."""
        self._parse_lines(self._lines.close())
        if self._unreported:
            self._write_mark()
        elif self._within:
            # Readers of the log fetch whole lines only.
            self._write(b"\n")
            self._within = False

    def _parse_lines(self, lines: Sequence[str]) -> None:
        for line in lines:
            self._unreported = self._progress.line(line) or self._unreported

    def _write_mark(self) -> None:
        end = b"\n" if self._within else b""
        self._write(end + PROGRESS_PREFIX.encode() + self._progress.progress.encode() + b"\n")
        self._unreported = self._within = False


def run(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Runs ``argv`` to its end.

    Args:
      argv: the command line.
      environment: its environment variables, except the one for progress reports.

    Returns:
      The exit code; 128 plus the number of the signal that killed it; 127 if it cannot be started.
    """
    missing = missing_program(environment, os.getcwd())
    if missing:
        _print(f"headwater: {missing}\n".encode())
        return _CANNOT_START
    adopt_orphans()
    signals = signal_socket(signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    marker = Marker(_print, environment)
    with contextlib.ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headwater-")))
        status = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        status.bind(str(folder / "status"))
        (folder / "status").chmod(0o600)
        try:
            task = subprocess.Popen(
                argv,
                env={**environment, STATUS_VARIABLE: str(folder / "status")},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        except OSError as error:
            _print(f"headwater: {argv[0]} could not be started: {error}\n".encode())
            return _CANNOT_START
        assert task.stdout is not None
        pipe = task.stdout.fileno()
        os.set_blocking(pipe, False)
        for file in (signals, status, pipe):
            selector.register(file, selectors.EVENT_READ)
        ending: EndRequest | None = None
        while task.returncode is None or not (ending is None or ending.answered):
            wait_s = marker.write_if_due()
            if ending is not None:
                wait_s = _END_INTERVAL_S if wait_s is None else min(wait_s, _END_INTERVAL_S)
            for key, _ in selector.select(wait_s):
                if key.fileobj is status:
                    marker.report(status.recv(MAX_DATAGRAM))
                elif key.fileobj is signals:
                    if set(signals.recv(4096)) - {signal.SIGCHLD} and task.returncode is None:
                        ending = ending or EndRequest()
                    _reap(task)
                elif not _copy(pipe, marker):
                    selector.unregister(pipe)
            if ending is not None:
                for process in ending.processes_to_signal(processes_below(os.getpid()), time.monotonic()):
                    process.send(signal.SIGTERM)
        # Other processes, such as one left behind by the task, may keep the pipe open: read only its current content.
        while _copy(pipe, marker):
            pass
        status.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                marker.report(status.recv(MAX_DATAGRAM))
        marker.close()
    return task.returncode if task.returncode >= 0 else 128 - task.returncode


def _reap(task: subprocess.Popen[bytes]) -> None:
    """Records the exit of the task, and reaps orphans, which are inherited by a pod's first process."""
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == task.pid:
                task.returncode = os.waitstatus_to_exitcode(ended[1])


def _copy(pipe: int, marker: Marker) -> int:
    """Copies some output of the task; returns the number of bytes, 0 if none is available now or at all."""
    try:
        data = os.read(pipe, _READ_SIZE)
    except BlockingIOError:
        return 0
    marker.output(data)
    return len(data)


def _print(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:], os.environ))
