"""Saves of tables on disk during training: full ones, and deltas with the changes since.

A *part* is a file of one table's rows on one task, see `headwater.tables.parts`.

A *save* is a file ``NAME.NNNNNN.json`` that lists the parts and, for a delta, the save on which it is based. The file
is written last and atomically. So an unfinished save has no such file, and is ignored.

Rows are saved as they were when the save began. If a row changes before it is written, it is first copied to a log. So
training never waits for more than one piece of one shard.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from headwater.data.io import checked_json, files
from headwater.errors import DataLossError, FailedPreconditionError, InvalidArgumentError, NotFoundError, OpError
from headwater.tables import fields as f
from headwater.tables.compiled import Reals, Words
from headwater.tables.description import TableConfig
from headwater.tables.hashing import owners
from headwater.tables.optimizers import HISTORY
from headwater.tables.parts import END, GONE, ROWS, Part, PartReader, write_header, write_piece
from headwater.tables.table import Keys, Table

PIECE_ROWS: Final = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class Save:
    """A save of one table.

    Attributes:
      table: the name of the table.
      number: the number of the save; later saves have higher ones.
      base: the number of the save on which this delta is based; None for a full save.
      dim: the length of a row.
      strings: whether keys are strings.
      slots: the number of parts of the optimizer's state.
      step: the number of updates on each task before the save.
      parts: one part for each task.
    """

    table: str
    number: int
    base: int | None
    dim: int
    strings: bool
    slots: int
    step: tuple[int, ...]
    parts: tuple[Part, ...]


class TableSnapshot:
    """A snapshot of the rows of a table, which can be written while the table is in use.

    To take snapshots of several tables at the same moment, enter the gates of all tables first.

    Args:
      table: the table.
      delta: whether to save only the rows changed, and the keys removed, since the last save.

    Raises:
      FailedPreconditionError: another snapshot of the table is open; or a delta was requested, and this table has no
        save yet, or the latest save failed.
    """

    def __init__(self, table: Table, *, delta: bool = False) -> None:
        self.table = table
        self.delta = delta
        if delta and not table.delta_may_follow:
            raise FailedPreconditionError(
                f"table {table.name!r} on {table.task}: save all of it before the first delta"
            )
        with table.gate.alone():
            # A shard has one log and one "saved" bit for each row, so only one snapshot can be open at a time.
            if int(table.shards.directory[:-1, f.SAVING].max()):
                raise FailedPreconditionError(
                    f"table {table.name!r} on {table.task} is being saved; wait for that to end"
                )
            self._rows, self._gone = table.shards.start_saving(f.CHANGED if delta else f.ALL)
            self.step: int = table.step
            self._rates = table.rates.copy()
            self._rate = table.learning_rate
        table.delta_may_follow = False  # until the whole save is on disk

    def pieces(self, piece_rows: int = PIECE_ROWS) -> Generator[tuple[Words, Reals]]:
        """Yields the rows in pieces, as arguments of `Table.store_records`."""
        for s, rows in enumerate(self._rows):
            yield from self.table.shards.saved_rows(s, rows, piece_rows)

    def write(self, path: files.Path, *, piece_rows: int = PIECE_ROWS) -> Part:
        """Writes the part atomically.

        Raises:
          OpError: the file cannot be written. The next save of the table cannot be a delta.
        """
        table = self.table
        config = table.config
        header: dict[str, object] = {
            "table": table.name,
            "dim": config.dim,
            "strings": config.strings,
            "slots": len(config.optimizer.slots),
            "optimizer": config.optimizer.kind,
            "delta": self.delta,
            "step": self.step,
            "rate": self._rate,
            "rates": self._rates.tolist() if config.optimizer.exact else [],
        }
        total = size = 0
        try:
            with files.atomic_write(path) as file:
                size = write_header(file, header)
                if self.delta:
                    size += write_piece(file, GONE, len(self._gone), self._gone)
                for words, values in self.pieces(piece_rows):
                    size += write_piece(file, ROWS, len(words), words, values)
                    total += len(words)
                size += write_piece(file, END, total)
        except BaseException:
            self.abandon()
            raise
        table.delta_may_follow = True
        table.saved_in, name = os.path.split(files.as_path(path))
        return Part(file=name, rows=total, gone=len(self._gone) if self.delta else 0, nbytes=size)

    def abandon(self) -> None:
        """Abandons the snapshot without writing it. The next save of the table cannot be a delta."""
        self.table.shards.stop_saving(PIECE_ROWS)


# Saves ----------------------------------------------------------------------------------------------------------------


def save(table: Table, folder: files.Path, *, delta: bool = False) -> Save:
    """Saves a table of one task in a folder, as the next save there.

    Raises:
      FailedPreconditionError: see `TableSnapshot`.
      OpError: the save cannot be written.
    """
    files.makedirs(folder)
    snapshot = TableSnapshot(table, delta=delta)
    number = next_number(folder, table.name)
    part = snapshot.write(part_path(folder, table.name, number, 0, 1))
    return commit(folder, table, number, [part], steps=[snapshot.step], base=number - 1 if delta else None)


def next_number(folder: files.Path, table: str) -> int:
    """Returns the number of the next save of a table."""
    numbers = [save.number for save in saves(folder, table)]
    return max(numbers, default=0) + 1


def part_path(folder: files.Path, table: str, number: int, task: int, tasks: int) -> str:
    """Returns the path of a task's part of a save."""
    return os.path.join(files.as_path(folder), f"{_file_name(table)}.{number:06d}.{task:05d}-of-{tasks:05d}.rows")


def commit(
    folder: files.Path, table: Table, number: int, parts: Sequence[Part], *, steps: Sequence[int], base: int | None
) -> Save:
    """Completes a save of a table, whose parts were written."""
    return commit_parts(folder, table.name, table.config, number, parts, steps=steps, base=base)


def commit_parts(
    folder: files.Path,
    table: str,
    config: TableConfig,
    number: int,
    parts: Sequence[Part],
    *,
    steps: Sequence[int],
    base: int | None,
) -> Save:
    """Completes a save of a table on other tasks, given its name and configuration, whose parts were written."""
    save = Save(
        table=table,
        number=number,
        base=base,
        dim=config.dim,
        strings=config.strings,
        slots=len(config.optimizer.slots),
        step=tuple(steps),
        parts=tuple(parts),
    )
    checked_json.write(_save_path(folder, table, number), asdict(save), indent=1)
    return save


def remove_saves(folder: files.Path, table: str, *, before: int) -> None:
    """Removes the saves of a table with smaller numbers than ``before``."""
    for save in saves(folder, table):
        if save.number < before:
            for path in (
                _save_path(folder, table, save.number),
                *(os.path.join(files.as_path(folder), part.file) for part in save.parts),
            ):
                files.remove(path)


def _file_name(table: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", lambda found: f"%{ord(found[0]):02x}", table)


def _save_path(folder: files.Path, table: str, number: int) -> str:
    return os.path.join(files.as_path(folder), f"{_file_name(table)}.{number:06d}.json")


def saves(folder: files.Path, table: str | None = None) -> list[Save]:
    """Returns the saves in a folder, of one table or of all, sorted by table and number.

    Raises:
      DataLossError: a save is damaged.
    """
    if not files.isdir(folder):
        return []
    all_saves: list[Save] = []
    for name in sorted(files.listdir(folder)):
        if not re.fullmatch(r".+\.\d{6,}\.json", name):
            continue
        if table is not None and name.rsplit(".", 2)[0] != _file_name(table):
            continue
        all_saves.append(_read_save(os.path.join(files.as_path(folder), name)))
    return sorted(all_saves, key=lambda one: (one.table, one.number))


def _read_save(path: str) -> Save:
    metadata = checked_json.read(path)
    try:
        metadata["parts"] = tuple(Part(**part) for part in metadata["parts"])
        metadata["step"] = tuple(metadata["step"])
        save = Save(**metadata)
    except (ValueError, TypeError, KeyError) as error:
        raise DataLossError(f"{path} is damaged: {error}") from error
    for part in save.parts:
        if os.path.basename(part.file) != part.file:
            raise DataLossError(f"{path}: its part {part.file!r} is not in the same folder")
    return save


def chain(folder: files.Path, table: str, number: int | None = None) -> list[Save]:
    """Returns the saves to read for a save: a full save, then its deltas.

    Args:
      folder: the folder of the saves.
      table: the name of the table.
      number: the number of the save; None for the latest save.

    Raises:
      NotFoundError: there is no such save, or a save that it is based on is missing.
    """
    known = {save.number: save for save in saves(folder, table)}
    if not known:
        raise NotFoundError(f"{files.as_path(folder)} holds no save of table {table!r}")
    at: int | None = max(known) if number is None else number
    newest_first: list[Save] = []
    while at is not None:
        if at not in known:
            raise NotFoundError(f"{files.as_path(folder)} holds no save {at} of table {table!r}")
        newest_first.append(known[at])
        at = known[at].base
    return newest_first[::-1]


def delete_older(folder: files.Path, table: str) -> None:
    """Deletes the saves of a table that are older than the last but one full save."""
    # Two full saves remain, so that an older state can be restored if a file of the last save is damaged.
    whole = [one.number for one in saves(folder, table) if one.base is None]
    if len(whole) >= 2:
        remove_saves(folder, table, before=whole[-2])


# Reading --------------------------------------------------------------------------------------------------------------


def restore(table: Table, folder: files.Path, *, number: int | None = None, task: int = 0, tasks: int = 1) -> Save:
    """Replaces the rows of a table by the rows of a save that belong to this task.

    Args:
      folder: the folder of the save.
      number: the number of the save; None for the latest save.
      task: the number of this task.
      tasks: the number of tasks that have the table now, which may differ from the number at the save.

    Raises:
      NotFoundError: there is no such save.
      DataLossError: a file is damaged. The table is empty then.
      InvalidArgumentError: the rows of the save have a different length, or different keys or state.
    """
    wanted = chain(folder, table.name, number)
    last = wanted[-1]
    config = table.config
    where = f"table {table.name!r} on {table.task}"
    if last.dim != config.dim:
        raise InvalidArgumentError(
            f"{where} has dim {config.dim}; in {files.as_path(folder)} its rows have {last.dim} numbers"
        )
    if last.strings != config.strings:
        kinds = ("integers", "strings")
        raise InvalidArgumentError(
            f"{where} has {kinds[config.strings]} for keys; in {files.as_path(folder)} it has {kinds[last.strings]}"
        )
    if last.slots != len(config.optimizer.slots):
        raise InvalidArgumentError(
            f"{where}: its optimizer keeps {len(config.optimizer.slots)} values of state for each number of a row; in "
            f"{files.as_path(folder)} there are {last.slots}"
        )
    # Clear the table only after all checks: a table that cannot be restored from this save keeps its rows.
    table.clear()
    steps: list[int] = []
    rate, rates = table.learning_rate, np.zeros(HISTORY)
    try:
        for one in wanted:
            for part in one.parts:
                with PartReader(os.path.join(files.as_path(folder), part.file)) as reader:
                    reader.expect(dim=last.dim, strings=last.strings, slots=last.slots)
                    _fill(table, reader, task, tasks)
                    if one is last:
                        steps.append(reader.step)
                        rate = reader.rate
                        if reader.rates:
                            rates = np.array(reader.rates)
    except OpError:
        table.clear()
        raise
    table.restore_progress(max(steps), rate, rates)
    return last


def _fill(table: Table, reader: PartReader, task: int, tasks: int) -> None:
    for kind, words, values in reader.pieces():
        # The number of tasks may have changed since the save: each task reads all parts, and keeps the keys that it
        # owns now.
        mine = np.flatnonzero(owners(np.ascontiguousarray(words[:, 0]), tasks) == task)
        words = words[mine]
        column = 1 if kind == GONE else 2
        checks = words[:, column] if table.config.strings else words[:0, 0]
        keys = Keys(np.ascontiguousarray(words[:, 0]), np.ascontiguousarray(checks))
        if kind == GONE:
            table.remove(keys)
        else:
            table.write_records(keys, np.ascontiguousarray(values[mine]), np.ascontiguousarray(words[:, 1]))


# Serving --------------------------------------------------------------------------------------------------------------


def last_rows(folder: files.Path, table: str, *, number: int | None = None) -> tuple[Words, Reals]:
    """Reads the rows of a save, without state, sorted by key.

    Args:
      folder: the folder of the save.
      table: the name of the table.
      number: the number of the save; None for the latest save.

    Returns:
      Keys, ``[n, 1]``, or ``[n, 2]`` as `headwater.tables.hashing.string_keys` gives them; rows, ``[n, dim]``.
    """
    wanted = chain(folder, table, number)
    dim, strings = wanted[-1].dim, wanted[-1].strings
    found_keys: list[Words] = [np.empty((0, 2), np.int64)]
    found_rows: list[Reals] = [np.empty((0, dim), np.float32)]
    found_alive: list[NDArray[np.bool_]] = [np.empty(0, np.bool_)]
    for one in wanted:
        for part in one.parts:
            with PartReader(os.path.join(files.as_path(folder), part.file)) as reader:
                for kind, words, values in reader.pieces():
                    keys = np.zeros((len(words), 2), np.int64)
                    keys[:, 0] = words[:, 0]
                    if strings:
                        keys[:, 1] = words[:, 1 if kind == GONE else 2]
                    gone = kind == GONE
                    found_keys.append(keys)
                    found_rows.append(np.zeros((len(words), dim), np.float32) if gone else values[:, :dim].copy())
                    found_alive.append(np.full(len(words), not gone))
    keys, rows, alive = np.concatenate(found_keys), np.concatenate(found_rows), np.concatenate(found_alive)
    order: Words = np.lexsort((np.arange(len(keys)), keys[:, 1], keys[:, 0]))  # of equal keys, the latest is last
    keys = keys[order]
    last = np.ones(len(keys), np.bool_)
    last[:-1] = (keys[1:] != keys[:-1]).any(axis=1)
    last &= alive[order]
    return keys[last][:, : 2 if strings else 1], rows[order[last]]


def export(folder: files.Path, target: files.Path, table: str, *, number: int | None = None) -> int:
    """Writes the rows of a save, as `last_rows` gives them, for serving: ``keys.npy`` and ``rows.npy``.

    Args:
      folder: the folder of the save.
      target: the folder to write to, which is created.
      table: the name of the table.
      number: the number of the save; None for the latest save.

    Returns:
      The number of rows.
    """
    keys, rows = last_rows(folder, table, number=number)
    files.makedirs(target)
    _save_array(target, "rows.npy", rows)
    _save_array(target, "keys.npy", keys)
    return len(keys)


def _save_array(folder: files.Path, name: str, array: NDArray[Any]) -> None:
    with files.atomic_write(os.path.join(files.as_path(folder), name)) as file:
        np.lib.format.write_array(file, array, allow_pickle=False)


class FrozenTable:
    """Exported rows, mapped from their files.

    >>> import tempfile
    >>> from headwater.tables import Table, TableConfig
    >>> users = Table("users", TableConfig(dim=2))
    >>> rows = users.look_up([7, 11])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = save(users, folder)
    ...     print(export(folder, folder + "/serving", "users"), "rows")
    ...     found, known = FrozenTable(folder + "/serving").look_up([11, 12])
    2 rows
    >>> known.tolist(), bool((found[0] == rows[1]).all())
    ([True, False], True)

    Args:
      folder: the folder that `export` wrote.
    """

    def __init__(self, folder: files.Path) -> None:
        path = files.as_path(folder)
        self.keys: Words = np.load(os.path.join(path, "keys.npy"), mmap_mode="r", allow_pickle=False)
        self.rows: Reals = np.load(os.path.join(path, "rows.npy"), mmap_mode="r", allow_pickle=False)

    def look_up(self, keys: Words) -> tuple[Reals, NDArray[np.bool_]]:
        """Returns the rows of keys, and whether each key is known. Rows of unknown keys are zeros.

        Args:
          keys: [n], or [n, 2] from `headwater.tables.hashing.string_keys`.
        """
        wanted = np.asarray(keys, np.int64).reshape(len(keys), -1)
        if wanted.shape[1] != self.keys.shape[1]:
            raise InvalidArgumentError(f"keys have {wanted.shape[1]} words, those of the table {self.keys.shape[1]}")
        out = np.zeros((len(wanted), self.rows.shape[1]), np.float32)
        if not len(self.keys):
            return out, np.zeros(len(wanted), np.bool_)
        at = np.searchsorted(self.keys[:, 0], wanted[:, 0])
        known = np.zeros(len(wanted), np.bool_)
        # Strings with the same first word are adjacent: examine as many places as the largest group of them has.
        for offset in range(int(np.unique(self.keys[:, 0], return_counts=True)[1].max()) if wanted.shape[1] > 1 else 1):
            place = np.minimum(at + offset, len(self.keys) - 1)
            here = (self.keys[place] == wanted).all(axis=1)
            out[here] = self.rows[place[here]]
            known |= here
        return out, known
