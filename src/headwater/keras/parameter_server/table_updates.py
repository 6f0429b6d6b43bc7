"""Updates of some rows of a table: a Keras optimizer updates a small variable that has only these rows.

*Lazy* (the default): the optimizer gets the rows that have gradients in the step, and the corresponding part of its
state. All other rows stay unchanged. For optimizers that do not change rows with zero gradients (SGD, Adagrad), the
result equals an update of the whole table. In an update of the whole table, optimizers with momentum (Adam, RMSprop,
SGD with momentum) would also move rows without gradients, and weight decay would shrink them. A lazy update defers both
until the row is used again, as in TensorFlow's LazyAdam.

*Exact*: the optimizer gets the whole table, with zeros for rows without a gradient. The cost is proportional to the
size of the table, whatever the number of rows in a step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from headwater.errors import InvalidArgumentError
from headwater.ps.row_changes import RowChanges
from headwater.ps.updater import Array

if TYPE_CHECKING:
    from headwater.keras.types import Tree

#: Number of rows in one computation of initial values.
_ROWS_PER_COMPUTATION = 1 << 14

#: An update is compiled for a number of rows. To limit the number of compilations, numbers of rows are rounded up to
#: powers of two, and to at least this number.
MIN_ROWS = 64


def compiled_size(count: int) -> int:
    """Returns the number of rows that the update of ``count`` rows is compiled for."""
    return max(MIN_ROWS, 1 << max(0, count - 1).bit_length())


class TableUpdates:
    """The rows of a table that one ``ps`` holds, and their optimizer; see `headwater.ps.updater.HostedTable`.

    Args:
      shape: the shape of these rows.
      dtype: the dtype of their elements.
      make: returns an optimizer, built for one variable with a number of rows.
      initial: returns a function; ``function(start, stop)`` returns the initial values of rows ``start`` to ``stop``.
      names_of: returns the names of an optimizer's variables, in order.
      exact: whether updates are exact; see the module's docstring.

    Attributes:
      values: all rows; empty until they have values.
      exact: whether updates are exact.
      row_names: the names of the parts of the optimizer's state that exist for each row.
      shared_names: the names of the other parts.
    """

    def __init__(
        self,
        shape: Sequence[int],
        dtype: str,
        make: Callable[[int], Any],
        *,
        initial: Callable[[], Callable[[int, int], Array]],
        names_of: Callable[[Any], list[str]],
        exact: bool,
    ) -> None:
        self._shape = tuple(shape)
        self._dtype = np.dtype(dtype)
        self._initial = initial
        self._make = make
        self.exact: bool = exact
        # The parts of the state whose shape depends on the number of rows have an entry for each row.
        few, more = make(3), make(5)
        self._by_row = [
            tuple(one.shape) != tuple(other.shape) for one, other in zip(few.variables, more.variables, strict=True)
        ]
        for variable, by_row in zip(few.variables, self._by_row, strict=True):
            if by_row and variable.shape[0] != 3:
                raise ValueError(
                    f"{variable.path} depends on the number of rows, but its first dimension is not the number of rows"
                )
        names = list(zip(names_of(few), self._by_row, strict=True))
        self.row_names = [name for name, by_row in names if by_row]
        self.shared_names = [name for name, by_row in names if not by_row]
        self._first = [np.asarray(variable.value) for variable in few.variables]
        rate = getattr(few, "_learning_rate", None)
        self._rate_at = next((at for at, variable in enumerate(few.variables) if variable is rate), None)
        self.values: Array = np.empty((0, *self._shape[1:]), self._dtype)
        #: Parts of the optimizer's state; parts with an entry per row are empty until the rows have values.
        self._state: list[Array] = [
            first[:0] if by_row else first for first, by_row in zip(self._first, self._by_row, strict=True)
        ]
        self._compiled: dict[int, object] = {}  # by number of rows
        self._changes: RowChanges | None = None

    def _make_room(self) -> None:
        """Allocates all rows, unless that has been done."""
        if len(self.values) < self._shape[0]:
            self.values = np.empty(self._shape, self._dtype)
            self._initialize_state_rows(slice(None))

    def _initialize_state_rows(self, rows: slice) -> None:
        for at, (first, by_row) in enumerate(zip(self._first, self._by_row, strict=True)):
            if by_row and len(self._state[at]) < self._shape[0]:
                # The operating system allocates pages of zeros only when they are written.
                self._state[at] = np.zeros((self._shape[0], *first.shape[1:]), first.dtype)
                if first.any():
                    self._state[at][:] = first[:1]
            elif by_row:
                self._state[at][rows] = first[:1]

    def initialize(self) -> None:
        fresh = not len(self.values)
        self._make_room()
        self._will_change(np.arange(self._shape[0]))
        if not fresh:
            self._initialize_state_rows(slice(None))
        rows = self._initial()
        for start in range(0, self._shape[0], _ROWS_PER_COMPUTATION):
            stop = min(start + _ROWS_PER_COMPUTATION, self._shape[0])
            self.values[start:stop] = rows(start, stop)

    def _parts(self) -> list[Array]:
        """Returns the arrays with an entry for each row: the values, then state, in the order of `row_names`."""
        return [self.values, *(array for array, by_row in zip(self._state, self._by_row, strict=True) if by_row)]

    def read(self, start: int, stop: int, parts: Sequence[int]) -> list[Array]:
        self._check(start, stop)
        every = self._parts()
        if any(not 0 <= part < len(every) for part in parts):
            raise InvalidArgumentError(f"there are no parts {list(parts)}: the table has {len(every)} parts")
        return [every[part][start:stop].copy() for part in parts or range(len(every))]

    def write(self, start: int, arrays: Sequence[Array]) -> None:
        self._make_room()
        every = self._parts()
        count = len(arrays[0]) if len(arrays) in (1, len(every)) else -1
        if [array.shape for array in arrays] != [(count, *part.shape[1:]) for part in every[: len(arrays)]]:
            raise InvalidArgumentError(
                f"rows of shapes {[array.shape for array in arrays]} do not fit a table of {self._shape}"
            )
        self._check(start, start + count)
        self._will_change(np.arange(start, start + count))
        for part, array in zip(every, arrays, strict=False):
            part[start : start + count] = array
        if len(arrays) == 1:
            self._initialize_state_rows(slice(start, start + count))

    def watch(self) -> None:
        self._changes = RowChanges(self._shape[0])

    def _will_change(self, numbers: Array) -> None:
        if self._changes is not None:
            self._changes.will_change(numbers, self._parts())

    def start_saving(self, *, whole: bool) -> int:
        return self._require_changes().start_save(whole=whole)

    def next_saved(self, count: int) -> tuple[Array, list[Array]] | None:
        return self._require_changes().next_rows(self._parts(), count)

    def abandon_save(self) -> None:
        self._require_changes().abandon_save()

    def _require_changes(self) -> RowChanges:
        assert self._changes is not None
        return self._changes

    def restore(self, numbers: Array, arrays: Sequence[Array]) -> None:
        self._make_room()
        every = self._parts()
        if [array.shape for array in arrays] != [(len(numbers), *part.shape[1:]) for part in every]:
            raise InvalidArgumentError(
                f"saved rows of shapes {[array.shape for array in arrays]} do not fit a table of {self._shape}"
            )
        if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < self._shape[0]:
            raise InvalidArgumentError(f"there is no row {numbers.max()}: the table has {self._shape[0]} rows")
        self._will_change(numbers)
        for part, array in zip(every, arrays, strict=True):
            part[numbers] = array

    def _check(self, start: int, stop: int) -> None:
        if not 0 <= start <= stop <= self._shape[0]:
            raise InvalidArgumentError(f"there are no rows {start} to {stop}: the table has {self._shape[0]}")

    def shared_state(self) -> list[Array]:
        """The parts of the state that `shared_names` names."""
        return [array.copy() for array, by_row in zip(self._state, self._by_row, strict=True) if not by_row]

    def set_shared_state(self, shared: Sequence[Array] | None) -> None:
        """Sets the parts of the state that `shared_names` names; None resets them."""
        places = [at for at, by_row in enumerate(self._by_row) if not by_row]
        arrays = [self._first[at] for at in places] if shared is None else shared
        if [array.shape for array in arrays] != [self._first[at].shape for at in places]:
            raise InvalidArgumentError("the state of a table's optimizer has another shape")
        for at, array in zip(places, arrays, strict=True):
            self._state[at] = np.array(array)

    def sizes(self) -> list[tuple[str, tuple[int, ...], str]]:
        """Name, shape and dtype of each part of the state."""
        names = iter(self.row_names), iter(self.shared_names)
        return [
            (next(names[0] if by_row else names[1]), tuple(array.shape), str(array.dtype))
            for array, by_row in zip(self._state, self._by_row, strict=True)
        ]

    def set_rate(self, rate: float) -> None:
        """Sets the learning rate; does nothing if it is a schedule, which is a function of the iteration."""
        if self._rate_at is not None:
            self._state[self._rate_at] = np.asarray(rate, self._first[self._rate_at].dtype)

    def apply(self, numbers: Array, gradients: Array) -> None:
        """Updates rows in place.

        Args:
          numbers: the numbers of the rows, distinct and ascending.
          gradients: the gradients of these rows, [len(numbers), *shape of a row].

        Raises:
          InvalidArgumentError: there is no such row, or the gradients are of another shape.
        """
        rows = self._shape[0]
        if gradients.shape != (len(numbers), *self._shape[1:]):
            raise InvalidArgumentError(f"gradients of {len(numbers)} rows have shape {gradients.shape}")
        if len(numbers) and not 0 <= int(numbers[0]) <= int(numbers[-1]) < rows:
            raise InvalidArgumentError(f"there are no rows {numbers[0]} to {numbers[-1]}: the table has {rows}")
        if self.exact:
            whole = np.zeros(self._shape, gradients.dtype)
            whole[numbers] = gradients
            numbers, gradients, size = np.arange(rows), whole, rows
        else:
            size = compiled_size(len(numbers))
        parts = [
            _pad(array[numbers], size) if by_row else array
            for array, by_row in zip(self._state, self._by_row, strict=True)
        ]
        self._will_change(numbers)
        new_rows, state = self._step(size)(_pad(self.values[numbers], size), parts, _pad(gradients, size))
        self.values[numbers] = np.asarray(new_rows)[: len(numbers)]
        for at, by_row in enumerate(self._by_row):
            if by_row:
                self._state[at][numbers] = np.asarray(state[at])[: len(numbers)]
            else:
                self._state[at] = np.asarray(state[at])

    def _step(self, size: int) -> Any:
        if size not in self._compiled:
            optimizer = self._make(size)

            def step(rows: jax.Array, state: Tree, gradients: jax.Array) -> Tree:
                values, state = optimizer.stateless_apply(state, [gradients], [rows])
                return values[0], state

            self._compiled[size] = jax.jit(step)
        return self._compiled[size]


def _pad(rows: Array, size: int) -> Array:
    """Appends zeros up to ``size`` rows."""
    if len(rows) == size:
        return rows
    padded = np.zeros((size, *rows.shape[1:]), rows.dtype)
    padded[: len(rows)] = rows
    return padded
