# Written by tools/stubs.py from headwater.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.compat.tf import lookup_experimental as experimental
from headwater.functional.tables import KeyValueTensorInitializer as KeyValueTensorInitializer
from headwater.functional.tables import StaticHashTable as StaticHashTable
from headwater.functional.tables import StaticVocabularyTable as StaticVocabularyTable
from headwater.functional.tables import TextFileIndex as TextFileIndex
from headwater.functional.tables import TextFileInitializer as TextFileInitializer

__all__ = [
    "KeyValueTensorInitializer",
    "StaticHashTable",
    "StaticVocabularyTable",
    "TextFileIndex",
    "TextFileInitializer",
    "experimental",
]
