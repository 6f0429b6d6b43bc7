"""Interface between the host of a ``ps`` and an optimizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

Array = NDArray[Any]


class HostedTable(Protocol):
    """The rows of a table on a task, with the optimizer state of each row."""

    def initialize(self) -> None:
        """Initializes all rows."""
        ...

    def read(self, start: int, stop: int, parts: Sequence[int]) -> list[Array]:
        """Returns parts of the rows from ``start`` up to, but excluding, ``stop``.

        Part 0 has the values; the other parts have the optimizer state. All parts are returned if ``parts`` is empty.
        """
        ...

    def write(self, start: int, arrays: Sequence[Array]) -> None:
        """Sets rows from number ``start`` on.

        Args:
          start: the number of the first row.
          arrays: the values of the rows, then their optimizer state. Without state, the state is initialized.

        Raises:
          InvalidArgumentError: there are no such rows, or a shape differs.
        """
        ...

    def watch(self) -> None:
        """Begins to track the rows that change, for `start_saving`."""
        ...

    def start_saving(self, *, whole: bool) -> int:
        """Begins a save, see `headwater.ps.row_changes.RowChanges.start_save`."""
        ...

    def next_saved(self, count: int) -> tuple[Array, list[Array]] | None:
        """Returns some rows to save, see `headwater.ps.row_changes.RowChanges.next_rows`."""
        ...

    def abandon_save(self) -> None:
        """Abandons a save, see `headwater.ps.row_changes.RowChanges.abandon_save`."""
        ...

    def restore(self, numbers: Array, arrays: Sequence[Array]) -> None:
        """Restores rows that `next_saved` returned.

        Raises:
          InvalidArgumentError: there are no such rows, or a shape differs.
        """
        ...


class Updater(Protocol):
    """The values of a task's blocks, and the optimizer that updates them. The host calls one method at a time.

    Blocks are the task's blocks, in the layout's order. The optimizer updates *optimized* blocks from gradients.
    Workers add changes to the other blocks (*extras*). Rows of tables are read and written separately.
    """

    @property
    def tables(self) -> Sequence[HostedTable]:
        """The blocks that are tables, in the layout's order."""
        ...

    def fill(self, values: Sequence[Array], state: Sequence[Array] | None) -> None:
        """Sets the values of all blocks except tables, and the optimizer's state, which None initializes.

        Raises:
          InvalidArgumentError: number, shape or dtype of the arrays does not fit this updater.
        """
        ...

    def assign(self, values: Sequence[Array]) -> None:
        """Sets the values of all blocks except tables; the optimizer's state is unchanged."""
        ...

    def values(self, extras: Sequence[int] | None) -> list[Array]:
        """Returns the values of the optimized blocks, then of the other blocks at the positions ``extras``. With None,
        returns the values of all blocks except tables, in the layout's order.

        The arrays are read-only, and later updates do not change them.
        """
        ...

    @property
    def optimizer(self) -> str:
        """Name of the optimizer, for reports."""
        ...

    def state_sizes(self) -> list[tuple[str, tuple[int, ...], str]]:
        """Returns name, shape and dtype of each part of the optimizer's state; nothing before there are values.

        May be called during an update.
        """
        ...

    def state(self) -> dict[str, Array]:
        """Returns the optimizer's state by name, in the order that `fill` takes, except the state of rows of tables."""
        ...

    def apply(
        self,
        gradients: Sequence[Array],
        changes: Mapping[int, Array],
        tables: Sequence[tuple[Array, Array]],
        hyperparameters: Sequence[float],
        scale: float = 1.0,
    ) -> None:
        """Applies one update: the optimizer's step from gradients, and changes of the other blocks.

        Args:
          gradients: one gradient for each optimized block.
          changes: arrays to add to some of the other blocks, by position among the other blocks.
          tables: for each table, the numbers of rows, each at most once, and the gradients of these rows.
          hyperparameters: hyperparameters that the workers' program sets, such as the learning rate.
          scale: factor for the change of the values; the optimizer's state accumulates the unscaled gradients. 0 if
            gradients are not finite: values and state of the optimizer do not change.
        """
        ...

    def rows(self, numbers: Sequence[Array]) -> list[Array]:
        """Returns, for each table, its rows with the given numbers."""
        ...
