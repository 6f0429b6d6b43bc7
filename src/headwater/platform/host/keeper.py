"""The keeper: the process above one task of the platform. It outlives the server, and records how the task ended.

The keeper starts the task in a session of its own, writes the task's output to a log, receives its progress reports and
holds its port. The keeper ends the task on request, or when the task exceeds its memory limit, and kills the processes
that the task leaves behind. When no process of the task is left, the keeper writes ``exit.json`` (see `records`) and
exits. If the keeper is killed, the kernel kills the task with it; the task's other processes are found by their mark
when the task is restarted (see `guard`).

Usage: python -P -m headwater.platform.host.keeper FOLDER, with ``order.json`` in it. The keeper writes a line to
standard output once the task runs or has failed to start, and continues in the background.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import IO, TYPE_CHECKING

from headwater.cluster.addresses import parse_address
from headwater.cluster.pauses import pause
from headwater.cluster.telemetry.printed import TaskProgress
from headwater.cluster.telemetry.progress import MAX_DATAGRAM, STATUS_VARIABLE
from headwater.cluster.telemetry.sizes import size_text
from headwater.errors import DataLossError, ResourceExhaustedError
from headwater.platform.host import guard
from headwater.platform.host.end_request import EndRequest, processes_below
from headwater.platform.host.lines import LineBuffer, Stamper
from headwater.platform.host.ports import NoPort, reserve_port
from headwater.platform.host.processes import (
    ProcessIdentity,
    ProcessTable,
    adopt_orphans,
    how_it_ended,
    identity,
    proportional_bytes,
    resident_bytes,
)
from headwater.platform.host.programs import missing_program
from headwater.platform.host.records import AttemptFolder
from headwater.platform.host.secrets import secrets_from_keeper
from headwater.platform.host.signals import signal_socket

if TYPE_CHECKING:
    from collections.abc import Generator

    from headwater.data.io.json_types import JsonObject

#: The exit code of a task that could not be started, as in shells.
CANNOT_START = 127
# The exit code of a task if its port is taken, but may be free at the next start (EX_TEMPFAIL).
_PORT_TAKEN = 75

_PR_SET_PDEATHSIG = 1
_READ_SIZE = 64 * 1024
_LAST_LINES = 20
_MEMORY_INTERVAL_S = 1.0
# The interval of checks on the processes of a task that was asked to end. The keeper is signalled only when its own
# children exit, so it has to poll further descendants.
_END_INTERVAL_S = 0.1
# The minimum interval between two writes of the task's progress.
_PROGRESS_INTERVAL_S = 0.25
_FULL = b"[headwater: the log is full; what follows is dropped]\n"
# The maximum length of a socket's address, less room for the name of the file.
_MAX_SOCKET_FOLDER = 90
_DEFAULT_GRACE_S = 10.0
# Pauses between attempts to write the exit record.
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 15.0
# When memory is short, the kernel kills a task rather than its keeper.
_OOM_SCORE = "500"


class Keeper:
    """Keeps one task.

    Args:
      folder: the records of the task.
      order: the content of ``order.json``: ``argv``, ``env`` (complete), ``secrets`` (names of further variables, whose
        values are in this process's environment), ``cwd``, ``log_path``, ``max_log_bytes``, ``memory_bytes``,
        ``cores``, ``address``, ``mark``, ``umask`` (optional), ``creator``: the process with which the task ends, None
        if the task may outlive its creator; ``relay``: whether the keeper must pass SIGTERM on, because only the keeper
        receives it; ``grace_s`` (optional): seconds between SIGTERM and SIGKILL, if the SIGTERM is not the agent's.
    """

    def __init__(self, folder: AttemptFolder, order: JsonObject) -> None:
        self._folder = folder
        self._order = order
        self._log: IO[bytes] = _opened(Path(order["log_path"]))
        self._log_left: int = order["max_log_bytes"]
        self._stamper = Stamper()
        self._lines = LineBuffer()
        self._progress = TaskProgress(order["env"])
        self._unreported = False
        self._tell_at = 0.0
        self._last: deque[str] = deque(maxlen=_LAST_LINES)
        self._selector = selectors.DefaultSelector()
        self._process: subprocess.Popen[bytes] | None = None
        self._returncode: int | None = None
        self._reason = ""
        self._asked = ""
        self._request: EndRequest | None = None
        self._look_at_processes_at: float | None = None
        self._kill_at: float | None = None
        self._killed = False
        self._look_at_memory_at = time.monotonic() if order["memory_bytes"] else None

    def run(self, ready: IO[bytes]) -> None:
        """Starts the task, notifies ``ready``, and returns when no process of the task is left."""
        adopt_orphans()
        signals = signal_socket(signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        self._selector.register(signals, selectors.EVENT_READ, lambda: self._read_signals(signals))
        with contextlib.ExitStack() as stack:
            status = stack.enter_context(_status_socket(self._folder.path))
            missing = missing_program(self._order["env"], self._order["cwd"])
            if missing:
                self._end(CANNOT_START, missing, ready)
                return
            try:
                stack.enter_context(reserve_port(parse_address(self._order["address"])))
                self._start(status.getsockname())
            except NoPort as error:
                self._end(_PORT_TAKEN, str(error), ready)
                return
            except OSError as error:
                self._end(CANNOT_START, f"could not be started: {error}", ready)
                return
            self._selector.register(status, selectors.EVENT_READ, lambda: self._read_status(status))
            self._watch_creator()
            # Write the record before notifying `ready`: the agent must return only handles of tasks that can be found
            # again.
            own = identity(os.getpid())
            self._folder.write(
                "keeper", {"pid": own.pid, "start": own.start, "boot": own.boot, "started_at": time.time()}
            )
            _report_ready(ready)
            while (code := self._code()) is None:
                for key, _ in self._selector.select(self._timeout()):
                    key.data()
                self._run_due_actions()
            if not self._asked and not self._order["relay"] and code == -signal.SIGTERM:
                # Without `relay`, the sender signals the task directly as well, and the task may end before this
                # process has received the signal.
                self._asked = "preempted"
            # Processes that the task left behind must not outlive the task: they could hold its port, its memory or its
            # GPUs.
            guard.end_job(self._order["mark"])
            self._reap()
            self._drain()
            # The task may have sent its last report just before it ended.
            while select.select([status], [], [], 0)[0]:
                self._read_status(status)
            self._write_progress()
            self._end(code, self._reason or how_it_ended(code))

    def _start(self, status_address: str) -> None:
        order = self._order
        libc = ctypes.CDLL(None, use_errno=True)
        secrets = secrets_from_keeper(order.get("secrets", []), os.environ)

        def in_the_child() -> None:
            # Python code is safe between fork and exec only because this process has a single thread.
            libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
            if order["cores"]:
                os.sched_setaffinity(0, order["cores"])
            with contextlib.suppress(OSError):  # forbidden in some containers
                Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE)

        self._process = subprocess.Popen(
            order["argv"],
            cwd=order["cwd"],
            env={**order["env"], **secrets, STATUS_VARIABLE: status_address},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # The server creates private files; the task gets its own umask.
            umask=order.get("umask", -1),
            preexec_fn=in_the_child,
        )
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        self._selector.register(self._process.stdout, selectors.EVENT_READ, self._read_output)

    def _watch_creator(self) -> None:
        if self._order["creator"] is None:
            return
        creator = ProcessIdentity(**self._order["creator"])

        def creator_ended() -> None:
            if creator_end is not None:
                self._selector.unregister(creator_end)
            self._kill("killed, because the process that had started it ended")

        try:
            creator_end = os.pidfd_open(creator.pid)
        except ProcessLookupError:
            creator_end = None
        else:
            self._selector.register(creator_end, selectors.EVENT_READ, creator_ended)
        # Check the creator after opening the descriptor, which then refers to the right process: an earlier check would
        # not exclude that the creator exits and its number is reused.
        if creator_end is None or not creator.is_alive():
            creator_ended()

    def _code(self) -> int | None:
        """Returns the task's return code; None while it runs, or while processes that were asked to end are left."""
        answered = self._request is None or self._killed or self._request.answered
        return self._returncode if answered else None

    def _timeout(self) -> float | None:
        tell_at = self._tell_at if self._unreported else None
        watched = (self._kill_at, self._look_at_memory_at, self._look_at_processes_at, tell_at)
        times = [at for at in watched if at is not None]
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _run_due_actions(self) -> None:
        if self._code() is not None:
            return
        now = time.monotonic()
        if self._request is not None and self._look_at_processes_at is not None and now >= self._look_at_processes_at:
            self._look_at_processes_at = now + _END_INTERVAL_S
            self._signal_processes(self._request)
        if self._unreported and now >= self._tell_at:
            self._write_progress()
        if self._kill_at is not None and now >= self._kill_at:
            self._kill_at = None
            self._kill("killed, because it did not end when it was asked to")
        if self._look_at_memory_at is not None and now >= self._look_at_memory_at:
            self._look_at_memory_at = now + _MEMORY_INTERVAL_S
            limit: int = self._order["memory_bytes"]
            pids = ProcessTable().descendants(os.getpid())
            # The resident size is quick to read, but counts shared pages several times: check it first, then the exact
            # size.
            if resident_bytes(pids) > limit and (used := proportional_bytes(pids)) > limit:
                self._look_at_memory_at = None
                self._kill(f"used {size_text(used)} of {size_text(limit)} of memory")

    def _kill(self, reason: str) -> None:
        assert self._process is not None
        self._killed = True
        self._reason = reason
        if self._returncode is None:  # otherwise the pid may have been reused; `guard` finds processes by the mark
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _read_signals(self, signals: socket.socket) -> None:
        numbers = signals.recv(4096)
        if signal.SIGTERM in numbers:
            self._begin_shutdown()
        self._reap()

    def _begin_shutdown(self) -> None:
        assert self._process is not None
        try:
            stop = self._folder.read("stop")
        except DataLossError as error:
            print(error.message, file=sys.stderr, flush=True)
            stop = {"grace_s": _DEFAULT_GRACE_S}  # only the agent writes this record
        grace_s = float(self._order.get("grace_s", _DEFAULT_GRACE_S) if stop is None else stop["grace_s"])
        # A process must not receive the request twice: the second signal could interrupt its handling of the first.
        if self._request is None and self._returncode is None:
            self._request = EndRequest()
            self._look_at_processes_at = time.monotonic()
        # The agent writes a record before it signals. Without a record, the machine or the engine made the request.
        self._asked = "preempted" if stop is None else "stopped"
        kill_at = time.monotonic() + grace_s
        if not self._killed:
            self._kill_at = kill_at if self._kill_at is None else min(kill_at, self._kill_at)

    def _signal_processes(self, request: EndRequest) -> None:
        """Sends SIGTERM to the processes of the task that must receive it now."""
        for process in request.processes_to_signal(processes_below(os.getpid()), time.monotonic()):
            if self._order["relay"]:
                process.send(signal.SIGTERM)

    def _reap(self) -> None:
        """Records the exit of the task, and reaps orphans that it left to this process."""
        assert self._process is not None
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = ended
                if pid == self._process.pid:
                    self._returncode = self._process.returncode = os.waitstatus_to_exitcode(status)

    def _read_status(self, status: socket.socket) -> None:
        self._unreported = self._progress.report(status.recv(MAX_DATAGRAM)) or self._unreported

    def _write_progress(self) -> None:
        """Writes the task's progress to disk, if it has changed."""
        if not self._unreported:
            return
        self._unreported = False
        self._tell_at = time.monotonic() + _PROGRESS_INTERVAL_S
        with contextlib.suppress(OSError):  # a full disk: the next report may succeed
            self._folder.write_progress(self._progress.progress.encode())

    def _read_output(self) -> int:
        """Reads the pipe once; returns the number of bytes read."""
        assert self._process is not None
        assert self._process.stdout is not None
        try:
            data = os.read(self._process.stdout.fileno(), _READ_SIZE)
        except BlockingIOError:
            return 0
        if not data:
            self._selector.unregister(self._process.stdout)
            self._process.stdout.close()
            return 0
        self._write_log(self._stamper.feed(data))
        self._parse_lines(self._lines.feed(data))
        return len(data)

    def _parse_lines(self, lines: list[str]) -> None:
        self._last.extend(lines)
        for line in lines:
            self._unreported = self._progress.line(line) or self._unreported

    def _drain(self) -> None:
        """Reads the remaining output from the pipe."""
        assert self._process is not None
        assert self._process.stdout is not None
        while not self._process.stdout.closed and self._read_output():
            pass
        self._parse_lines(self._lines.close())

    def _write_log(self, data: bytes) -> None:
        if self._log_left <= 0:
            return
        self._log_left -= len(data)
        if self._log_left <= 0:
            data = data[: self._log_left or None] + b"\n" + Stamper().feed(_FULL)
        with contextlib.suppress(OSError):  # a full disk must not stop the training
            self._log.write(data)
            self._log.flush()

    def _end(self, code: int, reason: str, ready: IO[bytes] | None = None) -> None:
        with contextlib.suppress(OSError):
            # The next attempt appends to the same file, and its first line must not continue this attempt's last one.
            self._log.write(self._stamper.finish())
            self._log.close()
        ended = {
            "code": code,
            "reason": reason,
            "stopped": self._asked == "stopped",
            "preempted": self._asked == "preempted",
            "at": time.time(),
            "last_lines": list(self._last),
        }
        if ready is None:
            self._write_end(ended)
        else:  # the agent waits for an answer
            self._folder.write("exit", ended)
            _report_ready(ready)

    def _write_end(self, values: JsonObject) -> None:
        """Writes ``exit.json``, retrying while the disk is full: without that record, the task would count as lost."""
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                self._folder.write("exit", values)
            except ResourceExhaustedError as error:
                with contextlib.suppress(OSError):
                    print(f"{error.message}; retrying in {pause_s:.0f} s", file=sys.stderr, flush=True)
                pause(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            else:
                return


@contextlib.contextmanager
def _status_socket(folder: Path) -> Generator[socket.socket]:
    """Yields the socket for the task's progress reports, in ``folder`` unless its path is too long for an address."""
    with contextlib.ExitStack() as stack:
        if len(os.fsencode(folder)) > _MAX_SOCKET_FOLDER:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headwater-")))
        path = folder / "status"
        path.unlink(missing_ok=True)
        status = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        status.bind(str(path))
        path.chmod(0o600)
        stack.callback(path.unlink, missing_ok=True)
        yield status


def _opened(path: Path) -> IO[bytes]:
    """Opens a log for appending; terminates a partial line of a keeper that was killed."""
    log = path.open("a+b")
    if log.tell():
        log.seek(-1, os.SEEK_END)
        if log.read(1) != b"\n":
            log.write(b"\n")
    return log


def _report_ready(ready: IO[bytes]) -> None:
    with contextlib.suppress(OSError):  # the requesting process has exited, while the task runs
        ready.write(b"ready\n")
        ready.close()


def main() -> None:
    """Continues in the background and keeps the task of the folder given on the command line."""
    folder = AttemptFolder(Path(sys.argv[1]))
    if os.fork():
        os._exit(0)
    ready = os.fdopen(os.dup(1), "wb", buffering=0)
    with open(os.devnull, "r+b") as null:
        os.dup2(null.fileno(), 0)
        os.dup2(null.fileno(), 1)
    order = folder.read("order")
    assert order is not None
    Keeper(folder, order).run(ready)


if __name__ == "__main__":
    main()
