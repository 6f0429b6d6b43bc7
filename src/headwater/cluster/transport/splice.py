"""Forwarding of a connection to another server, byte for byte."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Callable

_PIECE_BYTES = 1 << 18
#: Maximum number of pieces moved in one call, so that other connections are served in between.
_MAX_PIECES = 8


class _Direction:
    """Bytes from one socket to the other; at most one piece is held."""

    def __init__(self, source: socket.socket, target: socket.socket, held: bytes = b"") -> None:
        self.source = source
        self.target = target
        self.held = memoryview(held)
        self.ended = False

    def move(self) -> bool:
        """Moves bytes without blocking, up to `_MAX_PIECES`; returns whether this direction is finished."""
        for _ in range(_MAX_PIECES):
            if self.held:
                try:
                    self.held = self.held[self.target.send(self.held) :]
                except BlockingIOError:
                    return False
            elif self.ended:
                return True
            else:
                try:
                    data = self.source.recv(_PIECE_BYTES)
                except BlockingIOError:
                    return False
                if not data:
                    self.ended = True
                    self.target.shutdown(socket.SHUT_WR)  # the other direction may still carry data
                self.held = memoryview(data)
        return False


class Splice:
    """Two connections joined, driven by the selector of their owner.

    Args:
      selector: the selector of the sockets. The data of its keys are functions to call on events.
      candidate: the accepted connection.
      server: a connection to the server.
      first: bytes that were read from ``candidate`` already.
      on_end: called once, when both connections are closed.

    Attributes:
      closed: whether both connections are closed.
    """

    def __init__(
        self,
        selector: selectors.BaseSelector,
        candidate: socket.socket,
        server: socket.socket,
        first: bytes,
        on_end: Callable[[Splice], None],
    ) -> None:
        self._selector = selector
        self._sockets = (candidate, server)
        self._directions = (_Direction(candidate, server, first), _Direction(server, candidate))
        self._on_end = on_end
        self.closed = False
        for sock in self._sockets:
            sock.setblocking(False)
            selector.register(sock, selectors.EVENT_READ, self.move)
        self.move()  # no event reports the bytes that were read already

    def move(self) -> None:
        """Moves bytes without blocking, and registers for the events that allow more."""
        if self.closed:
            return
        try:
            finished = [direction.move() for direction in self._directions]
        except OSError:  # one of the two connections is broken, so close both
            self.close()
            return
        if all(finished):
            self.close()
            return
        for sock in self._sockets:
            self._watch(sock)

    def _watch(self, sock: socket.socket) -> None:
        events = 0
        # Read only while no piece is held: so a slow receiver slows the sender down, and the memory is limited.
        for direction in self._directions:
            if direction.source is sock and not direction.held and not direction.ended:
                events |= selectors.EVENT_READ
            if direction.target is sock and direction.held:
                events |= selectors.EVENT_WRITE
        known = self._selector.get_map().get(sock.fileno())
        if known is None and events:
            self._selector.register(sock, events, self.move)
        elif known is not None and not events:
            self._selector.unregister(sock)
        elif known is not None and known.events != events:
            self._selector.modify(sock, events, self.move)

    def close(self) -> None:
        """Closes both connections. Idempotent."""
        if self.closed:
            return
        self.closed: bool = True
        for sock in self._sockets:
            if sock.fileno() in self._selector.get_map():
                self._selector.unregister(sock)
            sock.close()
        self._on_end(self)
