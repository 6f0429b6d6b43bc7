"""``Example`` messages: building them, and reading batches of them into arrays.

An `Example` is a map from feature names to lists of numbers or byte strings; most TFRecord files contain them.
`ExampleBatch` reads a feature of many examples at once: the lists of numbers stay encoded until the lists of the whole
batch are concatenated in one buffer, which NumPy decodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

from headwater import dtypes, shapes
from headwater.data.io import varint
from headwater.data.io.protos.example_pb2 import EncodedExample, Example, SequenceExample
from headwater.data.io.protos.feature_pb2 import (
    BytesList,
    Feature,
    FeatureList,
    FeatureLists,
    Features,
    FloatList,
    Int64List,
)
from headwater.dtypes import DType
from headwater.errors import InvalidArgumentError

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray

__all__ = [
    "BytesList",
    "Column",
    "Example",
    "ExampleBatch",
    "Feature",
    "FeatureList",
    "FeatureLists",
    "Features",
    "FloatList",
    "Int64List",
    "SequenceExample",
    "SparseValues",
]

_PACKED: Final = 0x0A
"""First byte of a list of numbers in the current encoding: its field's number, and a mark that a length follows."""

_KINDS: Final = {dtypes.float32: "float_list", dtypes.int64: "int64_list", dtypes.string: "bytes_list"}
_TYPE_NAMES: Final = {"float_list": "float", "int64_list": "int64", "bytes_list": "string"}


class SparseValues(NamedTuple):
    """Lists of different lengths, one for each example.

    Attributes:
      indices: int64 (values, 2): of each value, its example and its position in that example's list.
      values: all values, the first example's first.
      dense_shape: int64 (2,): number of examples, length of the longest list.
    """

    indices: npt.NDArray[np.int64]
    values: HostArray
    dense_shape: npt.NDArray[np.int64]


class Column(NamedTuple):
    """One feature of a batch.

    Attributes:
      values: all values, the first example's first.
      counts: the number of values of each example; -1 if it lacks the feature.
      least, most: the smallest and the largest count; 0 without examples.
      indices: as in `SparseValues`; None to compute them when they are needed.
    """

    values: HostArray
    counts: npt.NDArray[np.int64]
    least: int
    most: int
    indices: npt.NDArray[np.int64] | None = None


def columns_of_one(packed: bytes, wanted: Mapping[str, DType]) -> dict[str, Column] | None:
    """Reads features of one serialized example, for which an `ExampleBatch` alone is several times slower.

    Args:
      packed: the ``Example`` message.
      wanted: the type of each feature.

    Returns:
      The columns; None if the message is invalid or has the wrong type, which `ExampleBatch` reports.
    """
    try:
        features = Example.FromString(packed).features.feature
    except DecodeError:
        return None
    found: dict[str, Column] = {}
    for name, dtype in wanted.items():
        kind = features[name].WhichOneof("kind") if name in features else None
        if kind != _KINDS.get(dtype) and kind is not None:
            return None
        values = np.array([] if kind is None else list(getattr(features[name], kind).value), dtype.numpy_dtype)
        count = -1 if kind is None else len(values)
        indices = np.zeros((len(values), 2), np.int64)
        indices[:, 1] = np.arange(len(values))
        found[name] = Column(values, np.array([count]), count, count, indices)
    return found


class ExampleBatch:
    """Serialized examples, which are read feature by feature.

    Args:
      serialized: the ``Example`` messages.
      names: name of each message in errors.
      columns: features that have been read from the messages already; None if none have been.

    Raises:
      InvalidArgumentError: a message is not an ``Example``, or has a feature of another type than requested.
    """

    def __init__(
        self,
        serialized: Sequence[bytes],
        names: Sequence[str | bytes] | None = None,
        columns: Mapping[str, Column] | None = None,
    ) -> None:
        self._names = names
        self._columns = columns
        self._count = len(serialized)
        self._features: list[Any] = []
        for index, packed in enumerate(serialized if columns is None else ()):
            try:
                self._features.append(EncodedExample.FromString(packed).features.feature)
            except DecodeError as error:
                raise self._error(index, "Can't parse serialized Example", f"Index: {index}.  ") from error

    def __len__(self) -> int:
        return self._count

    def fixed(self, name: str, dtype: DType, shape: Sequence[int], default: npt.ArrayLike | None = None) -> HostArray:
        """Reads a feature that has the same number of values in each example.

        Args:
          name: the feature.
          dtype: float32, int64 or string.
          shape: shape of the values of one example.
          default: values for examples without the feature, of ``shape`` or a scalar; None if it is required.

        Returns:
          Array (examples, \\*shape).

        Raises:
          InvalidArgumentError: an example has the wrong number of values, or lacks a required feature.
        """
        column = self._column(name, dtype)
        each = math.prod(shape)
        if column.least == column.most == each or not len(self):
            return column.values.reshape(len(self), *shape)
        kind = _TYPE_NAMES[_KINDS[dtype]]
        present = column.counts >= 0
        if default is None and column.least < 0:
            index = int(np.argmin(present))
            raise self._error(index, f"Feature: {name} (data type: {kind}) is required but could not be found")
        wrong = present & (column.counts != each)
        if wrong.any():
            index = int(np.argmax(wrong))
            raise self._error(
                index,
                f"Number of {kind} values != expected.  "
                f"Values size: {column.counts[index]} but output shape: {_text(shape)}",
                f"Key: {name}, Index: {index}.  ",
            )
        result = np.empty((len(self), each), dtype.numpy_dtype)
        result[present] = column.values.reshape(-1, each)
        result[~present] = np.asarray(default, dtype.numpy_dtype).reshape(-1)
        return result.reshape(len(self), *shape)

    def padded(self, name: str, dtype: DType, shape: Sequence[int], padding: object = None) -> HostArray:
        """Reads a feature that has any number of elements of ``shape`` in each example.

        Args:
          name: the feature.
          dtype: float32, int64 or string.
          shape: shape of one element.
          padding: value after the elements of an example; by default 0 or an empty string.

        Returns:
          Array (examples, largest number of elements, \\*shape).

        Raises:
          InvalidArgumentError: the number of values of an example is not a multiple of an element's size.
        """
        column = self._column(name, dtype)
        each = math.prod(shape)
        if not each:
            raise InvalidArgumentError(f"Feature: {name}: elements of shape {_text(shape)} have no values")
        broken = np.maximum(column.counts, 0) % each != 0
        if broken.any():
            index = int(np.argmax(broken))
            raise self._error(
                index,
                f"Number of {_TYPE_NAMES[_KINDS[dtype]]} values is not a multiple of stride length. "
                f"Saw {column.counts[index]} values but output shape is: {_text((None, *shape))}",
                f"Key: {name}, Index: {index}.  ",
            )
        longest = max(column.most, 0)
        if padding is None:
            padding = b"" if dtype == dtypes.string else 0
        result = np.full((len(self), longest), padding, dtype.numpy_dtype)
        result[np.arange(longest) < column.counts[:, None]] = column.values
        return result.reshape(len(self), longest // each, *shape)

    def sparse(self, name: str, dtype: DType) -> SparseValues:
        """Reads a feature that has any number of values in each example, including none.

        Args:
          name: the feature.
          dtype: float32, int64 or string.
        """
        column = self._column(name, dtype)
        indices = column.indices
        if indices is None:
            counts = np.maximum(column.counts, 0)
            example = np.repeat(np.arange(len(self)), counts)
            place = np.arange(column.values.size) - np.repeat(np.cumsum(counts) - counts, counts)
            indices = np.stack([example, place], axis=1).astype(np.int64, copy=False)
        return SparseValues(
            indices=indices, values=column.values, dense_shape=np.array((len(self), max(column.most, 0)), np.int64)
        )

    def _column(self, name: str, dtype: DType) -> Column:
        kind = _KINDS.get(dtype)
        if kind is None:
            raise InvalidArgumentError(f"Feature: {name}: {dtype.name} is none of float32, int64, string")
        if self._columns is not None:
            return self._columns[name]
        lists: list[Any] = []
        present = np.ones(len(self), np.bool_)
        for index, features in enumerate(self._features):
            feature = features.get(name)
            found = None if feature is None else feature.WhichOneof("kind")
            if found == kind:
                lists.append(getattr(feature, kind))
            elif found is None:
                present[index] = False
            else:
                raise self._error(
                    index,
                    f"Data types don't match. Data type: {_TYPE_NAMES[found]} but expected type: {_TYPE_NAMES[kind]}",
                    f"Key: {name}, Index: {index}.  ",
                )
        try:
            values, found_counts = _DECODERS[kind](lists)
        except ValueError as error:
            raise InvalidArgumentError(f"Key: {name}.  Can't parse serialized Example: {error}") from error
        counts = np.full(len(self), -1, np.int64)
        counts[present] = found_counts
        least, most = (int(counts.min()), int(counts.max())) if len(self) else (0, 0)
        return Column(values=values, counts=counts, least=least, most=most)

    def _error(self, index: int, what: str, where: str = "") -> InvalidArgumentError:
        name = "<unknown>" if self._names is None or index >= len(self._names) else self._names[index]
        if isinstance(name, bytes):
            name = name.decode(errors="replace")
        return InvalidArgumentError(f"Name: {name}, {where}{what}.")


def _text(shape: Sequence[int | None]) -> str:
    return str(shapes.TensorShape(shape)).replace("(", "[").replace(")", "]").replace(",]", "]").replace(" ", "")


def _decode_bytes(lists: list[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    flat = [value for each in lists for value in each.value]
    values = np.empty(len(flat), object)
    values[:] = flat
    return values, np.array([len(each.value) for each in lists], np.int64)


def _decode_floats(lists: list[bytes]) -> tuple[HostArray, npt.NDArray[np.int64]]:
    contents = [_content(each, _repack_floats) for each in lists]
    sizes = np.array([len(content) for content in contents], np.int64)
    if (sizes % 4).any():
        raise ValueError("a list of floats is cut off")
    return np.frombuffer(b"".join(contents), "<f4").astype(np.float32), sizes // 4


def _decode_integers(lists: list[bytes]) -> tuple[HostArray, npt.NDArray[np.int64]]:
    contents = [_content(each, _repack_integers) for each in lists]
    ends = np.cumsum([len(content) for content in contents], dtype=np.int64)
    data = np.frombuffer(b"".join(contents), np.uint8)
    last = data < 0x80
    if not last[ends[ends > 0] - 1].all():
        raise ValueError("a list of integers is cut off")
    numbers_before = np.concatenate(([0], np.cumsum(last, dtype=np.int64)))
    return varint.decode_all(data).view(np.int64), np.diff(numbers_before[ends], prepend=0)


_DECODERS: Final[dict[str, Callable[[list[Any]], tuple[HostArray, npt.NDArray[np.int64]]]]] = {
    "bytes_list": _decode_bytes,
    "float_list": _decode_floats,
    "int64_list": _decode_integers,
}


def _content(encoded: bytes, repack: Callable[[bytes], bytes]) -> bytes:
    """Returns the numbers of an encoded list of numbers, without its header.

    Any form other than one packed run of numbers is first rewritten to that form.
    """
    if not encoded:
        return b""
    if encoded[0] != _PACKED:
        return _content(repack(encoded), repack)
    size, start = varint.decode(encoded, 1, len(encoded))
    return _content(repack(encoded), repack) if start + size != len(encoded) else encoded[start:]


def _repack_floats(encoded: bytes) -> bytes:
    return _repack(FloatList, encoded)


def _repack_integers(encoded: bytes) -> bytes:
    return _repack(Int64List, encoded)


def _repack(message: Any, encoded: bytes) -> bytes:
    try:
        return message(value=message.FromString(encoded).value).SerializeToString()
    except DecodeError as error:
        raise ValueError("a list of numbers is damaged") from error
