"""TensorBoard for jobs: a process for each job, started by the first request and ended when it is idle."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import IO

from headwater.platform.errors import Refused

_SERVES = re.compile(r"http://127\.0\.0\.1:(\d+)/")
_START_TIMEOUT_S = 120.0
_END_TIMEOUT_S = 10.0
_LAST_LINES = 20
# Ends the command when this process exits or crashes, because that closes the pipe to the shell's standard input.
_UNTIL_CLOSED = '"$@" & child=$!; exec >/dev/null 2>&1; read -r _; kill "$child"; wait "$child"'


@dataclass(slots=True)
class _TensorBoard:
    """A TensorBoard process."""

    process: subprocess.Popen[str]
    used_at: float
    port: int | None = None
    ended: bool = False
    last: deque[str] = field(default_factory=lambda: deque[str](maxlen=_LAST_LINES))


class TensorBoards:
    """The TensorBoards of a server's jobs, at ports of the loopback address.

    Args:
      most: maximum number of processes; beyond this number, a new process replaces the least recently used process.
      idle_s: seconds without a request after which a process is ended.
      command: the command, before its options.
      clock: returns monotonic seconds.
    """

    def __init__(
        self,
        most: int = 8,
        idle_s: float = 900.0,
        command: Sequence[str] = (sys.executable, "-m", "tensorboard.main"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most = most
        self._idle_s = idle_s
        self._command = tuple(command)
        self._clock = clock
        self._boards: dict[str, _TensorBoard] = {}
        self._changed = threading.Condition()
        self._closing = False

    def port(self, job_id: str, folder: str, prefix: str) -> int:
        """Returns the port of a job's TensorBoard; starts it if necessary, and waits until it serves.

        Args:
          folder: the job's log folder.
          prefix: the path under which browsers see it.

        Raises:
          Refused: it does not start.
        """
        with self._changed:
            board = self._boards.get(job_id)
            if board is None or board.ended:
                self._make_room()
                board = self._boards[job_id] = self._start(folder, prefix)
            board.used_at = self._clock()
            self._changed.wait_for(lambda: board.port is not None or board.ended, _START_TIMEOUT_S)
            if board.port is None or board.ended:
                last_lines = " / ".join(board.last)
                raise Refused(503, f"TensorBoard does not start for {folder}: {last_lines or 'it printed no error'}")
            return board.port

    def forget_idle(self) -> None:
        """Ends idle TensorBoards."""
        with self._changed:
            oldest = self._clock() - self._idle_s
            for job_id in [job_id for job_id, board in self._boards.items() if board.used_at < oldest]:
                _end(self._boards.pop(job_id))

    def close(self) -> None:
        """Ends all TensorBoards."""
        with self._changed:
            self._closing = True
            while self._boards:
                _end(self._boards.popitem()[1])

    def _make_room(self) -> None:
        if self._closing:
            raise Refused(503, "the server ends")
        for job_id in [job_id for job_id, board in self._boards.items() if board.ended]:
            _end(self._boards.pop(job_id))
        while len(self._boards) >= self._most:
            oldest = min(self._boards, key=lambda job_id: self._boards[job_id].used_at)
            _end(self._boards.pop(oldest))

    def _start(self, folder: str, prefix: str) -> _TensorBoard:
        options = ("--logdir", folder, "--host=127.0.0.1", "--port=0", f"--path_prefix={prefix}", "--load_fast=false")
        process = subprocess.Popen(
            ("sh", "-c", _UNTIL_CLOSED, "sh", *self._command, *options),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        board = _TensorBoard(process, self._clock())
        assert process.stdout is not None
        threading.Thread(target=self._read, args=(board, process.stdout), daemon=True).start()
        return board

    def _read(self, board: _TensorBoard, output: IO[str]) -> None:
        for line in output:
            match = _SERVES.search(line)
            with self._changed:
                board.last.append(line.strip())
                if match:
                    board.port = int(match[1])
                    self._changed.notify_all()
        output.close()
        with self._changed:
            board.ended = True
            self._changed.notify_all()


def _end(board: _TensorBoard) -> None:
    assert board.process.stdin is not None
    board.process.stdin.close()
    try:
        board.process.wait(_END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        board.process.kill()
        board.process.wait()
