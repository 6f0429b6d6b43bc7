"""``tf.compat``: text, bytes, and the versions of TensorFlow."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.compat.text": """
        as_bytes as_str as_str_any as_text bytes_or_text_types complex_types forward_compatible integral_types
        path_to_str real_types""",
    "headwater.shapes": "dimension_at_index dimension_value",
}

__getattr__, __dir__ = namespace(__name__, _NAMES, {"v1": "headwater.compat.tf"})
