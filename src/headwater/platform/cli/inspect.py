"""``headwater inspect``: shows the contents of a checkpoint."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.table import Table

from headwater.data.io import files, tensor_bundle
from headwater.errors import NotFoundError
from headwater.platform.cli.console import table_console
from headwater.tables import fields
from headwater.tables.parts import PartReader
from headwater.tables.snapshots import Save, chain, saves


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredItem:
    """A table or a variable of a checkpoint.

    Attributes:
      name: the name of the table or variable.
      kind: ``"table"``, ``"delta"`` (of a table) or ``"variable"``.
      save: the number of the save; None in checkpoints without numbers.
      rows: the number of rows; None for a variable.
      shape: the shape of a row, or of the variable.
      dtype: its element type.
      keys: ``"integers"`` or ``"strings"``; empty for a variable.
      state: the number of optimizer values stored with each row.
      nbytes: its size, in bytes.
      gone: the number of rows removed since the previous save.
      step: the number of updates.
      hot: the most used keys with their counts, most used first; for strings, the first of the two numbers of a key.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    save: int | None = None
    rows: int | None = None
    keys: str = ""
    state: int = 0
    gone: int = 0
    step: int | None = None
    hot: tuple[tuple[int, int], ...] = ()


def inspect(path: str, *, keys: int, as_json: bool) -> None:
    """Prints the contents of a checkpoint.

    Args:
      path: a folder of table saves, a Keras file, or the prefix of a TensorFlow checkpoint.
      keys: the number of most used keys to show per table.
      as_json: print JSON instead of a table.

    Raises:
      NotFoundError: there is no checkpoint.
      DataLossError: the checkpoint is damaged.
    """
    descriptions = list(_held(path, keys))
    if as_json:
        print(json.dumps([asdict(one) for one in descriptions], indent=1))
        return
    shown = Table(box=None, pad_edge=False)
    for heading in ("name", "", "save", "rows", "shape", "type", "keys", "state", "size", "updates"):
        shown.add_column(heading, overflow="fold")
    for one in descriptions:
        shown.add_row(
            one.name,
            one.kind,
            "" if one.save is None else str(one.save),
            "" if one.rows is None else f"{one.rows}" + (f", {one.gone} gone" if one.gone else ""),
            "x".join(map(str, one.shape)),
            one.dtype,
            one.keys,
            str(one.state) if one.keys else "",
            f"{one.nbytes / 2**20:.2f} MiB",
            "" if one.step is None else str(one.step),
        )
    console = table_console()
    console.print(shown)
    for one in descriptions:
        if one.hot:
            hot = ", ".join(f"{key} ({uses})" for key, uses in one.hot)
            console.print(f"most used of {one.name}, save {one.save}: {hot}", soft_wrap=True)


def _held(path: str, keys: int) -> Iterator[StoredItem]:
    if files.isdir(path):
        every = saves(path)
        if not every:
            raise NotFoundError(f"{path} holds no save of an embedding table")
        for one in every:
            yield _table_in_save(path, one, keys)
    elif files.exists(tensor_bundle.index_path(path)):
        reader = tensor_bundle.BundleReader(path)
        for name in sorted(reader.shapes):
            shape, dtype = reader.shapes[name], reader.dtypes[name]
            size = int(np.prod(shape)) * np.dtype(dtype.as_numpy_dtype).itemsize
            yield StoredItem(name=name, kind="variable", shape=tuple(shape), dtype=dtype.name, nbytes=size)
    elif files.exists(path):
        yield from _tables_in_model(path, keys)
    else:
        raise NotFoundError(f"there is no checkpoint {path}")


def _table_in_save(folder: str, one: Save, keys: int) -> StoredItem:
    hot: list[tuple[int, int]] = []
    for part in chain(folder, one.table, one.number)[-1].parts:
        with PartReader(os.path.join(folder, part.file)) as reader:
            for _, words, values in reader.pieces():
                if values.shape[1]:
                    hot = _hottest([*hot, *_uses(words, keys)], keys)
    return StoredItem(
        name=one.table,
        kind="table" if one.base is None else "delta",
        save=one.number,
        rows=sum(part.rows for part in one.parts),
        shape=(one.dim,),
        dtype="float32",
        keys="strings" if one.strings else "integers",
        state=one.slots,
        nbytes=sum(part.nbytes for part in one.parts),
        gone=sum(part.gone for part in one.parts),
        step=max(one.step),
        hot=tuple(hot),
    )


def _uses(words: Any, keys: int) -> list[tuple[int, int]]:
    counts = (words[:, 1] >> fields.COUNT_SHIFT) & fields.COUNT_MASK
    best = np.argsort(-counts, kind="stable")[:keys]
    return [(int(words[at, 0]), int(counts[at])) for at in best]


def _hottest(uses: Sequence[tuple[int, int]], keys: int) -> list[tuple[int, int]]:
    return sorted(uses, key=lambda pair: (-pair[1], pair[0]))[:keys]


def _tables_in_model(path: str, keys: int) -> Iterator[StoredItem]:
    import h5py  # noqa: PLC0415  comes with Keras

    with files.open_file(path, "rb") as file:
        data = file.read()
    if data.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            data = archive.read("model.weights.h5")
    if not data.startswith(b"\x89HDF"):
        raise ValueError(f"{path} is neither a model of Keras nor its weights")
    library = h5py
    with library.File(io.BytesIO(data), "r") as store:
        yield from _tables_in_group(store, keys)


def _tables_in_group(group: Mapping[str, Any], keys: int, prefix: str = "") -> Iterator[StoredItem]:
    if {"words", "values", "step"} <= set(group):
        words, values = np.asarray(group["words"]), group["values"]
        yield StoredItem(
            name=prefix.rpartition("/vars")[0] or prefix,
            kind="table",
            rows=len(words),
            shape=(int(values.shape[1]),),
            dtype=str(values.dtype),
            keys="strings" if words.shape[1] == 3 else "integers",
            nbytes=int(words.nbytes + values.nbytes),
            step=int(np.asarray(group["step"])),
            hot=tuple(_hottest(_uses(words, keys), keys)),
        )
        return
    for name in sorted(group):
        part, path = group[name], f"{prefix}/{name}".lstrip("/")
        if hasattr(part, "keys"):
            yield from _tables_in_group(part, keys, path)
        else:
            yield StoredItem(
                name=path, kind="variable", shape=tuple(part.shape), dtype=str(part.dtype), nbytes=int(part.nbytes)
            )
