"""Accumulators: sums of gradients that a task keeps until enough have come (for synchronous replicas).

An accumulator has a time step of its own. A gradient carries the step at which its worker read the variables; one that
is older than the accumulator's is *stale*: it is dropped, and counted.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from headwater.errors import InvalidArgumentError
from headwater.ops.queue_state import Waiting
from headwater.shapes import Dims, TensorShape

_log = logging.getLogger("headwater")

Array = np.ndarray[Any, Any]


class Accumulator:
    """What dense and sparse accumulators have in common.

    Args:
      name: for messages.
      dims: static shape of the gradients.
      mean: give the mean of the gradients rather than their sum.

    Attributes:
      dropped: how many stale gradients were dropped.
    """

    def __init__(self, name: str, dims: Dims, mean: bool) -> None:
        self.name = name
        self.dropped = 0
        self._dims = dims
        self._mean = mean
        self._condition = threading.Condition()
        self._count = 0
        self._step = 0

    def _clear(self) -> None:
        raise NotImplementedError

    def count(self) -> int:
        """How many gradients are in it now."""
        with self._condition:
            return self._count

    def set_step(self, step: int) -> None:
        """Sets the time step. Going back is possible, as after a restart from an older checkpoint, and logged; what the
        accumulator has is of another past then, and forgotten."""
        with self._condition:
            if step < self._step:
                _log.warning("the step of accumulator %r goes back from %d to %d", self.name, self._step, step)
                self._count = 0
                self._clear()
            self._step = step

    def _admit(self, step: int) -> bool:
        """Whether a gradient of ``step`` is fresh. The condition is held."""
        if step < self._step:
            self.dropped += 1
            return False
        return True

    def _added(self) -> None:
        self._count += 1
        self._condition.notify_all()

    def _wait(self, waiting: Waiting, required: int) -> None:
        if required <= 0:
            raise InvalidArgumentError(None, None, f"Argument num_required must be positive, but was {required}")
        waiting.wait_until(
            self._condition,
            lambda: self._count >= required,
            f"gradients in accumulator {self.name!r} ({required} needed)",
        )

    def _taken(self) -> None:
        self._count = 0
        self._step += 1
        self._clear()


class DenseAccumulator(Accumulator):
    """Sums arrays of one shape."""

    _sum: Array | None = None

    def _clear(self) -> None:
        self._sum = None

    def apply(self, gradient: Array, step: int) -> None:
        """Adds a gradient unless it is stale."""
        expected = self._dims if self._sum is None else self._sum.shape
        if not TensorShape(expected).is_compatible_with(gradient.shape):
            raise InvalidArgumentError(
                None, None, f"Shape mismatch: expected {TensorShape(expected)}, got {list(gradient.shape)}"
            )
        with self._condition:
            if self._admit(step):
                if self._sum is None:
                    self._sum = np.array(gradient)
                else:
                    self._sum += gradient
                self._added()

    def take(self, waiting: Waiting, required: int) -> Array:
        """Waits for ``required`` gradients and gives the mean (or sum) of all that have come; starts afresh."""
        with self._condition:
            self._wait(waiting, required)
            assert self._sum is not None
            total = self._sum
            if self._mean:
                total = (total / np.asarray(self._count, total.dtype)).astype(total.dtype, copy=False)
            self._taken()
            return total


class SparseAccumulator(Accumulator):
    """Sums rows by their index. The mean of a row is over the gradients that had the row."""

    def __init__(self, name: str, dims: Dims, mean: bool) -> None:
        super().__init__(name, dims, mean)
        self._indices: list[Array] = []
        self._values: list[Array] = []
        self._shape: Array | None = None

    def _clear(self) -> None:
        self._indices, self._values, self._shape = [], [], None

    def apply(self, indices: Array, values: Array, shape: Array | None, step: int) -> None:
        """Adds rows unless they are stale."""
        known = None if self._dims is None else self._dims
        if values.ndim < 1 or indices.ndim != 1 or len(indices) != len(values):
            raise InvalidArgumentError(
                None, None, f"{len(indices)} indices for values of shape {values.shape} in accumulator {self.name!r}"
            )
        if known is not None and not TensorShape(known[1:]).is_compatible_with(values.shape[1:]):
            raise InvalidArgumentError(
                None, None, f"Shape mismatch: expected rows of {TensorShape(known[1:])}, got {list(values.shape[1:])}"
            )
        rows = known[0] if known else None
        if rows is not None and indices.size and not 0 <= int(indices.max()) < rows:
            raise InvalidArgumentError(
                None, None,
                f"Shape mismatch: index of slice 0 exceeded limits of shape; index is {indices.max()} exceeded {rows}",
            )  # fmt: skip
        with self._condition:
            if self._admit(step):
                unique, inverse = np.unique(indices, return_inverse=True)
                total = np.zeros((len(unique), *values.shape[1:]), values.dtype)
                np.add.at(total, inverse, values)
                self._indices.append(unique.astype(np.int64))
                self._values.append(total)
                self._shape = shape if shape is not None and shape.size else self._shape
                self._added()

    def take(self, waiting: Waiting, required: int, for_update: bool = False) -> tuple[Array, Array, Array]:
        """Indices, values and dense shape, as `DenseAccumulator.take`.

        Args:
          for_update: give what an update of a variable needs: the mean over all gradients, those without the row
            included, as if all had been dense; and as many rows as a power of two, with indices outside every variable
            for those that are too many, so that few different shapes have to be compiled.
        """
        with self._condition:
            self._wait(waiting, required)
            unique, inverse, counts = np.unique(np.concatenate(self._indices), return_inverse=True, return_counts=True)
            rows = np.concatenate(self._values)
            total = np.zeros((len(unique), *rows.shape[1:]), rows.dtype)
            np.add.at(total, inverse, rows)
            if for_update:
                total /= np.asarray(self._count, rows.dtype)
                unique, total = _padded(unique, total)
            elif self._mean:
                total /= counts.astype(rows.dtype).reshape(-1, *(1,) * (rows.ndim - 1))
            shape = self._dense_shape(rows.shape[1:])
            self._taken()
            return unique, total, shape

    def _dense_shape(self, row: Sequence[int]) -> Array:
        if self._shape is not None:
            return self._shape.astype(np.int64)
        first = -1 if not self._dims or self._dims[0] is None else self._dims[0]
        return np.array([first, *row], np.int64)


def _padded(indices: Array, rows: Array) -> tuple[Array, Array]:
    more = (1 << (len(indices) - 1).bit_length()) - len(indices) if len(indices) else 1
    outside = np.full(more, np.iinfo(indices.dtype).max, indices.dtype)
    return np.concatenate([indices, outside]), np.concatenate([rows, np.zeros((more, *rows.shape[1:]), rows.dtype)])
