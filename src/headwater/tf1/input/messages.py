"""``tf.io.decode_proto`` and ``encode_proto``: conversion of protocol buffers to and from tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from headwater.dtypes import as_dtype, int32
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Tensor
from headwater.tf1.functional.apply import apply

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.types import TensorLike


class DecodeProtoV2(NamedTuple):
    """Result of `decode_proto`."""

    sizes: Tensor
    values: list[Tensor]


def decode_proto(
    bytes: TensorLike,
    message_type: str,
    field_names: Sequence[str],
    output_types: Sequence[DTypeLike],
    descriptor_source: str | bytes = "local://",
    message_format: str = "binary",
    sanitize: bool = False,
    name: str | None = None,
) -> DecodeProtoV2:
    """Decodes fields of serialized messages.

    Args:
      bytes: the messages, of any shape.
      message_type: full name of their type.
      output_types: the types of their values; nested messages are strings.
      descriptor_source: path of a ``FileDescriptorSet``, or its bytes after ``bytes://``, or ``local://`` for messages
        registered in this process.
      message_format: ``"binary"`` or ``"text"``.
      sanitize: ignore unknown fields, which is always done.

    Returns:
      ``sizes``, int32 [*messages' shape, fields]: the number of values of each field; ``values``, for each field a
      tensor [*messages' shape, largest number of values], padded with defaults.

    Raises:
      ValueError: the format is unknown. At run time InvalidArgumentError for unknown fields, DataLossError for
        malformed messages.
    """
    if message_format not in ("binary", "text"):
        raise ValueError(f"message_format must be binary or text, not {message_format!r}")
    types = [as_dtype(each) for each in output_types]
    attrs = {"message_type": message_type, "field_names": list(field_names), "descriptor_source": descriptor_source}
    op = apply(
        "DecodeProtoV2",
        bytes,
        output_types=types,
        message_format=message_format,
        sanitize=sanitize,
        name=name or "DecodeProtoV2",
        **attrs,
    )
    return DecodeProtoV2(op.outputs[0], list(op.outputs[1:]))


def encode_proto(
    sizes: TensorLike,
    values: Sequence[TensorLike],
    field_names: Sequence[str],
    message_type: str,
    descriptor_source: str | bytes = "local://",
    name: str | None = None,
) -> Tensor:
    """Serialized messages, the reverse of `decode_proto`.

    Args:
      sizes: int32, number of values of each field in each message.
      values: for each field its values.
      message_type, descriptor_source: as for `decode_proto`.
    """
    given = [convert_to_tensor(each) for each in values]
    attrs = {"message_type": message_type, "field_names": list(field_names), "descriptor_source": descriptor_source}
    types = [each.dtype.base_dtype for each in given]
    inputs = [convert_to_tensor(sizes, int32), *given]
    return get_default_graph().create_op("EncodeProto", inputs, {**attrs, "Tinput_types": types}, name).outputs[0]
