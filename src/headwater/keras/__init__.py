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
    "ClusterCoordinator": "headwater.coordinator.coordinator",
    "InputContext": "headwater.keras.strategy",
    "OneDeviceStrategy": "headwater.keras.strategy",
    "ParameterServerStrategy": "headwater.keras.parameter_server.strategy",
    "FixedShardsPartitioner": "headwater.parameters.layout",
    "MaxSizePartitioner": "headwater.parameters.layout",
    "MinSizePartitioner": "headwater.parameters.layout",
    "MirroredStrategy": "headwater.keras.mirrored.strategy",
    "MultiWorkerMirroredStrategy": "headwater.keras.mirrored.strategy",
    "ReduceOp": "headwater.keras.values",
    "ReplicaContext": "headwater.keras.strategy",
    "Strategy": "headwater.keras.strategy",
    "get_replica_context": "headwater.keras.strategy",
    "get_strategy": "headwater.keras.strategy",
    "has_strategy": "headwater.keras.strategy",
    "in_cross_replica_context": "headwater.keras.strategy",
}


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_NAMES[name]), name)


def __dir__() -> list[str]:
    return sorted(_NAMES)
