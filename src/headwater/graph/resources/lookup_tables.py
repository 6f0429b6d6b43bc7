"""Lookup tables: dictionaries on a task."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.dtypes import DType, as_dtype
from headwater.errors import FailedPreconditionError, InvalidArgumentError
from headwater.graph.resources.containers import Resources
from headwater.graph.resources.replicable import ReplicableResource, ResourceState

if TYPE_CHECKING:
    from headwater.graph.types import SparseLike, TensorLike


Array = np.ndarray[Any, Any]


class Table(ReplicableResource):
    """A dictionary from one element type to another.

    Args:
      name: for errors.
      key: element type of the keys.
      value: element type of the values.
      fixed: filled once, by an initializer, and never changed.
      shape: the shape of each value.
    """

    def __init__(self, name: str, key: DType, value: DType, *, fixed: bool, shape: Sequence[int] = ()) -> None:
        self._name = name
        self._shape = tuple(shape)
        self._key, self._value = key, value
        self._fixed = fixed
        self._lock: Any = threading.Lock()
        self._entries: dict[object, object] | None = None if fixed else {}

    @property
    def key_dtype(self) -> DType:
        """The element type of the keys."""
        return self._key

    @property
    def value_dtype(self) -> DType:
        """The element type of the values."""
        return self._value

    @property
    def is_fixed(self) -> bool:
        """Whether it is filled once."""
        return self._fixed

    def fill(self, keys: TensorLike, values: SparseLike) -> None:
        """Sets the entries of a fixed table. Idempotent.

        Raises:
          FailedPreconditionError: a key has two different values, or the table was filled with other entries.
        """
        entries: dict[Any, Any] = {}
        for key, value in zip(items(keys), items(values), strict=True):
            if entries.setdefault(key, value) != value:
                raise FailedPreconditionError(
                    f"HashTable {self._name!r} has different value for same key. Key {key!r} has "
                    f"{entries[key]!r} and trying to add value {value!r}"
                )
        with self._lock:
            if self._entries is not None and self._entries != entries:
                raise FailedPreconditionError(f"Table {self._name!r} was initialised with other entries")
            # Each worker runs the initializer, but only the first call changes the table.
            self.changes += self._entries is None
            self._entries = entries

    def _ready(self) -> dict[object, object]:
        if self._entries is None:
            raise FailedPreconditionError(f"Table not initialized: {self._name!r}. Run tf.tables_initializer() first.")
        return self._entries

    def find(self, keys: Array, default: object) -> Array:
        """Returns the value of each key, or ``default``."""
        with self._lock:
            entries = self._ready()
            missing = np.asarray(default).tolist()
            result: Array = np.empty((keys.size, *self._shape), self._value.numpy_dtype)
            for index, key in enumerate(items(keys)):
                result[index] = entries.get(key, missing)
        return result.reshape(keys.shape + self._shape)

    def insert(self, keys: TensorLike, values: SparseLike) -> None:
        """Adds or replaces entries."""
        if self._fixed:
            raise InvalidArgumentError(f"Table {self._name!r} cannot be changed")
        entries = self._pairs(keys, values)
        with self._lock:
            self._ready().update(entries)
            self.changes += 1

    def replace(self, keys: object, values: object) -> None:
        """Replaces all entries."""
        entries = self._pairs(keys, values)
        with self._lock:
            self._entries = entries
            self.changes += 1

    def _pairs(self, keys: Any, values: Any) -> dict[object, object]:
        wanted = np.shape(keys) + self._shape
        if np.shape(values) != wanted:
            raise InvalidArgumentError(
                f"Expected shape {wanted} for the values of table {self._name!r}, got {np.shape(values)}"
            )
        flat = np.asarray(values).reshape(np.size(keys), *self._shape).tolist()
        return dict(zip(items(keys), flat, strict=True))

    def remove(self, keys: TensorLike) -> None:
        """Removes entries, if present."""
        with self._lock:
            entries = self._ready()
            self.changes += 1
            for key in items(keys):
                entries.pop(key, None)

    def export(self) -> tuple[Any, Any]:
        """Returns all keys and all values, in the same order."""
        with self._lock:
            # Copy under the lock, and convert after releasing it, so that other steps need not wait for the conversion.
            entries = dict(self._ready())
        return self._columns(entries)

    def _columns(self, entries: dict[object, object]) -> tuple[Any, Any]:
        values = np.empty((len(entries), *self._shape), self._value.numpy_dtype)
        for index, value in enumerate(entries.values()):
            values[index] = value
        return as_column(list(entries), self._key), values

    def size(self) -> int:
        with self._lock:
            return len(self._ready())

    # Replication ------------------------------------------------------------------------------------------------------

    @property
    def repeats(self) -> bool:
        """False for fixed tables: they are filled once, perhaps from a file that the backup does not have."""
        return not self._fixed

    def share(self, lock: threading.RLock) -> None:
        self._lock = lock

    def state(self) -> ResourceState:
        words = self._name, self._key.name, self._value.name, self._fixed, self._shape, self._entries is not None
        return ResourceState(words, () if self._entries is None else self._columns(self._entries))

    def install_state(self, state: ResourceState) -> None:
        self._entries = self._pairs(*state.arrays) if state.words[-1] else None

    @classmethod
    def made_of(cls, state: ResourceState, resources: Resources) -> Table:
        del resources
        name, key, value, fixed, shape, _ = state.words
        return cls(name, as_dtype(key), as_dtype(value), fixed=fixed, shape=shape)


def items(array: object) -> list[Any]:
    return np.asarray(array).ravel().tolist()


def as_column(items: Sequence[object], dtype: DType) -> Any:
    result = np.empty(len(items), dtype.numpy_dtype)
    result[:] = items
    return result
