"""What can be set about how tasks talk."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.cluster.transport.frames import DEFAULT_MAX_PAYLOAD_BYTES
from headwater.errors import InvalidArgumentError


@dataclass(frozen=True, kw_only=True, slots=True)
class TransportOptions:
    """Limits and choices of a task's channels.

    Attributes:
      max_payload_bytes: the largest tensors, taken together, that a frame may bring, in bytes.
      handshake_s: how long a stranger may take to say who it is, in seconds.
      max_strangers: connections that have not said who they are yet; further ones wait.
      max_control: connections to the control plane at the same time.
      local_sockets: whether tasks on one machine talk over a Unix socket with shared memory.

    Raises:
      InvalidArgumentError: a limit is not positive.
    """

    max_payload_bytes: int = DEFAULT_MAX_PAYLOAD_BYTES
    handshake_s: float = 10.0
    max_strangers: int = 128
    max_control: int = 1024
    local_sockets: bool = True

    def __post_init__(self) -> None:
        for name in ("max_payload_bytes", "handshake_s", "max_strangers", "max_control"):
            if not getattr(self, name) > 0:
                raise InvalidArgumentError(None, None, f"{name} must be positive, not {getattr(self, name)!r}")
