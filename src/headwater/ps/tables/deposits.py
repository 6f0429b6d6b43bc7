"""Handoff of the dynamic tables of a ``ps`` that shuts down gracefully: the chief keeps them for the next incarnation.

Used for tables that are not saved regularly and have no backup. The saved state
(`headwater.cluster.task.deposited_states`) has the header (clients, tables, round):

- ``clients``: for each client, by its number, how many of its updates the tables contain;
- ``tables``: for each table (name, configuration, updates, learning rate, number of parts). The state's first tensors
  are their `headwater.tables.table.Table.rates`, one tensor for each table;
- ``round``: the words of `TableRounds.to_parts`, whose tensors follow the rates.

A part has some rows of a table, as `Table.store_records` takes them. The parts are in the order of the tables.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headwater.cluster.task.deposited_states import PART_BYTES, FetchedState, StateAtChief
from headwater.data.io.array_file import ArrayFile, Stored
from headwater.errors import InvalidArgumentError, OpError
from headwater.ps.tables.host import TableService
from headwater.ps.tables.protocol import are_equal, pack
from headwater.ps.tables.rounds import TableRounds
from headwater.tables.snapshots import TableSnapshot
from headwater.tables.table import Table

_log = logging.getLogger("headwater")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Table:
    """A table of an earlier incarnation.

    Attributes:
      packed: its configuration.
      step: number of its updates.
      rate: the learning rate.
      rates: see `Table.rates`.
      rows: positions of its rows in the file.
    """

    packed: object
    step: int
    rate: float
    rates: NDArray[np.float64]
    rows: Sequence[Stored]


class TableDeposit:
    """Deposits the tables of a ``ps`` with the chief, and restores them.

    The constructor fetches the tables, and keeps their rows in a file until the program makes the tables.

    Args:
      service: holds the tables.
      task: the name of this ``ps``.
      storage: access to the state that the chief keeps.
    """

    def __init__(self, service: TableService, task: str, storage: StateAtChief) -> None:
        self._service = service
        self._task = task
        self._storage = storage
        self._file: ArrayFile | None = None
        self._tables: dict[str, _Table] = {}
        try:
            fetched = storage.fetch()
            if fetched is not None:
                self._load(fetched)
        except OpError as error:
            self._tables = {}
            _log.info("%s cannot restore its tables from %s: %s", task, storage.chief, error.message)

    def _load(self, fetched: FetchedState) -> None:
        try:
            clients, descriptions, present = fetched.words
            last = {int(number): int(count) for number, count in clients}
            tables = [
                (str(name), what, int(step), float(rate), int(parts)) for name, what, step, rate, parts in descriptions
            ]
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(f"the deposited state is malformed: {str(fetched.words)[:80]}") from error
        rounds = TableRounds.from_parts(present, fetched.tensors[len(tables) :])
        self._file, at = ArrayFile(), 0
        for (name, what, step, rate, parts), rates in zip(tables, fetched.tensors, strict=False):
            rows = [self._file.add(fetched.part(number).tensors) for number in range(at, at + parts)]
            self._tables[name] = _Table(packed=what, step=step, rate=rate, rates=rates, rows=rows)
            at += parts
        # Notify the chief only after all parts have arrived, as the chief then discards them.
        fetched.discard_at_chief()
        self._service.restore_counts(last, rounds)

    def restore(self, table: Table) -> bool:
        """Restores the deposited rows of a new table; returns whether there were any.

        Raises:
          OpError: the rows cannot be read.
        """
        deposited = self._tables.pop(table.name, None)
        if deposited is None or self._file is None:
            return False
        # The program may have been changed before the restart.
        if not are_equal(deposited.packed, pack(table.config)):
            _log.warning("%s discards deposited table %r: its configuration has changed", self._task, table.name)
            return False
        table.restore_progress(deposited.step, deposited.rate, deposited.rates)
        for stored in deposited.rows:
            table.store_records(*self._file.read(stored))
        if not self._tables:  # all tables are restored: free the file
            self._file = None
        _log.warning(
            "%s continues with its table %r, which was deposited with %s: %d rows of update %d",
            self._task,
            table.name,
            self._storage.chief,
            len(table),
            table.step,
        )
        return True

    def deposit(self) -> None:
        """Deposits all tables with the chief. Later changes are not acknowledged."""
        # Freeze before the snapshot: an update that is acknowledged after it would be lost.
        self._service.stop_changes()
        tables = self._service.tables()
        try:
            with self._service.saving:
                self._deposit(tables)
        except OpError as error:
            _log.info(
                "%s could not deposit its tables with %s; they will be restored from the last save: %s",
                self._task,
                self._storage.chief,
                error.message,
            )
            return
        for table in tables:
            _log.warning(
                "%s has deposited table %r of update %d with %s for its next incarnation",
                self._task,
                table.name,
                table.step,
                self._storage.chief,
            )

    def _deposit(self, tables: Sequence[Table]) -> None:
        if not tables:
            return
        # Updates are frozen, so the counts belong to the rows that follow.
        with self._service.blocked_updates() as applied:
            clients = list(applied.items())
        descriptions, parts = list[object](), 0
        for table in tables:
            first = parts
            for piece in TableSnapshot(table).pieces(max(1, PART_BYTES // table.config.row_bytes)):
                self._storage.deposit_part(parts, (), piece)
                parts += 1
            descriptions.append((table.name, pack(table.config), table.step, table.learning_rate, parts - first))
        words, tensors = self._service.rounds.to_parts()
        self._storage.deposit((clients, descriptions, words), [*(table.rates for table in tables), *tensors])
