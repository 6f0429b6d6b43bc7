"""Conversion between attributes of operations and ``AttrValue``."""

from __future__ import annotations

from typing import Any

import numpy as np

from headwater.data.io.tensor_proto import make_ndarray, make_tensor_proto
from headwater.dtypes import DType, as_dtype
from headwater.graph.registry import FunctionAttr
from headwater.shapes import TensorShape
from headwater.tensorboard_protos import attr_value_pb2


def attr_value(value: object) -> Any:
    """Converts ``value`` to an ``AttrValue``."""
    proto = attr_value_pb2.AttrValue()
    write_attr(proto, value)
    return proto


def write_attr(proto: Any, value: object) -> None:
    """Sets an ``AttrValue`` to ``value``; TypeError if attributes cannot have its type."""
    if isinstance(value, bool | np.bool_):
        proto.b = bool(value)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, int | np.integer):
        proto.i = int(value)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, float | np.floating):
        proto.f = float(value)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, str):
        proto.s = value.encode()
    elif isinstance(value, bytes):
        proto.s = value
    elif isinstance(value, DType):
        proto.type = value.as_datatype_enum
    elif isinstance(value, TensorShape):
        proto.shape.CopyFrom(value.as_proto())
    elif isinstance(value, np.ndarray):
        proto.tensor.CopyFrom(make_tensor_proto(value))
    elif isinstance(value, FunctionAttr):
        proto.func.name = value.name
        for key, inner in value.attrs:
            write_attr(proto.func.attr[key], inner)
    elif isinstance(value, list | tuple):
        _write_list(proto.list, list(value))  # pyright: ignore[reportUnknownArgumentType]
    else:
        raise TypeError(f"an attribute of type {type(value).__name__} cannot be stored in a GraphDef: {value!r}")


def _write_list(proto: Any, values: list[object]) -> None:
    proto.SetInParent()
    for value in values:
        if isinstance(value, bool):
            proto.b.append(value)
        elif isinstance(value, int):
            proto.i.append(value)
        elif isinstance(value, float):
            proto.f.append(value)
        elif isinstance(value, str):
            proto.s.append(value.encode())
        elif isinstance(value, bytes):
            proto.s.append(value)
        elif isinstance(value, DType):
            proto.type.append(value.as_datatype_enum)
        elif isinstance(value, TensorShape):
            proto.shape.append(value.as_proto())
        elif isinstance(value, np.ndarray):
            proto.tensor.append(make_tensor_proto(value))
        else:
            raise TypeError(f"a list with {value!r} cannot be stored in a GraphDef")


def read_attr(proto: Any) -> Any:
    """Converts an ``AttrValue`` to a Python value; bytes that are valid UTF-8 become str."""
    kind = proto.WhichOneof("value")
    if kind == "s":
        return _text(proto.s)
    if kind in ("i", "f", "b"):
        return getattr(proto, kind)
    if kind == "type":
        return as_dtype(proto.type)
    if kind == "shape":
        return TensorShape(proto.shape)
    if kind == "tensor":
        return make_ndarray(proto.tensor)
    if kind == "func":
        inner = sorted((key, read_attr(value)) for key, value in proto.func.attr.items())
        return FunctionAttr(proto.func.name, tuple(inner))
    if kind == "list":
        return _read_list(proto.list)
    return None


def _read_list(proto: object) -> tuple[object, ...]:
    for field, convert in (
        ("s", _text),
        ("i", int),
        ("f", float),
        ("b", bool),
        ("type", as_dtype),
        ("shape", TensorShape),
        ("tensor", make_ndarray),
    ):
        values = getattr(proto, field)
        if values:
            return tuple(convert(value) for value in values)  # pyright: ignore[reportUnknownArgumentType]
    return ()


def _text(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
