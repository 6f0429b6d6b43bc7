"""``tf.contrib.deprecated``: summaries as before TensorFlow 1.0."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.compat.tf.old_summaries": """
        audio_summary histogram_summary image_summary merge_all_summaries merge_summary scalar_summary""",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
