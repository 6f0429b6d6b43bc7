"""``tf.config``: the devices of this process, and settings of them."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.runtime.device_settings": """
        LogicalDevice PhysicalDevice get_visible_devices list_logical_devices list_physical_devices
        set_visible_devices"""
}

_MODULES = {
    "experimental": "headwater.compat.tf.config_experimental",
    "threading": "headwater.compat.tf.config_threading",
}

__getattr__, __dir__ = namespace(__name__, _NAMES, _MODULES)
