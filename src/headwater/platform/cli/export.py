"""``headwater export``: writes the rows of an embedding table to a file for other programs."""

from __future__ import annotations

import importlib
import os
import zipfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from headwater.data.io import files
from headwater.errors import InvalidArgumentError, NotFoundError
from headwater.tables.snapshots import last_rows, saves

if TYPE_CHECKING:
    from headwater.tables.compiled import Reals, Words

_ARROW: Final = (".arrow", ".feather")


def export(folder: str, target: str, *, table: str | None, save: int | None) -> None:
    """Writes the rows of a save, sorted by key, and prints their number.

    An Arrow file has the columns ``key``, int64, and ``row``, lists of float32 of fixed size; a NumPy file has the
    arrays ``key`` and ``row``. Text keys are stored as two numbers, the second of which is ``check``.

    Args:
      folder: the folder of saves.
      target: the file, ``.arrow``, ``.feather`` (the same format) or ``.npz``.
      table: the table's name; None if there is only one table.
      save: the number of the save; None for the latest save.

    Raises:
      InvalidArgumentError: the file has the wrong suffix, or there are several tables and none is named.
      NotFoundError: there is no such save.
      ModuleNotFoundError: an Arrow file needs pyarrow.
    """
    kind = os.path.splitext(target)[1].lower()
    if kind not in (*_ARROW, ".npz"):
        raise InvalidArgumentError(f"{target} ends in {kind!r}, not one of .arrow, .feather, .npz")
    arrow = _pyarrow() if kind in _ARROW else None
    known = sorted({one.table for one in saves(folder)})
    if table is None:
        if len(known) > 1:
            raise InvalidArgumentError(f"{folder} holds several tables, name one: {', '.join(known)}")
        if not known:
            raise NotFoundError(f"{folder} holds no save of an embedding table")
        table = known[0]
    keys, rows = last_rows(folder, table, number=save)
    with files.atomic_write(target) as file:
        if arrow is None:
            _write_numpy(file.stream, {**_columns(keys), "row": rows})
        else:
            _write_arrow(arrow, file, keys, rows)
    print(f"{len(rows)} rows of {table!r}, {rows.shape[1]} numbers each, are in {target}")


def _pyarrow() -> Any:
    try:
        return importlib.import_module("pyarrow")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "a file of Arrow needs pyarrow, which is not installed: pip install 'headwater[arrow]'", name="pyarrow"
        ) from error


def _columns(keys: Words) -> dict[str, Words]:
    return {name: np.ascontiguousarray(keys[:, at]) for at, name in enumerate(("key", "check")[: keys.shape[1]])}


def _write_numpy(file: Any, arrays: Mapping[str, Words | Reals]) -> None:
    """Writes ``arrays`` as `numpy.savez` does, which needs a readable file."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def _write_arrow(arrow: Any, file: object, keys: Words, rows: Reals) -> None:
    columns = {name: arrow.array(values) for name, values in _columns(keys).items()}
    columns["row"] = arrow.FixedSizeListArray.from_arrays(arrow.array(rows.ravel()), rows.shape[1])
    table = arrow.table(columns)
    with importlib.import_module("pyarrow.ipc").new_file(file, table.schema) as writer:
        writer.write_table(table)
