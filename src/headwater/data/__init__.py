"""Input pipelines: sequences of elements, each a tuple or dictionary of NumPy arrays, read, changed, shuffled, batched.

`headwater.data.dataset.Dataset` is what programs see. A dataset is a tree of nodes (`headwater.data.node.Node`), which
know how to go over their elements, singly or in blocks of many. Nothing here knows of graphs or of JAX: functions are
Python functions of arrays; those of graphs come from the layers above.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.wiring import ACCOUNTED

if TYPE_CHECKING:
    from headwater.tf1.training.accounted import accounted as accounted


def __getattr__(name: str) -> Any:
    if name == "accounted":
        return ACCOUNTED.load().accounted
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
