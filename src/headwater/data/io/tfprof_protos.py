"""Messages of TensorFlow's profiler: its results for operations, its advice, and logs of operations.

Names and numbers of fields are the same as in ``tensorflow/core/profiler/tfprof_output.proto`` and ``tfprof_log.proto``
of TensorFlow 1.15, so that Headwater and TensorFlow can read each other's files. Shapes and types of elements are
messages of TensorBoard. The package name differs, so that TensorFlow in the same process does not clash with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

from headwater.tensorboard_protos import tensor_shape_pb2, types_pb2

_PACKAGE: Final = "headwater.tfprof"
_SHAPE: Final = ".tensorboard.TensorShapeProto"
_FIELD: Final = descriptor_pb2.FieldDescriptorProto
_KINDS: Final[Mapping[str, int]] = {
    "string": _FIELD.TYPE_STRING,
    "int32": _FIELD.TYPE_INT32,
    "int64": _FIELD.TYPE_INT64,
    "double": _FIELD.TYPE_DOUBLE,
    "enum": _FIELD.TYPE_ENUM,
}

#: The fields of each message, as ``kind name=number``. A kind is a scalar type, a message of this file, or ``enum``;
#: ``*`` before it marks a repeated field, and ``key>value`` is a map.
_MESSAGES: Final[Mapping[str, str]] = {
    "TFProfTensorProto": "enum dtype=1, *double value_double=2, *int64 value_int64=3, *string value_str=4",
    "GraphNodeProto": """
        string name=1, TFProfTensorProto tensor_value=15, int64 run_count=21, int64 exec_micros=2,
        int64 accelerator_exec_micros=17, int64 cpu_exec_micros=18, int64 requested_bytes=3, int64 peak_bytes=24,
        int64 residual_bytes=25, int64 output_bytes=26, int64 parameters=4, int64 float_ops=13, *string devices=10,
        int64 total_definition_count=23, int64 total_run_count=22, int64 total_exec_micros=6,
        int64 total_accelerator_exec_micros=19, int64 total_cpu_exec_micros=20, int64 total_requested_bytes=7,
        int64 total_peak_bytes=27, int64 total_residual_bytes=28, int64 total_output_bytes=29,
        int64 total_parameters=8, int64 total_float_ops=14, *shape shapes=11, int32>shape input_shapes=16,
        *GraphNodeProto children=12""",
    "MultiGraphNodeProto": """
        string name=1, int64 exec_micros=2, int64 accelerator_exec_micros=12, int64 cpu_exec_micros=13,
        int64 requested_bytes=3, int64 peak_bytes=16, int64 residual_bytes=17, int64 output_bytes=18,
        int64 parameters=4, int64 float_ops=5, int64 total_exec_micros=6, int64 total_accelerator_exec_micros=14,
        int64 total_cpu_exec_micros=15, int64 total_requested_bytes=7, int64 total_peak_bytes=19,
        int64 total_residual_bytes=20, int64 total_output_bytes=21, int64 total_parameters=8, int64 total_float_ops=9,
        *GraphNodeProto graph_nodes=10, *MultiGraphNodeProto children=11""",
    "AdviceProto": "string>AdviceProto.Checker checkers=1",
    "AdviceProto.Checker": "*string reports=2",
    "CodeDef": "*CodeDef.Trace traces=1",
    "CodeDef.Trace": """
        string file=1, int64 file_id=6, int32 lineno=2, string function=3, int64 function_id=7, string line=4,
        int64 line_id=8, int32 func_start_line=5""",
    "OpLogEntry": "string name=1, int64 float_ops=2, *string types=3, CodeDef code_def=4",
    "OpLogProto": "*OpLogEntry log_entries=1, int64>string id_to_string=2",
}


def _set_kind(field: descriptor_pb2.FieldDescriptorProto, kind: str) -> None:
    if kind == "enum":
        field.type, field.type_name = _FIELD.TYPE_ENUM, ".tensorboard.DataType"
    elif kind in _KINDS:
        field.type = _KINDS[kind]
    else:
        field.type, field.type_name = _FIELD.TYPE_MESSAGE, _SHAPE if kind == "shape" else f".{_PACKAGE}.{kind}"


def _add_field(message: descriptor_pb2.DescriptorProto, full_name: str, text: str) -> None:
    kind, _, rest = text.strip().partition(" ")
    name, _, number = rest.partition("=")
    field = message.field.add(name=name, number=int(number), label=_FIELD.LABEL_OPTIONAL)
    key, is_map, value = kind.partition(">")
    if is_map:
        entry = message.nested_type.add(name="".join(part.title() for part in name.split("_")) + "Entry")
        entry.options.map_entry = True
        for at, each in enumerate((key, value), 1):
            _set_kind(entry.field.add(name=("key", "value")[at - 1], number=at, label=_FIELD.LABEL_OPTIONAL), each)
        _set_kind(field, f"{full_name}.{entry.name}")
    else:
        _set_kind(field, kind.lstrip("*"))
    if is_map or kind.startswith("*"):
        field.label = _FIELD.LABEL_REPEATED


def _messages() -> dict[str, type[Message]]:
    file = descriptor_pb2.FileDescriptorProto(name="headwater/tfprof.proto", package=_PACKAGE, syntax="proto3")
    file.dependency.extend([tensor_shape_pb2.DESCRIPTOR.name, types_pb2.DESCRIPTOR.name])
    made: dict[str, descriptor_pb2.DescriptorProto] = {}
    for name, fields in _MESSAGES.items():
        outer, _, inner = name.rpartition(".")
        made[name] = message = made[outer].nested_type.add(name=inner) if outer else file.message_type.add(name=inner)
        for text in fields.split(","):
            _add_field(message, name, text)
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(file.SerializeToString())
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _MESSAGES
    }


_made = _messages()
AdviceProto: Any = _made["AdviceProto"]
GraphNodeProto: Any = _made["GraphNodeProto"]
MultiGraphNodeProto: Any = _made["MultiGraphNodeProto"]
OpLogProto: Any = _made["OpLogProto"]
