"""``tf.contrib.image``: images turned."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {"headwater.functional.images": "rotate"}

__getattr__, __dir__ = namespace(__name__, _NAMES)
