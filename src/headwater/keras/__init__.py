"""Keras 3 on a cluster: strategies, mirrored training, collectives, embeddings, coordinators.

Parameter servers themselves belong to `headwater.ps` and tables to `headwater.tables`; TensorFlow 2's eager values are
in `headwater.tf2`. Start with `strategy`, then `mirrored.model` or `parameter_server.model`. Names are loaded when they
are first used; importing `headwater` makes JAX the backend that Keras reads at its first import.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater.keras.coordinator.coordinator import ClusterCoordinator as ClusterCoordinator
    from headwater.keras.mirrored.strategy import MirroredStrategy as MirroredStrategy
    from headwater.keras.mirrored.strategy import MultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy
    from headwater.keras.parameter_server.strategy import ParameterServerStrategy as ParameterServerStrategy
    from headwater.keras.strategy import InputContext as InputContext
    from headwater.keras.strategy import OneDeviceStrategy as OneDeviceStrategy
    from headwater.keras.strategy import ReplicaContext as ReplicaContext
    from headwater.keras.strategy import Strategy as Strategy
    from headwater.keras.strategy import get_replica_context as get_replica_context
    from headwater.keras.strategy import get_strategy as get_strategy
    from headwater.keras.strategy import has_strategy as has_strategy
    from headwater.keras.strategy import in_cross_replica_context as in_cross_replica_context
    from headwater.keras.values import ReduceOp as ReduceOp
    from headwater.ps.layout import FixedShardsPartitioner as FixedShardsPartitioner
    from headwater.ps.layout import MaxSizePartitioner as MaxSizePartitioner
    from headwater.ps.layout import MinSizePartitioner as MinSizePartitioner

if importlib.util.find_spec("keras") is None:
    raise ImportError("headwater.keras needs Keras 3, which is not installed: pip install 'headwater[keras]'")

_keras = sys.modules.get("keras")
_backend = os.environ.get("KERAS_BACKEND", "jax") if _keras is None else _keras.config.backend()
if _backend != "jax":
    raise ImportError(
        f"KERAS_BACKEND is {_backend!r}, but Headwater runs Keras on JAX: set it to 'jax'"
        if _keras is None
        else f"Keras was imported before Headwater and runs on {_backend!r}, but Headwater needs it on JAX: import "
        "headwater first, or start the program with KERAS_BACKEND=jax"
    )

_NAMES = {
    "ClusterCoordinator": "headwater.keras.coordinator.coordinator",
    "InputContext": "headwater.keras.strategy",
    "OneDeviceStrategy": "headwater.keras.strategy",
    "ParameterServerStrategy": "headwater.keras.parameter_server.strategy",
    "FixedShardsPartitioner": "headwater.ps.layout",
    "MaxSizePartitioner": "headwater.ps.layout",
    "MinSizePartitioner": "headwater.ps.layout",
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

# The import hook that adapts Keras imports modules of this package. Import Keras first, so that none of these modules
# sees a partially imported Keras.
importlib.import_module("keras")


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_NAMES[name]), name)


def __dir__() -> list[str]:
    return sorted(_NAMES)
