# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.graph.runtime.device_settings import VirtualDeviceConfiguration as VirtualDeviceConfiguration
from headwater.graph.runtime.device_settings import enable_tensor_float_32_execution as enable_tensor_float_32_execution
from headwater.graph.runtime.device_settings import get_memory_growth as get_memory_growth
from headwater.graph.runtime.device_settings import get_virtual_device_configuration as get_virtual_device_configuration
from headwater.graph.runtime.device_settings import get_visible_devices as get_visible_devices
from headwater.graph.runtime.device_settings import list_logical_devices as list_logical_devices
from headwater.graph.runtime.device_settings import list_physical_devices as list_physical_devices
from headwater.graph.runtime.device_settings import set_memory_growth as set_memory_growth
from headwater.graph.runtime.device_settings import set_virtual_device_configuration as set_virtual_device_configuration
from headwater.graph.runtime.device_settings import set_visible_devices as set_visible_devices
from headwater.graph.runtime.device_settings import tensor_float_32_execution_enabled as tensor_float_32_execution_enabled
from headwater.graph.session.default_config import get_device_policy as get_device_policy
from headwater.graph.session.default_config import get_synchronous_execution as get_synchronous_execution
from headwater.graph.session.default_config import set_device_policy as set_device_policy
from headwater.graph.session.default_config import set_synchronous_execution as set_synchronous_execution

__all__ = [
    "VirtualDeviceConfiguration",
    "enable_tensor_float_32_execution",
    "get_device_policy",
    "get_memory_growth",
    "get_synchronous_execution",
    "get_virtual_device_configuration",
    "get_visible_devices",
    "list_logical_devices",
    "list_physical_devices",
    "set_device_policy",
    "set_memory_growth",
    "set_synchronous_execution",
    "set_virtual_device_configuration",
    "set_visible_devices",
    "tensor_float_32_execution_enabled",
]
