"""TensorFlow's protobuf modules from the package tensorboard: ``graph_pb2``, ``config_pb2`` and so on.

They have no type information; imported from here each is ``Any``. Modules that tensorboard lacks are in
`headwater.data.io.protos`. Annotations name a message by one of the aliases below.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any, TypeAlias

_Message: TypeAlias = Any

AttrValue: TypeAlias = _Message
ConfigProto: TypeAlias = _Message
Event: TypeAlias = _Message
Example: TypeAlias = _Message
GraphDef: TypeAlias = _Message
MetaGraphDef: TypeAlias = _Message
NodeDef: TypeAlias = _Message
QueueRunnerDef: TypeAlias = _Message
RunMetadata: TypeAlias = _Message
RunOptions: TypeAlias = _Message
SaveSliceInfoDef: TypeAlias = _Message
SaverDef: TypeAlias = _Message
SessionLog: TypeAlias = _Message
SignatureDef: TypeAlias = _Message
Summary: TypeAlias = _Message
SummaryMetadata: TypeAlias = _Message
TensorInfo: TypeAlias = _Message
VariableDef: TypeAlias = _Message


def __getattr__(name: str) -> ModuleType:
    if not name.endswith("_pb2"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"tensorboard.compat.proto.{name}")
