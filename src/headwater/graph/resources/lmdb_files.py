"""Reads the keys and values of an LMDB file, in the order of the keys, without the LMDB library.

The format is LMDB 0.9 (``lmdb.h``, ``mdb.c`` of OpenLDAP): pages, of which the first two describe the newest states of
the file; a B+ tree of branch and leaf pages; values that are too long for a leaf are on separate pages.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from headwater.errors import DataLossError, InvalidArgumentError

_MAGIC: Final = 0xBEEFC0DE
_HEADER: Final = 16
_BRANCH, _LEAF, _META = 0x01, 0x02, 0x08
_LONG, _SUBTREE, _SEVERAL = 0x01, 0x02, 0x04
_NONE: Final = 0xFFFFFFFFFFFFFFFF
_DATABASE = struct.Struct("<IHHQQQQQ")


def pairs(name: str) -> Iterator[tuple[bytes, bytes]]:
    """Yields each key with its value.

    Args:
      name: the file, or a folder with a file ``data.mdb``.

    Raises:
      InvalidArgumentError: the file is not an LMDB file. DataLossError: the file is damaged, or has several values for
      one key, which readers of records do not support.
    """
    path = Path(name)
    path = path / "data.mdb" if path.is_dir() else path
    with path.open("rb") as file:
        head = file.read(_HEADER + 4)
        if len(head) < _HEADER + 4 or struct.unpack_from("<I", head, _HEADER)[0] != _MAGIC:
            raise InvalidArgumentError(f"{name} is not an LMDB file")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                size, root = _newest(data)
                if root != _NONE:
                    yield from _walk(data, size, root, name, 0)
            except (struct.error, IndexError) as error:
                raise DataLossError(f"{name} is damaged: {error}") from error


def _newest(data: mmap.mmap) -> tuple[int, int]:
    """Returns the page size, and the root of the newer of the two states."""
    size = struct.unpack_from("<I", data, _HEADER + 24)[0]
    found: list[tuple[int, int]] = []
    for start in (0, size):
        if struct.unpack_from("<I", data, start + _HEADER)[0] != _MAGIC:
            continue
        main = _DATABASE.unpack_from(data, start + _HEADER + 24 + _DATABASE.size)
        transaction = struct.unpack_from("<Q", data, start + _HEADER + 24 + 2 * _DATABASE.size + 8)[0]
        found.append((transaction, main[-1]))
    # A writer replaces the two states in turn, so the state with the greater transaction number is newer and complete.
    return size, max(found)[1]


def _walk(data: mmap.mmap, size: int, number: int, name: str, depth: int) -> Iterator[tuple[bytes, bytes]]:
    start = number * size
    flags, lower = struct.unpack_from("<HH", data, start + 10)
    # Pages of a damaged file may refer to each other in a cycle.
    if depth > 64 or not flags & (_BRANCH | _LEAF) or (lower - _HEADER) % 2 or start + lower > len(data):
        raise DataLossError(f"{name} is damaged: page {number}")
    for offset in struct.unpack_from(f"<{(lower - _HEADER) // 2}H", data, start + _HEADER):
        low, high, kind, length = struct.unpack_from("<HHHH", data, start + offset)
        at = start + offset + 8
        if flags & _BRANCH:
            # In a branch, the fields that give length and kind of a leaf entry are a page number of 48 bits.
            yield from _walk(data, size, low | high << 16 | kind << 32, name, depth + 1)
            continue
        if kind & (_SUBTREE | _SEVERAL):
            raise DataLossError(f"{name} has several values for one key, or tables within the table")
        count, end = low | high << 16, at + length
        first = struct.unpack_from("<Q", data, end)[0] * size + _HEADER if kind & _LONG else end
        if first + count > len(data):
            raise DataLossError(f"{name} ends within a value")
        yield data[at:end], data[first : first + count]
