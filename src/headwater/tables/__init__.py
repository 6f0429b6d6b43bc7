"""Embedding tables that grow by themselves: rows by key, their optimizer's state beside them.

No JAX, no network, no other layer's state: arrays, and functions that numba compiles. Other functions that numba
compiles are here, too: rows of fixed tables, serialized examples.
"""

from headwater.tables.description import TableConfig, TableStatistics
from headwater.tables.initializers import Initializer
from headwater.tables.optimizers import (
    FTRL,
    SGD,
    Adagrad,
    Adam,
    GeneralOptimizer,
    Momentum,
    RMSProp,
    RowOptimizer,
)
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
