"""``tf.contrib.lookup``: lookup tables, and functions that make them from lists and files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater import dtypes
from headwater.graph.convert import convert_to_tensor
from headwater.tf1.functional import tables
from headwater.tf1.functional.table_initializers import (
    KeyValueTensorInitializer,
    TextFileIdTableInitializer,
    TextFileIndex,
    TextFileInitializer,
    TextFileStringTableInitializer,
)
from headwater.tf1.functional.tables import (
    FastHashSpec,
    HasherSpec,
    IdTableWithHashBuckets,
    MutableHashTable,
    StrongHashSpec,
    index_table_from_file,
    index_to_string_table_from_file,
)

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.operation import Tensor
    from headwater.graph.sparse_tensor import SparseTensor
    from headwater.graph.types import TensorLike
    from headwater.tf1.functional.tables import StaticHashTable
    from headwater.tf1.variables.types import InitializerLike


__all__ = [
    "FastHashSpec",
    "HashTable",
    "HasherSpec",
    "IdTableWithHashBuckets",
    "KeyValueTensorInitializer",
    "MutableHashTable",
    "StrongHashSpec",
    "TextFileIdTableInitializer",
    "TextFileIndex",
    "TextFileInitializer",
    "TextFileStringTableInitializer",
    "index_table_from_file",
    "index_table_from_tensor",
    "index_to_string",
    "index_to_string_table_from_file",
    "index_to_string_table_from_tensor",
    "string_to_index",
    "string_to_index_table_from_file",
    "string_to_index_table_from_tensor",
]


def string_to_index_table_from_file(
    vocabulary_file: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    name: str | None = None,
) -> IdTableWithHashBuckets | StaticHashTable:
    """`index_table_from_file` of text."""
    return index_table_from_file(vocabulary_file, num_oov_buckets, vocab_size, default_value, hasher_spec, name=name)


class HashTable(tables.StaticHashTable):
    """``tf.lookup.StaticHashTable``."""

    def __init__(
        self,
        initializer: InitializerLike,
        default_value: TensorLike,
        shared_name: str | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(initializer, default_value, name, shared_name=shared_name)


def index_table_from_tensor(
    mapping: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    dtype: DTypeLike = dtypes.string,
    name: str | None = None,
) -> IdTableWithHashBuckets | StaticHashTable:
    """Returns a table from the elements of a vector to their indices."""
    return tables.index_table_from_tensor(mapping, num_oov_buckets, default_value, hasher_spec, dtype, name)


def index_to_string_table_from_tensor(
    mapping: Any, default_value: str = "UNK", name: str | None = None
) -> StaticHashTable:
    """Returns a table from indices to the elements of a vector of strings."""
    return tables.index_to_string_table_from_tensor(mapping, default_value, name)


def string_to_index_table_from_tensor(
    mapping: TensorLike,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    name: str | None = None,
) -> IdTableWithHashBuckets | StaticHashTable:
    """`index_table_from_tensor` of text."""
    return index_table_from_tensor(mapping, num_oov_buckets, default_value, hasher_spec, name=name)


def string_to_index(
    tensor: TensorLike, mapping: TensorLike, default_value: int = -1, name: str | None = None
) -> SparseTensor | Tensor:
    """The place in ``mapping`` of each string of ``tensor``, int64 of its shape; ``default_value`` for others."""
    return index_table_from_tensor(mapping, default_value=default_value, name=name).lookup(convert_to_tensor(tensor))


def index_to_string(
    tensor: TensorLike, mapping: TensorLike, default_value: str = "UNK", name: str | None = None
) -> SparseTensor | Tensor:
    """The text of ``mapping`` in each place of ``tensor`` (int64), of its shape; ``default_value`` past the end."""
    return index_to_string_table_from_tensor(mapping, default_value, name).lookup(convert_to_tensor(tensor))
