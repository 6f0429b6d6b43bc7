"""Heartbeats sent by a helper process, so that a held GIL cannot delay them.

Other tasks open lifelines to this task (`headwater.cluster.transport.lifeline`): connections on which they receive a
heartbeat once a second. A Python thread could not send heartbeats while a native function holds the GIL, which may take
a minute. So a helper process sends them (`headwater.cluster.transport.heartbeat_process`). It is started for the first
lifeline, and ends with this process.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import ssl
import subprocess
import sys
import threading
from pathlib import Path

from headwater.cluster.transport import heartbeat_process


class _Heartbeats:
    """Starts the helper process and passes connections to it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._way: socket.socket | None = None

    def ensure_running(self) -> None:
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._end()
                self._start()

    def add_connection(self, connection: socket.socket) -> None:
        with self._lock:
            if self._way is not None:
                with contextlib.suppress(OSError):  # the helper was killed: start another one
                    socket.send_fds(self._way, [b"\0"], [connection.fileno()])
                    return
            self._end()
            self._start()
            assert self._way is not None
            socket.send_fds(self._way, [b"\0"], [connection.fileno()])

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                # -I and -S: without site packages and the user's folders, Python starts in a fraction of the time.
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", str(Path(heartbeat_process.__file__)), str(theirs.fileno())],
                    pass_fds=(theirs.fileno(),),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    # Ctrl-Z stops the whole process group; the helper must not be stopped, so that it can report the
                    # stop.
                    start_new_session=True,
                )
            except OSError:
                ours.close()
                raise
        self._way = ours
        atexit.register(self.end)

    def end(self) -> None:
        """Ends the helper process, if there is one."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        way, process = self._way, self._process
        self._way = self._process = None
        if way is not None:
            way.close()
        if process is not None:
            process.kill()  # not SIGTERM, which the helper ignores
            process.wait()

    def forget(self) -> None:
        """Resets the state in a forked child, as the helper belongs to the parent."""
        if self._way is not None:
            self._way.close()  # otherwise the helper would not notice when the parent exits
        if self._process is not None:
            self._process.returncode = 0  # so that the child never waits for it
        self._way = self._process = None
        self._lock = threading.Lock()  # a thread of the parent may have held the lock at the fork


_heartbeats = _Heartbeats()
os.register_at_fork(after_in_child=_heartbeats.forget)


def ensure_running() -> None:
    """Starts the helper process if none runs. A running helper does not depend on threads of this process.

    Raises:
      OSError: the helper process cannot be started.
    """
    _heartbeats.ensure_running()


def add_connection(connection: socket.socket) -> None:
    """Passes a connection to the helper process, which sends heartbeats on it, and closes it here.

    Raises:
      OSError: no helper process runs, and none can be started.
    """
    # Heartbeats are sent without TLS: they reveal no more than anyone on the network sees from the connection itself.
    plain = socket.socket(fileno=connection.detach()) if isinstance(connection, ssl.SSLSocket) else connection
    with plain:
        _heartbeats.add_connection(plain)
