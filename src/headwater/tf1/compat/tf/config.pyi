# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.graph.runtime.device_settings import LogicalDevice as LogicalDevice
from headwater.graph.runtime.device_settings import PhysicalDevice as PhysicalDevice
from headwater.graph.runtime.device_settings import get_visible_devices as get_visible_devices
from headwater.graph.runtime.device_settings import list_logical_devices as list_logical_devices
from headwater.graph.runtime.device_settings import list_physical_devices as list_physical_devices
from headwater.graph.runtime.device_settings import set_visible_devices as set_visible_devices
from headwater.graph.session.default_config import get_soft_device_placement as get_soft_device_placement
from headwater.graph.session.default_config import list_devices as experimental_list_devices
from headwater.graph.session.default_config import set_soft_device_placement as set_soft_device_placement
from headwater.tf1.compat.tf import config_experimental as experimental
from headwater.tf1.compat.tf import config_optimizer as optimizer
from headwater.tf1.compat.tf import config_threading as threading

__all__ = [
    "LogicalDevice",
    "PhysicalDevice",
    "experimental",
    "experimental_list_devices",
    "get_soft_device_placement",
    "get_visible_devices",
    "list_logical_devices",
    "list_physical_devices",
    "optimizer",
    "set_soft_device_placement",
    "set_visible_devices",
    "threading",
]
