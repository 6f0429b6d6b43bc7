"""Sorted tables of byte strings: the format of a checkpoint's ``.index`` file, and of whole checkpoints of format V1.

::

    table  = data block*, metaindex block (empty), index block, footer
    block  = entry*, uint32 restart offset*, uint32 number of restarts; then its trailer
    entry  = varint bytes shared with the previous key, varint further bytes of the key, varint bytes of the value,
             the further bytes of the key, the value
    trailer = compression (1 byte: 0 for none, 1 for Snappy), uint32 masked CRC-32C of block and compression
    footer = handles (varint offset, varint size) of metaindex and index, filled up to 40 bytes; magic number (8 bytes)

The index has one entry for each data block: a key not before the block's last, and the block's handle. All numbers are
little-endian. Source: https://github.com/google/leveldb/blob/main/doc/table_format.md, with TensorFlow's block size.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator, Mapping
from typing import Final

from headwater.data.io import crc32c, snappy, varint
from headwater.data.io.files import Path, open_file, translated
from headwater.errors import DataLossError, UnimplementedError

_MAGIC: Final = 0xDB4775248B80FB57
_FOOTER_BYTES: Final = 48
_TRAILER: Final = struct.Struct("<BI")
_UNCOMPRESSED: Final = 0
_SNAPPY: Final = 1
_BLOCK_BYTES: Final = 256 << 10
"""Size in bytes at which a block is ended."""
_RESTART_INTERVAL: Final = 16
"""Number of entries after which a key is written in full again."""


def read_table(path: Path) -> list[tuple[bytes, bytes]]:
    """Reads all entries of a table file, in the order of their keys.

    Raises:
      NotFoundError: there is no such file.
      DataLossError: the file is damaged.
      UnimplementedError: the blocks have a compression other than Snappy.
    """
    with translated(path) as name, open_file(path, "rb") as stream:
        data = stream.read()
    return list(_Table(name, data).items())


class _Table:
    def __init__(self, path: str, data: bytes) -> None:
        self._path = path
        self._data = data

    def _damage(self, what: str, offset: int) -> DataLossError:
        return DataLossError(f"{self._path}: {what} at offset {offset}")

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        data = self._data
        footer = len(data) - _FOOTER_BYTES
        if footer < 0:
            raise self._damage(f"the table is cut off, its {len(data)} bytes are fewer than a footer's", 0)
        if int.from_bytes(data[-8:], "little") != _MAGIC:
            raise self._damage("this is not a table, or its end is missing: wrong magic number", len(data) - 8)
        metaindex, position = self._handle(data, footer, len(data) - 8, footer)
        index, _ = self._handle(data, position, len(data) - 8, footer)
        if _footer(b"".join(map(varint.encode, (*metaindex, *index)))) != data[footer:]:
            raise self._damage("the footer is damaged", footer)
        self._block(*metaindex)
        last: bytes | None = None
        for _, handle in self._entries(*index):
            block, _ = self._handle(handle, 0, len(handle), index[0])
            for key, value in self._entries(*block):
                if last is not None and key <= last:
                    raise self._damage(f"key {key!r} is not in order", block[0])
                yield key, value
                last = key

    def _handle(self, data: bytes, position: int, end: int, offset: int) -> tuple[tuple[int, int], int]:
        """Returns the (offset, size) of the block in the handle at ``position``, and the position after it."""
        try:
            start, position = varint.decode(data, position, end)
            size, position = varint.decode(data, position, end)
        except ValueError as error:
            raise self._damage("the place of a block is damaged", offset) from error
        if start + size + _TRAILER.size > len(self._data) - _FOOTER_BYTES:
            raise self._damage(f"the place of a block (offset {start}, {size} bytes) is outside the file", offset)
        return (start, size), position

    def _block(self, offset: int, size: int) -> bytes:
        end = offset + size
        compression, crc = _TRAILER.unpack_from(self._data, end)
        if crc32c.masked(self._data[offset : end + 1]) != crc:
            raise self._damage(f"a block of {size} bytes is damaged", offset)
        if compression not in (_UNCOMPRESSED, _SNAPPY):
            raise UnimplementedError(f"{self._path}: the block at offset {offset} is compressed (kind {compression})")
        block = self._data[offset:end]
        if compression == _UNCOMPRESSED:
            return block
        try:
            return snappy.decompress(block)
        except ValueError as error:
            raise self._damage(f"a compressed block of {size} bytes is damaged: {error}", offset) from error

    def _entries(self, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
        block = self._block(offset, size)
        size = len(block)
        restarts = int.from_bytes(block[-4:], "little") if size >= 4 else 0
        end = size - 4 - 4 * restarts
        if size < 4 or end < 0:
            raise self._damage("a block's list of restarts is damaged", offset)
        position = 0
        key = b""
        while position < end:
            try:
                shared, start = varint.decode(block, position, end)
                further, start = varint.decode(block, start, end)
                length, start = varint.decode(block, start, end)
            except ValueError as error:
                raise self._damage("an entry is damaged", offset + position) from error
            value = start + further
            position = value + length
            if shared > len(key) or position > end:
                raise self._damage("an entry is damaged", offset + start)
            key = key[:shared] + block[start:value]
            yield key, block[value:position]


def build_table(entries: Mapping[bytes, bytes]) -> bytes:
    """Returns the bytes of a table file with ``entries``."""
    keys = sorted(entries)
    table = bytearray()
    index = _BlockBuilder(restart_interval=1)
    block = _BlockBuilder(_RESTART_INTERVAL)
    for key, following in itertools.zip_longest(keys, keys[1:]):
        block.add(key, entries[key])
        if following is None or block.size >= _BLOCK_BYTES:
            handle = _append_block(table, block)
            index.add(_successor(key) if following is None else _separator(key, following), handle)
            block = _BlockBuilder(_RESTART_INTERVAL)
    handles = _append_block(table, _BlockBuilder(_RESTART_INTERVAL)) + _append_block(table, index)
    return bytes(table + _footer(handles))


def _footer(handles: bytes) -> bytes:
    return handles.ljust(_FOOTER_BYTES - 8, b"\0") + _MAGIC.to_bytes(8, "little")


class _BlockBuilder:
    def __init__(self, restart_interval: int) -> None:
        self._interval = restart_interval
        self._entries = bytearray()
        self._restarts = [0]
        self._since_restart = 0
        self._last_key = b""

    @property
    def size(self) -> int:
        """Present size of the block in bytes."""
        return len(self._entries) + 4 * len(self._restarts) + 4

    def add(self, key: bytes, value: bytes) -> None:
        shared = 0
        if self._since_restart < self._interval:
            shared = _shared(self._last_key, key)
        else:
            self._restarts.append(len(self._entries))
            self._since_restart = 0
        self._entries += varint.encode(shared) + varint.encode(len(key) - shared) + varint.encode(len(value))
        self._entries += key[shared:] + value
        self._last_key = key
        self._since_restart += 1

    def finish(self) -> bytes:
        return bytes(self._entries) + struct.pack(f"<{len(self._restarts) + 1}I", *self._restarts, len(self._restarts))


def _append_block(table: bytearray, block: _BlockBuilder) -> bytes:
    """Appends a block with its trailer to ``table``; returns its handle."""
    content = block.finish()
    handle = varint.encode(len(table)) + varint.encode(len(content))
    table += content + _TRAILER.pack(_UNCOMPRESSED, crc32c.masked(content + bytes([_UNCOMPRESSED])))
    return handle


def _shared(a: bytes, b: bytes) -> int:
    """Returns the length of the common prefix of ``a`` and ``b``."""
    count = 0
    for left, right in zip(a, b, strict=False):
        if left != right:
            break
        count += 1
    return count


def _separator(key: bytes, following: bytes) -> bytes:
    """Returns a short key that sorts not before ``key``, and before ``following``."""
    shared = _shared(key, following)
    if shared < min(len(key), len(following)) and key[shared] + 1 < following[shared]:
        return key[:shared] + bytes([key[shared] + 1])
    return key


def _successor(key: bytes) -> bytes:
    """Returns a short key that sorts not before ``key``."""
    for position, byte in enumerate(key):
        if byte != 0xFF:
            return key[:position] + bytes([byte + 1])
    return key
