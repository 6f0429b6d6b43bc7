"""``tf.strings``: text."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.functional.strings": """
        as_string format join=string_join length=string_length lower=string_lower reduce_join regex_full_match
        regex_replace split=string_split_v2 strip=string_strip substr to_number=string_to_number
        upper=string_upper""",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
