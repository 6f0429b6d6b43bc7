"""``tf.bitwise``: the bits of integers."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.functional.math": "bitwise_and bitwise_or bitwise_xor invert left_shift right_shift",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
