"""``tf.contrib.lookup``: lookup tables, and the functions that make them of lists and files."""

from __future__ import annotations

from typing import Any

from headwater.functional import tables
from headwater.functional.tables import (
    IdTableWithHashBuckets,
    KeyValueTensorInitializer,
    MutableHashTable,
    TextFileIdTableInitializer,
    TextFileIndex,
    TextFileInitializer,
    TextFileStringTableInitializer,
    index_table_from_file,
    index_to_string_table_from_file,
)

__all__ = [
    "HashTable",
    "IdTableWithHashBuckets",
    "KeyValueTensorInitializer",
    "MutableHashTable",
    "TextFileIdTableInitializer",
    "TextFileIndex",
    "TextFileInitializer",
    "TextFileStringTableInitializer",
    "index_table_from_file",
    "index_table_from_tensor",
    "index_to_string_table_from_file",
    "index_to_string_table_from_tensor",
    "string_to_index_table_from_file",
]

string_to_index_table_from_file = index_table_from_file


class HashTable(tables.StaticHashTable):
    """``tf.lookup.StaticHashTable``."""


def index_table_from_tensor(
    mapping: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: Any = None,
    dtype: Any = None,
    name: str | None = None,
) -> Any:
    """A table that gives each element of a vector its place in it."""
    more = {} if dtype is None else {"dtype": dtype}
    return tables.index_table_from_tensor(mapping, num_oov_buckets, default_value, hasher_spec, name=name, **more)


def index_to_string_table_from_tensor(mapping: Any, default_value: str = "UNK", name: str | None = None) -> Any:
    """A table that gives each number the element in its place of a vector of text."""
    return tables.index_to_string_table_from_tensor(mapping, default_value, name)
