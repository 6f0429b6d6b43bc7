"""The value of a ragged tensor: NumPy arrays, with rows of different lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from headwater.graph.types import TensorLike


class RaggedTensorValue:
    """The value of a `RaggedTensor`.

    Args:
      values: an array, or a ragged value.
      row_splits: an array of integers, of length number of rows + 1.

    Raises:
      TypeError, ValueError: ``row_splits`` is not a vector of integers.

    Attributes:
      values: the concatenated rows.
      row_splits: the start and end of each row in the values.
    """

    def __init__(self, values: object, row_splits: TensorLike) -> None:
        if getattr(row_splits, "dtype", None) not in (np.int64, np.int32):
            raise TypeError("row_splits must be a 1D int32 or int64 numpy array")
        splits = cast("np.ndarray[Any, Any]", row_splits)
        if splits.ndim != 1:
            raise ValueError("row_splits must be a 1D int32 or int64 numpy array")
        if not isinstance(values, np.ndarray | np.generic | RaggedTensorValue):
            raise TypeError("values must be a numpy array or a RaggedTensorValue")
        self.values: Any = values
        self.row_splits: Any = splits

    @property
    def flat_values(self) -> Any:
        """The innermost values."""
        return self.values.flat_values if isinstance(self.values, RaggedTensorValue) else self.values

    @property
    def nested_row_splits(self) -> tuple[Any, ...]:
        """The splits of each ragged dimension, the outermost first."""
        inner = self.values.nested_row_splits if isinstance(self.values, RaggedTensorValue) else ()
        return (self.row_splits, *inner)

    @property
    def ragged_rank(self) -> int:
        """The number of ragged dimensions."""
        return len(self.nested_row_splits)

    @property
    def dtype(self) -> Any:
        """The NumPy type of the values."""
        return self.flat_values.dtype

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The shape, with None for ragged dimensions."""
        return (len(self.row_splits) - 1, None, *self.values.shape[1:])

    def to_list(self) -> list[Any]:
        """Converts the value to nested lists of Python values."""
        inner = self.values.to_list() if isinstance(self.values, RaggedTensorValue) else self.values.tolist()
        return [inner[begin:end] for begin, end in zip(self.row_splits[:-1], self.row_splits[1:], strict=True)]

    def __repr__(self) -> str:
        return f"tf.RaggedTensorValue(values={self.values!r}, row_splits={self.row_splits!r})"

    def __str__(self) -> str:
        return f"<tf.RaggedTensorValue {self.to_list()}>"


def ragged_value(arrays_of: Sequence[TensorLike]) -> Any:
    """Builds a ragged value from flat values and splits, the outermost first."""
    flat, *splits = (np.asarray(part) for part in arrays_of)
    found = flat
    for part in reversed(splits):
        found = RaggedTensorValue(found, part)
    return found
