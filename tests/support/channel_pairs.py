"""Both ends of a channel within one process, without a handshake."""

from __future__ import annotations

import socket

from headwater.cluster.transport import frames
from headwater.cluster.transport.shared import SharedMemoryChannel, make_lane, receive_lane
from headwater.cluster.transport.sockets import SocketChannel


def tcp_pair(*, max_payload_bytes: int = frames.DEFAULT_MAX_PAYLOAD_BYTES) -> tuple[SocketChannel, SocketChannel]:
    """Returns the ends of a channel over TCP on loopback."""
    with socket.create_server(("127.0.0.1", 0), backlog=1) as listening:
        first = socket.create_connection(listening.getsockname())
        second, _ = listening.accept()
    return (
        SocketChannel(first, peer="the second end", max_payload_bytes=max_payload_bytes),
        SocketChannel(second, peer="the first end", max_payload_bytes=max_payload_bytes),
    )


def shared_memory_pair(
    *, max_payload_bytes: int = frames.DEFAULT_MAX_PAYLOAD_BYTES
) -> tuple[SharedMemoryChannel, SharedMemoryChannel]:
    """Returns the ends of a channel through shared memory."""
    first, second = socket.socketpair()
    lane = make_lane(first)
    return (
        SharedMemoryChannel(first, lane, peer="the second end", max_payload_bytes=max_payload_bytes),
        SharedMemoryChannel(second, receive_lane(second), peer="the first end", max_payload_bytes=max_payload_bytes),
    )
