"""Writing checkpoints in TensorFlow's format (`headwater.data.io.tensor_bundle` describes it), whole or not at all.

The data files are renamed to their final names first and the index last, so that a checkpoint appears atomically. If a
checkpoint of that name exists, the new data files get names that are not in use: ``-of-00002`` beside ``-of-00001``,
with an additional empty file. The old ones are deleted only after the new index is in place. So whenever the process is
killed, one of the two checkpoints is complete.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from headwater import dtypes
from headwater.data.io import crc32c, files, varint
from headwater.data.io.files import AtomicFile, Path, as_path
from headwater.data.io.protos.tensor_bundle_pb2 import BundleEntryProto, BundleHeaderProto
from headwater.data.io.table import build_table
from headwater.data.io.tensor_bundle import (
    CHUNK_BYTES,
    FORMAT_VERSION,
    Index,
    checksum_of_lengths,
    data_path,
    index_path,
)
from headwater.data.io.tensor_slice import TensorSlice
from headwater.dtypes import DType
from headwater.errors import FailedPreconditionError, InvalidArgumentError

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray

_ANY_SHARD: Final = "?????"


class BundleWriter:
    """Writes one checkpoint with one data file; the checkpoint is invisible until `finish`.

    As a context manager, the writer finishes at the end of the block, and discards the checkpoint after an exception.
    The folder of ``prefix`` is created if it is missing, but not its parents.

    Args:
      prefix: the checkpoint.

    Raises:
      ResourceExhaustedError: the disk is full, from every method; nothing has changed.
    """

    def __init__(self, prefix: Path) -> None:
        self._prefix = as_path(prefix)
        folder = os.path.dirname(self._prefix)
        if folder:
            files.mkdir(folder)
        self._num_shards = _unused_num_shards(self._prefix, 1)
        self._data = AtomicFile(data_path(self._prefix, 0, self._num_shards))
        self._offset = 0
        self._entries: dict[bytes, BundleEntryProto] = {}
        self._partitioned: set[str] = set()

    def add(self, name: str, value: npt.ArrayLike, dtype: DType | None = None) -> None:
        """Appends a tensor.

        Args:
          name: its name in the checkpoint.
          value: the array; a C-contiguous one is not copied. Strings are `bytes` or text (stored as UTF-8).
          dtype: element type, if the array's type does not determine it (the quantized types).

        Raises:
          InvalidArgumentError: ``name`` is empty, begins with a zero byte or was used before.
          TypeError: such elements cannot be stored.
        """
        array = np.asarray(value)
        self._write(self._new_entry(name.encode(), name), array, dtype)

    def add_slice(
        self, name: str, shape: Sequence[int], part: TensorSlice, value: npt.ArrayLike, dtype: DType | None = None
    ) -> None:
        """Appends a part of a partitioned tensor.

        Args:
          name: the tensor's name in the checkpoint.
          shape: shape of the whole tensor.
          part: position of this part.
          value: array of the part's shape.
          dtype: as for `add`.

        Raises:
          InvalidArgumentError: the part was added before, is not inside ``shape`` or has a different shape than
            ``value``, or an earlier part had a different shape or element type.
        """
        array = np.asarray(value)
        if part.shape(tuple(shape)) != array.shape:
            raise InvalidArgumentError(
                f"Slice {part} of {name!r}, shape {tuple(shape)}, got a value of shape {array.shape}"
            )
        dtype = dtype or dtypes.from_numpy(array.dtype)
        if name not in self._partitioned:
            _set_type(self._new_entry(name.encode(), name), dtype, shape)
            self._partitioned.add(name)
        whole = self._entries[name.encode()]
        _check_same_type(whole, dtype.as_datatype_enum, shape, name)
        entry = self._new_entry(part.key(name), f"{name}, slice {part}")
        part.to_proto(whole.slices.add())
        self._write(entry, array, dtype)

    def _new_entry(self, key: bytes, name: str) -> Any:
        if not name or name.startswith("\0"):
            raise InvalidArgumentError(f"{name!r} cannot be the name of a tensor in a checkpoint")
        if key in self._entries:
            raise InvalidArgumentError(f"{name!r} is in the checkpoint already")
        entry = self._entries[key] = BundleEntryProto()
        return entry

    def _write(self, entry: Any, array: HostArray, dtype: DType | None) -> None:
        dtype = dtype or dtypes.from_numpy(array.dtype)
        _set_type(entry, dtype, array.shape)
        entry.offset = self._offset
        if dtype == dtypes.string:
            data, crc = _encode_strings(array)
            self._data.write(data)
        else:
            data = np.ascontiguousarray(array, dtype.numpy_dtype.newbyteorder("<")).reshape(-1).view(np.uint8)
            crc = 0
            for start in range(0, data.size, CHUNK_BYTES):
                chunk = data[start : start + CHUNK_BYTES]
                crc = crc32c.extend(crc, chunk)
                self._data.write(chunk)
        entry.size = len(data)
        entry.crc32c = crc32c.mask(crc)
        self._offset += len(data)

    def finish(self) -> None:
        """Writes all data to the disk, then renames the files to their names; the writer cannot be used afterwards."""
        if self._data.closed:
            raise FailedPreconditionError(f"{self._prefix}: the checkpoint is finished or discarded")
        try:
            _publish(self._prefix, self._num_shards, self._entries, self._data.commit)
        finally:
            self._data.discard()

    def discard(self) -> None:
        """Deletes everything that was written; does nothing after `finish`."""
        self._data.discard()

    def __enter__(self) -> BundleWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and not self._data.closed:
            self.finish()
        else:
            self.discard()


def merge_bundles(prefixes: Iterable[Path], prefix: Path, delete_old_folders: bool = True) -> None:
    """Merges several checkpoints into one: renames their data files, and writes one index of all their tensors.

    Tasks can therefore save their variables concurrently, each with its own `BundleWriter` in a shared folder; the
    chief then merges these checkpoints. A partitioned tensor may have slices in several of them.

    Args:
      prefixes: the checkpoints to merge; they do not exist afterwards.
      prefix: the checkpoint to make.
      delete_old_folders: whether to delete the folders of ``prefixes`` if nothing else is in them.

    Raises:
      InvalidArgumentError: a tensor is in two of the checkpoints, or the slices of one have different shapes or types.
      NotFoundError, DataLossError: one of ``prefixes`` is missing or damaged; nothing has changed.
      ResourceExhaustedError: the disk is full.
    """
    target = as_path(prefix)
    sources = [as_path(source) for source in prefixes]
    entries: dict[bytes, Any] = {}
    moves: list[str] = []
    for source in sources:
        index = Index(source)
        for name, entry in index.entries.items():
            _merge_entry(entries, name, entry, len(moves))
        for key, entry in index.slices.items():
            if key in entries:
                raise InvalidArgumentError(f"{source}: the slice {key!r} is in another checkpoint too")
            entry.shard_id += len(moves)
            entries[key] = entry
        moves += [data_path(source, shard, index.num_shards) for shard in range(index.num_shards)]
    num_shards = _unused_num_shards(target, max(len(moves), 1))

    def move_data() -> None:
        for shard, path in enumerate(moves):
            files.rename(path, data_path(target, shard, num_shards), overwrite=True)

    _publish(target, num_shards, entries, move_data)
    for source in sources:
        files.remove(index_path(source))
    if delete_old_folders:
        for folder in {os.path.dirname(source) for source in sources} - {os.path.dirname(target)}:
            files.remove_empty_folder(folder)


def _merge_entry(entries: dict[bytes, Any], name: str, entry: Any, first_shard: int) -> None:
    known = entries.get(name.encode())
    if known is None:
        entry.shard_id += first_shard
        entries[name.encode()] = entry
        return
    if not known.slices or not entry.slices:
        raise InvalidArgumentError(f"{name!r} is in two of the checkpoints to merge")
    _check_same_type(known, entry.dtype, [dim.size for dim in entry.shape.dim], name)
    known.slices.extend(entry.slices)


def _set_type(entry: Any, dtype: DType, shape: Sequence[int]) -> None:
    entry.dtype = dtype.as_datatype_enum
    entry.shape.SetInParent()
    for size in shape:
        entry.shape.dim.add(size=size)


def _check_same_type(entry: Any, dtype: int, shape: Sequence[int], name: str) -> None:
    known = [dim.size for dim in entry.shape.dim]
    if entry.dtype != dtype or known != list(shape):
        raise InvalidArgumentError(
            f"Slices of {name!r} differ: shape {known} and type number {entry.dtype}, "
            f"shape {list(shape)} and type number {dtype}"
        )


def _encode_strings(array: HostArray) -> tuple[bytes, int]:
    """Returns the stored form of strings and its CRC-32C."""
    strings: list[bytes] = dtypes.to_string_array(array).ravel().tolist()
    lengths = np.array([len(string) for string in strings], np.uint64)
    crc = checksum_of_lengths(lengths)
    stored = crc32c.mask(crc).to_bytes(4, "little")
    content = b"".join(strings)
    packed = b"".join(map(varint.encode, lengths.tolist()))
    return packed + stored + content, crc32c.extend(crc32c.extend(crc, stored), content)


def _data_files(prefix: str, num_shards: str) -> list[str]:
    return files.glob(f"{glob.escape(prefix)}.data-{_ANY_SHARD}-of-{num_shards}")


def _unused_num_shards(prefix: str, at_least: int) -> int:
    """Returns the smallest number of data files for which no file name is taken."""
    while _data_files(prefix, f"{at_least:05d}"):
        at_least += 1
    return at_least


def _publish(
    prefix: str, num_shards: int, entries: Mapping[bytes, BundleEntryProto], place_data: Callable[[], None]
) -> None:
    """Publishes a checkpoint: ``place_data`` renames its data files, and the index gets its name. Deletes the data
    files of the previous checkpoint of that name.

    The index is written first, without a name, so that a full disk is noticed before any file has changed.
    """
    header: BundleHeaderProto = BundleHeaderProto(num_shards=num_shards)
    header.version.producer = FORMAT_VERSION
    table = {key: entry.SerializeToString(deterministic=True) for key, entry in entries.items()}
    table[b""] = header.SerializeToString(deterministic=True)
    with AtomicFile(index_path(prefix)) as index:
        index.write(build_table(table))
        # The index takes its space on the disk before any file is renamed.
        index.sync()
        place_data()
        for shard in range(num_shards):
            path = data_path(prefix, shard, num_shards)
            if not files.exists(path):
                AtomicFile(path).commit()
    for path in set(_data_files(prefix, _ANY_SHARD)) - set(_data_files(prefix, f"{num_shards:05d}")):
        files.remove(path)
