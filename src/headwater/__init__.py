"""Headwater: training on a cluster of parameter servers and workers, with TensorFlow's API on JAX.

``from headwater import tf`` is the namespace that programs written for TensorFlow expect. It is loaded at first use,
so that importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
from types import ModuleType

__version__ = "0.1.0"


def __getattr__(name: str) -> ModuleType:
    if name == "tf":
        return importlib.import_module("headwater.compat.tf")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
