"""An updater that records the changes of its values, so that a backup can repeat them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from headwater.cluster.task import kinds
from headwater.errors import UnavailableError
from headwater.ps.updater import Array, HostedTable, Updater

_log = logging.getLogger("headwater")


class Change(NamedTuple):
    """A change of values: kind, header (without number and memory) and tensors of a frame; see `ShardCopy`."""

    kind: int
    header: Sequence[Any]
    tensors: Sequence[Array]


class RecordedUpdater:
    """Wraps an updater, and records each change that succeeded.

    Args:
      updater: the wrapped updater.
    """

    def __init__(self, updater: Updater) -> None:
        self.inner: Updater = updater
        self._noted: list[Change] = []
        self.tables: Sequence[HostedTable] = [
            _RecordedTable(table, number, self._record) for number, table in enumerate(updater.tables)
        ]

    def retire(self) -> RecordedUpdater:
        """Retires this object, and returns a new `RecordedUpdater` of the same updater.

        Afterwards all accesses to the values through this object raise UnavailableError; so does `write` of its tables.
        The other methods of its tables still access the tables, so that a snapshot in progress can end its save.
        `pop_changes` still returns the changes that this object has recorded.
        """
        successor = RecordedUpdater(self.inner)
        # A thread that waits for the lock of the old host holds a reference to this recorder, and must get an error.
        self.inner = retired = cast(Updater, _Retired())
        for table in self.tables:
            cast(_RecordedTable, table).table = cast(HostedTable, retired)
        return successor

    def pop_changes(self) -> list[Change]:
        """Returns the changes since the last call, in order."""
        noted, self._noted = self._noted, []
        return noted

    def _record(self, kind: int, header: Sequence[object], tensors: Sequence[Array]) -> None:
        self._noted.append(Change(kind, header, tensors))

    @property
    def optimizer(self) -> str:
        return self.inner.optimizer

    def fill(self, values: Sequence[Array], state: Sequence[Array] | None) -> None:
        self.inner.fill(values, state)
        self._record(kinds.FILL, (len(values),), [*values, *(state or ())])

    def assign(self, values: Sequence[Array]) -> None:
        self.inner.assign(values)
        self._record(kinds.ASSIGN, (), values)

    def values(self, extras: Sequence[int] | None) -> list[Array]:
        return self.inner.values(extras)

    def state_sizes(self) -> list[tuple[str, tuple[int, ...], str]]:
        return self.inner.state_sizes()

    def state(self) -> dict[str, Array]:
        return self.inner.state()

    def rows(self, numbers: Sequence[Array]) -> list[Array]:
        return self.inner.rows(numbers)

    def apply(
        self,
        gradients: Sequence[Array],
        changes: Mapping[int, Array],
        tables: Sequence[tuple[Array, Array]],
        hyperparameters: Sequence[float],
        scale: float = 1.0,
    ) -> None:
        # Record the change only after the call: a change that has failed here must not be repeated on the backup.
        self.inner.apply(gradients, changes, tables, hyperparameters, scale)
        rows = [array for pair in tables for array in pair]
        self._record(
            kinds.UPDATE_BACKUP, (list(changes), list(hyperparameters), scale), [*gradients, *changes.values(), *rows]
        )


class _Retired:
    """Replaces the updater or table of a replica that was demoted; every access raises UnavailableError."""

    def __getattr__(self, name: str) -> Any:
        raise UnavailableError("these values are no longer served")


class _RecordedTable:
    """A table of a recorded updater.

    Calls of `initialize` and `restore` are not recorded, because they occur only before there is a backup.

    Args:
      table: the table of the wrapped updater.
      number: the number of the table in that updater.
      note: records a change.
    """

    def __init__(
        self, table: HostedTable, number: int, note: Callable[[int, Sequence[Any], Sequence[Array]], None]
    ) -> None:
        self.table = table
        self._number = number
        self._record = note
        self.initialize = table.initialize
        self.read = table.read
        self.watch = table.watch
        self.start_saving = table.start_saving
        self.next_saved = table.next_saved
        self.abandon_save = table.abandon_save
        self.restore = table.restore

    def write(self, start: int, arrays: Sequence[Array]) -> None:
        self.table.write(start, arrays)
        self._record(kinds.WRITE_ROWS, (self._number, start), arrays)


def compile_update(updater: Updater, hyperparameters: Sequence[float]) -> None:
    """Applies an update with gradients of zero, so that the updater compiles its functions.

    The update may change the values and the optimizer's state: the caller has to set both again. An error is only
    logged, and the first real update then compiles the functions.

    Args:
      updater: an updater that has values.
      hyperparameters: the hyperparameters of the latest update; empty before the first update.
    """
    try:
        zeros = [np.zeros_like(value) for value in updater.values(())]
        none = [np.empty(0, np.int64) for _ in updater.tables]
        updater.apply(zeros, {}, list(zip(none, updater.rows(none), strict=True)), hyperparameters)
    except Exception as error:  # noqa: BLE001 - the first update of a worker will report the same error
        _log.debug("the update could not be compiled in advance: %s", error)


def repeat(updater: Updater, change: Change) -> None:
    """Repeats a recorded change on another updater.

    Raises:
      ValueError: the change is malformed.
    """
    kind, header, tensors = change
    match kind, header:
        case kinds.FILL, (int(count),):
            updater.fill(tensors[:count], tensors[count:] or None)
        case kinds.ASSIGN, ():
            updater.assign(tensors)
        case kinds.WRITE_ROWS, (int(table), int(start)):
            updater.tables[table].write(start, tensors)
        case kinds.UPDATE_BACKUP, ([*changes], [*hyperparameters], float(scale)):
            rows = len(tensors) - 2 * len(updater.tables)
            others = rows - len(changes)
            changed = dict(zip(changes, tensors[others:rows], strict=True))
            tables = list(zip(tensors[rows::2], tensors[rows + 1 :: 2], strict=True))
            updater.apply(tensors[:others], changed, tables, hyperparameters, scale)
        case _:
            raise ValueError(f"there is no change of kind {kinds.describe(kind)} with {header!r}")
