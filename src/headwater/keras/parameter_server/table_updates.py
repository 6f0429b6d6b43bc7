"""Updates of some rows of a table: what a Keras optimizer does to a variable that has these rows only.

*Lazy* (the default): the optimizer sees the rows that a step has gradients for, and their part of its state; all others
stay as they are. For optimizers whose update of a row without a gradient is nothing (SGD, Adagrad), that is the same as
an update of the whole table. Those with momentum (Adam, RMSprop, SGD with momentum) would go on moving other rows, and
weight decay would shrink them; lazily they wait until the row is used again. TensorFlow's LazyAdam did the same.

*Exact*: the optimizer sees the whole table, with zeros where there is no gradient. This costs time in proportion to the
table, however few rows a step uses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from headwater.errors import InvalidArgumentError
from headwater.parameters.updater import Array

_jax: Any = jax

#: Rows that one executable takes at least. Numbers of rows are rounded up to powers of two, so that few are compiled.
SMALLEST = 64


def rounded_up(count: int) -> int:
    """The number of rows that an executable for ``count`` rows takes."""
    return max(SMALLEST, 1 << max(0, count - 1).bit_length())


class TableUpdates:
    """The optimizer of one table.

    Args:
      shape: of the table.
      make: gives the optimizer, built for a variable of a number of rows.
      names_of: names an optimizer's variables.
      exact: see above.

    Attributes:
      names: of the parts of its state.
    """

    def __init__(
        self, shape: Sequence[int], make: Callable[[int], Any], *, names_of: Callable[[Any], list[str]], exact: bool
    ) -> None:
        self._shape = tuple(shape)
        self._make = make
        self._exact = exact
        few, more = make(3), make(5)
        self.names: list[str] = names_of(few)
        self._by_row = [
            tuple(one.shape) != tuple(other.shape) for one, other in zip(few.variables, more.variables, strict=True)
        ]
        for variable, by_row in zip(few.variables, self._by_row, strict=True):
            if by_row and variable.shape[0] != 3:
                raise ValueError(f"{variable.path} depends on the number of rows in a way that rows do not show")
        self._first = [np.asarray(variable.value) for variable in few.variables]
        rate = getattr(few, "_learning_rate", None)
        self._rate_at = next((at for at, variable in enumerate(few.variables) if variable is rate), None)
        self.state: list[Any] = []
        self._compiled: dict[int, Any] = {}
        self.reset()

    def reset(self) -> None:
        """Begins anew."""
        self.state = [
            np.repeat(first[:1], self._shape[0], axis=0) if by_row else first.copy()
            for first, by_row in zip(self._first, self._by_row, strict=True)
        ]

    def fill(self, state: Sequence[Array]) -> None:
        """Takes a state."""
        if [array.shape for array in state] != [array.shape for array in self.state]:
            raise InvalidArgumentError(None, None, "the state of a table's optimizer has another shape")
        self.state = [np.array(array) for array in state]

    def set_rate(self, rate: float) -> None:
        """Sets the learning rate, where that is a number."""
        if self._rate_at is not None:
            self.state[self._rate_at] = np.asarray(rate, self._first[self._rate_at].dtype)

    def apply(self, table: Array, numbers: Array, gradients: Array) -> None:
        """Updates rows of ``table`` in place.

        Args:
          table: all of it.
          numbers: of rows, ascending.
          gradients: of these.

        Raises:
          InvalidArgumentError: there is no such row, or the gradients are of another shape.
        """
        rows = self._shape[0]
        if gradients.shape != (len(numbers), *self._shape[1:]):
            raise InvalidArgumentError(None, None, f"gradients of {len(numbers)} rows have shape {gradients.shape}")
        if len(numbers) and not 0 <= int(numbers[0]) <= int(numbers[-1]) < rows:
            raise InvalidArgumentError(None, None, f"rows {numbers[0]} to {numbers[-1]} of a table of {rows}")
        if self._exact:
            whole = np.zeros(self._shape, gradients.dtype)
            whole[numbers] = gradients
            numbers, gradients, size = np.arange(rows), whole, rows
        else:
            size = rounded_up(len(numbers))
        parts = [
            _padded(array[numbers], size) if by_row else array
            for array, by_row in zip(self.state, self._by_row, strict=True)
        ]
        new_rows, state = self._step(size)(_padded(table[numbers], size), parts, _padded(gradients, size))
        table[numbers] = np.asarray(new_rows)[: len(numbers)]
        for at, by_row in enumerate(self._by_row):
            if by_row:
                self.state[at][numbers] = np.asarray(state[at])[: len(numbers)]
            else:
                self.state[at] = np.asarray(state[at])

    def _step(self, size: int) -> Any:
        if size not in self._compiled:
            optimizer = self._make(size)

            def step(rows: Any, state: Any, gradients: Any) -> Any:
                values, state = optimizer.stateless_apply(state, [gradients], [rows])
                return values[0], state

            self._compiled[size] = _jax.jit(step)
        return self._compiled[size]


def _padded(rows: Array, size: int) -> Array:
    if len(rows) == size:
        return rows
    padded = np.zeros((size, *rows.shape[1:]), rows.dtype)
    padded[: len(rows)] = rows
    return padded
