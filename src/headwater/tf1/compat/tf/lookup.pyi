# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.compat.tf import lookup_experimental as experimental
from headwater.tf1.functional.table_initializers import KeyValueTensorInitializer as KeyValueTensorInitializer
from headwater.tf1.functional.table_initializers import TextFileIndex as TextFileIndex
from headwater.tf1.functional.table_initializers import TextFileInitializer as TextFileInitializer
from headwater.tf1.functional.tables import StaticHashTable as StaticHashTable
from headwater.tf1.functional.tables import StaticVocabularyTable as StaticVocabularyTable

__all__ = [
    "KeyValueTensorInitializer",
    "StaticHashTable",
    "StaticVocabularyTable",
    "TextFileIndex",
    "TextFileInitializer",
    "experimental",
]
