"""Frames on a stream of bytes: the base of channels over sockets and over gRPC."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NoReturn, cast

import numpy as np

from headwater.cluster.transport import frames
from headwater.cluster.transport.buffers import BufferPool
from headwater.cluster.transport.channel import ChannelStatistics, closed_here, closed_there, receive_timeout_error
from headwater.cluster.transport.frames import Buffer, Encoded, Frame, Prefix

#: Size of one receive, in bytes. A frame that fits is received with a single call, and its tensors are copied.
CHUNK_BYTES = 1 << 16
#: Frames up to this size, in bytes, are joined and sent with a single call.
JOIN_BYTES = 1 << 16
#: Each time a channel has sent this many frames, it frees memory that it no longer uses.
CLEANUP_INTERVAL_FRAMES = 256


class ByteStreamChannel(ABC):
    """A channel over a stream of bytes.

    Args:
      peer: see `Channel.peer`.
      peer_generation: see `Channel.peer_generation`.
      max_payload_bytes: refuse frames whose tensors take more than this.
    """

    #: Prefix flags that this kind of channel understands.
    known_flags = 0
    #: Frames whose payload takes at most this number of bytes are sent in one piece.
    joins_up_to = JOIN_BYTES // 2

    def __init__(self, *, peer: str, peer_generation: int, max_payload_bytes: int) -> None:
        self.peer = peer
        self.peer_generation = peer_generation
        self.closed = False
        self._reason = ""
        self._max_payload_bytes = max_payload_bytes
        self._sending = False
        self._receiving = False
        self._chunk = bytearray(CHUNK_BYTES)
        self._chunk_view = memoryview(self._chunk)
        self._start: int = 0  # the start of the unused received bytes in the chunk
        self._end: int = 0
        self._buffers = BufferPool()
        self._frames_sent = 0
        self._bytes_sent = 0
        self._frames_received = 0
        self._bytes_received = 0

    # The stream. All methods but the last three may raise OSError, EOFError or ValueError when the stream ends.

    @abstractmethod
    def _send_joined(self, data: bytes) -> None:
        """Sends a small frame."""

    @abstractmethod
    def _send_parts(self, parts: list[Buffer]) -> None:
        """Sends a large frame."""

    @abstractmethod
    def _receive_into(self, target: memoryview) -> int:
        """Receives bytes to the start of ``target``; returns their number. Raises EOFError at the end of the stream."""

    @abstractmethod
    def _wait_readable(self, timeout_s: float) -> bool:
        """Waits up to ``timeout_s`` seconds until `_receive_into` would not block; returns whether that is so."""

    @abstractmethod
    def peer_gone(self) -> bool: ...

    @abstractmethod
    def _wake(self) -> None:
        """Wakes threads that block in this channel. Thread-safe and idempotent."""

    @abstractmethod
    def _dispose(self) -> None:
        """Releases the stream, after the last use by a thread. Idempotent."""

    # The interface of channels

    def send(self, frame: Frame) -> None:
        self._sending = True
        try:
            if self.closed:
                raise closed_here(self.peer, self._reason)
            # Every `CLEANUP_INTERVAL_FRAMES` frames take the slower path, in which a channel may free unused memory.
            data = (
                frames.encode_joined(frame, self.joins_up_to) if self._frames_sent % CLEANUP_INTERVAL_FRAMES else None
            )
            encoded = frames.encode(frame) if data is None else None
            try:
                if encoded is not None:
                    self._bytes_sent += self._send_encoded(encoded)
                elif data is not None:
                    self._send_joined(data)
                    self._bytes_sent += len(data)
            except BaseException as error:  # noqa: BLE001 - re-raised by _fail, whatever it is
                self._fail(error)
            self._frames_sent += 1
        finally:
            self._sending = False
            if self.closed:
                self.close()

    def _send_encoded(self, encoded: Encoded, flags: int = 0, slot: int = 0) -> int:
        """Sends a frame; returns the number of bytes sent."""
        head = b"".join((encoded.prefix(flags, slot), encoded.header, encoded.layout))
        size = len(head) + encoded.payload_bytes
        if size <= JOIN_BYTES:
            self._send_joined(b"".join((head, *encoded.body)))
        else:
            self._send_parts([head, *encoded.body])
        return size

    def sends_at_once(self, payload_bytes: int) -> bool:
        return payload_bytes < JOIN_BYTES

    def recv(self, timeout_s: float | None = None) -> Frame:
        self._receiving = True
        try:
            if self.closed:
                raise closed_here(self.peer, self._reason)
            try:
                if self._start != self._end or self._receive_first(timeout_s):
                    decoded = frames.decode_whole(self._chunk_view, self._start, self._end, self._max_payload_bytes)
                    if decoded is None:
                        return self._recv()
                    frame, stop = decoded
                    self._frames_received += 1
                    self._bytes_received += stop - self._start
                    self._start = stop
                    return frame
            except BaseException as error:  # noqa: BLE001 - re-raised by _fail, whatever it is
                self._fail(error)
            assert timeout_s is not None
            raise receive_timeout_error(self.peer, timeout_s)
        finally:
            self._receiving = False
            if self.closed:  # another thread has called `close`, which leaves the disposal to this thread
                self.close()

    def _receive_first(self, timeout_s: float | None) -> bool:
        """Receives the first bytes of a frame into the empty chunk; returns False if none arrived in time."""
        if timeout_s is not None and not self._wait_readable(timeout_s):
            return False
        self._start, self._end = 0, self._receive_into(self._chunk_view)
        return True

    def _recv(self) -> Frame:
        if self._end - self._start < frames.PREFIX_SIZE:
            self._receive_at_least(frames.PREFIX_SIZE)
        prefix = frames.parse_prefix(
            self._chunk, self._start, max_payload_bytes=self._max_payload_bytes, known_flags=self.known_flags
        )
        self._start += frames.PREFIX_SIZE
        if prefix.flags:
            self._process_flags(prefix)
        _, kind, header_bytes, layout_bytes, payload_bytes, _ = prefix
        meta_bytes = header_bytes + layout_bytes
        if meta_bytes <= CHUNK_BYTES:
            if self._end - self._start < meta_bytes:
                self._receive_at_least(meta_bytes)
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

    def _process_flags(self, prefix: Prefix) -> None:  # noqa: B027 - most kinds of channel know no such flag
        """Processes flags of the prefix that do not concern the payload."""

    def _payload(self, prefix: Prefix) -> Buffer:
        """Receives the payload into memory that is not reused while an array refers to it."""
        payload_bytes = prefix.payload_bytes
        if payload_bytes <= CHUNK_BYTES:
            if self._end - self._start < payload_bytes:
                self._receive_at_least(payload_bytes)
            start = self._start
            self._start += payload_bytes
            return bytearray(self._chunk_view[start : start + payload_bytes])  # a copy, as the chunk is reused
        buffer = self._buffers.acquire(payload_bytes)
        self._fill(as_bytes(buffer)[:payload_bytes])
        return buffer

    def _receive_at_least(self, nbytes: int) -> None:
        """Receives until the chunk has at least ``nbytes`` of unread bytes."""
        if self._start + nbytes > CHUNK_BYTES or self._start == self._end:
            unused = self._chunk[self._start : self._end]
            self._start, self._end = 0, len(unused)
            self._chunk[: self._end] = unused
        while self._end - self._start < nbytes:
            self._end += self._receive_into(self._chunk_view[self._end :])

    def _fill(self, target: memoryview) -> None:
        """Fills ``target`` with the next bytes."""
        at = min(self._end - self._start, len(target))
        target[:at] = self._chunk_view[self._start : self._start + at]
        self._start += at
        while at < len(target):
            at += self._receive_into(target[at:])

    def _fail(self, error: BaseException) -> NoReturn:
        """Closes this end after ``error``, as the start of the next frame is unknown, and raises an error for it."""
        by_us = self.closed
        self.close()
        if by_us and isinstance(error, (OSError, EOFError, ValueError)):
            raise closed_here(self.peer, self._reason) from None
        if isinstance(error, EOFError):
            raise closed_there(self.peer) from None
        if isinstance(error, OSError):
            raise closed_there(self.peer, error.strerror or str(error)) from error
        raise error

    def close(self) -> None:
        self.closed: bool = True
        self._wake()
        # Do not close a descriptor that another thread is about to use: its number could be reused for another file.
        # That thread closes the descriptor after it has woken up.
        if not (self._sending or self._receiving):
            self._dispose()

    def break_off(self, reason: str) -> None:
        self._reason = reason
        self.close()

    def statistics(self) -> ChannelStatistics:
        return ChannelStatistics(
            frames_sent=self._frames_sent,
            bytes_sent=self._bytes_sent,
            frames_received=self._frames_received,
            bytes_received=self._bytes_received,
        )


def as_bytes(buffer: Buffer) -> memoryview:
    """Returns the bytes of a contiguous buffer. (`memoryview` alone supports neither bfloat16 nor empty shapes.)"""
    if isinstance(buffer, (np.ndarray, np.generic)):
        buffer = cast(Buffer, buffer.reshape(-1).view(np.uint8))
    return memoryview(buffer)
