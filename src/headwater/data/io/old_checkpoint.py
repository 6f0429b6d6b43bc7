"""Reading and writing checkpoints of TensorFlow's old format, V1: one sorted table for each task that saved.

In a table (`headwater.data.io.table`), the entry with the empty key has the names, shapes, types and slices of all
tensors. Each slice has an entry of its own. The key identifies the slice (`headwater.data.io.tensor_slice`); the
elements are in the fields of a ``TensorProto``.

Source: the protocol messages of TensorFlow (``saved_tensor_slice.proto``) and files that TensorFlow wrote.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError

from headwater.data.io import files
from headwater.data.io.files import Path, as_path
from headwater.data.io.protos.saved_slices_pb2 import SavedTensorSlices
from headwater.data.io.table import build_table, read_table
from headwater.data.io.tensor_bundle import BundleReader, index_path
from headwater.data.io.tensor_proto import make_ndarray, numbers_proto
from headwater.data.io.tensor_slice import TensorSlice, joined
from headwater.dtypes import DType, as_dtype, from_numpy
from headwater.errors import DataLossError, InvalidArgumentError, NotFoundError
from headwater.shapes import TensorShape
from headwater.tensorboard_protos import tensor_pb2

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray


class OldReader:
    """Reads the tensors of one checkpoint of format V1, which is kept in memory.

    Args:
      prefix: the file, or a pattern for the files of several tasks, such as ``model-?????-of-00002``.

    Raises:
      NotFoundError: there is no such file.
      DataLossError: a file is damaged.
    """

    def __init__(self, prefix: Path) -> None:
        self._prefix = as_path(prefix)
        self._slices: dict[str, list[TensorSlice]] = {}
        self._values: dict[bytes, tuple[str, bytes]] = {}
        self._dtypes: dict[str, DType] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        paths = sorted(files.glob(self._prefix))
        if not paths:
            raise NotFoundError(f"{self._prefix}: there is no such checkpoint")
        for path in paths:
            self._add(path)

    def _add(self, path: str) -> None:
        table = dict(read_table(path))
        for tensor in _parsed(path, table.pop(b"", b"")).meta.tensor:
            name = tensor.name
            shape = tuple(int(dim.size) for dim in tensor.shape.dim)
            try:
                dtype = as_dtype(tensor.type)
                slices = [TensorSlice.from_proto(proto) for proto in tensor.slice]
                for part in slices:
                    part.resolve(shape)
            except (InvalidArgumentError, TypeError) as error:
                raise DataLossError(f"{path}: {name!r} is damaged: {error}") from error
            if self._dtypes.setdefault(name, dtype) != dtype or self._shapes.setdefault(name, shape) != shape:
                raise DataLossError(f"{path}: {name!r} has another shape or type than in other files")
            self._slices.setdefault(name, []).extend(slices)
        self._values.update({key: (path, packed) for key, packed in table.items()})

    @property
    def dtypes(self) -> Mapping[str, DType]:
        """Element type of each tensor."""
        return MappingProxyType(self._dtypes)

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Shape of each tensor; for a partitioned tensor, its whole shape."""
        return MappingProxyType(self._shapes)

    def __contains__(self, name: object) -> bool:
        return name in self._shapes

    def read(self, name: str) -> HostArray:
        """Reads one whole tensor.

        Raises:
          NotFoundError: the checkpoint has no such tensor.
          DataLossError: the data are damaged.
        """
        return self.read_slice(name, TensorSlice.whole(len(self._shapes.get(name, ()))))

    def read_slice(self, name: str, part: TensorSlice) -> HostArray:
        """Reads a part of a tensor, independently of the slices in which it was saved.

        Raises:
          InvalidArgumentError: ``part`` is not inside the tensor.
          NotFoundError, DataLossError: see `read`.
        """
        if name not in self._shapes:
            raise NotFoundError(f"Key {name} not found in checkpoint {self._prefix}")
        shape = self._shapes[name]
        slices = self._slices[name]
        if sum(math.prod(each.shape(shape)) for each in slices) < math.prod(shape):
            raise DataLossError(f"{self._prefix}: the {len(slices)} slices of {name!r} do not cover {shape}")
        parts = ((each.resolve(shape), partial(self._read_part, name, each)) for each in slices)
        return joined(part.resolve(shape), self._dtypes[name], parts)

    def _read_part(self, name: str, part: TensorSlice) -> HostArray:
        path, packed = self._values.get(part.key(name), (self._prefix, b""))
        proto: Any = tensor_pb2.TensorProto()
        shape = part.shape(self._shapes[name])
        try:
            proto.ParseFromString(_parsed(path, packed).data.data)
            # The file contains only the values.
            proto.dtype = self._dtypes[name].as_datatype_enum
            proto.tensor_shape.CopyFrom(TensorShape(shape).as_proto())
            if math.prod(shape) and not proto.ListFields():
                raise ValueError("there are no values")
            return make_ndarray(proto)
        except (DecodeError, ValueError) as error:
            raise DataLossError(f"{path}: slice {part} of {name!r} is damaged: {error}") from error

    def close(self) -> None:
        """Does nothing: everything is in memory."""

    def __enter__(self) -> OldReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _parsed(path: str, packed: bytes) -> SavedTensorSlices:
    try:
        return SavedTensorSlices.FromString(packed)
    except DecodeError as error:
        raise DataLossError(f"{path}: an entry is damaged") from error


def write_old_checkpoint(path: Path, parts: Iterable[tuple[str, tuple[int, ...], TensorSlice, HostArray]]) -> None:
    """Writes a checkpoint of format V1, atomically.

    Args:
      parts: the name, the shape of the whole tensor, the place in it, and the values, of each part.

    Raises:
      NotFoundError: the folder does not exist.
      ResourceExhaustedError: the disk is full.
    """
    whole = SavedTensorSlices()
    whole.meta.versions.producer = 1
    tensors: dict[str, Any] = {}
    entries: dict[bytes, bytes] = {}
    for name, shape, part, values in parts:
        if name not in tensors:
            tensors[name] = whole.meta.tensor.add(name=name, type=from_numpy(values.dtype).as_datatype_enum)
            for size in shape:
                tensors[name].shape.dim.add(size=size)
        part.to_proto(tensors[name].slice.add())
        saved = SavedTensorSlices()
        saved.data.name = name
        part.to_proto(saved.data.slice)
        saved.data.data = numbers_proto(values).SerializeToString()
        entries[part.key(name)] = saved.SerializeToString()
    entries[b""] = whole.SerializeToString()
    with files.atomic_write(path) as file:
        file.write(build_table(entries))


def open_checkpoint(prefix: Path) -> BundleReader | OldReader:
    """Opens a checkpoint of either format.

    Raises:
      NotFoundError: there is no such checkpoint.
      DataLossError: the checkpoint is damaged.
    """
    path = as_path(prefix)
    if files.exists(index_path(path)) or not any(not files.isdir(found) for found in files.glob(path)):
        return BundleReader(path)
    return OldReader(path)
