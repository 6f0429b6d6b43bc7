"""``tf.config.experimental``: older names of what is in ``tf.config``, and the memory of GPUs."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.runtime.device_settings": """
        get_memory_growth get_visible_devices list_logical_devices list_physical_devices set_memory_growth
        set_visible_devices"""
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
