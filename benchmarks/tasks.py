"""Tasks of a cluster, as processes, for benchmarks in which some are killed."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from itertools import pairwise

HEADWATER = [sys.executable, "-m", "headwater", "exec"]
PATIENCE_S = 180.0
_STEP = re.compile(r"at ([\d.]+) counts (\d+) (\d+)")


class Task:
    """A process, and what it prints.

    Args:
      command: starts it.
      env: its environment.

    Attributes:
      process: the process.
      output: the lines that it has printed.
      served_at: when it has printed that it serves; 0 before.
    """

    def __init__(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            command, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        self.output: list[str] = []
        self.served_at: float = 0.0
        self._more = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._more:
                self.output.append(line)
                if line == "serves\n":
                    self.served_at = time.time()
                self.hear(line)
                self._more.notify_all()
        with self._more:
            self.output.append("(has ended)\n")
            self._more.notify_all()

    def hear(self, line: str) -> None:
        """Called with each line."""

    def wait_for(self, ready: Callable[[], bool]) -> None:
        """Waits until what it has printed makes something true.

        Raises:
          TimeoutError: it has not within three minutes; with what it has printed last.
        """
        with self._more:
            if not self._more.wait_for(ready, PATIENCE_S):
                raise TimeoutError("".join(self.output[-20:]))

    def tell(self, line: str) -> None:
        """Writes a line into its input."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def run_first(self) -> None:
        """Has the kernel run its present threads before those of other programs, which take no core from it then.

        Raises:
          PermissionError: this user may not ask for that.
        """
        for thread in os.listdir(f"/proc/{self.process.pid}/task"):
            os.sched_setscheduler(int(thread), os.SCHED_RR, os.sched_param(1))

    def end(self) -> None:
        """Kills it."""
        self.process.kill()
        self.process.wait()


class Steps(Task):
    """A worker whose steps are read, or a ps.

    Attributes:
      steps: when each ended, in seconds since 1970, and how often each of two variables was changed before.
    """

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self.steps: list[tuple[float, int, int]] = []
        super().__init__(command, env)

    def hear(self, line: str) -> None:
        if found := _STEP.match(line):
            self.steps.append((float(found[1]), int(found[2]), int(found[3])))

    def step_after(self, at: float) -> tuple[float, int, int]:
        """The first step that ended after a time."""
        self.wait_for(lambda: bool(self.steps) and self.steps[-1][0] > at)
        return next(step for step in self.steps if step[0] > at)

    def longest_after(self, at: float, seconds: float) -> tuple[tuple[float, int, int], tuple[float, int, int]]:
        """The two steps with the most time between them, of those that ended in some seconds after a time."""
        self.step_after(at + seconds)
        found = [step for step in self.steps if step[0] <= at][-1:] + [step for step in self.steps if step[0] > at]
        return max(pairwise(found), key=lambda both: both[1][0] - both[0][0])


def free_addresses(count: int) -> list[str]:
    """Addresses of this machine at which no process listens."""
    with ExitStack() as open_until_all_are_known:
        found: list[str] = []
        for _ in range(count):
            sock = open_until_all_are_known.enter_context(socket.socket())
            sock.bind(("127.0.0.1", 0))
            found.append(f"127.0.0.1:{sock.getsockname()[1]}")
        return found
