"""Embedding tables: the engine for rows by key, their optimizer's state, snapshots, routing, compiled kernels.

This package uses neither JAX nor the network: the engine consists of functions on arrays, which numba compiles. Other
packages use some of these functions for embedding variables of fixed size (`xla_calls`) and to parse serialized
examples (`examples`). Start with `table.Table` and its `description`.
"""

from headwater.tables.description import TableConfig, TableStatistics
from headwater.tables.initializers import Initializer
from headwater.tables.optimizers import FTRL, SGD, Adagrad, Adam, GeneralOptimizer, Momentum, RMSProp, RowOptimizer
from headwater.tables.policies import Admission, Age, LeastFrequent, LeastRecent
from headwater.tables.table import Table

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
