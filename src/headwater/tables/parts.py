"""Files with a table's rows on one task: *parts* of a save.

A part is::

    magic | length, header (JSON), checksum | pieces | end piece

A piece is a count of rows, their words (key, use, and the second word of a string's key), their values with the
optimizer's state, and a checksum of all of it. A delta begins with a piece of removed keys. The end piece has the total
number of rows, so that a truncated file is detected.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from headwater.data.io import crc32c, files
from headwater.errors import DataLossError
from headwater.tables.compiled import Reals, Words

_MAGIC: Final = b"HWTABLE1"
_MAX_HEADER: Final = 16 << 20
_LENGTH: Final = struct.Struct("<I")
_PIECE: Final = struct.Struct("<BQ")
#: Kinds of pieces.
ROWS, GONE, END = 0, 1, 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A part, as listed in a save.

    Attributes:
      file: the name of the file within the folder.
      rows: the number of rows in the part.
      gone: the number of removed keys in the part.
      nbytes: the size of the file, in bytes.
    """

    file: str
    rows: int
    gone: int
    nbytes: int


def write_header(file: files.AtomicFile, header: Mapping[str, object]) -> int:
    """Writes the header of a part; returns the number of bytes."""
    packed = json.dumps(header).encode()
    file.write(_MAGIC + _LENGTH.pack(len(packed)) + packed + _LENGTH.pack(crc32c.masked(packed)))
    return len(_MAGIC) + 2 * _LENGTH.size + len(packed)


def write_piece(file: files.AtomicFile, kind: int, count: int, *arrays: NDArray[Any]) -> int:
    """Writes a piece of ``count`` rows; returns the number of bytes."""
    head = _PIECE.pack(kind, count)
    file.write(head)
    crc = crc32c.value(head)
    size = len(head) + _LENGTH.size
    for array in arrays:
        whole = np.ascontiguousarray(array)
        file.write(whole.data if whole.size else b"")
        crc = crc32c.extend(crc, whole)
        size += whole.nbytes
    file.write(_LENGTH.pack(crc32c.mask(crc)))
    return size


class PartReader:
    """Reads a part; every checksum is checked.

    Args:
      path: the path of the file.

    Attributes:
      step: the number of updates before the save.
      rate: the learning rate.
      rates: factors of the last updates; may be empty.

    Raises:
      NotFoundError, DataLossError: the file does not exist, or is damaged.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = files.open_file(path, "rb")
        try:
            if self._read(len(_MAGIC)) != _MAGIC:
                raise DataLossError(f"{path} is not a part of a table")
            (length,) = _LENGTH.unpack(self._read(4))
            if length > _MAX_HEADER:
                raise DataLossError(f"{path} is damaged: a header cannot have {length} bytes")
            packed = self._read(length)
            if _LENGTH.unpack(self._read(4))[0] != crc32c.masked(packed):
                raise DataLossError(f"{path}: the checksum of its header is wrong")
            self.header: Mapping[str, Any] = json.loads(packed)
        except BaseException:
            self.close()
            raise
        self.step = int(self.header["step"])
        self.rate: float = float(self.header["rate"])
        self.rates: list[float] = cast(list[float], self.header["rates"])
        self._words = 3 if self.header["strings"] else 2
        self._width = int(self.header["dim"]) * (1 + int(self.header["slots"]))

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def __enter__(self) -> PartReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def expect(self, **values: object) -> None:
        """Raises DataLossError if the header has different values than the save."""
        for name, value in values.items():
            if self.header[name] != value:
                raise DataLossError(f"{self.path}: {name} is {self.header[name]} in the file, {value} in the save")

    def _read(self, count: int) -> bytes:
        data = self._file.read(count)
        if len(data) != count:
            raise DataLossError(f"{self.path}: the file is truncated")
        return data

    def pieces(self) -> Generator[tuple[int, Words, Reals]]:
        """Yields the kind of each piece (rows or removed keys), words [n, words], and values [n, width]."""
        total = 0
        while True:
            head = self._read(_PIECE.size)
            crc = crc32c.value(head)
            kind, count = _PIECE.unpack(head)
            arrays: list[bytes] = []
            if kind != END:
                sizes = (16 * count,) if kind == GONE else (8 * self._words * count, 4 * self._width * count)
                for size in sizes:
                    arrays.append(self._read_large(size))
                    crc = crc32c.extend(crc, arrays[-1])
            if _LENGTH.unpack(self._read(4))[0] != crc32c.mask(crc):
                raise DataLossError(f"{self.path}: a checksum is wrong after {total} rows")
            if kind == END:
                if count != total:
                    raise DataLossError(f"{self.path} is damaged: it has {total} rows instead of {count}")
                return
            if kind == GONE:
                yield kind, np.frombuffer(arrays[0], np.int64).reshape(count, 2), np.empty((count, 0), np.float32)
            else:
                total += count
                words = np.frombuffer(arrays[0], np.int64).reshape(count, self._words)
                yield kind, words, np.frombuffer(arrays[1], np.float32).reshape(count, self._width)

    def _read_large(self, size: int) -> bytes:
        """Reads in pieces, so that a damaged length cannot cause an allocation that is larger than the file."""
        pieces: list[bytes] = []
        while size:
            pieces.append(self._read(min(size, 16 << 20)))
            size -= len(pieces[-1])
        return b"".join(pieces)
