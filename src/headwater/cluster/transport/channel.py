"""Channels: how two tasks exchange frames.

A `Channel` is one end. It is used by one conversation at a time, blocks, and has no thread of its own. One thread may
send while another receives; two may not do the same. While one end sends a frame that is larger than what the network
buffers, the other must receive: two ends that both only send large frames wait for each other.

Implementations: `headwater.cluster.transport.sockets` (TCP, TLS, Unix sockets), `headwater.cluster.transport.shared`
(Unix sockets with shared memory), `headwater.cluster.transport.streams` (a gRPC stream), and `memory_pair` here, within
a process.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Protocol

from headwater.cluster.transport import frames
from headwater.cluster.transport.frames import Frame
from headwater.errors import CancelledError, DeadlineExceededError, UnavailableError


@dataclass(frozen=True, kw_only=True, slots=True)
class ChannelStatistics:
    """What went through one end of a channel so far.

    Attributes:
      frames_sent: whole frames.
      frames_received: whole frames.
      bytes_sent: in bytes, prefixes and shared memory included.
      bytes_received: in bytes, prefixes and shared memory included.
    """

    frames_sent: int = 0
    frames_received: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0


class Channel(Protocol):
    """One end of a conversation between two tasks.

    Attributes:
      peer_generation: the generation of the task at the other end; 0 where it has none. Of a channel to one of two
        copies of a task it is that of the task.
    """

    peer_generation: int

    @property
    def peer(self) -> str:
        """Who is at the other end, for people: task and address."""
        ...

    @property
    def closed(self) -> bool:
        """Whether this end was closed, by `close` or by an error that no frame can follow."""
        ...

    def send(self, frame: Frame) -> None:
        """Sends ``frame``; when this returns, its arrays may change.

        Raises:
          InvalidArgumentError: no frame can be like that; the channel stays as it was.
          UnavailableError: the other end is gone; the channel is closed.
          CancelledError: this end was closed.
        """
        ...

    def recv(self, timeout_s: float | None = None) -> Frame:
        """Waits for the next frame.

        Args:
          timeout_s: how long to wait for a frame to begin, in seconds; None is for ever, 0 looks only.

        Raises:
          DeadlineExceededError: none began in that time; the channel stays as it was.
          UnavailableError: the other end is gone; the channel is closed.
          InvalidArgumentError: what came is no frame; the channel is closed.
          ResourceExhaustedError: there is no memory for what came; the channel is closed.
          CancelledError: this end was closed.
        """
        ...

    def sends_at_once(self, payload_bytes: int) -> bool:
        """Whether `send` would not wait for the other end to receive, for a frame whose tensors take so much."""
        ...

    def peer_gone(self) -> bool:
        """Whether this end is closed, or the other end has closed or died. Does not wait and does not receive; an
        operation that blocks on behalf of the other end asks now and then."""
        ...

    def close(self) -> None:
        """Ends the conversation. May be called from any thread, and again; threads that block in this end are woken."""
        ...

    def break_off(self, reason: str) -> None:
        """Like `close`, for when the other end is known to be gone though the channel does not show it: a thread that
        uses this end gets UnavailableError with ``reason``."""
        ...

    def statistics(self) -> ChannelStatistics:
        """What went through this end so far."""
        ...


def closed_here(peer: str, reason: str) -> CancelledError | UnavailableError:
    """The error for using an end after its `close`, or with a reason after its `break_off`."""
    if reason:
        return closed_there(peer, reason)
    return CancelledError(None, None, f"the channel to {peer} was closed at this end")


def closed_there(peer: str, reason: str = "the other end closed it") -> UnavailableError:
    """The error for losing the other end."""
    return UnavailableError(None, None, f"the channel to {peer} is gone: {reason}")


def nothing_came(peer: str, timeout_s: float) -> DeadlineExceededError:
    """The error for a `Channel.recv` that waited in vain."""
    return DeadlineExceededError(None, None, f"nothing came from {peer} within {timeout_s:g} s")


class MemoryChannel:
    """An end of a channel within this process; see `memory_pair`.

    A frame is encoded and decoded like on any other channel, so that the ends share no array and what could not be
    sent over a network cannot be sent here.
    """

    def __init__(
        self,
        *,
        peer: str,
        peer_generation: int,
        incoming: SimpleQueue[bytes | None],
        outgoing: SimpleQueue[bytes | None],
        ended: threading.Event,
        max_payload_bytes: int,
    ) -> None:
        self.peer = peer
        self.peer_generation = peer_generation
        self.closed = False
        self._reason = ""
        self._incoming = incoming
        self._outgoing = outgoing
        self._ended = ended
        self._max_payload_bytes = max_payload_bytes
        self._sent = [0, 0]
        self._received = [0, 0]

    def send(self, frame: Frame) -> None:
        if self.closed:
            raise closed_here(self.peer, self._reason)
        encoded = frames.encode(frame)
        if self._ended.is_set():
            self.close()
            raise closed_there(self.peer)
        data = b"".join([encoded.prefix(), encoded.header, encoded.layout, *encoded.body])
        self._outgoing.put(data)
        self._sent[0] += 1
        self._sent[1] += len(data)

    def recv(self, timeout_s: float | None = None) -> Frame:
        if self.closed:
            raise closed_here(self.peer, self._reason)
        try:
            data = self._incoming.get(timeout=timeout_s if timeout_s is None else max(0.0, timeout_s))
        except Empty:
            assert timeout_s is not None
            raise nothing_came(self.peer, timeout_s) from None
        if data is None:
            here = self.closed
            self.close()
            raise closed_here(self.peer, self._reason) if here else closed_there(self.peer)
        self._received[0] += 1
        self._received[1] += len(data)
        try:
            return frames.decode(data, max_payload_bytes=self._max_payload_bytes)
        except Exception:
            self.close()
            raise

    def sends_at_once(self, payload_bytes: int) -> bool:
        del payload_bytes
        return True

    def peer_gone(self) -> bool:
        return self.closed or self._ended.is_set()

    def close(self) -> None:
        if not self.closed:
            self.closed: bool = True
            self._ended.set()
            self._outgoing.put(None)
            self._incoming.put(None)

    def break_off(self, reason: str) -> None:
        self._reason = reason
        self.close()

    def statistics(self) -> ChannelStatistics:
        return ChannelStatistics(
            frames_sent=self._sent[0],
            bytes_sent=self._sent[1],
            frames_received=self._received[0],
            bytes_received=self._received[1],
        )


def memory_pair(
    peers: tuple[str, str] = ("the other end", "the other end"),
    *,
    generations: tuple[int, int] = (0, 0),
    max_payload_bytes: int = frames.DEFAULT_MAX_PAYLOAD_BYTES,
) -> tuple[MemoryChannel, MemoryChannel]:
    """Two ends of a channel within this process.

    Args:
      peers: what the first end calls its peer, and what the second does.
      generations: `Channel.peer_generation` of the first end and of the second.
      max_payload_bytes: the largest payload either end takes, in bytes.
    """
    there: SimpleQueue[bytes | None] = SimpleQueue()
    back: SimpleQueue[bytes | None] = SimpleQueue()
    ended = threading.Event()
    first = MemoryChannel(
        peer=peers[0],
        peer_generation=generations[0],
        incoming=back,
        outgoing=there,
        ended=ended,
        max_payload_bytes=max_payload_bytes,
    )
    second = MemoryChannel(
        peer=peers[1],
        peer_generation=generations[1],
        incoming=there,
        outgoing=back,
        ended=ended,
        max_payload_bytes=max_payload_bytes,
    )
    return first, second
