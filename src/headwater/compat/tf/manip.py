"""``tf.manip``: tensors in other shapes and orders."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.functional.arrays": "reshape reverse roll tile",
    "headwater.functional.blocks": "batch_to_space_nd space_to_batch_nd",
    "headwater.functional.indexing": "gather_nd scatter_nd",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
