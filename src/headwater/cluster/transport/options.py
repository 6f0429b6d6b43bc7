"""Options of the transport between tasks."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.cluster.transport.frames import DEFAULT_MAX_PAYLOAD_BYTES
from headwater.errors import InvalidArgumentError


@dataclass(frozen=True, kw_only=True, slots=True)
class TransportOptions:
    """Limits and choices of a task's channels.

    Attributes:
      max_payload_bytes: maximum total size of the tensors of a frame, in bytes.
      handshake_s: how long a connection may take to authenticate, in seconds.
      max_unauthenticated: maximum number of unauthenticated connections; beyond it, old ones are dropped for new ones.
      max_control: maximum number of connections to the control plane.
      local_sockets: whether tasks on one machine use a Unix socket with shared memory.

    Raises:
      InvalidArgumentError: a limit is not positive.
    """

    max_payload_bytes: int = DEFAULT_MAX_PAYLOAD_BYTES
    handshake_s: float = 10.0
    max_unauthenticated: int = 128
    max_control: int = 1024
    local_sockets: bool = True

    def __post_init__(self) -> None:
        for name in ("max_payload_bytes", "handshake_s", "max_unauthenticated", "max_control"):
            if not getattr(self, name) > 0:
                raise InvalidArgumentError(f"{name} must be positive, not {getattr(self, name)!r}")
