"""A network connection to a task that a test can interrupt and restore."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_PIECE = 1 << 16


class Relay:
    """Forwards bytes in both directions while the relay is not cut.

    Args:
      target: the ``host:port`` to which connections are forwarded.

    Attributes:
      address: the relay's own ``host:port``.
    """

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = host, int(port)
        self._whole = threading.Event()
        self._whole.set()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = [self._listening]
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Stops forwarding, without closing connections, as in a network partition."""
        self._whole.clear()

    def heal(self) -> None:
        """Resumes forwarding, beginning with the bytes that have arrived meanwhile."""
        self._whole.set()

    def drop(self) -> None:
        """Closes the present connections. Bytes that the relay has not forwarded yet are lost."""
        present = self._sockets[1:]
        del self._sockets[1 : len(present) + 1]
        self._close(present)

    def stop(self) -> None:
        """Closes all connections."""
        self._whole.set()
        self._close(self._sockets)

    @staticmethod
    def _close(sockets: list[socket.socket]) -> None:
        for sock in sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                self._sockets.append(near)
                threading.Thread(target=self._pass_on, args=(near,), daemon=True).start()

    def _pass_on(self, near: socket.socket) -> None:
        self._whole.wait()
        with contextlib.suppress(OSError):
            far = socket.create_connection(self._target)
            self._sockets.append(far)
            threading.Thread(target=self._pump, args=(far, near), daemon=True).start()
            self._pump(near, far)

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                data = source.recv(_PIECE)
                self._whole.wait()
                if not data:
                    sink.shutdown(socket.SHUT_WR)
                    return
                sink.sendall(data)


@contextmanager
def relay(target: str) -> Iterator[Relay]:
    """Context manager for a relay."""
    made = Relay(target)
    try:
        yield made
    finally:
        made.stop()
