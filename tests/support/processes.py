"""Clusters of real processes: tests start them one by one, read their output, kill and restart them."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from headwater.cluster.variables import LISTEN_FDS

EXEC = (sys.executable, "-u", "-m", "headwater", "exec")
"""Runs a program written for TensorFlow."""


def bound(place: tuple[str, int] = ("127.0.0.1", 0)) -> socket.socket:
    """Returns a socket bound to an address, by default to a free port of this machine; it does not listen.

    With SO_REUSEADDR, another socket can be bound to the same address, and listen. While the returned socket is open,
    the system does not assign the port to a process that binds port 0.
    """
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(place)
    return sock


class Process:
    """A running program, whose standard output and standard error are collected together.

    Args:
      command: the command line.
      env: the environment.
      pass_fds: descriptors that it inherits.
    """

    def __init__(self, command: list[str], env: dict[str, str], pass_fds: tuple[int, ...] = ()) -> None:
        self._process = subprocess.Popen(
            command,
            env=env,
            pass_fds=pass_fds,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self._lines: list[str] = []
        self._ended = False
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self._lines.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def runs(self) -> bool:
        """Whether it is still running."""
        return self._process.poll() is None

    @property
    def output(self) -> str:
        """All lines so far."""
        with self._changed:
            return "\n".join(self._lines)

    def wait_for(self, pattern: str, *, after: int = 0) -> re.Match[str]:
        """Waits for a line that matches, from line ``after`` on. AssertionError if the process ends without one."""
        return self._find(pattern, after)[1]

    def next_line(self, pattern: str, *, after: int) -> int:
        """Returns the number of the line that `wait_for` would find."""
        return self._find(pattern, after)[0]

    def _find(self, pattern: str, after: int) -> tuple[int, re.Match[str]]:
        for at in itertools.count(after):
            line = self._line(at)
            if line is None:
                break
            found = re.search(pattern, line)
            if found:
                return at, found
        raise AssertionError(f"process {self.pid} ended without a line like {pattern!r}:\n{self.output}")

    def _line(self, at: int) -> str | None:
        """Waits for a line and returns it; returns None if the process ends before."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or len(self._lines) > at)
            return self._lines[at] if len(self._lines) > at else None

    def line_count(self) -> int:
        with self._changed:
            return len(self._lines)

    def ends(self) -> int:
        """Waits for the end of the process; returns the exit code."""
        code = self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()
        return code

    def succeeds(self) -> str:
        """Waits for the end of the process; returns the output. Raises AssertionError if the exit code is not 0."""
        code = self.ends()
        assert code == 0, f"exit code {code}:\n{self.output}"
        return self.output

    def kill(self) -> None:
        """Sends SIGKILL, and waits for the end of the process."""
        self._process.kill()
        self.ends()

    def suspend(self) -> None:
        """Sends SIGSTOP and waits until the process has stopped: its threads run until one of them sees the signal."""
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED)

    def resume(self) -> None:
        """Sends SIGCONT."""
        self._process.send_signal(signal.SIGCONT)

    def send_sigterm(self) -> None:
        """Sends SIGTERM."""
        self._process.send_signal(signal.SIGTERM)

    def terminate(self) -> int:
        """Sends SIGTERM, and waits for the end of the process; returns the exit code."""
        self.send_sigterm()
        return self.ends()


def terminate_all(processes: Sequence[Process]) -> None:
    """Sends SIGTERM to all processes at the same time, and waits until they have ended."""
    # A suspended process handles SIGTERM only when it continues, so that none of them ends before the others get it.
    for one in processes:
        one.suspend()
        one.send_sigterm()
    for one in processes:
        one.resume()
    for one in processes:
        one.succeeds()


class Processes:
    """The tasks of a cluster, and other processes that a test starts. The constructor reserves the ports.

    Args:
      jobs: the number of tasks of each job.
    """

    def __init__(self, jobs: dict[str, int]) -> None:
        self._held: dict[str, socket.socket] = {}
        self._kept: list[socket.socket] = []
        self.hosts: dict[str, list[str]] = {job: [self._hold() for _ in range(count)] for job, count in jobs.items()}
        self._started: list[Process] = []

    def _hold(self) -> str:
        """Returns an address at which no process listens. It stays reserved until `stop`, also while its task is not
        running."""
        sock = bound()
        place = sock.getsockname()
        # The task inherits the first socket and closes it when it ends. The second one reserves the port for a restart.
        self._kept.append(bound(place))
        address = f"127.0.0.1:{place[1]}"
        self._held[address] = sock
        return address

    def address(self, job: str, index: int = 0) -> str:
        return self.hosts[job][index]

    def start(self, job: str, index: int, program: Path, *arguments: str, **environ: str) -> Process:
        """Starts a task; called again after its end, restarts it."""
        flags = [f"--{name}_hosts={','.join(hosts)}" for name, hosts in self.hosts.items()]
        command = [*EXEC, str(program), *flags, f"--job_name={job}", f"--task_index={index}", *arguments]
        held = self._held.pop(self.address(job, index), None)
        if held is None:
            return self.run(*command, pass_fds=(), **environ)
        with held:
            # Clients can connect before the task has started: the system queues their connections.
            held.listen()
            environ[LISTEN_FDS] = json.dumps({self.address(job, index): held.fileno()})
            return self.run(*command, pass_fds=(held.fileno(),), **environ)

    def release(self, job: str) -> list[str]:
        """Returns the addresses of a job whose tasks the test starts without `start`, and closes their sockets."""
        for address in self.hosts[job]:
            self._held.pop(address).close()
        return self.hosts[job]

    def run(self, *command: str, pass_fds: tuple[int, ...] = (), **environ: str) -> Process:
        """Starts another program."""
        environment = os.environ | {"JAX_PLATFORMS": "cpu"} | environ
        started = Process(list(command), environment, pass_fds)
        self._started.append(started)
        return started

    def show(self, lines: int = 30) -> None:
        """Prints the last lines of every process, which pytest shows if the test fails."""
        for number, process in enumerate(self._started):
            print(f"--- process {process.pid}, the {number + 1}. that was started:")
            print("\n".join(process.output.splitlines()[-lines:]))

    def stop(self) -> None:
        """Kills all processes that are still running, and releases the ports."""
        for process in self._started:
            process.kill()
        for sock in (*self._held.values(), *self._kept):
            sock.close()


@contextmanager
def processes(**jobs: int) -> Iterator[Processes]:
    """Context manager for a cluster, such as ``processes(ps=1, worker=2)``."""
    cluster = Processes(jobs)
    try:
        yield cluster
    except BaseException:
        cluster.show()
        raise
    finally:
        cluster.stop()
