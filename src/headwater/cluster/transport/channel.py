"""Channels, on which two tasks exchange frames.

A `Channel` is one end. It is used by one conversation at a time, blocks, and has no thread of its own. One thread may
send while another receives; two threads must not both send, or both receive. While one end sends a frame that is larger
than the network's buffers, the other must receive: two ends that both only send large frames deadlock.

Implementations: `headwater.cluster.transport.sockets` (TCP, TLS, Unix sockets), `headwater.cluster.transport.shared`
(Unix sockets with shared memory), `headwater.cluster.transport.grpc_channel` (a gRPC stream), and `memory_pair` here,
within a process.
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
    """Traffic of one end of a channel so far.

    Attributes:
      frames_sent, frames_received: whole frames.
      bytes_sent, bytes_received: including prefixes and shared memory.
    """

    frames_sent: int = 0
    frames_received: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0


class Channel(Protocol):
    """One end of a channel between two tasks.

    Attributes:
      peer_generation: the generation of the task at the other end; 0 if it has none. If the task is replicated, the
        generation of the task, not of the replica's process.
    """

    peer_generation: int

    @property
    def peer(self) -> str:
        """The task and address of the other end, for messages."""
        ...

    @property
    def closed(self) -> bool:
        """Whether this end was closed, by `close` or by an unrecoverable error."""
        ...

    def send(self, frame: Frame) -> None:
        """Sends ``frame``. After the return, the caller may change the arrays in it.

        Raises:
          InvalidArgumentError: the frame is invalid; the channel stays usable.
          UnavailableError: the other end has disconnected; the channel is closed.
          CancelledError: this end was closed.
        """
        ...

    def recv(self, timeout_s: float | None = None) -> Frame:
        """Waits for the next frame.

        Args:
          timeout_s: how long to wait for a frame to begin, in seconds; None waits without limit, 0 only polls.

        Raises:
          DeadlineExceededError: no frame began in that time; the channel stays usable.
          UnavailableError: the other end has disconnected; the channel is closed.
          InvalidArgumentError: the received data are not a frame; the channel is closed.
          ResourceExhaustedError: there is no memory for the frame; the channel is closed.
          CancelledError: this end was closed.
        """
        ...

    def sends_at_once(self, payload_bytes: int) -> bool:
        """Returns whether `send`, for a payload of this size, returns without waiting for the other end to receive."""
        ...

    def peer_gone(self) -> bool:
        """Returns whether this end is closed, or the other end has closed or exited. Neither waits nor receives.

        Code that blocks while it serves the other end calls this method regularly.
        """
        ...

    def close(self) -> None:
        """Closes the channel and wakes threads that block in it. Thread-safe and idempotent."""
        ...

    def break_off(self, reason: str) -> None:
        """Closes the channel because the other end is known to be lost, although the connection does not show it.

        Threads that use this end get UnavailableError with ``reason``, not CancelledError.
        """
        ...

    def statistics(self) -> ChannelStatistics:
        """Returns the traffic of this end so far."""
        ...


def closed_here(peer: str, reason: str) -> CancelledError | UnavailableError:
    """Returns the error for use of an end after `close` (empty ``reason``) or after `break_off`."""
    if reason:
        return closed_there(peer, reason)
    return CancelledError(f"the channel to {peer} was closed at this end")


def closed_there(peer: str, reason: str = "the other end closed it") -> UnavailableError:
    """Returns the error for the loss of the other end."""
    return UnavailableError(f"the channel to {peer} is gone: {reason}")


def receive_timeout_error(peer: str, timeout_s: float) -> DeadlineExceededError:
    """Returns the error for a `Channel.recv` that timed out."""
    return DeadlineExceededError(f"nothing arrived from {peer} within {timeout_s:g} s")


class MemoryChannel:
    """An end of a channel within this process; see `memory_pair`.

    Frames are encoded and decoded as on any other channel, so that the ends share no array, and frames that are invalid
    on a network are invalid here.
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
        # Encode even within a process: the ends must not share arrays, and invalid frames must fail here as on a
        # network.
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
            raise receive_timeout_error(self.peer, timeout_s) from None
        # None wakes this thread after either end was closed.
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
            # Wake a thread that waits for a frame, at either end.
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
    """Returns the two ends of a channel within this process.

    Args:
      peers: `Channel.peer` of the first end and of the second.
      generations: `Channel.peer_generation` of the first end and of the second.
      max_payload_bytes: the largest payload that either end accepts, in bytes.
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
