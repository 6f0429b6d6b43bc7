"""Datasets, record readers and file formats: elements are tuples or dictionaries of NumPy arrays.

This package is independent of graphs and JAX: functions of a pipeline are Python functions of arrays;
`headwater.tf1.input` makes functions of graphs. Start with `dataset.Dataset`, a tree of nodes (`node.Node`) that
iterate over elements singly or in blocks; formats are in `io`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import headwater

if TYPE_CHECKING:
    from headwater import accounted as accounted


def __getattr__(name: str) -> Any:
    if name == "accounted":
        return headwater.accounted
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
