"""Nested arguments and results of functions in saved models, as ``StructuredValue`` messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headwater.data.spec import TensorSpec
from headwater.dtypes import DType, as_dtype
from headwater.keras.internals import export_utils, tree
from headwater.shapes import TensorShape
from headwater.tensorboard_protos import struct_pb2

if TYPE_CHECKING:
    from headwater.keras.types import Tree


def encode(value: Tree) -> Tree:
    """Converts nested tuples, lists and dicts of specs and Python values to a ``StructuredValue``.

    Raises:
      TypeError: a value has the wrong type.
    """
    proto = struct_pb2.StructuredValue()
    match value:
        case None:
            proto.none_value.SetInParent()
        case bool():
            proto.bool_value = value
        case int():
            proto.int64_value = value
        case float():
            proto.float64_value = value
        case str():
            proto.string_value = value
        case DType():
            proto.tensor_dtype_value = value.as_datatype_enum
        case TensorShape():
            proto.tensor_shape_value.CopyFrom(value.as_proto())
        case TensorSpec():
            spec = proto.tensor_spec_value
            spec.name, spec.dtype = value.name or "", value.dtype.as_datatype_enum
            spec.shape.CopyFrom(value.shape.as_proto())
        case tuple() if hasattr(value, "_fields"):  # pyright: ignore[reportUnknownArgumentType]
            whole: Tree = value
            named = proto.named_tuple_value
            named.name = type(whole).__name__
            for key in whole._fields:
                named.values.add(key=key).value.CopyFrom(encode(getattr(whole, key)))
        case tuple() | list():
            parts = proto.tuple_value if isinstance(value, tuple) else proto.list_value
            parts.SetInParent()
            parts.values.extend(map(encode, value))
        case Mapping():
            proto.dict_value.SetInParent()
            for key, part in value.items():
                proto.dict_value.fields[str(key)].CopyFrom(encode(part))
        case _:
            raise TypeError(f"{value!r} cannot be saved as an argument or a result of a function")
    return proto


def decode(proto: Tree) -> Tree:
    """Converts a ``StructuredValue`` to nested tuples, lists and dicts.

    Raises:
      NotImplementedError: the message contains a spec of sparse, ragged or other composite tensors.
    """
    kind = proto.WhichOneof("kind")
    value = getattr(proto, kind) if kind else None
    match kind:
        case None | "none_value":
            return None
        case "float64_value" | "int64_value" | "string_value" | "bool_value":
            return value
        case "tensor_shape_value":
            return TensorShape(value)
        case "tensor_dtype_value":
            return as_dtype(int(value or 0))
        case "tensor_spec_value" | "bounded_tensor_spec_value":
            assert value is not None
            return TensorSpec(TensorShape(value.shape), as_dtype(value.dtype), value.name or None)
        case "list_value" | "tuple_value":
            assert value is not None
            parts = map(decode, value.values)
            return tuple(parts) if kind == "tuple_value" else list(parts)
        case "dict_value":
            assert value is not None
            return {key: decode(part) for key, part in sorted(value.fields.items())}
        case "named_tuple_value":
            assert value is not None
            return {part.key: decode(part.value) for part in value.values}
        case _:
            raise NotImplementedError(f"a saved function has a {kind}: only specs of dense tensors are supported")


def model_specs(model: Tree) -> list[Tree]:
    """Returns the specs of a model's arguments.

    Raises:
      ValueError: the model was not built or called.
    """
    return as_specs(export_utils.get_input_signature(model))


def as_specs(signature: Sequence[Tree]) -> list[Tree]:
    """Converts descriptions of arguments, such as `keras.InputSpec` and arrays, to nested specs."""
    return [_plain(tree.map_structure(_spec, one)) for one in signature]


def _spec(value: Tree) -> TensorSpec:
    if isinstance(value, TensorSpec):
        return value
    made = export_utils.make_input_spec(value)
    return TensorSpec(made.shape, as_dtype(made.dtype), made.name)


def _plain(value: Tree) -> Tree:
    """Returns nested containers as plain lists, tuples and dicts: Keras wraps containers in attributes of layers."""
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list | tuple):
        parts = [_plain(part) for part in value]  # pyright: ignore[reportUnknownVariableType]
        return parts if isinstance(value, list) else tuple(parts)
    return value
