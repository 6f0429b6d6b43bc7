# Written by tools/stubs.py from headwater.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.compat.tf import lookup_experimental as experimental
from headwater.functional.table_initializers import KeyValueTensorInitializer as KeyValueTensorInitializer
from headwater.functional.table_initializers import TextFileIndex as TextFileIndex
from headwater.functional.table_initializers import TextFileInitializer as TextFileInitializer
from headwater.functional.tables import StaticHashTable as StaticHashTable
from headwater.functional.tables import StaticVocabularyTable as StaticVocabularyTable

__all__ = [
    "KeyValueTensorInitializer",
    "StaticHashTable",
    "StaticVocabularyTable",
    "TextFileIndex",
    "TextFileInitializer",
    "experimental",
]
