"""Numbers of variable length: seven bits a byte, the lowest first, the top bit set on all but the last byte.

Source: https://protobuf.dev/programming-guides/encoding/#varints.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def encode(value: int) -> bytes:
    """Encodes ``value``, which is at least 0, as a varint."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def decode(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Decodes the 64-bit varint at ``position`` of ``data``; returns it with the position after it.

    Raises:
      ValueError: it does not end before ``end``, or is longer than ten bytes.
    """
    value = shift = 0
    while position < end and shift < 70:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise ValueError("a number does not end")


def decode_all(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """Decodes all varints in ``data`` at once.

    Raises:
      ValueError: the last one does not end, or one is longer than ten bytes.
    """
    last = data < 0x80
    if not data.size:
        return np.zeros(0, np.uint64)
    if last.all():
        return data.astype(np.uint64)
    if not last[-1]:
        raise ValueError("the last number does not end")
    ends = np.flatnonzero(last)
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts + 1
    if lengths.max() > 10:
        raise ValueError("a number is longer than ten bytes")
    shifts = 7 * (np.arange(data.size) - np.repeat(starts, lengths))
    return np.bitwise_or.reduceat((data & 0x7F).astype(np.uint64) << shifts.astype(np.uint64), starts)
