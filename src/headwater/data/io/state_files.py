"""Files that hold the state of a ``ps``: whole ones, and *deltas* with what changed since the file before.

A file is::

    magic | length, header (JSON), checksum | pieces | end piece

A piece is its head (what it is, of which array or table, where it begins or how many rows it has, how many bytes), the
bytes, and a checksum of both. The end piece says how many there were, so that a file that was cut off is noticed.
Checksums are masked CRC-32C. A file appears whole or not at all, and its name is on the disk when it does.

Files are numbered from 1 on. What a delta changes is the file with the number before, whose random id it names; a whole
file with the deltas that follow is a *chain*.
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
    """An array of a state.

    Attributes:
      name: for people.
      dtype: NumPy's name of its type.
      shape: of it.
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
    """What a file says of itself.

    Attributes:
      number: later files have higher ones.
      id: random.
      base: the id of the file that it changes; 0 for a whole one.
      at: when the state was this, in seconds since 1970.
      signature: of the layout of the parameters.
      facts: numbers and texts of the state.
      arrays: all of the state's.
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
        told = {name: getattr(self, name) for name in ("number", "id", "base", "at", "signature", "facts")}
        return json.dumps({**told, "arrays": arrays}, separators=(",", ":")).encode()

    @staticmethod
    def of(data: bytes) -> Header:
        """What `to_bytes` gave; ValueError, TypeError or KeyError where it is something else."""
        told: dict[str, Any] = json.loads(data)
        arrays = [
            Spec(name=str(name), dtype=str(dtype), shape=tuple(map(int, shape)))
            for name, dtype, shape in told["arrays"]
        ]
        return Header(
            number=int(told["number"]),
            id=int(told["id"]),
            base=int(told["base"]),
            at=float(told["at"]),
            signature=str(told["signature"]),
            facts=dict(told["facts"]),
            arrays=arrays,
        )


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes of array number ``array``, from byte ``at`` on."""

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
        """The rows of each part, whose dtypes and shapes of one row are given."""
        found: list[Array] = []
        at = 0
        for dtype, shape in parts:
            nbytes = len(self.numbers) * int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
            found.append(self.data[at : at + nbytes].view(dtype).reshape(len(self.numbers), *shape))
            at += nbytes
        if at != len(self.data):
            raise ValueError(f"{len(self.data)} bytes of {len(self.numbers)} rows came, and {at} are wanted")
        return found


class StateWriter:
    """Writes a file; a context, at whose end it appears.

    Args:
      folder: gets the file.
      header: of it.

    Attributes:
      nbytes: written so far.

    Raises:
      OpError: it cannot be written, also from all methods and from the end of the context.
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
    """The bytes of an array; a view, unless it is not contiguous."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


class StateReader:
    """Reads a file; a context. Every checksum is checked.

    Args:
      path: of the file.

    Attributes:
      header: what it says of itself.

    Raises:
      OpError: it cannot be read; DataLossError: it is damaged.
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
            raise self._damaged("it is no state of a ps")
        (length,) = _LENGTH.unpack_from(start, len(MAGIC))
        packed = self._read(length)
        if _LENGTH.unpack(self._read(_LENGTH.size)) != (crc32c.masked(packed),):
            raise self._damaged("the checksum of its header is wrong")
        try:
            return Header.of(packed)
        except (ValueError, TypeError, KeyError) as error:
            raise self._damaged(f"its header is none: {error}") from error

    def pieces(self) -> Iterator[Chunk | Rows]:
        """All pieces, in order."""
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
        if count > self._size - self._at:  # perhaps by a damaged length, for which no memory is asked
            raise self._damaged("it was cut off")
        with files.translated(self.path):
            data = self._file.read(count)
        if len(data) < count:
            raise self._damaged("it was cut off")
        self._at += count
        return data

    def _damaged(self, why: str) -> DataLossError:
        return DataLossError(None, None, f"{self.path}: {why}, near byte {self._at}")


# Folders --------------------------------------------------------------------------------------------------------------


def numbered(folder: str) -> list[tuple[int, str]]:
    """The files of a folder with their numbers, ascending."""
    if not files.isdir(folder):
        return []
    found = [(int(match[1]), name) for name in files.listdir(folder) if (match := _NAME.fullmatch(name))]
    return sorted(found)


def remove(folder: str, *, before: int | None = None) -> None:
    """Removes the files with smaller numbers than ``before``, or all, the whole ones first: the others then count for
    nothing."""
    for number, name in numbered(folder):
        if before is None or number < before:
            files.remove(os.path.join(folder, name))


def remove_unfinished(folder: str) -> None:
    """Removes what a life that was killed left behind where a file system has no files without a name."""
    for name in files.listdir(folder) if files.isdir(folder) else ():
        if _UNFINISHED.fullmatch(name):
            files.remove(os.path.join(folder, name))


@dataclass(frozen=True, kw_only=True, slots=True)
class Chain:
    """A whole file with the deltas that follow it, as far as they are sound.

    Attributes:
      paths: of the files.
      headers: theirs.
      problems: why newer files do not count, in words.
    """

    paths: tuple[str, ...]
    headers: tuple[Header, ...]
    problems: tuple[str, ...] = ()

    @property
    def last(self) -> Header:
        return self.headers[-1]

    def arrays(self) -> list[Array]:
        """The arrays of the state."""
        held: dict[Spec, Bytes] = {}
        found: list[Bytes] = []
        for path in self.paths:
            with StateReader(path) as reader:
                # An array of another shape is in this file as a whole.
                specs = reader.header.arrays
                found = [held[spec] if spec in held else np.zeros(spec.nbytes, np.uint8) for spec in specs]
                held = dict(zip(specs, found, strict=True))
                for piece in reader.pieces():
                    if isinstance(piece, Chunk):
                        found[piece.array][piece.at : piece.at + len(piece.data)] = piece.data
        return [data.view(spec.dtype).reshape(spec.shape) for data, spec in zip(found, self.last.arrays, strict=True)]

    def rows(self) -> Iterator[Rows]:
        """The rows of tables, in order."""
        for path in self.paths:
            with StateReader(path) as reader:
                for piece in reader.pieces():
                    if isinstance(piece, Rows):
                        yield piece


def find_chain(folder: str) -> Chain | None:
    """The newest state that can be read whole; None where there is none."""
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
                    raise DataLossError(None, None, f"{path}: the file that it changes is not there")
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
    """The header of a file of which every byte was looked at."""
    with StateReader(path) as reader:
        for _ in reader.pieces():
            pass
        return reader.header


def new_id() -> int:
    """A random number for a file: not 0, below 2 to the power of 63."""
    return secrets.randbelow((1 << 63) - 1) + 1
