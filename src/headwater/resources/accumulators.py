"""Accumulators: sums of gradients that a task keeps until enough have come (for synchronous replicas).

An accumulator has a time step of its own. A gradient carries the step at which its worker read the variables; one that
is older than the accumulator's is *stale*: it is dropped, and counted.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headwater.errors import InvalidArgumentError
from headwater.resources.queues import Waiting
from headwater.shapes import Dims, TensorShape

_log = logging.getLogger("headwater")

Array = np.ndarray[Any, Any]
Gradient = Sequence[Array]
"""One array of a dense gradient; indices, values and dense shape (empty where unknown) of one of rows."""

_ALIGNMENT = 64


def _aligned_copy(array: Array) -> Array:
    """A copy that starts at a multiple of 64 bytes, where XLA uses it in place. Elsewhere it copies it once more."""
    room = np.empty(array.nbytes + _ALIGNMENT, np.uint8)
    start = -room.__array_interface__["data"][0] % _ALIGNMENT
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


class GradientSum:
    """The sum of the gradients of one variable."""

    def check(self, gradient: Gradient) -> None:
        """Raises InvalidArgumentError where it does not fit."""
        raise NotImplementedError

    def add(self, gradient: Gradient) -> None:
        """Adds one, which stays the caller's."""
        raise NotImplementedError

    def reduced(self, count: int, mean: bool) -> Gradient:
        """The sum of what was added ``count`` times, or its mean. It may be the sum itself: `clear` must follow."""
        raise NotImplementedError

    def clear(self) -> None:
        """Starts afresh."""
        raise NotImplementedError


class DenseSum(GradientSum):
    """Sums arrays of one shape.

    Args:
      dims: static shape of the gradients.
    """

    def __init__(self, dims: Dims) -> None:
        self._dims = dims
        self._sum: Array | None = None

    def check(self, gradient: Gradient) -> None:
        (array,) = gradient
        expected = self._dims if self._sum is None else self._sum.shape
        if array.shape != expected and not TensorShape(expected).is_compatible_with(array.shape):
            raise InvalidArgumentError(
                None, None, f"Shape mismatch: expected {TensorShape(expected)}, got {list(array.shape)}"
            )

    def add(self, gradient: Gradient) -> None:
        (array,) = gradient
        if self._sum is None:
            self._sum = _aligned_copy(array)
        else:
            np.add(self._sum, array, out=self._sum)

    def reduced(self, count: int, mean: bool) -> Gradient:
        total = self._sum
        assert total is not None
        if mean:
            by = np.asarray(count, total.dtype)
            inexact = total.dtype.kind in "fc"
            total = np.divide(total, by, out=total) if inexact else (total / by).astype(total.dtype, copy=False)
        return (total,)

    def clear(self) -> None:
        self._sum = None


class RowSum(GradientSum):
    """Sums rows by their index.

    Args:
      name: for messages.
      dims: static shape of the variable.
      for_update: give what updates a variable: the mean over all gradients, those without the row included, as if all
        had been dense; and as many rows as a power of two, with indices outside every variable for those that are too
        many, so that few different shapes have to be compiled. Otherwise the mean of a row is over the gradients that
        had it.
    """

    def __init__(self, name: str, dims: Dims, *, for_update: bool = False) -> None:
        self._name = name
        self._dims = dims
        self._for_update = for_update
        self.clear()

    def check(self, gradient: Gradient) -> None:
        indices, values, _ = gradient
        if values.ndim < 1 or indices.ndim != 1 or len(indices) != len(values):
            raise InvalidArgumentError(
                None, None, f"{len(indices)} indices for values of shape {values.shape} in accumulator {self._name!r}"
            )
        known = self._dims
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

    def add(self, gradient: Gradient) -> None:
        indices, values, shape = gradient
        unique, inverse = np.unique(indices, return_inverse=True)
        total = np.zeros((len(unique), *values.shape[1:]), values.dtype)
        np.add.at(total, inverse, values)
        self._indices.append(unique.astype(np.int64))
        self._values.append(total)
        self._shape = shape if shape.size else self._shape

    def reduced(self, count: int, mean: bool) -> Gradient:
        unique, inverse, counts = np.unique(np.concatenate(self._indices), return_inverse=True, return_counts=True)
        rows = np.concatenate(self._values)
        total = np.zeros((len(unique), *rows.shape[1:]), rows.dtype)
        np.add.at(total, inverse, rows)
        if self._for_update:
            total /= np.asarray(count, rows.dtype)
            unique, total = _padded(unique, total)
        elif mean:
            total /= counts.astype(rows.dtype).reshape(-1, *(1,) * (rows.ndim - 1))
        return unique, total, self._dense_shape(rows.shape[1:])

    def clear(self) -> None:
        self._indices: list[Array] = []
        self._values: list[Array] = []
        self._shape: Array | None = None

    def _dense_shape(self, row: Sequence[int]) -> Array:
        if self._shape is not None:
            return self._shape.astype(np.int64)
        first = -1 if not self._dims or self._dims[0] is None else self._dims[0]
        return np.array([first, *row], np.int64)


def _padded(indices: Array, rows: Array) -> tuple[Array, Array]:
    more = (1 << (len(indices) - 1).bit_length()) - len(indices) if len(indices) else 1
    outside = np.full(more, np.iinfo(indices.dtype).max, indices.dtype)
    return np.concatenate([indices, outside]), np.concatenate([rows, np.zeros((more, *rows.shape[1:]), rows.dtype)])


@dataclass(slots=True)
class _Repeated:
    """What `Accumulator.repeat` was asked for.

    Attributes:
      waiting: the step that asked.
      required: how many gradients each run takes.
      run: takes them.
      left: how many runs are left.
      running: whether somebody is at it.
      error: what a run has raised.
    """

    waiting: Waiting
    required: int
    run: Callable[[], None]
    left: int
    running: bool = False
    error: BaseException | None = None

    def over(self) -> bool:
        return not self.running and (self.left == 0 or self.error is not None)


class Accumulator:
    """Gathers the gradients of one variable or of several, which come and go together.

    Args:
      name: for messages.
      sums: what adds the gradients of each variable.
      mean: give the mean of the gradients rather than their sum.

    Attributes:
      dropped: how many stale gradients were dropped.
    """

    def __init__(self, name: str, sums: Sequence[GradientSum], *, mean: bool = True) -> None:
        self.name = name
        self.dropped = 0
        self._sums = sums
        self._mean = mean
        self._condition = threading.Condition()
        self._count = 0
        self._step = 0
        self._wanted: dict[int, int] = {}
        self._repeated: list[_Repeated] = []
        self._set_aside: dict[int, tuple[Sequence[Gradient], int]] = {}

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
                self._clear()
            self._step = step

    def apply(self, gradients: Sequence[Gradient], step: int) -> None:
        """Adds a gradient of every variable, unless they are stale.

        Raises:
          InvalidArgumentError: one does not fit; none is added.
        """
        with self._condition:
            for total, gradient in zip(self._sums, gradients, strict=True):
                total.check(gradient)
            if step < self._step:
                self.dropped += 1
                return
            for total, gradient in zip(self._sums, gradients, strict=True):
                total.add(gradient)
            self._count += 1
            # Whoever needs more would only look and wait again.
            if self._count >= min(self._wanted.values(), default=self._count + 1):
                self._condition.notify_all()
            ready = next((repeated for repeated in self._repeated if self._is_ready(repeated)), None)
        if ready is not None:
            self._run(ready)

    def take(self, waiting: Waiting, required: int) -> tuple[Sequence[Gradient], int]:
        """Waits for ``required`` gradients of every variable; starts afresh.

        Returns:
          The mean (or sum) of all that have come, for every variable, and the time step from now on.
        """
        if required <= 0:
            raise InvalidArgumentError(None, None, f"Argument num_required must be positive, but was {required}")
        with self._condition:
            taken = self._set_aside.pop(id(waiting), None)
            if taken is not None:
                return taken
            self._wanted[id(waiting)] = required
            try:
                waiting.wait_until(self._condition, lambda: self._count >= required, self._what(required))
            finally:
                del self._wanted[id(waiting)]
            return self._taken()

    def repeat(self, waiting: Waiting, required: int, run: Callable[[], None], times: int) -> None:
        """Has ``run`` called ``times`` times, each time when a `take` for ``waiting`` in it finds enough gradients.

        Whoever gives the last of them calls it: no thread has to be woken first.

        Raises:
          Whatever ``run`` raises, and waiting does.
        """
        if required <= 0:
            raise InvalidArgumentError(None, None, f"Argument num_required must be positive, but was {required}")
        repeated = _Repeated(waiting, required, run, times)
        with self._condition:
            self._repeated.append(repeated)
        try:
            while True:
                with self._condition:
                    waiting.wait_until(
                        self._condition, lambda: repeated.over() or self._is_ready(repeated), self._what(required)
                    )
                    if repeated.over():
                        break
                self._run(repeated)
        finally:
            with self._condition:
                self._repeated.remove(repeated)
        if repeated.error is not None:
            raise repeated.error

    def _is_ready(self, repeated: _Repeated) -> bool:
        return not (repeated.running or repeated.over()) and self._count >= repeated.required

    def _run(self, repeated: _Repeated) -> None:
        """Runs it once, unless somebody else has taken the gradients meanwhile."""
        with self._condition:
            if not self._is_ready(repeated):
                return
            repeated.running = True
            self._set_aside[id(repeated.waiting)] = self._taken()
        try:
            repeated.run()
        except BaseException as error:  # noqa: BLE001 - it is for whoever asked, not for whoever gave a gradient
            repeated.error = error
        with self._condition:
            repeated.running = False
            repeated.left -= 1
            self._set_aside.pop(id(repeated.waiting), None)
            # More may have come meanwhile. Whoever asked sees to it, lest one giver makes the updates of all others.
            if repeated.over() or self._is_ready(repeated):
                self._condition.notify_all()

    def _what(self, required: int) -> str:
        return f"gradients in accumulator {self.name!r} ({required} needed)"

    def _taken(self) -> tuple[Sequence[Gradient], int]:
        reduced = [total.reduced(self._count, self._mean) for total in self._sums]
        self._clear()
        self._step += 1
        return reduced, self._step

    def _clear(self) -> None:
        self._count = 0
        for total in self._sums:
            total.clear()
