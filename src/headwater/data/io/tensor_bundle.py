"""Reading checkpoints: TensorFlow's tensor bundle, also known as checkpoint format V2.

A checkpoint ``PREFIX`` is a file ``PREFIX.index`` and one or more files ``PREFIX.data-SSSSS-of-NNNNN``. The index is a
sorted table (`headwater.data.io.table`) from names to ``BundleEntryProto`` messages: element type, shape, and the data
file and offset of the bytes. Its first entry, under the empty name, is a ``BundleHeaderProto``. Data are the
concatenated little-endian elements of a tensor; strings are their lengths as varints, a checksum of the lengths, then
their bytes. A partitioned tensor's entry lists its slices, and each slice has an entry under a key of its own
(`headwater.data.io.tensor_slice`).

Source: the protocol messages of TensorFlow (``tensor_bundle.proto``) and files that TensorFlow wrote.
"""

from __future__ import annotations

import math
import os
import struct
import threading
import weakref
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

from headwater import dtypes
from headwater.data.io import crc32c, varint
from headwater.data.io.files import Path, as_path, open_descriptor, translated
from headwater.data.io.protos.tensor_bundle_pb2 import BundleEntryProto, BundleHeaderProto
from headwater.data.io.table import read_table
from headwater.data.io.tensor_slice import TensorSlice, joined
from headwater.dtypes import DType
from headwater.errors import DataLossError, InvalidArgumentError, NotFoundError, UnimplementedError

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray

FORMAT_VERSION: Final = 1
"""Version of the format that is read and written."""

CHUNK_BYTES: Final = 4 << 20
"""Tensors are checked and copied in pieces of this size, which stay in the processor's cache between both steps."""

_MAX_RANK: Final = 254
_HEADER_KEY: Final = b""
_SLICE_KEY_START: Final = 0


def index_path(prefix: str) -> str:
    """Returns the path of a checkpoint's index."""
    return f"{prefix}.index"


def data_path(prefix: str, shard: int, num_shards: int) -> str:
    """Returns the path of one of a checkpoint's data files."""
    return f"{prefix}.data-{shard:05d}-of-{num_shards:05d}"


class Index:
    """Contents of the ``.index`` file of a checkpoint.

    Args:
      prefix: the checkpoint.

    Attributes:
      path: path of the file.
      num_shards: number of data files of the checkpoint.
      entries: the entry of each tensor, sorted by name; without entries of slices.
      slices: the entry of each slice, by its key.

    Raises:
      NotFoundError: there is no such checkpoint.
      DataLossError: the file is damaged.
      InvalidArgumentError: the format is a newer version.
      UnimplementedError: the file was written on a machine with another byte order.
    """

    def __init__(self, prefix: Path) -> None:
        self.path: str = index_path(as_path(prefix))
        table = dict(read_table(self.path))
        packed_header = table.pop(_HEADER_KEY, None)
        if packed_header is None:
            raise DataLossError(f"{self.path}: the header is missing")
        header: Any = self._parse(BundleHeaderProto, packed_header, "the header")
        self._check(header)
        self.num_shards: int = int(header.num_shards)
        self.entries: dict[str, Any] = {}
        self.slices: dict[bytes, Any] = {}
        for key, packed in table.items():
            entry = self._parse(BundleEntryProto, packed, f"the entry {key!r}")
            if key[0] == _SLICE_KEY_START:
                self.slices[key] = entry
                continue
            try:
                self.entries[key.decode()] = entry
            except UnicodeDecodeError as error:
                raise DataLossError(f"{self.path}: the name {key!r} is not UTF-8") from error

    def _parse(self, message: Any, packed: bytes, what: str) -> Any:
        try:
            return message.FromString(packed)
        except DecodeError as error:
            raise DataLossError(f"{self.path}: {what} is damaged") from error

    def _check(self, header: Any) -> None:
        if header.num_shards < 1:
            raise DataLossError(f"{self.path}: the header says {header.num_shards} data files")
        if header.endianness != BundleHeaderProto.LITTLE:
            raise UnimplementedError(f"{self.path}: written on a machine of another byte order")
        version = header.version
        if version.min_consumer > FORMAT_VERSION or FORMAT_VERSION in version.bad_consumers:
            raise InvalidArgumentError(
                f"{self.path}: written in version {version.producer} of the format, which readers of version "
                f"{FORMAT_VERSION} cannot read (they need {version.min_consumer})"
            )

    def dtype(self, entry: Any, name: str) -> DType:
        """Returns the element type of an entry; UnimplementedError for a type that checkpoints cannot contain."""
        try:
            dtype = dtypes.as_dtype(entry.dtype)
        except TypeError:
            dtype = dtypes.resource
        if dtype.is_ref or dtype in (dtypes.resource, dtypes.variant):
            raise UnimplementedError(f"{self.path}: {name!r} has element type number {entry.dtype}")
        return dtype

    def shape(self, entry: Any, name: str) -> tuple[int, ...]:
        """Returns the shape of an entry; DataLossError for an impossible shape."""
        shape = tuple(int(dim.size) for dim in entry.shape.dim)
        if entry.shape.unknown_rank or len(shape) > _MAX_RANK or any(size < 0 for size in shape):
            raise DataLossError(f"{self.path}: {name!r} has the impossible shape {shape}")
        return shape

    def parts(self, entry: Any, name: str) -> list[tuple[TensorSlice, Any]]:
        """Returns the slices of a partitioned tensor with their entries.

        Raises:
          DataLossError: the slices do not cover each element of the tensor once.
        """
        shape = self.shape(entry, name)
        parts: list[tuple[TensorSlice, Any]] = []
        covered = 0
        for proto in entry.slices:
            try:
                part = TensorSlice.from_proto(proto)
                part_shape = part.shape(shape)
            except InvalidArgumentError as error:
                raise DataLossError(f"{self.path}: a slice of {name!r} is damaged: {error}") from error
            found = self.slices.get(part.key(name))
            if found is None:
                raise DataLossError(f"{self.path}: slice {part} of {name!r} is missing")
            if self.shape(found, name) != part_shape or found.dtype != entry.dtype:
                raise DataLossError(f"{self.path}: slice {part} of {name!r} has another shape or type")
            covered += math.prod(part_shape)
            parts.append((part, found))
        if covered != math.prod(shape) or _overlap([part.resolve(shape) for part, _ in parts]):
            raise DataLossError(f"{self.path}: the {len(parts)} slices of {name!r} do not cover {shape}")
        return parts


def _overlap(boxes: list[tuple[slice, ...]]) -> bool:
    """Returns whether two boxes share an element."""
    return any(
        all(x.start < y.stop and y.start < x.stop for x, y in zip(a, b, strict=True))
        for index, a in enumerate(boxes)
        for b in boxes[:index]
    )


class BundleReader:
    """Reads the tensors of one checkpoint. Safe to use from several threads.

    All checksums are checked.

    Args:
      prefix: the checkpoint.

    Raises:
      NotFoundError, DataLossError, InvalidArgumentError, UnimplementedError: see `Index`.
    """

    def __init__(self, prefix: Path) -> None:
        self.prefix: str = as_path(prefix)
        self._index = Index(prefix)
        self._descriptors: dict[int, int] = {}
        weakref.finalize(self, _close_all, self._descriptors)
        self._lock = threading.Lock()

    @property
    def dtypes(self) -> Mapping[str, DType]:
        """Element type of each tensor, sorted by name."""
        return MappingProxyType({n: self._index.dtype(entry, n) for n, entry in self._index.entries.items()})

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Shape of each tensor, sorted by name; for a partitioned tensor, its whole shape."""
        return MappingProxyType({n: self._index.shape(entry, n) for n, entry in self._index.entries.items()})

    def keys(self) -> list[str]:
        """Names of the tensors, sorted."""
        return list(self._index.entries)

    def __contains__(self, name: object) -> bool:
        return name in self._index.entries

    def _entry(self, name: str) -> Any:
        entry = self._index.entries.get(name)
        if entry is None:
            raise NotFoundError(f"Key {name} not found in checkpoint {self.prefix}")
        return entry

    def slices(self, name: str) -> list[TensorSlice]:
        """Returns the slices in which a tensor is stored; empty when it is stored whole."""
        return [TensorSlice.from_proto(proto) for proto in self._entry(name).slices]

    def check_sizes(self) -> None:
        """Checks that the data files exist with the sizes in the index, without reading them.

        Raises:
          NotFoundError: a data file is missing.
          DataLossError: a data file is cut off, or the index is damaged.
        """
        for name, entry in self._index.entries.items():
            parts = self._index.parts(entry, name) if entry.slices else [(None, entry)]
            for _, found in parts:
                self._check_size(found, name)

    def read(self, name: str) -> HostArray:
        """Reads one whole tensor.

        Returns:
          A new array; an object array of `bytes` for strings.

        Raises:
          NotFoundError: the checkpoint has no such tensor, or a data file is missing.
          DataLossError: the data are damaged.
        """
        entry = self._entry(name)
        if not entry.slices:
            return self._read_entry(entry, name)
        return self._read_parts(entry, name, (slice(0, size) for size in self._index.shape(entry, name)))

    def read_slice(self, name: str, part: TensorSlice) -> HostArray:
        """Reads a part of a tensor, independently of the slices in which it was saved.

        Raises:
          InvalidArgumentError: ``part`` is not inside the tensor.
          NotFoundError, DataLossError: see `read`.
        """
        entry = self._entry(name)
        box = part.resolve(self._index.shape(entry, name))
        if not entry.slices:
            return self._read_entry(entry, name)[box].copy()
        return self._read_parts(entry, name, box)

    def _read_parts(self, entry: object, name: str, box: Any) -> HostArray:
        shape = self._index.shape(entry, name)
        parts = self._index.parts(entry, name)
        for _, found in parts:
            self._check_size(found, name)
        return joined(
            tuple(box),
            self._index.dtype(entry, name),
            ((part.resolve(shape), partial(self._read_entry, found, name)) for part, found in parts),
        )

    def _file(self, entry: Any, name: str) -> tuple[int, str]:
        """Returns descriptor and path of the data file of an entry."""
        shard = entry.shard_id
        if not 0 <= shard < self._index.num_shards:
            raise DataLossError(f"{self._index.path}: {name!r} is said to be in data file {shard}")
        path = data_path(self.prefix, shard, self._index.num_shards)
        with self._lock:
            if shard not in self._descriptors:
                self._descriptors[shard] = open_descriptor(path)
            return self._descriptors[shard], path

    def _check_size(self, entry: Any, name: str) -> None:
        """Checks an entry against its shape and file before memory is allocated; DataLossError."""
        descriptor, path = self._file(entry, name)
        dtype = self._index.dtype(entry, name)
        count = math.prod(self._index.shape(entry, name))
        if entry.offset < 0 or entry.size < 0 or entry.offset + entry.size > os.fstat(descriptor).st_size:
            raise DataLossError(f"{path}: {name!r} is cut off, its {entry.size} bytes begin at offset {entry.offset}")
        # Each string has a length of at least one byte, and all lengths have a checksum of four bytes.
        if (entry.size < count + 4) if dtype == dtypes.string else (entry.size != count * dtype.size):
            raise DataLossError(
                f"{self._index.path}: {name!r} has {count} elements of {dtype.name} in {entry.size} bytes"
            )

    def _read_entry(self, entry: Any, name: str) -> npt.NDArray[Any]:
        self._check_size(entry, name)
        descriptor, path = self._file(entry, name)
        dtype = self._index.dtype(entry, name)
        shape = self._index.shape(entry, name)
        data = np.empty(entry.size, np.uint8)
        crc = 0
        for start in range(0, entry.size, CHUNK_BYTES):
            chunk = data[start : start + CHUNK_BYTES]
            self._read_into(descriptor, chunk, entry.offset + start, path)
            if dtype != dtypes.string:
                crc = crc32c.extend(crc, chunk)
        try:
            if dtype == dtypes.string:
                strings, crc = _decode_strings(data, math.prod(shape))
                result: npt.NDArray[Any] = strings.reshape(shape)
            else:
                result = data.view(dtype.numpy_dtype).reshape(shape)
        except ValueError as error:
            raise DataLossError(f"{path}: {name!r} is damaged: {error}, at offset {entry.offset}") from error
        if crc32c.mask(crc) != entry.crc32c:
            raise DataLossError(
                f"{path}: {name!r} is damaged: wrong checksum of the {entry.size} bytes at offset {entry.offset}"
            )
        return result

    def _read_into(self, descriptor: int, target: npt.NDArray[np.uint8], offset: int, path: str) -> None:
        done = 0
        while done < target.size:
            with translated(path):
                count = os.preadv(descriptor, [target[done:].data], offset + done)
            if not count:
                raise DataLossError(f"{path}: the file ends at offset {offset + done}")
            done += count

    def close(self) -> None:
        """Closes the data files; reading opens them again."""
        with self._lock:
            _close_all(self._descriptors)

    def __enter__(self) -> BundleReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def checksum_of_lengths(lengths: npt.NDArray[np.uint64]) -> int:
    """Returns the CRC-32C of the lengths of strings: each is taken as four bytes, or as eight if four are too few."""
    if not lengths.size or lengths.max() <= 0xFFFFFFFF:
        return crc32c.value(lengths.astype("<u4"))
    return crc32c.value(b"".join(struct.pack("<I" if n <= 0xFFFFFFFF else "<Q", n) for n in lengths.tolist()))


def _decode_strings(data: npt.NDArray[np.uint8], count: int) -> tuple[npt.NDArray[np.object_], int]:
    """Returns the strings of a tensor and the expected CRC-32C of its entry; ValueError when they are damaged."""
    strings = np.empty(count, object)
    last_bytes = np.flatnonzero(data[: 10 * count] < 0x80)
    if last_bytes.size < count:
        raise ValueError("a length does not end")
    start = int(last_bytes[count - 1]) + 1 if count else 0
    lengths = varint.decode_all(data[:start])
    crc = checksum_of_lengths(lengths)
    stored = data[start : start + 4].tobytes()
    if len(stored) < 4 or crc32c.mask(crc) != int.from_bytes(stored, "little"):
        raise ValueError("wrong checksum of the strings' lengths")
    content = data[start + 4 :].tobytes()
    ends = np.cumsum(lengths, dtype=np.uint64)
    if (int(ends[-1]) if count else 0) != len(content):
        raise ValueError("the strings have other lengths than they should")
    position = 0
    for index, end in enumerate(ends.tolist()):
        strings[index] = content[position:end]
        position = end
    return strings, crc32c.extend(crc32c.extend(crc, stored), content)


def _close_all(descriptors: dict[int, int]) -> None:
    while descriptors:
        os.close(descriptors.popitem()[1])
