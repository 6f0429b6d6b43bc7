"""All values that the processes exchange in a training step, as one vector that is summed over the processes.

Let process i have n_i examples and the value x_i of an `Item`. The vector has for this item, depending on its merge:

    MEAN          n_i x_i; the sum is divided by the sum of the n_i
    EACH          x_i; the sum is divided by the number of processes that had examples
    SUM           x_i
    FIRST         x_0 from process 0, zeros from all other processes
    MAX, MIN      a row for each process: process i has x_i in row i, and zeros in all other rows

At its end are three numbers: n_i; 1 if n_i > 0, else 0; and w_i, which is 1 if the process has been asked to end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from headwater.keras.combining.merges import Merge

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray

#: The name of the exchange of a step vector.
TRAINING_STEP = "training step"

_ROWS = {Merge.MAX: -np.inf, Merge.MIN: np.inf}


@dataclass(frozen=True, slots=True)
class Item:
    """A value that each process contributes to the vector.

    Attributes:
      merge: how the values are merged.
      shape: shape of each value.
    """

    merge: Merge
    shape: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """Elements of one value."""
        return int(np.prod(self.shape))


@dataclass(frozen=True, kw_only=True, slots=True)
class StepVector:
    """The layout of the vector.

    Attributes:
      items: the values, in their order.
      rank: rank of this process.
      processes: number of processes.
      dtype: type of the vector.
    """

    items: Sequence[Item]
    rank: int
    processes: int
    dtype: Any

    @property
    def length(self) -> int:
        """Elements of the vector."""
        return sum(self._size(item) for item in self.items) + 3

    def pack(self, rows: int, stop_wanted: Any, values: Sequence[Any]) -> Any:
        """Returns the vector of a process with ``rows`` examples; ``stop_wanted`` is w above, ``values`` are the
        items'."""
        parts: list[Any] = []
        weight = np.asarray(rows, self.dtype)
        for item, value in zip(self.items, values, strict=True):
            flat = jnp.ravel(value).astype(self.dtype)
            if item.merge is Merge.MEAN:
                flat = flat * weight
            elif item.merge is Merge.FIRST and self.rank:
                flat = jnp.zeros_like(flat)
            elif item.merge in _ROWS:
                flat = jnp.zeros((self.processes, item.size), self.dtype).at[self.rank].set(flat).ravel()
            parts.append(flat)
        return jnp.concatenate([*parts, np.asarray([rows, 1], self.dtype), jnp.reshape(stop_wanted, 1)])

    def pack_empty(self, stop_wanted: Any) -> HostArray:
        """Returns the vector of a process without examples in this step."""
        vector = np.zeros(self.length, self.dtype)
        at = 0
        for item in self.items:
            if item.merge in _ROWS:
                row = at + self.rank * item.size
                vector[row : row + item.size] = _ROWS[item.merge]
            at += self._size(item)
        vector[-1] = stop_wanted
        return vector

    def unpack(self, total: Any) -> list[Any]:
        """Returns the merged items; ``total`` is the sum of all processes' vectors."""
        weight, active = 1 / total[-3], 1 / total[-2]
        arrays: list[Any] = []
        at = 0
        for item in self.items:
            size = self._size(item)
            part = total[at : at + size]
            if item.merge is Merge.MEAN:
                part = part * weight
            elif item.merge is Merge.EACH:
                part = part * active
            elif item.merge in _ROWS:
                by_process = part.reshape(self.processes, item.size)
                part = by_process.max(0) if item.merge is Merge.MAX else by_process.min(0)
            arrays.append(part.reshape(item.shape))
            at += size
        return arrays

    def _size(self, item: Item) -> int:
        return item.size * (self.processes if item.merge in _ROWS else 1)


def item_of(merge: Merge, value: Any) -> Item:
    """Returns the item for values of the shape of ``value``."""
    return Item(merge, tuple(int(size) for size in value.shape))
