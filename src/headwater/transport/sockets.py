"""Channels over sockets: TCP, Unix sockets, and TCP with TLS."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import threading
from collections.abc import Callable
from typing import NoReturn, cast

import numpy as np

from headwater.transport import frames
from headwater.transport.buffers import BufferPool
from headwater.transport.channel import ChannelStatistics, closed_here, closed_there, nothing_came
from headwater.transport.frames import Buffer, Encoded, Frame, Prefix

#: What one call to receive asks for, in bytes. A frame that fits comes with a single call; its tensors are copied out.
CHUNK_BYTES = 1 << 16
#: Frames up to this size, in bytes, are joined and sent with a single call.
_JOIN_BYTES = 1 << 16
#: How many buffers one ``sendmsg`` takes (IOV_MAX on Linux and macOS).
_MAX_BUFFERS = 1024
#: What poll says of a connection whose other end is closed; not every system tells before the last byte was read.
_GONE = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR


class SocketChannel:
    """A channel over a connected stream socket.

    Args:
      sock: connected and past its handshake; the channel owns it from now on.
      peer: see `Channel.peer`.
      peer_generation: see `Channel.peer_generation`.
      max_payload_bytes: refuse frames whose tensors take more than this.
    """

    #: Prefix flags that `_payload` understands.
    known_flags = 0

    def __init__(
        self,
        sock: socket.socket,
        *,
        peer: str,
        peer_generation: int = 0,
        max_payload_bytes: int = frames.DEFAULT_MAX_PAYLOAD_BYTES,
    ) -> None:
        self.peer = peer
        self.peer_generation = peer_generation
        self.closed = False
        self._max_payload_bytes = max_payload_bytes
        self._socket = sock
        self._readable = select.poll()
        self._readable.register(sock, select.POLLIN)
        self._sending = False
        self._receiving = False
        self._chunk = bytearray(CHUNK_BYTES)
        self._chunk_view = memoryview(self._chunk)
        self._start: int = 0  # of what was received into the chunk and not used yet
        self._end: int = 0
        self._buffers = BufferPool()
        self._frames_sent = 0
        self._bytes_sent = 0
        self._frames_received = 0
        self._bytes_received = 0
        sock.settimeout(None)
        if sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _notice_vanished_machines(sock)

    def send(self, frame: Frame) -> None:
        self._sending = True
        try:
            if self.closed:
                raise closed_here(self.peer)
            encoded = frames.encode(frame)
            try:
                self._bytes_sent += self._send_encoded(encoded)
            except BaseException as error:  # noqa: BLE001 - re-raised by _lost, whatever it is
                self._lost(error)
            self._frames_sent += 1
        finally:
            self._sending = False
            if self.closed:
                self.close()

    def _send_encoded(self, encoded: Encoded) -> int:
        """Sends a frame; how many bytes that took."""
        head = b"".join((encoded.prefix(), encoded.header, encoded.layout))
        size = len(head) + encoded.payload_bytes
        if size <= _JOIN_BYTES:
            self._socket.sendall(b"".join((head, *encoded.body)))
        else:
            self._send_parts([head, *encoded.body])
        return size

    def _send_parts(self, parts: list[Buffer]) -> None:
        for first in range(0, len(parts), _MAX_BUFFERS):
            views = [as_bytes(part) for part in parts[first : first + _MAX_BUFFERS]]
            while views:
                sent = self._socket.sendmsg(views)
                done = 0
                while done < len(views) and sent >= len(views[done]):
                    sent -= len(views[done])
                    done += 1
                del views[:done]
                if sent:
                    views[0] = views[0][sent:]

    def recv(self, timeout_s: float | None = None) -> Frame:
        self._receiving = True
        try:
            if self.closed:
                raise closed_here(self.peer)
            try:
                nothing = timeout_s is not None and self._start == self._end and not self._wait_readable(timeout_s)
                if not nothing:
                    return self._recv()
            except BaseException as error:  # noqa: BLE001 - re-raised by _lost, whatever it is
                self._lost(error)
            assert timeout_s is not None
            raise nothing_came(self.peer, timeout_s)
        finally:
            self._receiving = False
            if self.closed:
                self.close()

    def _recv(self) -> Frame:
        self._have(frames.PREFIX_SIZE)
        prefix = frames.parse_prefix(
            self._chunk, self._start, max_payload_bytes=self._max_payload_bytes, known_flags=self.known_flags
        )
        self._start += frames.PREFIX_SIZE
        _, kind, header_bytes, layout_bytes, payload_bytes, _ = prefix
        meta_bytes = header_bytes + layout_bytes
        if meta_bytes <= CHUNK_BYTES:
            self._have(meta_bytes)
            meta = self._chunk_view[self._start : self._start + meta_bytes]
            self._start += meta_bytes
        else:
            meta = memoryview(bytearray(meta_bytes))
            self._fill(meta)
        header = frames.parse_header(meta[:header_bytes])
        layout = frames.parse_layout(bytes(meta[header_bytes:]), payload_bytes)
        tensors = frames.decode_tensors(layout, self._payload(prefix)) if layout.tensors else ()
        self._frames_received += 1
        self._bytes_received += frames.PREFIX_SIZE + meta_bytes + payload_bytes
        return Frame(kind, header, tensors)

    def _payload(self, prefix: Prefix) -> Buffer:
        """The payload that follows, in memory that is used for nothing else while an array refers to it."""
        payload_bytes = prefix.payload_bytes
        if payload_bytes <= CHUNK_BYTES:
            self._have(payload_bytes)
            start = self._start
            self._start += payload_bytes
            return bytearray(self._chunk_view[start : start + payload_bytes])
        buffer = self._buffers.take(payload_bytes)
        self._fill(as_bytes(buffer)[:payload_bytes])
        return buffer

    def _have(self, nbytes: int) -> None:
        """Receives until the chunk holds ``nbytes`` that were not used yet."""
        if self._end - self._start >= nbytes:
            return
        if self._start + nbytes > CHUNK_BYTES or self._start == self._end:
            unused = self._chunk[self._start : self._end]
            self._start, self._end = 0, len(unused)
            self._chunk[: self._end] = unused
        while self._end - self._start < nbytes:
            self._end += self._receive_into(self._chunk_view[self._end :])

    def _fill(self, target: memoryview) -> None:
        """Fills ``target`` with what comes next."""
        at = min(self._end - self._start, len(target))
        target[:at] = self._chunk_view[self._start : self._start + at]
        self._start += at
        while at < len(target):
            at += self._receive_into(target[at:])

    def _receive_into(self, target: memoryview) -> int:
        received = self._socket.recv_into(target)
        if not received:
            raise EOFError
        return received

    def _wait_readable(self, timeout_s: float) -> bool:
        return bool(self._readable.poll(max(0.0, timeout_s) * 1000))

    def peer_gone(self) -> bool:
        if self.closed:
            return True
        poll = select.poll()
        # Not asking for POLLIN: what the other end sent before it went is not to be looked at here.
        poll.register(self._socket, _GONE)
        return bool(poll.poll(0))

    def _lost(self, error: BaseException) -> NoReturn:
        """Closes this end after ``error``: what follows on the socket cannot be told from what was cut off."""
        by_us = self.closed
        self.close()
        if by_us and isinstance(error, (OSError, EOFError, ValueError)):
            raise closed_here(self.peer) from None
        if isinstance(error, EOFError):
            raise closed_there(self.peer) from None
        if isinstance(error, OSError):
            raise closed_there(self.peer, error.strerror or str(error)) from error
        raise error

    def close(self) -> None:
        self.closed = True
        with contextlib.suppress(OSError):
            # Not the method of an SSLSocket: that one would pull the TLS state from under whoever reads.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
        # A thread that is about to use the descriptor must not find a stranger's there: it closes when it has woken up.
        if not (self._sending or self._receiving):
            self._socket.close()

    def statistics(self) -> ChannelStatistics:
        return ChannelStatistics(
            frames_sent=self._frames_sent,
            bytes_sent=self._bytes_sent,
            frames_received=self._frames_received,
            bytes_received=self._bytes_received,
        )


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
        # OpenSSL does not take two calls for one connection at once, so no call may wait: waiting is done outside.
        sock.setblocking(False)
        self._one_call = threading.Lock()

    def _send_encoded(self, encoded: Encoded) -> int:
        head = b"".join((encoded.prefix(), encoded.header, encoded.layout))
        size = len(head) + encoded.payload_bytes
        parts = [head, *encoded.body]
        for part in [b"".join(parts)] if size <= _JOIN_BYTES else parts:
            view = as_bytes(part)
            while view:
                view = view[self._when_ready(lambda view=view: self._socket.send(view)) :]
        return size

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

    def _wait_readable(self, timeout_s: float) -> bool:
        # What OpenSSL has decrypted already is invisible to poll.
        return self._socket.pending() > 0 or super()._wait_readable(timeout_s)


def tcp_pair(*, max_payload_bytes: int = frames.DEFAULT_MAX_PAYLOAD_BYTES) -> tuple[SocketChannel, SocketChannel]:
    """Two ends of a channel over TCP on the loopback interface, without a handshake: for tests and benchmarks."""
    with socket.create_server(("127.0.0.1", 0), backlog=1) as listening:
        first = socket.create_connection(listening.getsockname())
        second, _ = listening.accept()
    return (
        SocketChannel(first, peer="the second end", max_payload_bytes=max_payload_bytes),
        SocketChannel(second, peer="the first end", max_payload_bytes=max_payload_bytes),
    )


def as_bytes(buffer: Buffer) -> memoryview:
    """``buffer``, which lies in one piece, as bytes. (`memoryview` alone knows neither bfloat16 nor empty shapes.)"""
    if isinstance(buffer, (np.ndarray, np.generic)):
        buffer = cast(Buffer, buffer.reshape(-1).view(np.uint8))
    return memoryview(buffer)


def _notice_vanished_machines(sock: socket.socket) -> None:
    # A process that dies closes its connections; a machine that loses power or network does not. Ask after 5 s of
    # silence, every 2 s, 3 times.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
