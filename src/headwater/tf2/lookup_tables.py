"""Lookup tables of TensorFlow 2: tables with their entries, outside of any task or session."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from headwater.dtypes import as_dtype, int64
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor
from headwater.graph.registry import HostFunction
from headwater.keras.graphs.lookups import table_in_graph
from headwater.tf1.functional import dense_tables, table_initializers, tables
from headwater.tf2.at_once import CallGraph, Evaluation, at_once, building
from headwater.tf2.tensors import convert_to_tensor as as_value

if TYPE_CHECKING:
    from headwater.graph.operation import Operation, Tensor
    from headwater.graph.resources.lookup_tables import Table
    from headwater.keras.types import Tree

_METHODS = "erase export insert insert_or_assign lookup remove size"
"""Methods of a table that add operations."""


class KeyValueTensorInitializer(table_initializers.KeyValueTensorInitializer):
    """Entries from two arrays of equal shape. Arguments as in TensorFlow."""

    def __init__(
        self, keys: object, values: object, key_dtype: Tree = None, value_dtype: Tree = None, name: str | None = None
    ) -> None:
        self._given = keys, values, key_dtype, value_dtype
        self._key = np.asarray(as_value(keys, key_dtype))
        self._value = np.asarray(as_value(values, value_dtype))
        if self._key.shape != self._value.shape:
            raise ValueError(f"Shapes of keys {self._key.shape} and of values {self._value.shape} are incompatible")
        self._name = name or "key_value_init"

    @property
    def _keys(self) -> Tensor:  # pyright: ignore[reportIncompatibleVariableOverride]
        return convert_to_tensor(self._key, self._given[2])

    @property
    def _values(self) -> Tensor:  # pyright: ignore[reportIncompatibleVariableOverride]
        return convert_to_tensor(self._value, self._given[3])


class _Held:
    """Mixin of tables that keep their entries in a `Table`; operations in any graph refer to it.

    Attributes:
      resource: the entries.
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        self._held: HostFunction | None = None
        graph = CallGraph()
        with graph.as_default(), building():
            super().__init__(*args, **kwargs)
            values = Evaluation(graph)
            self.resource: Table = values.structure(self.resource_handle).item()
            values.structure(getattr(self, "_initializer", None))
            default = values.structure(self.default_value)
        self._value_of_default = np.asarray(default)
        self._held = HostFunction(lambda: self.resource)

    @property
    def resource_handle(self) -> Tensor:
        return self._made if self._held is None else table_in_graph(self._held)

    @resource_handle.setter
    def resource_handle(self, value: Tensor) -> None:
        self._made = value

    @property
    def default_value(self) -> Tensor:
        if self._held is None:
            return self._default_made
        dtype: Tree = vars(self)["value_dtype"]
        return convert_to_tensor(self._value_of_default, dtype)

    @default_value.setter
    def default_value(self, value: Tensor) -> None:
        self._default_made = value

    def _op(
        self, op_type: str, inputs: list[Tree], name: str | None, attrs: dict[str, Tree] | None = None
    ) -> Operation:
        return get_default_graph().create_op(op_type, [self.resource_handle, *inputs], attrs, name)

    def __getitem__(self, keys: object) -> Tree:
        """Returns the value of each key, or the default."""
        table: Tree = self
        return table.lookup(keys)


def _eager_methods(kind: type[Tree]) -> type[Tree]:
    """Makes the methods of a class of tables compute values; decorates the class."""
    for name in _METHODS.split():
        if hasattr(kind, name):
            setattr(kind, name, at_once(getattr(kind, name)))
    return kind


@_eager_methods
class StaticHashTable(_Held, tables.StaticHashTable):  # pyright: ignore[reportIncompatibleVariableOverride]
    __doc__ = tables.StaticHashTable.__doc__

    def __init__(
        self,
        initializer: object,
        default_value: object,
        name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None:
        del experimental_is_anonymous  # no table has a shared name
        super().__init__(initializer, _plain(default_value), name)


@_eager_methods
class MutableHashTable(_Held, tables.MutableHashTable):  # pyright: ignore[reportIncompatibleVariableOverride]
    __doc__ = tables.MutableHashTable.__doc__

    def __init__(
        self,
        key_dtype: object,
        value_dtype: object,
        default_value: object,
        name: str = "MutableHashTable",
        checkpoint: bool = True,
        experimental_is_anonymous: bool = False,
    ) -> None:
        del checkpoint, experimental_is_anonymous
        super().__init__(key_dtype, value_dtype, _plain(default_value), name, checkpoint=False)


@_eager_methods
class DenseHashTable(_Held, dense_tables.DenseHashTable):  # pyright: ignore[reportIncompatibleVariableOverride]
    __doc__ = dense_tables.DenseHashTable.__doc__

    def __init__(
        self,
        key_dtype: Tree,
        value_dtype: object,
        default_value: object,
        empty_key: object,
        deleted_key: object,
        initial_num_buckets: int | None = None,
        name: str = "MutableDenseHashTable",
        checkpoint: bool = True,
        experimental_is_anonymous: bool = False,
    ) -> None:
        del checkpoint, experimental_is_anonymous
        keys = [np.asarray(as_value(key, as_dtype(key_dtype))) for key in (empty_key, deleted_key)]
        super().__init__(
            key_dtype, value_dtype, _plain(default_value), *keys, initial_num_buckets, name, checkpoint=False
        )
        self._reserved: list[Tree] = keys


@_eager_methods
class StaticVocabularyTable(tables.IdTableWithHashBuckets):
    __doc__ = tables.StaticVocabularyTable.__doc__

    def __init__(
        self,
        initializer: Tree,
        num_oov_buckets: int,
        lookup_key_dtype: object = None,
        name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None:
        del experimental_is_anonymous
        if num_oov_buckets <= 0:
            raise ValueError(f"`oov_buckets` must be > 0; use StaticHashTable. Received: {num_oov_buckets}")
        if initializer is not None and initializer.value_dtype != int64:
            raise TypeError(f"Invalid `value_dtype`, expected {int64} but got {initializer.value_dtype}.")
        table = None if initializer is None else StaticHashTable(initializer, -1)
        super().__init__(table, num_oov_buckets, name=name, key_dtype=lookup_key_dtype)

    def __getitem__(self, keys: object) -> Tree:
        """Returns the id of each key."""
        return self.lookup(keys)


def _plain(value: object) -> object:
    return np.asarray(value) if hasattr(value, "__array__") else value


class LoadedTable:
    """A table of a saved model, which is created and filled at its first use.

    Args:
      make: returns the entries.
    """

    def __init__(self, make: Callable[[], Table]) -> None:
        self._make = make
        self._found: Table | None = None
        self.held = HostFunction(lambda: self.resource)

    @property
    def resource(self) -> Table:
        """The entries."""
        if self._found is None:
            self._found = self._make()
        return self._found


def table_of(value: object) -> Table | None:
    """Returns the entries of a table of the program; None for other objects."""
    return value.resource if isinstance(value, _Held | LoadedTable) else None
