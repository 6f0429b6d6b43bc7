"""TensorFlow's protobuf modules, as the package tensorboard carries them: ``graph_pb2``, ``config_pb2`` and so on.

They come without type information; imported from here each is ``Any``. Those that tensorboard lacks are in
`headwater.io.protos`.
"""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    if not name.endswith("_pb2"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"tensorboard.compat.proto.{name}")
