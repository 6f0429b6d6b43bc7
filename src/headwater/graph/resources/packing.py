"""Packs many tuples of arrays of any shapes into few arrays, since the number of arrays in a frame is limited."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
_ARRAYS = 3
"""Arrays per component: the ranks of all its arrays, their concatenated shapes, and their concatenated values."""


def pack_elements(elements: Sequence[Sequence[Array]]) -> list[Array]:
    """Packs ``elements`` for `unpack_elements`. Each component has one element type.

    >>> pack_elements([(np.array([1, 2]),), (np.array([3]),)])
    [array([1, 1]), array([2, 1]), array([1, 2, 3])]
    """
    arrays: list[Array] = []
    for column in zip(*elements, strict=True):
        sizes = [size for array in column for size in array.shape]
        values: Array = np.concatenate([array.reshape(-1) for array in column])
        arrays += [np.array([array.ndim for array in column], np.int64), np.array(sizes, np.int64), values]
    return arrays


def unpack_elements(arrays: Sequence[Array]) -> list[tuple[Array, ...]]:
    """Restores the argument of `pack_elements`."""
    columns = [_column(*arrays[first : first + _ARRAYS]) for first in range(0, len(arrays), _ARRAYS)]
    return list(zip(*columns, strict=True))


def _column(ranks: Array, sizes: Array, values: Array) -> list[Array]:
    columns: list[Array] = []
    size_at = value_at = 0
    for rank in ranks.tolist():
        shape = sizes[size_at : size_at + rank].tolist()
        stop = value_at + int(np.prod(shape, dtype=np.int64))
        columns.append(values[value_at:stop].reshape(shape))
        size_at, value_at = size_at + rank, stop
    return columns
