"""Channels inside gRPC, as a stream of pieces in each direction, for networks that pass only gRPC.

Such channels are slower than sockets by an order of magnitude. Each end has a thread that receives, because a call that
waits for gRPC has no timeout and cannot be interrupted.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import grpc

from headwater.cluster.transport import control_pb2 as messages
from headwater.cluster.transport import frames
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Buffer
from headwater.cluster.transport.handshake import PeerIdentity
from headwater.cluster.transport.options import TransportOptions
from headwater.cluster.transport.problems import ConnectFailure, Problem
from headwater.cluster.transport.streaming import ByteStreamChannel, as_bytes
from headwater.errors import (
    AbortedError,
    CancelledError,
    FailedPreconditionError,
    InvalidArgumentError,
    UnavailableError,
)

_log = logging.getLogger("headwater")

_PIECE_BYTES = 1 << 20
#: Maximum number of queued pieces in each direction; then senders wait.
_MAX_PIECES = 8


class _Pieces:
    """A bounded queue of pieces between two threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._pieces: deque[bytes] = deque()
        self._ended = False

    def put(self, piece: bytes) -> bool:
        """Adds a piece once there is room; returns False if the queue has ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or len(self._pieces) < _MAX_PIECES)
            if not self._ended:
                self._pieces.append(piece)
                self._changed.notify_all()
            return not self._ended

    def get(self) -> bytes | None:
        """Waits for the next piece; returns None if the queue has ended and is empty."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or bool(self._pieces))
            if not self._pieces:
                return None
            piece = self._pieces.popleft()
            self._changed.notify_all()
            return piece

    def wait(self, timeout_s: float) -> bool:
        """Waits up to ``timeout_s`` seconds until `get` would not block; returns whether that is so."""
        with self._changed:
            return self._changed.wait_for(lambda: self._ended or bool(self._pieces), timeout_s)

    def end(self) -> None:
        """Ends the queue: no further pieces can be added; queued pieces can still be read."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    @property
    def ended(self) -> bool:
        return self._ended


class GrpcChannel(ByteStreamChannel):
    """A channel inside gRPC.

    Args:
      peer: see `Channel.peer`.
      peer_generation: see `Channel.peer_generation`.
      max_payload_bytes: refuse frames whose tensors take more than this.
      outgoing: the queue from which gRPC sends.
    """

    def __init__(self, *, peer: str, peer_generation: int, max_payload_bytes: int, outgoing: _Pieces) -> None:
        super().__init__(peer=peer, peer_generation=peer_generation, max_payload_bytes=max_payload_bytes)
        self._outgoing = outgoing
        self._incoming = _Pieces()
        self._piece = memoryview(b"")

    def receive_from(self, pieces: Iterable[object]) -> None:
        """Starts a thread that receives ``pieces`` from gRPC."""
        threading.Thread(target=self._receive, args=(pieces,), name=f"from {self.peer}", daemon=True).start()

    def _receive(self, pieces: Iterable[Any]) -> None:
        try:
            for piece in pieces:
                if not self._incoming.put(piece.data):
                    break
        except Exception as error:  # noqa: BLE001 - gRPC ends a server's requests with a bare Exception
            _log.debug("the channel to %s ended: %s", self.peer, error)
        self.lose()

    def lose(self) -> None:
        """Ends both directions."""
        self._incoming.end()
        self._outgoing.end()

    def _send_joined(self, data: bytes) -> None:
        if not self._outgoing.put(data):
            raise EOFError

    def _send_parts(self, parts: list[Buffer]) -> None:
        for part in parts:
            view = as_bytes(part)
            for start in range(0, len(view), _PIECE_BYTES):
                self._send_joined(bytes(view[start : start + _PIECE_BYTES]))

    def _receive_into(self, target: memoryview) -> int:
        while not self._piece:
            piece = self._incoming.get()
            if piece is None:
                raise EOFError
            self._piece = memoryview(piece)
        size = min(len(self._piece), len(target))
        target[:size] = self._piece[:size]
        self._piece = self._piece[size:]
        return size

    def _wait_readable(self, timeout_s: float) -> bool:
        return bool(self._piece) or self._incoming.wait(timeout_s)

    def peer_gone(self) -> bool:
        return self.closed or self._incoming.ended

    def _wake(self) -> None:
        self.lose()

    def _dispose(self) -> None:
        pass


def _outgoing(first: bytes, pieces: _Pieces) -> Iterator[object]:
    yield messages.Piece(data=first)
    while (piece := pieces.get()) is not None:
        yield messages.Piece(data=piece)


def open_grpc_channel(
    open_stream: Callable[[Iterator[Any]], Any],
    *,
    me: PeerIdentity,
    wanted: PeerIdentity,
    place: str,
    options: TransportOptions,
) -> Channel:
    """Opens the dialling end.

    Args:
      open_stream: calls ``Channels.Open`` with the pieces to send.
      me: this end.
      wanted: the expected task, ``""`` for any, and its generation, 0 for any.
      place: the other end's address, for messages.
      options: limits.

    Raises:
      grpc.RpcError: the call failed.
      ConnectFailure: the other end did not identify itself.
    """
    pieces = _Pieces()
    call = open_stream(_outgoing(frames.pack((me.task, me.generation, wanted.task, wanted.generation)), pieces))
    with contextlib.ExitStack() as on_failure:
        on_failure.callback(pieces.end)
        first = next(call, None)
        match frames.parse_header(first.data) if first is not None else ():
            case (str(task), int(generation)):
                on_failure.pop_all()
            case _:
                raise ConnectFailure(Problem.CLOSED, "it ended the channel immediately")
    channel = GrpcChannel(
        peer=f"{task} ({place})",
        peer_generation=generation,
        max_payload_bytes=options.max_payload_bytes,
        outgoing=pieces,
    )
    channel.receive_from(call)
    return channel


def serve_channel(
    pieces: Iterator[object],
    context: grpc.ServicerContext,
    *,
    me: PeerIdentity,
    on_channel: Callable[[Channel], None],
    options: TransportOptions,
) -> Iterator[object]:
    """Opens the accepting end; returns the pieces for gRPC to send.

    Args:
      pieces: the pieces from the other end.
      context: the context of the call.
      me: this end.
      on_channel: called with the channel in a new thread. The channel is closed when the call returns.
      options: limits.

    Raises:
      FailedPreconditionError: the other end expects another task.
      AbortedError: the other end expects another generation.
      InvalidArgumentError: the other end did not identify itself.
    """
    peer = _read_introduction(pieces, me)
    outgoing = _Pieces()
    channel = GrpcChannel(
        peer=f"{peer.task} (inside gRPC)",
        peer_generation=peer.generation,
        max_payload_bytes=options.max_payload_bytes,
        outgoing=outgoing,
    )
    if not context.add_callback(channel.lose):  # the call has ended already, and no callback will run
        channel.lose()
    channel.receive_from(pieces)

    def converse() -> None:
        with contextlib.closing(channel):
            try:
                on_channel(channel)
            except (UnavailableError, CancelledError) as error:  # the usual end of a channel
                _log.debug("%s: %s", me.task, error.message)
            except Exception:  # noqa: BLE001 - the error concerns this channel only; other channels continue
                _log.exception("%s gave up the channel to %s", me.task, channel.peer)

    threading.Thread(target=converse, name=f"{me.task} channel", daemon=True).start()
    return _outgoing(frames.pack((me.task, me.generation)), outgoing)


def _read_introduction(pieces: Iterator[object], me: PeerIdentity) -> PeerIdentity:
    first: Any = next(pieces, None)
    match frames.parse_header(first.data) if first is not None else ():
        case (str(task), int(generation), str(wanted), int(wanted_generation)):
            pass
        case _:
            raise InvalidArgumentError("a channel inside gRPC did not begin with the name of the calling task")
    if wanted and wanted != me.task:
        raise FailedPreconditionError(f"it is {me.task}, not {wanted}")
    if wanted_generation not in (0, me.generation):
        raise AbortedError(f"{me.task} is of generation {me.generation:x}, not {wanted_generation:x}: it was restarted")
    return PeerIdentity(task=task, generation=generation)
