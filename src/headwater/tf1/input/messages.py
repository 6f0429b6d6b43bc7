"""``tf.io.decode_proto`` and ``encode_proto``: protocol buffers whose fields are tensors."""

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
    """What `decode_proto` gives."""

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
    """Fields of serialized messages.

    Args:
      bytes: the messages, of any shape.
      message_type: full name of their type.
      field_names: the fields.
      output_types: the types of their values; messages within are strings.
      descriptor_source: a file with a ``FileDescriptorSet``, or one after ``bytes://``, or ``local://`` for messages
        that this process knows.
      message_format: ``"binary"`` or ``"text"``.
      sanitize: read messages without fields that the type does not have, as is done in any case.

    Returns:
      ``sizes``, int32 of the messages' shape and a number for each field: how many values it has; ``values``, for each
      field a tensor of the messages' shape and as many values as any has, filled up with defaults.

    Raises:
      ValueError: another format. At run time InvalidArgumentError for what the type does not have, DataLossError for
        what is no message.
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
      sizes: int32, how many values of each field each message has.
      values: for each field its values.
      field_names: the fields.
      message_type, descriptor_source: as of `decode_proto`.
    """
    given = [convert_to_tensor(each) for each in values]
    attrs = {"message_type": message_type, "field_names": list(field_names), "descriptor_source": descriptor_source}
    types = [each.dtype.base_dtype for each in given]
    inputs = [convert_to_tensor(sizes, int32), *given]
    return get_default_graph().create_op("EncodeProto", inputs, {**attrs, "Tinput_types": types}, name).outputs[0]
