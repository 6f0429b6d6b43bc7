"""Bags: rows of a batch with any number of ids, and of weights of ids, for embedding layers that pool rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from headwater.data.composites import Composite, RaggedArray, SparseArray, as_component, expand

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray
    from headwater.keras.types import Tree

_tree = jax.tree_util


class Bags:
    """An input of a model with any number of elements in each row of a batch.

    A step gets one number for each row instead of the elements (`headwater.keras.embeddings.ids`), so its shape is
    ``(rows, 1)`` whatever the sizes of the rows.

    Args:
      values: the elements of all rows, [n].
      offsets: the start of each row, and the end of the last one, [rows + 1].
    """

    def __init__(self, values: Any, offsets: object) -> None:
        self.values = values
        self.offsets: Any = np.asarray(offsets, np.int64)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), 1

    @property
    def ndim(self) -> int:
        return 2

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self)

    @property
    def dtype(self) -> Any:
        """NumPy's type of the elements."""
        return self.values.dtype

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, rows: slice | HostArray) -> Bags:
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            if step == 1:
                offsets = self.offsets[start : max(start, stop) + 1]
                return Bags(self.values[offsets[0] : offsets[-1]], offsets - offsets[0])
            rows = np.arange(start, stop, step)
        places, offsets = expand(self.offsets, np.asarray(rows))
        return Bags(self.values[places], offsets)

    def __array__(self, dtype: object = None, copy: bool | None = None) -> HostArray:
        """Returns an array with one array for each row, from which Keras determines the number of examples."""
        del dtype, copy
        rows = np.empty(len(self), object)
        for row in range(len(self)):
            rows[row] = self.values[self.offsets[row] : self.offsets[row + 1]]
        return rows


def with_bags(batch: Tree) -> Tree:
    """Returns a structure of arrays with `Bags` instead of sparse and ragged values of TensorFlow, and of arrays of
    sequences, as pandas and PyArrow return for columns of lists.

    Raises:
      ValueError: such a value does not have two dimensions.
    """
    return _tree.tree_map(as_leaf, batch, is_leaf=lambda leaf: isinstance(leaf, Bags | Iterator) or is_composite(leaf))


def is_composite(leaf: object) -> bool:
    """Returns whether ``leaf`` is a sparse or ragged value of TensorFlow's classes."""
    return isinstance(leaf, Composite) or hasattr(leaf, "dense_shape") or hasattr(leaf, "nested_row_splits")


def as_leaf(leaf: object) -> Any:
    """Returns `Bags` for a sparse or ragged value or an array of sequences; any other leaf unchanged."""
    if is_composite(leaf):
        return _from_composite(as_component(leaf))
    if isinstance(leaf, np.ndarray) and leaf.dtype == object and leaf.ndim == 1 and len(leaf):
        first = next((row for row in leaf if row is not None), None)
        if isinstance(first, np.ndarray | list | tuple):
            return _from_sequences([() if row is None else row for row in leaf])
    return leaf


def _from_composite(value: Composite) -> Bags:
    if value.ndim != 2:
        raise ValueError(f"bags have two dimensions, rows and ids; this {type(value).__name__} has shape {value.shape}")
    if isinstance(value, RaggedArray):
        return Bags(value.values, value.splits[0])
    assert isinstance(value, SparseArray)
    rows = value.indices[:, 0]
    return Bags(value.values, np.searchsorted(rows, np.arange(len(value) + 1)))


def _from_sequences(rows: Sequence[Any]) -> Bags:
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(list(map(len, rows)), out=offsets[1:])
    # Without the empty rows: an empty list becomes an array of float64.
    return Bags(np.concatenate([row for row in rows if len(row)] or [np.empty(0, np.int64)]), offsets)
