"""Embedding tables: the engine for rows by key, their optimizer's state, snapshots, routing, compiled kernels.

This package uses neither JAX nor the network: the engine consists of compiled functions on arrays (`compiled`). Other
packages use some of these functions for embedding variables of fixed size (`xla_calls`) and to parse serialized
examples (`examples`). Start with `table.Table` and its `description`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from headwater.tables.description import TableConfig, TableStatistics
    from headwater.tables.initializers import Initializer
    from headwater.tables.optimizers import FTRL, SGD, Adagrad, Adam, GeneralOptimizer, Momentum, RMSProp, RowOptimizer
    from headwater.tables.policies import Admission, Age, LeastFrequent, LeastRecent
    from headwater.tables.table import Table

#: The modules of the public names, which are imported on use: programs without dynamic tables use single loops.
_NAMES: Final = {
    "description": ("TableConfig", "TableStatistics"),
    "initializers": ("Initializer",),
    "optimizers": ("FTRL", "SGD", "Adagrad", "Adam", "GeneralOptimizer", "Momentum", "RMSProp", "RowOptimizer"),
    "policies": ("Admission", "Age", "LeastFrequent", "LeastRecent"),
    "table": ("Table",),
}

__all__ = [
    "FTRL",
    "SGD",
    "Adagrad",
    "Adam",
    "Admission",
    "Age",
    "GeneralOptimizer",
    "Initializer",
    "LeastFrequent",
    "LeastRecent",
    "Momentum",
    "RMSProp",
    "RowOptimizer",
    "Table",
    "TableConfig",
    "TableStatistics",
]


def __getattr__(name: str) -> object:
    for module, names in _NAMES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
