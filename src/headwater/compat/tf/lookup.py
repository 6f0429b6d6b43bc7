"""``tf.lookup``: lookup tables."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.functional.tables": """
        KeyValueTensorInitializer StaticHashTable StaticVocabularyTable TextFileIndex TextFileInitializer""",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
