"""Settings shared by both ends of the control plane."""

from __future__ import annotations

#: Trailing metadata that marks a status as set by Headwater, not by gRPC itself.
OWN_STATUS = ("headwater-error", "1")

#: The largest message, in bytes: a graph with its constants, such as a whole training set of images. Tensors of steps
#: are sent on channels, which have their own limit.
MAX_MESSAGE_BYTES = 512 << 20

#: gRPC options of both ends.
COMMON_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_metadata_size", 1 << 16),
    ("grpc.absolute_max_metadata_size", 1 << 17),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
)
