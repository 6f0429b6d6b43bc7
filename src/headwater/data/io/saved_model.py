"""The files ``saved_model.pb`` and ``saved_model.pbtxt``: a version, and meta graphs with their tags.

Source: TensorFlow's ``saved_model.proto``: field 1 is the version of the schema, field 2 each ``MetaGraphDef``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.message import DecodeError, Message

from headwater.data.io import files, varint
from headwater.errors import DataLossError
from headwater.tensorboard_protos import meta_graph_pb2

FILE_NAME: Final = "saved_model.pb"
VARIABLES: Final = ("variables", "variables")
"""Folder and prefix of the checkpoint beside the file."""
ASSETS: Final = "assets"
ASSETS_KEY: Final = "saved_model_assets"
TEXT_FILE_NAME: Final = "saved_model.pbtxt"
SCHEMA_VERSION: Final = 1
VARIABLES_DIRECTORY, VARIABLES_FILENAME = VARIABLES
_VERSION, _VERSION_KEY, _GRAPH_KEY = 1, 0x08, 0x12


def encode(meta_graphs: Sequence[Any]) -> bytes:
    """Returns the file's bytes."""
    parts = [bytes([_VERSION_KEY, _VERSION])]
    for graph in meta_graphs:
        data = graph.SerializeToString(deterministic=True)
        parts.append(bytes([_GRAPH_KEY]) + varint.encode(len(data)) + data)
    return b"".join(parts)


def read(export_dir: str) -> list[Any]:
    """Reads the meta graphs in a folder, from the binary file, or else from the file in protobuf's text form.

    Raises:
      OSError: there is no such file.
      DataLossError: the file is not a saved model.
    """
    path = f"{export_dir}/{FILE_NAME}"
    if not files.exists(path):
        text_path = f"{export_dir}/{TEXT_FILE_NAME}"
        if not files.exists(text_path):
            raise OSError(f"SavedModel file does not exist at: {path} or {text_path}")
        return _read_text(text_path)
    with files.open_file(path, "rb") as file:
        data = file.read()
    found: list[Any] = []
    place = 0
    try:
        while place < len(data):
            key, place = varint.decode(data, place, len(data))
            value, place = varint.decode(data, place, len(data))
            if key == _GRAPH_KEY:
                if place + value > len(data):
                    raise ValueError("a meta graph does not end")
                found.append(meta_graph_pb2.MetaGraphDef.FromString(data[place : place + value]))
                place += value
            elif key != _VERSION_KEY:
                raise ValueError(f"unknown field {key >> 3}")
    except (ValueError, DecodeError) as error:
        raise DataLossError(f"{path} is not a saved model: {error}") from error
    return found


def _read_text(path: str) -> list[Any]:
    with files.open_file(path, "rb") as file:
        data = file.read()
    try:
        return list(text_format.Parse(data.decode(), _message()).meta_graphs)
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise DataLossError(f"{path} is not a saved model: {error}") from error


@cache
def _message_class() -> type[Message]:
    """Returns the class of TensorFlow's ``SavedModel`` messages, which tensorboard does not have."""
    described = descriptor_pb2.FileDescriptorProto(
        name="headwater/data/io/saved_model.proto",
        package="headwater.io",
        syntax="proto3",
        dependency=[meta_graph_pb2.DESCRIPTOR.name],
    )
    fields = described.message_type.add(name="SavedModel").field
    kinds = descriptor_pb2.FieldDescriptorProto
    fields.add(name="saved_model_schema_version", number=_VERSION, type=kinds.TYPE_INT64, label=kinds.LABEL_OPTIONAL)
    fields.add(
        name="meta_graphs",
        number=_GRAPH_KEY >> 3,
        type=kinds.TYPE_MESSAGE,
        type_name=f".{meta_graph_pb2.MetaGraphDef.DESCRIPTOR.full_name}",
        label=kinds.LABEL_REPEATED,
    )
    pool = descriptor_pool.Default()
    pool.Add(described)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("headwater.io.SavedModel"))


def _message() -> Any:
    return _message_class()()
