"""Program of a task's helper process, which sends heartbeats to other tasks once a second.

The helper shares no lock and no memory with the task, so a held GIL or busy threads of the task do not delay it. The
task passes connections to the helper over a socket (`headwater.cluster.transport.heartbeats`). A heartbeat is one byte:
`ALIVE`, or `STOPPED` while the kernel reports the task as stopped (SIGSTOP, Ctrl-Z). When the task exits, the helper
exits, too, and all connections are closed.

The helper imports only the standard library, so that it starts in tens of milliseconds and needs little memory.

Usage: python -I -S heartbeat_process.py DESCRIPTOR
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import time

ALIVE, STOPPED = b".", b"T"
#: Seconds between two heartbeats.
BEAT_S = 1.0
_CLOSED_EVENTS = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR
#: Maximum number of connections received with one call.
_MAX_TAKEN = 64


def sign_of(pid: int) -> bytes:
    """Returns `STOPPED` if the process is stopped; `ALIVE` otherwise, or if the system does not report it."""
    try:
        # The state follows the program's name, which is in parentheses and may contain any characters.
        with open(f"/proc/{pid}/stat", "rb") as file:
            return STOPPED if file.read().rpartition(b") ")[2][:1] == b"T" else ALIVE
    except OSError:
        return ALIVE


class HeartbeatSender:
    """Sends heartbeats on all connections.

    Args:
      task: the socket to the task.
      pid: the process id of the task.
    """

    def __init__(self, task: socket.socket, pid: int) -> None:
        self._task = task
        self._pid = pid
        self._others: dict[int, socket.socket] = {}
        self._poll = select.poll()
        self._poll.register(task, select.POLLIN)

    def run(self) -> None:
        """Runs until the task has exited."""
        next_beat = time.monotonic()
        while os.getppid() == self._pid:
            # Without connections there is nothing to send: wait for the first one, without a timeout.
            timeout_ms = max(0.0, next_beat - time.monotonic()) * 1000 if self._others else None
            for descriptor, events in self._poll.poll(timeout_ms):
                if descriptor != self._task.fileno():
                    self._disconnect(descriptor)
                elif not self._accept(events):
                    return
            if time.monotonic() >= next_beat:
                self._beat()
                next_beat = time.monotonic() + BEAT_S  # count from now, to avoid a burst after this process was stopped

    def _accept(self, events: int) -> bool:
        """Receives connections; returns False when the task has exited."""
        if not events & select.POLLIN:
            return False
        said, descriptors, _, _ = socket.recv_fds(self._task, _MAX_TAKEN, _MAX_TAKEN)
        for descriptor in descriptors:
            other = socket.socket(fileno=descriptor)
            other.setblocking(False)
            self._others[descriptor] = other
            # POLLIN is not polled: the other end sends nothing on a lifeline.
            self._poll.register(descriptor, _CLOSED_EVENTS)
            self._send(descriptor, sign_of(self._pid))  # send the first heartbeat immediately
        return bool(said)

    def _beat(self) -> None:
        sign = sign_of(self._pid)
        for descriptor in list(self._others):
            self._send(descriptor, sign)

    def _send(self, descriptor: int, sign: bytes) -> None:
        try:
            self._others[descriptor].send(sign)
        except BlockingIOError:  # the buffer is full because the other end does not read; it may be stopped
            pass
        except OSError:
            self._disconnect(descriptor)

    def _disconnect(self, descriptor: int) -> None:
        self._poll.unregister(descriptor)
        self._others.pop(descriptor).close()


def main() -> None:
    """Runs the helper until the task exits."""
    # Ignore signals to the process group: the helper must continue, to report that the task is stopped; it notices the
    # task's exit by itself.
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP):
        signal.signal(signum, signal.SIG_IGN)
    with contextlib.closing(socket.socket(fileno=int(sys.argv[1]))) as task:
        HeartbeatSender(task, os.getppid()).run()


if __name__ == "__main__":
    main()
