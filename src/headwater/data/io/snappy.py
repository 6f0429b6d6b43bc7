"""Decompression of Snappy data.

::

    data    = varint bytes of the result, element*
    element = literal: tag, further bytes of the length, the bytes themselves
            | copy: tag, bytes of the offset; repeats bytes of the result, from this offset before its end

The two lowest bits of a tag are its kind: 0 literal, 1 to 3 copies with offsets of 1, 2 and 4 bytes. Source:
https://github.com/google/snappy/blob/main/format_description.txt.
"""

from __future__ import annotations

from typing import Final

from headwater.data.io import varint

_LITERAL: Final = 0
_NEAR: Final = 1
_OFFSET_BYTES: Final = {2: 2, 3: 4}
_LONG_LITERAL: Final = 60
_MAX_RATIO: Final = 64
"""The strongest compression: a copy of three bytes yields at most 64. So a greater size of the result is damage, and no
memory is allocated for it."""


def decompress(data: bytes) -> bytes:
    """Decompresses ``data``.

    Raises:
      ValueError: the data are damaged.
    """
    size, position = varint.decode(data, 0, len(data))
    if size > _MAX_RATIO * len(data):
        raise ValueError(f"{len(data)} compressed bytes cannot hold {size}")
    result = bytearray()
    while position < len(data):
        tag = data[position]
        kind, length, offset = tag & 3, (tag >> 2) + 1, 0
        position += 1
        if kind == _LITERAL:
            if length > _LONG_LITERAL:
                more = length - _LONG_LITERAL
                length = int.from_bytes(data[position : position + more], "little") + 1
                position += more
            result += data[position : position + length]
            position += length
        else:
            more = 1 if kind == _NEAR else _OFFSET_BYTES[kind]
            offset = int.from_bytes(data[position : position + more], "little")
            position += more
            if kind == _NEAR:
                offset, length = offset + (tag >> 5 << 8), (tag >> 2 & 7) + 4
            if not 0 < offset <= len(result):
                raise ValueError(f"a copy from {offset} bytes before the first")
            part = result[len(result) - offset :][:length]
            # A copy may overlap its own result: a repeating pattern.
            result += (part * -(-length // len(part)))[:length]
        if position > len(data) or len(result) > size:
            raise ValueError("an element reaches past the end")
    if len(result) != size:
        raise ValueError(f"{len(result)} bytes in place of {size}")
    return bytes(result)
