"""The first process of a pod: runs the task, and tells its progress in the pod's log.

A pod shares no disk with the server and is asked nothing by it, but its log is fetched anyway. So what the task reports
(see `headwater.cluster.telemetry.progress`) goes there, as lines that begin with `MARK`; the reader of the log takes
them out. They stand between lines of the task's, never within one, and there is one every other second at most.

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

from headwater.cluster.telemetry.printed import Told
from headwater.cluster.telemetry.progress import MAX_DATAGRAM, STATUS_VARIABLE
from headwater.platform.host.end_request import EndRequest, processes_below
from headwater.platform.host.lines import LineBuffer
from headwater.platform.host.processes import adopt_orphans
from headwater.platform.host.programs import missing_program
from headwater.platform.host.signals import signal_socket

#: Begins a line of progress, and no other.
MARK = "::headwater-progress:: "

_EVERY_S = 2.0
# Between two looks at the processes of a task that was asked to end.
_END_INTERVAL_S = 0.1
_READ_SIZE = 64 * 1024
_CANNOT_START = 127


class Marker:
    """Puts lines of progress between the lines of a task.

    Args:
      write: takes what goes into the log.
      environment: of the task, which may say how its lines are to be read.
      clock: gives seconds that only grow.
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
        self._told = Told(environment or {})
        self._untold = False
        self._within = False

    def output(self, data: bytes) -> None:
        """The task has printed ``data``."""
        self._take_lines(self._lines.feed(data))
        head, newline, tail = data.rpartition(b"\n")
        if newline:
            self._write(head + newline)
            self._within = False
            self.look()
        if tail:
            self._write(tail)
            self._within = True

    def report(self, datagram: bytes) -> None:
        """The task has reported."""
        if self._told.report(datagram):
            self._untold = True
            self.look()

    def look(self) -> float | None:
        """Writes what is due; in how many seconds there is more to write, None where nothing waits for time alone."""
        if not self._untold or self._within:
            return None
        now = self._clock()
        if now < self._due_at:
            return self._due_at - now
        self._due_at = now + _EVERY_S
        self._tell()
        return None

    def close(self) -> None:
        """Writes the latest, whether it is due or not: the task has ended."""
        self._take_lines(self._lines.close())
        if self._untold:
            self._tell()
        elif self._within:
            # Who fetches a log takes whole lines.
            self._write(b"\n")
            self._within = False

    def _take_lines(self, lines: Sequence[str]) -> None:
        for line in lines:
            self._untold = self._told.line(line) or self._untold

    def _tell(self) -> None:
        end = b"\n" if self._within else b""
        self._write(end + MARK.encode() + self._told.progress.encode() + b"\n")
        self._untold = self._within = False


def run(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Runs ``argv`` to its end.

    Args:
      argv: the command line.
      environment: all of its variables but the one for its progress.

    Returns:
      The exit code; 128 and the number of the signal that killed it; 127 where it cannot be started.
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
            wait_s = marker.look()
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
                for process in ending.look(processes_below(os.getpid())):
                    process.send(signal.SIGTERM)
        # What others still hold open, such as a process that the task left behind, is not waited for.
        while _copy(pipe, marker):
            pass
        status.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                marker.report(status.recv(MAX_DATAGRAM))
        marker.close()
    return task.returncode if task.returncode >= 0 else 128 - task.returncode


def _reap(task: subprocess.Popen[bytes]) -> None:
    """Notes the end of the task, and reaps orphans, whose parent a pod's first process is."""
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == task.pid:
                task.returncode = os.waitstatus_to_exitcode(ended[1])


def _copy(pipe: int, marker: Marker) -> int:
    """Passes on some of what the task has printed; how many bytes, 0 where there is nothing more now or ever."""
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
