"""``tf.config.threading``: how many threads compute."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.runtime.device_settings": "get_intra_op_parallelism_threads set_intra_op_parallelism_threads",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
