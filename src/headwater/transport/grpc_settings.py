"""What the two ends of the control plane have in common."""

from __future__ import annotations

#: Trailing metadata that marks a status as ours, and not one that gRPC made up on the way.
OURS = ("headwater-error", "1")

#: gRPC's own limits and habits, at both ends.
COMMON_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_send_message_length", (1 << 31) - 1),
    ("grpc.max_receive_message_length", (1 << 31) - 1),
    ("grpc.max_metadata_size", 1 << 16),
    ("grpc.absolute_max_metadata_size", 1 << 17),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
)
