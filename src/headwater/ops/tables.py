"""Lookup tables: dictionaries of the task that they are placed on. They run on its host."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from headwater.dtypes import DType, int64, resource, string
from headwater.errors import FailedPreconditionError, InvalidArgumentError
from headwater.io import files
from headwater.ops.define import fixed, host, no_outputs
from headwater.ops.fingerprints import fingerprint64
from headwater.ops.queues import as_handle
from headwater.registry import Inference, Spec

WHOLE_LINE, LINE_NUMBER = -2, -1
"""Columns of a text file that are none: the line itself, and its number from 0."""


class Table:
    """A dictionary of one element type to another.

    Args:
      name: for errors.
      key: element type of the keys.
      value: element type of the values.
      fixed: filled once, by an initialiser, and never changed.
    """

    def __init__(self, name: str, key: DType, value: DType, *, fixed: bool) -> None:
        self._name = name
        self._key, self._value = key, value
        self._fixed = fixed
        self._lock = threading.Lock()
        self._entries: dict[Any, Any] | None = None if fixed else {}

    def fill(self, keys: Any, values: Any) -> None:
        """Gives a fixed table its entries. A second time changes nothing.

        Raises:
          FailedPreconditionError: a key comes twice with different values, or the table is there with other entries.
        """
        found: dict[Any, Any] = {}
        for key, value in zip(_items(keys), _items(values), strict=True):
            if found.setdefault(key, value) != value:
                raise FailedPreconditionError(
                    None, None, f"HashTable {self._name!r} has different value for same key. Key {key!r} has "
                    f"{found[key]!r} and trying to add value {value!r}",
                )  # fmt: skip
        with self._lock:
            if self._entries is not None and self._entries != found:
                raise FailedPreconditionError(None, None, f"Table {self._name!r} was initialised with other entries")
            self._entries = found

    def _ready(self) -> dict[Any, Any]:
        if self._entries is None:
            raise FailedPreconditionError(
                None, None, f"Table not initialized: {self._name!r}. Run tf.tables_initializer() first."
            )
        return self._entries

    def find(self, keys: Any, default: Any) -> Any:
        """For each key its value, or ``default``."""
        with self._lock:
            entries = self._ready()
            missing = default.item() if isinstance(default, np.ndarray) else default
            result = np.empty(keys.size, self._value.numpy_dtype)
            for index, key in enumerate(_items(keys)):
                result[index] = entries.get(key, missing)
        return result.reshape(keys.shape)

    def insert(self, keys: Any, values: Any) -> None:
        """Adds or replaces entries."""
        if self._fixed:
            raise InvalidArgumentError(None, None, f"Table {self._name!r} cannot be changed")
        with self._lock:
            self._ready().update(zip(_items(keys), _items(values), strict=True))

    def remove(self, keys: Any) -> None:
        """Takes entries out, where they are there."""
        with self._lock:
            entries = self._ready()
            for key in _items(keys):
                entries.pop(key, None)

    def export(self) -> tuple[Any, Any]:
        """All keys and all values, in the same order."""
        with self._lock:
            entries = dict(self._ready())
        return _column(list(entries), self._key), _column(list(entries.values()), self._value)

    def size(self) -> int:
        with self._lock:
            return len(self._ready())


def _items(array: Any) -> list[Any]:
    return np.asarray(array).ravel().tolist()


def _column(items: Sequence[Any], dtype: DType) -> Any:
    result = np.empty(len(items), dtype.numpy_dtype)
    result[:] = items
    return result


@host("HashTableV2", infer=fixed(resource, ()))
def hash_table(
    context: Any, *, key_dtype: DType, value_dtype: DType, container: str = "", shared_name: str = "",
    use_node_name_sharing: bool = False,
) -> Any:  # fmt: skip
    """A table that an initialiser fills."""
    del use_node_name_sharing

    def make() -> Table:
        return Table(context.op_name, key_dtype, value_dtype, fixed=True)

    return as_handle(context.resource(container, shared_name, Table, make))


@host("MutableHashTableV2", infer=fixed(resource, ()))
def mutable_hash_table(
    context: Any, *, key_dtype: DType, value_dtype: DType, container: str = "", shared_name: str = "",
    use_node_name_sharing: bool = False,
) -> Any:  # fmt: skip
    """A table that steps change."""
    del use_node_name_sharing

    def make() -> Table:
        return Table(context.op_name, key_dtype, value_dtype, fixed=False)

    return as_handle(context.resource(container, shared_name, Table, make))


@host("InitializeTableV2", infer=no_outputs)
def initialize(context: Any, handle: Any, keys: Any, values: Any) -> None:
    """Fills a table with pairs."""
    del context
    handle.item().fill(keys, values)


@host("InitializeTableFromTextFileV2", infer=no_outputs)
def initialize_from_file(
    context: Any, handle: Any, filename: Any, *, key_dtype: DType, value_dtype: DType, key_index: int,
    value_index: int, vocab_size: int = -1, delimiter: str = "\t",
) -> None:  # fmt: skip
    """Fills a table with columns of a text file, an entry a line.

    Args:
      key_index, value_index: columns; `WHOLE_LINE` or `LINE_NUMBER`.
      vocab_size: take so many lines; -1 for all.

    Raises:
      InvalidArgumentError: the file has fewer lines or columns, or text that is no number.
    """
    del context
    path = filename.item().decode()
    with files.open_file(path, "rb") as file:
        lines = file.read().split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    lines = [line.removesuffix(b"\r") for line in lines]
    if vocab_size >= 0:
        if len(lines) < vocab_size:
            raise InvalidArgumentError(
                None, None, f"Invalid vocab_size in {path}: expected {vocab_size} but got {len(lines)}"
            )
        lines = lines[:vocab_size]

    def column(index: int, dtype: DType) -> Any:
        return _column([_cell(path, number, line, index, dtype, delimiter) for number, line in enumerate(lines)], dtype)

    handle.item().fill(column(key_index, key_dtype), column(value_index, value_dtype))


def _cell(path: str, number: int, line: bytes, index: int, dtype: DType, delimiter: str) -> Any:
    if index == LINE_NUMBER:
        return number
    text = line
    if index != WHOLE_LINE:
        parts = line.split(delimiter.encode())
        if index >= len(parts):
            raise InvalidArgumentError(
                None, None, f"Invalid number of columns in {path} line {number} ({line.decode(errors='replace')}): "
                f"expected at least {index + 1} got {len(parts)}",
            )  # fmt: skip
        text = parts[index]
    if dtype == string:
        return text
    try:
        return float(text) if dtype.is_floating else int(text)
    except ValueError:
        raise InvalidArgumentError(
            None, None, f"Field {text.decode(errors='replace')} in {path} line {number} is not a valid {dtype.name}."
        ) from None


def _like_default(inference: Inference) -> Sequence[Spec]:
    return [Spec(inference.inputs[2].dtype.base_dtype, inference.inputs[1].dims)]


@host("LookupTableFindV2", infer=_like_default)
def find(context: Any, handle: Any, keys: Any, default: Any) -> Any:
    """For each key its value, or ``default``."""
    del context
    return handle.item().find(keys, default)


@host("LookupTableInsertV2", infer=no_outputs)
def insert(context: Any, handle: Any, keys: Any, values: Any) -> None:
    """Adds or replaces entries."""
    del context
    handle.item().insert(keys, values)


@host("LookupTableRemoveV2", infer=no_outputs)
def remove(context: Any, handle: Any, keys: Any) -> None:
    """Takes entries out."""
    del context
    handle.item().remove(keys)


@host("LookupTableSizeV2", infer=fixed(int64, ()))
def size(context: Any, handle: Any) -> Any:
    """How many entries a table has."""
    del context
    return np.int64(handle.item().size())


def _exported(inference: Inference) -> Sequence[Spec]:
    return [Spec(inference.attrs["Tkeys"], (None,)), Spec(inference.attrs["Tvalues"], (None,))]


@host("LookupTableExportV2", infer=_exported)
def export(context: Any, handle: Any, *, Tkeys: DType, Tvalues: DType) -> Any:
    """All keys and values."""
    del context, Tkeys, Tvalues
    return handle.item().export()


def _buckets(inference: Inference) -> Sequence[Spec]:
    return [Spec(int64, inference.inputs[0].dims)]


@host("StringToHashBucketFast", inputs="input:string", infer=_buckets)
def to_hash_bucket_fast(context: Any, input: Any, *, num_buckets: int) -> Any:
    """For each text a number below ``num_buckets``, the same everywhere."""
    del context
    flat = [fingerprint64(text) % num_buckets for text in input.ravel()]
    return np.array(flat, np.int64).reshape(input.shape)
