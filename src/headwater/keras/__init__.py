"""Keras 3 on a cluster: strategies that say where a model's variables live and how its steps are shared.

Names are loaded when they are first used: what is for JAX alone needs no Keras. Keras itself reads which backend it has
when it is first imported; Headwater's is JAX, and importing this package says so.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

_BACKEND = "KERAS_BACKEND"

if os.environ.setdefault(_BACKEND, "jax") != "jax":
    raise ImportError(f"{_BACKEND} is {os.environ[_BACKEND]!r}, but Headwater runs Keras on JAX: set it to 'jax'")

_NAMES = {
    "ClusterCoordinator": "coordinator",
    "InputContext": "strategy",
    "OneDeviceStrategy": "strategy",
    "ParameterServerStrategy": "parameter_server.strategy",
    "FixedShardsPartitioner": "parameter_server.layout",
    "MaxSizePartitioner": "parameter_server.layout",
    "MinSizePartitioner": "parameter_server.layout",
    "MirroredStrategy": "mirrored.strategy",
    "MultiWorkerMirroredStrategy": "mirrored.strategy",
    "ReduceOp": "values",
    "ReplicaContext": "strategy",
    "Strategy": "strategy",
    "get_replica_context": "strategy",
    "get_strategy": "strategy",
    "has_strategy": "strategy",
    "in_cross_replica_context": "strategy",
}


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_NAMES)
