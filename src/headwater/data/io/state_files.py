"""Files with the state of a ``ps``: *full* ones, and *deltas* with the changes since the previous file.

A file is::

    magic | length, header (JSON), checksum | pieces | end piece

A piece consists of its head (kind, array or table, offset or number of rows, number of bytes), the bytes, and a
checksum of both. The end piece contains the number of pieces, so that a truncated file is noticed. Checksums are masked
CRC-32C. A file is written atomically, and its name is durable when it appears.

Files are numbered from 1. A delta changes the file with the previous number, whose random id it contains; a full file
with the deltas that follow is a *chain*.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from headwater.data.io import crc32c, files
from headwater.errors import DataLossError, OpError

MAGIC: Final = b"HWSTATE1"
_LENGTH: Final = struct.Struct("<I")
_HEAD: Final = struct.Struct("<BIQQ")
_CHUNK, _ROWS, _END = 0, 1, 2
_NAME: Final = re.compile(r"(\d{8,})\.(full|delta)")
_UNFINISHED: Final = re.compile(r"\.\d{8,}\.(full|delta)\.[0-9a-f]+\.tmp")

Array = NDArray[Any]
Bytes = NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True, slots=True)
class Spec:
    """Description of an array of a state.

    Attributes:
      name: the array's name, for errors.
      dtype: NumPy's name of the element type.
      shape: the array's shape.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize

    @staticmethod
    def of(name: str, array: Array) -> Spec:
        return Spec(name=name, dtype=str(array.dtype), shape=tuple(array.shape))


@dataclass(frozen=True, kw_only=True, slots=True)
class Header:
    """Header of a file.

    Attributes:
      number: the file's number; later files have higher numbers.
      id: the file's random id.
      base: id of the previous file, which this file changes; 0 for a full file.
      at: time of the state, in seconds since 1970.
      signature: digest of the layout of the parameters.
      facts: numbers and texts of the state.
      arrays: descriptions of all arrays of the state.
    """

    number: int
    id: int
    base: int
    at: float
    signature: str
    facts: Mapping[str, Any]
    arrays: Sequence[Spec]

    def to_bytes(self) -> bytes:
        arrays = [[one.name, one.dtype, list(one.shape)] for one in self.arrays]
        fields = {name: getattr(self, name) for name in ("number", "id", "base", "at", "signature", "facts")}
        return json.dumps({**fields, "arrays": arrays}, separators=(",", ":")).encode()

    @staticmethod
    def of(data: bytes) -> Header:
        """Parses the result of `to_bytes`; raises ValueError, TypeError or KeyError if it is malformed."""
        fields: dict[str, Any] = json.loads(data)
        arrays = [
            Spec(name=str(name), dtype=str(dtype), shape=tuple(map(int, shape)))
            for name, dtype, shape in fields["arrays"]
        ]
        return Header(
            number=int(fields["number"]),
            id=int(fields["id"]),
            base=int(fields["base"]),
            at=float(fields["at"]),
            signature=str(fields["signature"]),
            facts=dict(fields["facts"]),
            arrays=arrays,
        )


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes of array number ``array``, beginning at byte ``at``."""

    array: int
    at: int
    data: Bytes


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of table number ``table``: their numbers, then the bytes of each part of the table, one after another."""

    table: int
    numbers: NDArray[np.int64]
    data: Bytes

    def split(self, parts: Sequence[tuple[str, tuple[int, ...]]]) -> list[Array]:
        """Splits the bytes into the rows of each part, given the dtype and the shape of a row of each."""
        found: list[Array] = []
        at = 0
        for dtype, shape in parts:
            nbytes = len(self.numbers) * int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
            found.append(self.data[at : at + nbytes].view(dtype).reshape(len(self.numbers), *shape))
            at += nbytes
        if at != len(self.data):
            raise ValueError(f"{len(self.data)} bytes of {len(self.numbers)} rows were received, but {at} are required")
        return found


class StateWriter:
    """Writes a file, as a context manager; the file appears at the end of the context.

    Args:
      folder: folder of the file.
      header: the file's header.

    Attributes:
      nbytes: number of bytes written so far.

    Raises:
      OpError: the file cannot be written; also from all methods and from the end of the context.
    """

    def __init__(self, folder: str, header: Header) -> None:
        kind = "delta" if header.base else "full"
        self.path: str = os.path.join(folder, f"{header.number:08d}.{kind}")
        self.nbytes: int = 0
        self._pieces = 0
        self._header = header.to_bytes()
        self._file = files.atomic_write(self.path)

    def __enter__(self) -> StateWriter:
        packed = self._header
        self._write(MAGIC + _LENGTH.pack(len(packed)), packed, _LENGTH.pack(crc32c.masked(packed)))
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        try:
            if kind is None:
                self._piece(_END, 0, self._pieces, ())
        except BaseException:
            self._file.discard()
            raise
        self._file.__exit__(kind, *error)

    def chunk(self, array: int, at: int, data: Bytes) -> None:
        """Writes bytes of an array."""
        self._piece(_CHUNK, array, at, (data,))

    def rows(self, table: int, numbers: NDArray[np.int64], parts: Sequence[Array]) -> None:
        """Writes rows of a table."""
        self._piece(_ROWS, table, len(numbers), [bytes_of(array) for array in (numbers.astype(np.int64), *parts)])

    def _piece(self, kind: int, which: int, where: int, data: Sequence[Bytes]) -> None:
        head = _HEAD.pack(kind, which, where, sum(map(len, data)))
        crc = crc32c.value(head)
        for part in data:
            crc = crc32c.extend(crc, part)
        self._write(head, *data, _LENGTH.pack(crc32c.mask(crc)))
        self._pieces += 1

    def _write(self, *data: Any) -> None:
        for part in data:
            if len(part):
                self._file.write(part)
            self.nbytes += len(part)


def bytes_of(array: Array) -> Bytes:
    """Returns the bytes of an array; a view, unless it is not contiguous."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


class StateReader:
    """Reads a file, as a context manager, and checks every checksum.

    Args:
      path: path of the file.

    Attributes:
      header: the file's header.

    Raises:
      OpError: the file cannot be read; DataLossError: it is damaged.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._file: BinaryIO = files.open_file(path, "rb")
        self._at = 0
        self._size = files.stat(path).length
        try:
            self.header: Header = self._read_header()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> StateReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _read_header(self) -> Header:
        start = self._read(len(MAGIC) + _LENGTH.size)
        if start[: len(MAGIC)] != MAGIC:
            raise self._damaged("it is not the saved state of a ps")
        (length,) = _LENGTH.unpack_from(start, len(MAGIC))
        packed = self._read(length)
        if _LENGTH.unpack(self._read(_LENGTH.size)) != (crc32c.masked(packed),):
            raise self._damaged("the checksum of its header is wrong")
        try:
            return Header.of(packed)
        except (ValueError, TypeError, KeyError) as error:
            raise self._damaged(f"its header cannot be parsed: {error}") from error

    def pieces(self) -> Iterator[Chunk | Rows]:
        """Yields all pieces, in order."""
        count = 0
        while True:
            head = self._read(_HEAD.size)
            kind, which, where, nbytes = _HEAD.unpack(head)
            data = np.frombuffer(self._read(nbytes), np.uint8)
            crc = crc32c.extend(crc32c.value(head), data)
            if _LENGTH.unpack(self._read(_LENGTH.size)) != (crc32c.mask(crc),):
                raise self._damaged(f"the checksum of piece {count} is wrong")
            if kind == _CHUNK:
                yield Chunk(which, where, data)
            elif kind == _ROWS and 8 * where <= len(data):
                yield Rows(which, data[: 8 * where].view(np.int64), data[8 * where :])
            elif kind == _END and where == count:
                return
            else:
                raise self._damaged(f"piece {count} is of no known kind")
            count += 1

    def _read(self, count: int) -> bytes:
        if count > self._size - self._at:  # a damaged length must not make us allocate memory
            raise self._damaged("it was cut off")
        with files.translated(self.path):
            data = self._file.read(count)
        if len(data) < count:
            raise self._damaged("it was cut off")
        self._at += count
        return data

    def _damaged(self, why: str) -> DataLossError:
        return DataLossError(f"{self.path}: {why}, near byte {self._at}")


# Folders --------------------------------------------------------------------------------------------------------------


def numbered(folder: str) -> list[tuple[int, str]]:
    """Returns the files of a folder with their numbers, ascending."""
    if not files.isdir(folder):
        return []
    found = [(int(match[1]), name) for name in files.listdir(folder) if (match := _NAME.fullmatch(name))]
    return sorted(found)


def remove(folder: str, *, before: int | None = None) -> None:
    """Removes files with smaller numbers than ``before``, or all.

    Files are removed in the order of their numbers, so a full file before its deltas. If this is interrupted, the
    remaining deltas cannot be used, and no wrong state is read.
    """
    for number, name in numbered(folder):
        if before is None or number < before:
            files.remove(os.path.join(folder, name))


def remove_unfinished(folder: str) -> None:
    """Removes temporary files that a killed process left. Such files remain only if the file system does not support
    unnamed files."""
    for name in files.listdir(folder) if files.isdir(folder) else ():
        if _UNFINISHED.fullmatch(name):
            files.remove(os.path.join(folder, name))


@dataclass(frozen=True, kw_only=True, slots=True)
class Chain:
    """A full file with the valid deltas that follow it.

    Attributes:
      paths: paths of the files.
      headers: headers of the files.
      problems: descriptions of newer files that cannot be used.
    """

    paths: tuple[str, ...]
    headers: tuple[Header, ...]
    problems: tuple[str, ...] = ()

    @property
    def last(self) -> Header:
        return self.headers[-1]

    def arrays(self) -> list[Array]:
        """Reads the arrays of the state."""
        held: dict[Spec, Bytes] = {}
        found: list[Bytes] = []
        for path in self.paths:
            with StateReader(path) as reader:
                # An array with another shape than before is stored completely in this file.
                specs = reader.header.arrays
                found = [held[spec] if spec in held else np.zeros(spec.nbytes, np.uint8) for spec in specs]
                held = dict(zip(specs, found, strict=True))
                for piece in reader.pieces():
                    if isinstance(piece, Chunk):
                        found[piece.array][piece.at : piece.at + len(piece.data)] = piece.data
        return [data.view(spec.dtype).reshape(spec.shape) for data, spec in zip(found, self.last.arrays, strict=True)]

    def rows(self) -> Iterator[Rows]:
        """Yields the rows of tables, in order."""
        for path in self.paths:
            with StateReader(path) as reader:
                for piece in reader.pieces():
                    if isinstance(piece, Rows):
                        yield piece


def find_chain(folder: str) -> Chain | None:
    """Returns the newest state that can be read completely; None if there is none."""
    problems: list[str] = []
    known = numbered(folder)
    fulls = [at for at, (_, name) in enumerate(known) if name.endswith(".full")]
    end = len(known)
    for first in reversed(fulls):
        paths: list[str] = []
        headers: list[Header] = []
        for _, name in known[first:end]:
            path = os.path.join(folder, name)
            try:
                header = _verified(path)
                if headers and (header.base != headers[-1].id or header.number != headers[-1].number + 1):
                    raise DataLossError(f"{path}: the file that it changes is not there")
            except OpError as error:
                problems.append(error.message)
                break
            paths.append(path)
            headers.append(header)
        if paths:
            return Chain(paths=tuple(paths), headers=tuple(headers), problems=tuple(problems))
        end = first
    problems += [f"{os.path.join(folder, name)}: no whole state is before it" for _, name in known[:end]]
    return Chain(paths=(), headers=(), problems=tuple(problems)) if problems else None


def _verified(path: str) -> Header:
    """Returns the header of a file after checking the whole file."""
    with StateReader(path) as reader:
        for _ in reader.pieces():
            pass
        return reader.header


def new_id() -> int:
    """Returns a random id for a file: from 1 to below 2 to the power of 63."""
    return secrets.randbelow((1 << 63) - 1) + 1
