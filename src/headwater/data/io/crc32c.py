"""The checksum of records and checkpoints: CRC-32C, masked.

A checksum that is stored beside its data is *masked*: rotated right by 15 bits, plus a constant. So the checksum of
data that contain checksums remains effective. Source: the LevelDB log format,
https://github.com/google/leveldb/blob/main/doc/log_format.md.
"""

from __future__ import annotations

from typing import Any, Final

import google_crc32c

_library: Any = google_crc32c  # it ships no types

MASK_DELTA: Final = 0xA282EAD8


def value(data: object) -> int:
    """Returns the CRC-32C of ``data``: `bytes`, or a C-contiguous NumPy array (not copied)."""
    return _library.value(data)


def extend(crc: int, data: object) -> int:
    """Returns the CRC-32C of bytes with the CRC-32C ``crc``, followed by ``data``."""
    return _library.extend(crc, data)


def mask(crc: int) -> int:
    """Returns the form in which ``crc`` is stored."""
    return (((crc >> 15) | (crc << 17)) + MASK_DELTA) & 0xFFFFFFFF


def unmask(masked: int) -> int:
    """Inverts `mask`."""
    rotated = (masked - MASK_DELTA) & 0xFFFFFFFF
    return ((rotated >> 17) | (rotated << 15)) & 0xFFFFFFFF


def masked(data: object) -> int:
    """Returns `mask` of the `value` of ``data``."""
    return mask(value(data))
