"""Channels over sockets: TCP, Unix sockets, and TCP with TLS."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import struct
import threading
from collections.abc import Callable

from headwater.cluster.transport import frames
from headwater.cluster.transport.frames import Buffer
from headwater.cluster.transport.streaming import ByteStreamChannel, as_bytes

#: Maximum number of buffers of one ``sendmsg`` (IOV_MAX on Linux and macOS).
_MAX_BUFFERS = 1024
#: Receive timeouts shorter than this, in seconds, use poll in place of SO_RCVTIMEO.
_MIN_SOCKET_TIMEOUT_S = 1e-3
_TIMEVAL = struct.Struct("@ll")
#: Events of poll for a connection whose other end is closed; some systems report it only after the last byte was read.
_CLOSED_EVENTS = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR


class SocketChannel(ByteStreamChannel):
    """A channel over a connected stream socket.

    Args:
      sock: the socket after the handshake; the channel owns it from now on.
      peer: see `Channel.peer`.
      peer_generation: see `Channel.peer_generation`.
      max_payload_bytes: refuse frames whose tensors take more than this.
    """

    def __init__(
        self,
        sock: socket.socket,
        *,
        peer: str,
        peer_generation: int = 0,
        max_payload_bytes: int = frames.DEFAULT_MAX_PAYLOAD_BYTES,
    ) -> None:
        super().__init__(peer=peer, peer_generation=peer_generation, max_payload_bytes=max_payload_bytes)
        self._socket = sock
        self._readable = select.poll()
        self._readable.register(sock, select.POLLIN)
        self._going = select.poll()
        # POLLIN is not polled: unread data of the other end does not matter here.
        self._going.register(sock, _CLOSED_EVENTS)
        self._limit_s = 0.0  # the kernel's receive timeout (SO_RCVTIMEO); 0 for none
        sock.settimeout(None)
        # Frames are sent whole, so Nagle's algorithm would only delay the last packet of each.
        if sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _notice_vanished_machines(sock)

    def _send_joined(self, data: bytes) -> None:
        self._socket.sendall(data)

    def _send_parts(self, parts: list[Buffer]) -> None:
        for first in range(0, len(parts), _MAX_BUFFERS):
            views = [as_bytes(part) for part in parts[first : first + _MAX_BUFFERS]]
            while views:  # one call may send a part of the buffers only
                sent = self._socket.sendmsg(views)
                done = 0
                while done < len(views) and sent >= len(views[done]):
                    sent -= len(views[done])
                    done += 1
                del views[:done]
                if sent:
                    views[0] = views[0][sent:]

    def _receive_into(self, target: memoryview) -> int:
        while True:
            try:
                received = self._socket.recv_into(target)
            except BlockingIOError:  # the timeout set by `_receive_first`
                continue
            if not received:
                raise EOFError
            return received

    def _wait_readable(self, timeout_s: float) -> bool:
        return bool(self._readable.poll(max(0.0, timeout_s) * 1000))

    def _receive_first(self, timeout_s: float | None) -> bool:
        if timeout_s is None:
            self._start, self._end = 0, self._receive_into(self._chunk_view)
            return True
        if timeout_s < _MIN_SOCKET_TIMEOUT_S:
            return super()._receive_first(timeout_s)
        if timeout_s != self._limit_s:  # usually unchanged: a receive with a timeout saves a call of poll
            seconds, rest = divmod(timeout_s, 1)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _TIMEVAL.pack(int(seconds), int(1e6 * rest)))
            self._limit_s = timeout_s
        try:
            received = self._socket.recv_into(self._chunk)
        except BlockingIOError:
            return False
        if not received:
            raise EOFError
        self._start, self._end = 0, received
        return True

    def peer_gone(self) -> bool:
        return self.closed or self._socket.fileno() < 0 or bool(self._going.poll(0))

    def _wake(self) -> None:
        with contextlib.suppress(OSError):
            # SSLSocket.shutdown would change the TLS state while another thread reads.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _dispose(self) -> None:
        self._socket.close()


class TlsChannel(SocketChannel):
    """A channel over TLS."""

    _socket: ssl.SSLSocket

    def __init__(
        self,
        sock: ssl.SSLSocket,
        *,
        peer: str,
        peer_generation: int = 0,
        max_payload_bytes: int = frames.DEFAULT_MAX_PAYLOAD_BYTES,
    ) -> None:
        super().__init__(sock, peer=peer, peer_generation=peer_generation, max_payload_bytes=max_payload_bytes)
        # OpenSSL allows one call at a time for a connection, so no call may block: waits are done outside the lock.
        sock.setblocking(False)
        self._one_call = threading.Lock()

    def _send_joined(self, data: bytes) -> None:
        self._send_parts([data])

    def _send_parts(self, parts: list[Buffer]) -> None:
        for part in parts:
            view = as_bytes(part)
            while view:
                view = view[self._when_ready(lambda view=view: self._socket.send(view)) :]

    def _receive_into(self, target: memoryview) -> int:
        received = self._when_ready(lambda: self._socket.recv_into(target))
        if not received:
            raise EOFError
        return received

    def _when_ready(self, call: Callable[[], int]) -> int:
        while True:
            try:
                with self._one_call:
                    return call()
            except ssl.SSLWantReadError:
                wanted = select.POLLIN
            except ssl.SSLWantWriteError:
                wanted = select.POLLOUT
            poll = select.poll()
            poll.register(self._socket, wanted)
            poll.poll()

    def _receive_first(self, timeout_s: float | None) -> bool:
        return ByteStreamChannel._receive_first(self, timeout_s)

    def _wait_readable(self, timeout_s: float) -> bool:
        # poll does not see data that OpenSSL has decrypted already.
        return self._socket.pending() > 0 or super()._wait_readable(timeout_s)


def _notice_vanished_machines(sock: socket.socket) -> None:
    # A process that exits closes its connections; a machine that loses power or network does not. Send keepalive probes
    # after 5 s of silence, every 2 s, 3 times.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
