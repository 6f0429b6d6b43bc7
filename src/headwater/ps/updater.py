"""What a ``ps`` does with gradients: the interface between its host and an optimizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

Array = NDArray[Any]


class HostedTable(Protocol):
    """The rows of a table that a task has, with what the optimizer keeps of each row."""

    def begin(self) -> None:
        """All rows have the values that they have at the beginning."""
        ...

    def read(self, start: int, stop: int, parts: Sequence[int]) -> list[Array]:
        """Parts of rows: their values are part 0, from 1 on is what the optimizer keeps of them. All, where none
        is named."""
        ...

    def write(self, start: int, arrays: Sequence[Array]) -> None:
        """Takes the values of rows from ``start`` on, then what the optimizer keeps of them, or nothing: it begins.

        Raises:
          InvalidArgumentError: there are no such rows, or a shape is another.
        """
        ...

    def watch(self) -> None:
        """From now on keeps account of the rows that change, for `begin_saving`."""
        ...

    def begin_saving(self, *, whole: bool) -> int:
        """See `headwater.ps.row_changes.RowChanges.begin`."""
        ...

    def take_saved(self, count: int) -> tuple[Array, list[Array]] | None:
        """See `headwater.ps.row_changes.RowChanges.take`."""
        ...

    def saving_failed(self) -> None:
        """See `headwater.ps.row_changes.RowChanges.failed`."""
        ...

    def restore(self, numbers: Array, arrays: Sequence[Array]) -> None:
        """Takes rows that `take_saved` gave.

        Raises:
          InvalidArgumentError: there are no such rows, or a shape is another.
        """
        ...


class Updater(Protocol):
    """The values of a task's blocks, and the optimizer that updates them. The host calls one method at a time.

    Blocks are those of the task in its layout's order; *optimized* ones take gradients, others (*extras*) take changes
    by addition. Rows of tables are read and written by themselves.
    """

    @property
    def tables(self) -> Sequence[HostedTable]:
        """Those of its blocks that are tables, in the layout's order."""
        ...

    def fill(self, values: Sequence[Array], state: Sequence[Array] | None) -> None:
        """Takes values of all blocks but tables, and of the optimizer's state; None begins that anew.

        Raises:
          InvalidArgumentError: number, shape or dtype of the arrays are not those of this updater.
        """
        ...

    def assign(self, values: Sequence[Array]) -> None:
        """Takes values of all blocks but tables; the optimizer's state stays."""
        ...

    def values(self, extras: Sequence[int] | None) -> list[Array]:
        """The optimized blocks' values, then those of ``extras`` (positions among the others); None: all blocks' values
        but those of tables, in the layout's order. They are read-only, and stay as they are while updates go on."""
        ...

    @property
    def optimizer(self) -> str:
        """What the optimizer is called, for people."""
        ...

    def state_sizes(self) -> list[tuple[str, tuple[int, ...], str]]:
        """Name, shape and dtype of each part of the optimizer's state; nothing before there are values. May be called
        while an update goes on."""
        ...

    def state(self) -> dict[str, Array]:
        """The optimizer's state by name, in the order that `fill` takes, but what it keeps of rows of tables."""
        ...

    def apply(
        self,
        gradients: Sequence[Array],
        changes: Mapping[int, Array],
        tables: Sequence[tuple[Array, Array]],
        knobs: Sequence[float],
        scale: float = 1.0,
    ) -> None:
        """Makes one update.

        Args:
          gradients: one for each optimized block.
          changes: what to add to some of the others, by position among these.
          tables: for each table the numbers of rows, none twice, and the gradients of these.
          knobs: scalars that the workers' program sets, such as the learning rate.
          scale: by how much to multiply what the update changes the values by; the optimizer's state sees all of it.
        """
        ...

    def rows(self, numbers: Sequence[Array]) -> list[Array]:
        """For each table the rows of these numbers."""
        ...
