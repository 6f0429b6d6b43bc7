"""Conversion between protocol buffers and tensors."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.data.io.message_fields import Fields
from headwater.dtypes import DType, int32, string
from headwater.graph.ops.define import host
from headwater.graph.registry import HostArray, Inference, Spec


def _decoded_spec(inference: Inference) -> Sequence[Spec]:
    dims, types = inference.inputs[0].dims, inference.attrs["output_types"]
    sizes = Spec(int32, None if dims is None else (*dims, len(types)))
    return [sizes, *(Spec(dtype, None if dims is None else (*dims, None)) for dtype in types)]


@host("DecodeProtoV2", infer=_decoded_spec, inputs="bytes:string", types={})
def decode_proto(
    bytes: HostArray,
    *,
    message_type: str,
    field_names: Sequence[str] = (),
    output_types: Sequence[DType] = (),
    descriptor_source: str = "local://",
    message_format: str = "binary",
    sanitize: bool = False,
) -> Sequence[HostArray]:
    """Decodes fields of messages; returns the number of values of each field, and the values."""
    del sanitize  # results have only the named fields, so there are no unknown fields to remove
    fields = Fields(message_type, field_names, [dtype.name for dtype in output_types], descriptor_source)
    sizes, values = fields.decoded(bytes, "text" if message_format == "text" else "binary")
    return [sizes, *values]


def _encoded_spec(inference: Inference) -> Sequence[Spec]:
    dims = inference.inputs[0].dims
    return [Spec(string, None if dims is None else dims[:-1])]


@host("EncodeProto", infer=_encoded_spec, types={})
def encode_proto(
    sizes: HostArray,
    *values: HostArray,
    field_names: Sequence[str],
    message_type: str,
    descriptor_source: str = "local://",
    Tinput_types: Sequence[DType] = (),
) -> HostArray:
    """Encodes messages from the values of their fields."""
    fields = Fields(message_type, field_names, [dtype.name for dtype in Tinput_types], descriptor_source)
    return fields.encoded(sizes, values)
