"""Periodic saves of the embedding tables of a ``ps``, from which it recovers after a restart.

All tables are saved as they were at one moment, in full or as the changes since the last save; see
`headwater.tables.snapshots`. A file ``all.NNNNNNNN.json``, written last and atomically, lists the saves of that moment,
and how many updates of each worker they contain. If an answer is lost and the ``ps`` restarts, the worker repeats its
update; from these numbers the ``ps`` knows whether the restored tables contain the update already.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from headwater.cluster.task.deposited_states import StateAtChief
from headwater.cluster.task.members import Members
from headwater.cluster.telemetry.troubles import TROUBLES
from headwater.data.io import checked_json, files
from headwater.errors import DataLossError, OpError
from headwater.ps.tables.deposits import TableDeposit
from headwater.ps.tables.host import TableService
from headwater.state.state_saver import PeriodicSaver, Saves
from headwater.tables import snapshots
from headwater.tables.parts import PartReader
from headwater.tables.snapshots import TableSnapshot
from headwater.tables.table import Table

_log = logging.getLogger("headwater")

#: Name below the folder of saves; no set of parameters has a folder of this name.
FOLDER: Final = "+tables"
_NAME: Final = re.compile(r"all\.(\d{8,})\.json")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Together:
    """Saves of one moment.

    Attributes:
      number: later saves have higher numbers.
      at: time of the save, in seconds since 1970.
      saves: by table, the number of its save.
      clients: by number of a worker's program, the number of its updates that the saves hold.
    """

    number: int
    at: float
    saves: Mapping[str, int]
    clients: Mapping[int, int]


@dataclass(kw_only=True, slots=True)
class _Chain:
    """The saves of a table.

    Attributes:
      number: the number of the latest save; 0 before the first.
      whole: numbers of the last two full saves, the latest last.
      whole_bytes: size of the latest full save.
      delta_bytes: size of all deltas since.
    """

    number: int = 0
    whole: tuple[int, int] = (0, 0)
    whole_bytes: int = 0
    delta_bytes: int = 0


class TableSaver(PeriodicSaver):
    """Saves the tables of this task.

    Args:
      service: holds the tables.
      saves, index, tasks: see `PeriodicSaver`.
    """

    def __init__(
        self,
        service: TableService,
        saves: Saves,
        *,
        index: int,
        tasks: int,
    ) -> None:
        super().__init__(saves, FOLDER, "tables", index=index, tasks=tasks)
        self._service = service
        self._chains: dict[str, _Chain] = {}
        self._last: _Together | None = None
        #: Number of updates and rows of each table at the last save.
        self._had: dict[str, tuple[int, int]] = {}
        self._from: _Together | None = self._find()
        if self._from is not None:
            service.restore_counts(self._from.clients)

    # Lifecycle --------------------------------------------------------------------------------------------------------

    def _find(self) -> _Together | None:
        """Returns the latest saves of one moment that can all be read."""
        latest: _Together | None = None
        for number, name in reversed(_numbered(self.folder)):
            self._number = max(self._number, number)
            if latest is None:
                path = os.path.join(self.folder, name)
                try:
                    together = _read(path, number)
                    for table, save in together.saves.items():
                        self._verify(table, save)
                    latest = together
                except OpError as error:
                    _log.error("%s cannot use tables that it has saved: %s", self._task, error.message)
        return latest

    def _verify(self, table: str, number: int) -> None:
        for save in snapshots.chain(self.folder, table, number):
            for part in save.parts:
                # Read the file to verify its checksums now, while an older save can still be chosen.
                with PartReader(os.path.join(self.folder, part.file)) as reader:
                    for _ in reader.pieces():
                        pass

    def restore(self, table: Table) -> bool:
        """Restores the saved rows of a new table; returns whether there were any.

        Raises:
          InvalidArgumentError: the saved rows have a different dim, other keys or another optimizer.
        """
        number = None if self._from is None else self._from.saves.get(table.name)
        if self._from is None or number is None:
            return False
        snapshots.restore(table, self.folder, number=number)
        _log.warning(
            "%s continues with its own rows of table %r: %d of update %d, saved %.1f s ago",
            self._task,
            table.name,
            len(table),
            table.step,
            time.time() - self._from.at,
        )
        return True

    def close(self, *, over: bool) -> None:
        """Ends the saves at shutdown.

        If the job is over, the saves are removed; otherwise a last save is made, and nothing changes after it.
        """
        self._periodic.stop()
        if over:
            self._remove_all()
            return
        self._service.stop_changes()  # stop changes first: an update that is acknowledged after the save would be lost
        self.save()

    def _remove(self) -> None:
        if files.isdir(self.folder):
            files.rmtree(self.folder)

    # Saving -----------------------------------------------------------------------------------------------------------

    def save(self) -> bool:
        service = self._service
        with service.saving:
            begun: list[tuple[Table, TableSnapshot]] = []
            with contextlib.ExitStack() as written:
                # The snapshots of all tables and the clients' numbers of updates must be of one moment: after a
                # restart, the numbers decide whether a repeated update is applied.
                with service.blocked_updates() as clients:
                    at, tables = time.time(), service.tables()
                    has = {table.name: (table.step, len(table)) for table in tables}
                    if has == self._had:
                        return False
                    for table in tables:
                        begun.append((table, TableSnapshot(table, delta=self._may_be_delta(table))))
                        written.callback(begun[-1][1].abandon)
                what = f"the tables of {self._task} in {self.folder}"
                try:
                    files.makedirs(self.folder)
                    saves = {table.name: self._write(table, snapshot) for table, snapshot in begun}
                    written.pop_all()  # all snapshots are written, so none must be abandoned at the end of the block
                    self._number += 1
                    together = _Together(number=self._number, at=at, saves=saves, clients=clients)
                    # Write this file last: until it exists, a restart uses the previous saves of all tables.
                    self._commit(together)
                except OpError as error:
                    self._report_failure(what, error)
                    return False
            TROUBLES.record_success(what)
            self._last, self._had = together, has
            self.count += 1
            self._remove_old_saves()
            return True

    def _may_be_delta(self, table: Table) -> bool:
        chain = self._chains.get(table.name)
        mine = table.delta_may_follow and table.saved_in == self.folder
        return chain is not None and mine and 2 * chain.delta_bytes <= chain.whole_bytes

    def _write(self, table: Table, snapshot: TableSnapshot) -> int:
        """Writes a save of a table; returns its number."""
        if table.name not in self._chains:
            self._chains[table.name] = _Chain(number=snapshots.next_number(self.folder, table.name) - 1)
        chain = self._chains[table.name]
        number = chain.number + 1
        part = snapshot.write(snapshots.part_path(self.folder, table.name, number, 0, 1))
        base = chain.number if snapshot.delta else None
        snapshots.commit(self.folder, table, number, [part], steps=[snapshot.step], base=base)
        chain.number = number
        self.written_bytes += part.nbytes
        if snapshot.delta:
            chain.delta_bytes += part.nbytes
        else:
            chain.whole, chain.whole_bytes, chain.delta_bytes = (chain.whole[1], number), part.nbytes, 0
        return number

    def _commit(self, together: _Together) -> None:
        metadata = {"at": together.at, "saves": dict(together.saves), "clients": dict(together.clients)}
        checked_json.write(os.path.join(self.folder, f"all.{together.number:08d}.json"), metadata)

    def _remove_old_saves(self) -> None:
        """Removes old saves: for each table, all saves that are older than the full save before the latest one."""
        first_saves = {name: chain.whole[0] for name, chain in self._chains.items()}
        try:
            for number, name in _numbered(self.folder)[:-1]:
                path = os.path.join(self.folder, name)
                with contextlib.suppress(DataLossError):
                    if all(save >= first_saves.get(table, 0) for table, save in _read(path, number).saves.items()):
                        continue
                files.remove(path)
            for name, first in first_saves.items():
                snapshots.remove_saves(self.folder, name, before=first)
        except OpError as error:
            TROUBLES.record_failure(f"old saves in {self.folder}, which are to be removed", error, "They stay")

    def __str__(self) -> str:
        return "no table saved yet" if self._last is None else self._status_text("", self._last.at)


def _numbered(folder: str) -> list[tuple[int, str]]:
    if not files.isdir(folder):
        return []
    return sorted((int(match[1]), name) for name in files.listdir(folder) if (match := _NAME.fullmatch(name)))


def _read(path: str, number: int) -> _Together:
    metadata = checked_json.read(path)
    try:
        return _Together(
            number=number,
            at=float(metadata["at"]),
            saves={str(name): int(save) for name, save in metadata["saves"].items()},
            clients={int(client): int(last) for client, last in metadata["clients"].items()},
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataLossError(f"{path} is damaged: {error}") from error


def table_service(members: Members, saves: Saves | None, storage: StateAtChief) -> TableService:
    """Creates the table service of this task, a ``ps``, with periodic saves or a handoff.

    Args:
      members: the cluster, and this process's place in it.
      saves: where to save the tables periodically; None for no saves.
      storage: the chief's storage, where tables are deposited at a graceful shutdown if there are no saves.
    """
    index, tasks = members.number, len(members.servers)
    service = TableService(str(members.me), index, tasks)
    if saves is not None:
        saver = TableSaver(service, saves, index=index, tasks=tasks)
        service.saver = saver
        saver.start()
    else:
        service.deposit = TableDeposit(service, str(members.me), storage)
    return service
