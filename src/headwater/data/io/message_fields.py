"""Fields of protocol buffers whose type is known only at run time, converted to arrays and back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError

from headwater.data.io.files import translated
from headwater.errors import DataLossError, InvalidArgumentError

_BYTES: Final = "bytes://"
_LOCAL: Final = "local://"

#: For each kind of field, the element types as which its values can be read. Values are written from the first type.
TYPES: Final = {
    FieldDescriptor.TYPE_DOUBLE: ("float64",),
    FieldDescriptor.TYPE_FLOAT: ("float32", "float64"),
    FieldDescriptor.TYPE_INT64: ("int64",),
    FieldDescriptor.TYPE_SINT64: ("int64",),
    FieldDescriptor.TYPE_SFIXED64: ("int64",),
    FieldDescriptor.TYPE_UINT64: ("uint64", "int64"),
    FieldDescriptor.TYPE_FIXED64: ("uint64", "int64"),
    FieldDescriptor.TYPE_INT32: ("int32",),
    FieldDescriptor.TYPE_SINT32: ("int32",),
    FieldDescriptor.TYPE_SFIXED32: ("int32",),
    FieldDescriptor.TYPE_ENUM: ("int32",),
    FieldDescriptor.TYPE_UINT32: ("uint32", "int64", "int32"),
    FieldDescriptor.TYPE_FIXED32: ("uint32", "int64", "int32"),
    FieldDescriptor.TYPE_BOOL: ("bool",),
    FieldDescriptor.TYPE_STRING: ("string",),
    FieldDescriptor.TYPE_BYTES: ("string",),
    FieldDescriptor.TYPE_MESSAGE: ("string",),
    FieldDescriptor.TYPE_GROUP: ("string",),
}


class Fields:
    """Some fields of a message type.

    Args:
      message_type: full name of the message type.
      names: names of the fields.
      types: types of their values, by name, such as ``"int64"``.
      source: a file with a ``FileDescriptorSet``; or a serialized one after ``bytes://``; or ``local://``, for message
        types of this process.

    Raises:
      InvalidArgumentError: there is no such type or field, or its values do not have the requested type.
    """

    def __init__(self, message_type: str, names: Sequence[str], types: Sequence[str], source: str | bytes) -> None:
        pool = _pool(source)
        try:
            descriptor = pool.FindMessageTypeByName(message_type)
        except KeyError:
            raise InvalidArgumentError(f"No descriptor found for message type {message_type}") from None
        self._class: Any = message_factory.GetMessageClass(descriptor)
        self._fields: list[Any] = []
        self._types = list(types)
        for name, kind in zip(names, types, strict=True):
            field = descriptor.fields_by_name.get(name)
            if field is None:
                raise InvalidArgumentError(f"Unknown field: {name} in message type {message_type}")
            if kind not in TYPES[field.type]:
                raise InvalidArgumentError(f"Unexpected output type for {field.full_name}: {kind}")
            self._fields.append(field)

    def decoded(
        self, messages: np.ndarray[Any, Any], form: Literal["binary", "text"]
    ) -> tuple[np.ndarray[Any, Any], list[np.ndarray[Any, Any]]]:
        """Decodes messages. Returns the number of values of each field in each message, and the values of each field,
        padded with defaults.

        Raises:
          DataLossError: bytes are not such a message.
        """
        found = [self._parsed(each, form) for each in messages.ravel()]
        rows = [[self._values(message, field) for field in self._fields] for message in found]
        sizes = np.array([[len(values) for values in row] for row in rows], np.int32)
        sizes = sizes.reshape(*messages.shape, len(self._fields))
        columns: list[np.ndarray[Any, Any]] = []
        for at, (field, kind) in enumerate(zip(self._fields, self._types, strict=True)):
            most = max([1, *(len(row[at]) for row in rows)])
            column = np.full((len(rows), most), _default(field), object if kind == "string" else np.dtype(kind))
            for index, row in enumerate(rows):
                for place, value in enumerate(row[at]):
                    column[index, place] = _plain(value, kind)
            columns.append(column.reshape(*messages.shape, most))
        return sizes, columns

    def encoded(self, sizes: np.ndarray[Any, Any], values: Sequence[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
        """Encodes messages from the first values of each field, as many as ``sizes`` gives.

        Raises:
          InvalidArgumentError: ``sizes`` exceeds the number of values, or a field that is not repeated gets several.
        """
        shape = sizes.shape[:-1]
        counts = sizes.reshape(-1, len(self._fields))
        flat = [value.reshape(len(counts), -1) for value in values]
        found: np.ndarray[Any, Any] = np.empty(len(counts), object)
        for index, row in enumerate(counts):
            message: Any = self._class()
            for at, field in enumerate(self._fields):
                count = int(row[at])
                if count > flat[at].shape[1]:
                    raise InvalidArgumentError(
                        f"Size {count} of field {field.name} is larger than its {flat[at].shape[1]} values"
                    )
                if count > 1 and not _is_repeated(field):
                    raise InvalidArgumentError(f"Non-repeated field {field.name} has {count} values")
                for value in flat[at][index, :count]:
                    _put(message, field, value)
            found[index] = message.SerializeToString()
        return found.reshape(shape)

    def _parsed(self, data: bytes, form: str) -> Any:
        message: Any = self._class()
        try:
            if form == "text":
                text_format.Parse(data, message)
            else:
                message.ParseFromString(data)
        except (DecodeError, text_format.ParseError) as error:
            raise DataLossError(f"Unable to parse a message: {error}") from error
        return message

    def _values(self, message: Any, field: Any) -> list[Any]:
        if _is_repeated(field):
            return list(getattr(message, field.name))
        if field.has_presence:
            return [getattr(message, field.name)] if message.HasField(field.name) else []
        value = getattr(message, field.name)
        return [value] if value != field.default_value else []


def _pool(source: str | bytes) -> Any:
    text = source if isinstance(source, bytes) else source.encode("latin-1")
    if text == _LOCAL.encode() or not text:
        return descriptor_pool.Default()
    if text.startswith(_BYTES.encode()):
        return _pool_of(text[len(_BYTES) :])
    with translated(text) as path:
        return _pool_of(Path(path).read_bytes())


@lru_cache(maxsize=16)  # every step of a graph decodes with the same description
def _pool_of(data: bytes) -> Any:
    """Returns the types that a ``FileDescriptorSet`` describes."""
    pool = descriptor_pool.DescriptorPool()
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(data)
    except DecodeError as error:
        raise InvalidArgumentError(f"descriptor_source holds no FileDescriptorSet: {error}") from error
    for file in files.file:
        pool.Add(file)
    return pool


def _default(field: Any) -> Any:
    if field.type in (FieldDescriptor.TYPE_MESSAGE, FieldDescriptor.TYPE_GROUP):
        return b""
    if _is_repeated(field):
        return b"" if field.type in _TEXTS else 0
    default = field.default_value
    return default.encode() if isinstance(default, str) else default


_TEXTS: Final = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)


def _is_repeated(field: Any) -> bool:
    known = getattr(field, "is_repeated", None)  # since protobuf 6.30
    return field.label == FieldDescriptor.LABEL_REPEATED if known is None else known


def _plain(value: Any, kind: str) -> Any:
    if kind == "string":
        if isinstance(value, bytes):
            return value
        return value.encode() if isinstance(value, str) else value.SerializeToString()
    if kind in ("int32", "int64") and isinstance(value, int):
        bits = 32 if kind == "int32" else 64
        return value - (1 << bits) if value >= 1 << (bits - 1) else value
    return value


def _put(message: Any, field: Any, value: Any) -> None:
    if field.type in (FieldDescriptor.TYPE_MESSAGE, FieldDescriptor.TYPE_GROUP):
        part = getattr(message, field.name).add() if _is_repeated(field) else getattr(message, field.name)
        part.MergeFromString(value)
        if not _is_repeated(field):
            part.SetInParent()
        return
    plain = value if isinstance(value, bytes | str) else value.item()
    if field.type == FieldDescriptor.TYPE_STRING and isinstance(plain, bytes):
        plain = plain.decode()
    if _is_repeated(field):
        getattr(message, field.name).append(plain)
    else:
        setattr(message, field.name, plain)
