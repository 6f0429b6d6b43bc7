"""Lookup tables (TensorFlow 1.15's ``tf.lookup`` and ``tf.contrib.lookup``): from keys to numbers and back.

A table is stored on its task and must be initialised in each session, by `tables_initializer`; monitored sessions and
supervisors do so automatically.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from headwater import dtypes
from headwater.dtypes import DType, as_dtype
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Operation, Tensor
from headwater.tf1.functional import arrays, math
from headwater.tf1.functional.apply import one
from headwater.tf1.functional.indexing import where
from headwater.tf1.functional.ragged_tensor import RaggedTensor
from headwater.tf1.functional.reductions import either
from headwater.tf1.functional.saveable import SaveableObject, SaveSpec
from headwater.tf1.functional.sparse import SparseTensor
from headwater.tf1.functional.table_initializers import (
    KeyValueTensorInitializer,
    TextFileIdTableInitializer,
    TextFileIndex,
    TextFileStringTableInitializer,
    Typed,
)

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.types import TensorLike
    from headwater.tf1.variables.types import InitializerLike


class HasherSpec(NamedTuple):
    """Specification of the hash that maps missing keys to ids.

    Attributes:
      hasher: ``fasthash`` or ``stronghash``.
      key: the key of ``stronghash``, two integers.
    """

    hasher: str
    key: Any


FastHashSpec: Final = HasherSpec("fasthash", None)
"""Farm hash, which is fast, but not collision-resistant against chosen keys."""


class StrongHashSpec(HasherSpec):
    """Sip hash with a secret key of two integers, which prevents crafted collisions.

    Raises:
      ValueError: the key is not two integers.
      TypeError: it is not a list.
    """

    __slots__ = ()

    def __new__(cls, key: Sequence[int]) -> StrongHashSpec:
        if len(key) != 2:
            raise ValueError(f"key must have size 2, got {len(key)}.")
        if not isinstance(key[0], int) or not isinstance(key[1], int):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"Invalid key {key}. Must be unsigned integer values.")
        return super().__new__(cls, "stronghash", key)


def _keys_of(keys: TensorLike, dtype: DType) -> Tensor:
    """The keys as a tensor of the table's type.

    Raises:
      TypeError: they are of another.
    """
    if isinstance(keys, RaggedTensor):
        return _keys_of(keys.flat_values, dtype)
    values = keys.values if isinstance(keys, SparseTensor) else convert_to_tensor(keys)
    if dtype == dtypes.int64 and values.dtype.base_dtype == dtypes.int32:
        values = math.to_int64(values)
    if values.dtype.base_dtype != dtype:
        raise TypeError(f"Signature mismatch. Keys must be dtype {dtype.name}, got {values.dtype.name}.")
    return values


def _like_keys(keys: TensorLike, found: Tensor) -> RaggedTensor | SparseTensor | Tensor:
    if isinstance(keys, RaggedTensor):
        return keys.with_flat_values(found)
    return SparseTensor(keys.indices, found, keys.dense_shape) if isinstance(keys, SparseTensor) else found


class _ResourceTable(Typed):
    """A table with a handle: a dictionary on a task."""

    def __init__(
        self,
        op_type: str,
        key_dtype: DType,
        value_dtype: DType,
        default: TensorLike,
        shared: object,
        name: str,
        more: dict[str, object] | None = None,
    ) -> None:
        super().__init__(key_dtype, value_dtype)
        graph = get_default_graph()
        with name_scope(name, None, []) as scope:
            attrs = {"key_dtype": key_dtype, "value_dtype": value_dtype, "shared_name": shared or "", **(more or {})}
            self.resource_handle: Tensor = graph.create_op(op_type, [], attrs, scope).outputs[0]
            self.default_value: Tensor = convert_to_tensor(default, value_dtype, name="Const")
        self.name: str = self.resource_handle.op.name.rpartition("/")[2]

    @property
    def table_ref(self) -> Tensor:
        return self.resource_handle

    def _op(self, op_type: str, inputs: list[Any], name: str | None, attrs: dict[str, Any] | None = None) -> Operation:
        graph = self.resource_handle.graph
        with graph.colocate_with(self.resource_handle.op):
            return graph.create_op(op_type, [self.resource_handle, *inputs], attrs, name)

    def size(self, name: str | None = None) -> Tensor:
        """Returns the number of entries."""
        return self._op("LookupTableSizeV2", [], name or f"{self.name}_Size").outputs[0]

    def lookup(self, keys: TensorLike, name: str | None = None) -> Any:
        """Returns the value of each key, or the default; a sparse or ragged tensor for such a tensor of keys.

        Raises:
          TypeError: the keys have the wrong type.
        """
        with name_scope(name, f"{self.name}_Lookup", [self.resource_handle]) as scope:
            values = _keys_of(keys, self.key_dtype)
            return _like_keys(keys, self._op("LookupTableFindV2", [values, self.default_value], scope).outputs[0])


class StaticHashTable(_ResourceTable):
    """A table that is filled once.

    Args:
      initializer: defines the entries.
      default_value: value of missing keys.
      shared_name: share it between sessions under this name.
    """

    def __init__(
        self, initializer: Any, default_value: Any, name: str | None = None, *, shared_name: str | None = None
    ) -> None:
        super().__init__(
            "HashTableV2",
            initializer.key_dtype,
            initializer.value_dtype,
            default_value,
            shared_name,
            name or "hash_table",
        )
        self._initializer: Operation = initializer.initialize(self)
        get_default_graph().add_to_collection(GraphKeys.TABLE_INITIALIZERS, self._initializer)

    @property
    def initializer(self) -> Operation:
        return self._initializer

    @property
    def init(self) -> Operation:
        return self._initializer


class MutableHashTable(_ResourceTable):
    """A mutable table.

    Args:
      key_dtype, value_dtype: element types.
      default_value: value of missing keys, a scalar or a vector; all values have its shape.
      checkpoint: whether savers of all variables save and restore it.
    """

    def __init__(
        self,
        key_dtype: DTypeLike,
        value_dtype: DTypeLike,
        default_value: TensorLike,
        name: str = "MutableHashTable",
        checkpoint: bool = True,
        *,
        shared_name: str | None = None,
    ) -> None:
        default = convert_to_tensor(default_value, as_dtype(value_dtype))
        of_tensors = default.shape.ndims != 0
        super().__init__(
            "MutableHashTableOfTensorsV2" if of_tensors else "MutableHashTableV2",
            as_dtype(key_dtype),
            as_dtype(value_dtype),
            default,
            # A saver reads and writes the table in separate steps.
            shared_name or (get_default_graph().unique_name(name, mark_as_used=False) if checkpoint else None),
            name,
            {"value_shape": default.shape} if of_tensors else {},
        )
        if checkpoint:
            get_default_graph().add_to_collection(GraphKeys.SAVEABLE_OBJECTS, _SavedTable(self))

    def insert(self, keys: TensorLike, values: TensorLike, name: str | None = None) -> Operation:
        """An operation that adds or replaces entries."""
        with name_scope(name, f"{self.name}_lookup_table_insert", [self.resource_handle]) as scope:
            inputs = [_keys_of(keys, self.key_dtype), convert_to_tensor(values, self.value_dtype, name="values")]
            return self._op("LookupTableInsertV2", inputs, scope)

    def remove(self, keys: TensorLike, name: str | None = None) -> Operation:
        """An operation that takes entries out."""
        with name_scope(name, f"{self.name}_lookup_table_remove", [self.resource_handle]) as scope:
            return self._op("LookupTableRemoveV2", [_keys_of(keys, self.key_dtype)], scope)

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """Returns all keys and all values, in the same order."""
        attrs = {"Tkeys": self.key_dtype, "Tvalues": self.value_dtype}
        keys, values = self._op(
            "LookupTableExportV2", [], name or f"{self.name}_lookup_table_export_values", attrs
        ).outputs
        values.set_shape((None, *(self.default_value.dims or ())))
        return keys, values

    def replace(self, keys: TensorLike, values: TensorLike, name: str | None = None) -> Operation:
        """An operation that makes these the only entries."""
        return self._op("LookupTableImportV2", [keys, values], name)


class _SavedTable(SaveableObject):
    """A table in a checkpoint: its keys and its values."""

    def __init__(self, table: MutableHashTable) -> None:
        keys, values = table.export()
        specs = [SaveSpec(keys, "", f"{table.name}-keys"), SaveSpec(values, "", f"{table.name}-values")]
        super().__init__(table, specs, table.name)

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Sequence[object] | None) -> Operation:
        del restored_shapes  # not needed: a checkpoint may contain any number of entries
        return self.op.replace(*restored_tensors)


class IdTableWithHashBuckets(Typed):
    """Maps keys to ids: ids of a table, or, for keys that are not in the table, ids beyond them, by fingerprint.

    Args:
      table: returns -1 for these keys; None for fingerprints only.
      num_oov_buckets: number of ids for these keys.
      hasher_spec: hash that maps a key to one of these ids.
    """

    def __init__(
        self,
        table: Any,
        num_oov_buckets: int,
        hasher_spec: HasherSpec = FastHashSpec,
        name: str | None = None,
        key_dtype: Any = None,
    ) -> None:
        if not isinstance(hasher_spec, HasherSpec):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"hasher_spec must be of type HasherSpec, got {hasher_spec}")
        self._hasher = hasher_spec
        if table is None and num_oov_buckets <= 0:
            raise ValueError("oov_buckets must be > 0 if no table is supplied.")
        super().__init__(as_dtype(key_dtype or (table.key_dtype if table else dtypes.string)), dtypes.int64)
        self._table: Any = table
        self._buckets = num_oov_buckets
        self.name: str = name or "string_to_index"

    @property
    def initializer(self) -> Any:
        return None if self._table is None else self._table.initializer

    @property
    def init(self) -> Any:
        return self.initializer

    def size(self, name: str | None = None) -> Any:
        """Returns the number of ids."""
        with name_scope(name, f"{self.name}_Size", []):
            begin: Any = math.to_int64(0) if self._table is None else self._table.size()
            return begin + self._buckets

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """Returns the id of each key."""
        with name_scope(name, f"{self.name}_Lookup", []):
            values = _keys_of(keys, self.key_dtype)
            if self._buckets == 0:
                return _like_keys(keys, self._table.lookup(values))
            text = values if values.dtype.base_dtype == dtypes.string else one("AsString", values)
            if self._hasher.hasher == "fasthash":
                ids = one("StringToHashBucketFast", text, num_buckets=self._buckets)
            elif self._hasher.hasher != "stronghash":
                raise ValueError(f"Unknown hasher {self._hasher.hasher}")
            else:
                ids = one("StringToHashBucketStrong", text, num_buckets=self._buckets, key=tuple(self._hasher.key))
            if self._table is not None:
                found = self._table.lookup(values)
                ids = where(math.not_equal(found, -1), found, ids + self._table.size())
            return _like_keys(keys, ids)


class StaticVocabularyTable(IdTableWithHashBuckets):
    """`IdTableWithHashBuckets` over a `StaticHashTable` of an initializer's entries; None for fingerprints only."""

    def __init__(
        self,
        initializer: InitializerLike,
        num_oov_buckets: int,
        lookup_key_dtype: DTypeLike | None = None,
        name: str | None = None,
    ) -> None:
        table = None if initializer is None else StaticHashTable(initializer, -1)
        super().__init__(table, num_oov_buckets, name=name, key_dtype=lookup_key_dtype)


def index_table_from_tensor(
    mapping: TensorLike | None = None,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    dtype: DTypeLike = dtypes.string,
    name: str | None = None,
    vocabulary_list: TensorLike | None = None,
) -> Any:
    """Returns a table from the elements of a vector to their indices.

    Args:
      mapping: the elements.
      num_oov_buckets: number of further numbers for other keys; when 0 these get ``default_value``.
      dtype: the dtype of keys.

    Raises:
      ValueError: there are no elements, or ``num_oov_buckets`` is negative.
      TypeError: a ``dtype`` that keys cannot have.
    """
    elements = vocabulary_list if mapping is None else mapping
    if elements is None:
        raise ValueError("vocabulary_list must be specified.")
    if num_oov_buckets < 0:
        raise ValueError(f"num_oov_buckets must be greater or equal than 0, got {num_oov_buckets}.")
    if not as_dtype(dtype).is_integer and as_dtype(dtype).base_dtype != dtypes.string:
        raise TypeError("Only integer and string keys are supported.")
    with name_scope(name, "string_to_index", []):
        keys = convert_to_tensor(elements)
        if keys.dtype.is_integer != as_dtype(dtype).is_integer:
            raise ValueError(
                f"Expected {'integer' if as_dtype(dtype).is_integer else 'non-integer'}, got {keys.dtype}."
            )
        keys = math.to_int64(keys) if keys.dtype.is_integer else keys
        values = math.to_int64(arrays.range(arrays.size(keys)))
        with name_scope(None, "hash_table", []):
            table = StaticHashTable(KeyValueTensorInitializer(keys, values, name="table_init"), default_value)
        if num_oov_buckets:
            return IdTableWithHashBuckets(table, num_oov_buckets, hasher_spec, key_dtype=keys.dtype)
        return table


def index_table_from_file(
    vocabulary_file: TensorLike | None = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    key_dtype: DTypeLike = dtypes.string,
    name: str | None = None,
    key_column_index: int = TextFileIndex.WHOLE_LINE,
    value_column_index: int = TextFileIndex.LINE_NUMBER,
    delimiter: str = "\t",
) -> Any:
    """Returns a table from the lines of a file to their numbers. See `index_table_from_tensor`.

    Raises:
      ValueError: there is no file name, ``num_oov_buckets`` is negative, or ``vocab_size`` is not positive.
    """
    if vocabulary_file is None or (isinstance(vocabulary_file, str) and not vocabulary_file):
        raise ValueError("vocabulary_file must be specified and must not be empty.")
    if num_oov_buckets < 0:
        raise ValueError(f"num_oov_buckets must be greater or equal than 0, got {num_oov_buckets}.")
    if vocab_size is not None and vocab_size < 1:
        raise ValueError(f"vocab_size must be greater than 0, got {vocab_size}.")
    key_dtype = as_dtype(key_dtype)
    if not key_dtype.is_integer and key_dtype != dtypes.string:
        raise TypeError("Only integer and string keys are supported.")
    with name_scope(name, "string_to_index", []):
        entries = TextFileIdTableInitializer(
            vocabulary_file,
            key_column_index,
            value_column_index,
            vocab_size,
            delimiter,
            "table_init",
            dtypes.int64 if key_dtype.is_integer else key_dtype,
        )
        table = StaticHashTable(entries, default_value)
        return IdTableWithHashBuckets(table, num_oov_buckets, hasher_spec) if num_oov_buckets else table


def index_to_string_table_from_tensor(
    mapping: TensorLike | None = None,
    default_value: str = "UNK",
    name: str | None = None,
    vocabulary_list: TensorLike | None = None,
) -> StaticHashTable:
    """Returns a table from indices to the elements of a vector of strings."""
    elements = vocabulary_list if mapping is None else mapping
    if elements is None:
        raise ValueError("vocabulary_list must be specified.")
    with name_scope(name, "index_to_string", []):
        values = convert_to_tensor(elements, dtypes.string)
        keys = math.to_int64(arrays.range(arrays.size(values)))
        return StaticHashTable(KeyValueTensorInitializer(keys, values, name="table_init"), default_value)


def index_to_string_table_from_file(
    vocabulary_file: TensorLike,
    vocab_size: int | None = None,
    default_value: str = "UNK",
    name: str | None = None,
    key_column_index: int = TextFileIndex.LINE_NUMBER,
    value_column_index: int = TextFileIndex.WHOLE_LINE,
    delimiter: str = "\t",
) -> StaticHashTable:
    """Returns a table from numbers to the lines of a file."""
    with name_scope(name, "index_to_string", []):
        entries = TextFileStringTableInitializer(
            vocabulary_file, key_column_index, value_column_index, vocab_size, delimiter, "table_init"
        )
        return StaticHashTable(entries, default_value)


def string_to_hash_bucket(
    string_tensor: TensorLike | None = None,
    num_buckets: int | None = None,
    name: str | None = None,
    input: TensorLike | None = None,
) -> Tensor:
    """Hashes strings to numbers below ``num_buckets``, with the hash function of TensorFlow's first versions.

    Raises:
      ValueError: not exactly one of ``string_tensor`` and ``input`` is given, or ``num_buckets`` is None.
    """
    text = either(string_tensor, input, "string_tensor", "input")
    if text is None or num_buckets is None:
        raise ValueError("string_to_hash_bucket needs string_tensor and num_buckets")
    return one("StringToHashBucket", text, num_buckets=num_buckets, name=name)


def string_to_hash_bucket_strong(
    input: TensorLike, num_buckets: int, key: Sequence[int], name: str | None = None
) -> Tensor:
    """Hashes strings to numbers below ``num_buckets``, with a secret key of two integers."""
    return one("StringToHashBucketStrong", input, num_buckets=num_buckets, key=tuple(key), name=name)


def string_to_hash_bucket_fast(input: TensorLike, num_buckets: int, name: str | None = None) -> Tensor:
    """Hashes strings to numbers below ``num_buckets``: the FarmHash fingerprint modulo ``num_buckets``."""
    return one("StringToHashBucketFast", input, num_buckets=num_buckets, name=name)
