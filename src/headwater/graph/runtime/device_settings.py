"""``tf.config``: lists the devices, and sets how this process will use them; settings must precede the first use.

Listing GPUs does not allocate their memory: the driver is queried instead of JAX, so that `set_memory_growth` and
`set_visible_devices` can still be called afterwards. Settings are passed on to JAX's configuration and apply to graphs
and Keras alike.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeVar

from headwater.graph.runtime import jax_internals
from headwater.graph.runtime.devices import (
    divide_cpu,
    has_cpu_only,
    local_devices,
    offered_devices,
    use_cpu_only,
    virtual_gpus,
)
from headwater.lazy_jax import jax

_jax: Any = jax
_CUDA_PLUGINS: Final = ("jax_cuda12_plugin", "jax_cuda13_plugin")
_WHOLE: Final = ("float32", "highest")
"""JAX's names of the full precision of float32 matrix products."""
_PREALLOCATE: Final = "XLA_PYTHON_CLIENT_PREALLOCATE"


class PhysicalDevice(NamedTuple):
    """A device of this machine that the process may use.

    Attributes:
      name: such as ``/physical_device:GPU:0``.
      device_type: ``CPU`` or ``GPU``.
    """

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device on which operations can be placed.

    Attributes:
      name: such as ``/device:GPU:0``.
      device_type: ``CPU`` or ``GPU``.
    """

    name: str
    device_type: str


class VirtualDeviceConfiguration(NamedTuple):
    """One of several logical devices of a physical device.

    Attributes:
      memory_limit: memory limit in megabytes; None for a CPU.
    """

    memory_limit: int | None = None


_D = TypeVar("_D", PhysicalDevice, LogicalDevice)


class _Wanted:
    """The requested settings; None if nothing was requested."""

    visible: list[PhysicalDevice] | None = None
    memory_grows: bool | None = None
    cpu_threads: int | None = None
    virtual_cpus: list[VirtualDeviceConfiguration] | None = None


_wanted = _Wanted()


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Returns the CPU and the GPUs of this machine that ``CUDA_VISIBLE_DEVICES`` and JAX's settings allow.

    Args:
      device_type: only devices of this type.
    """
    found = [PhysicalDevice("/physical_device:CPU:0", "CPU")]
    found += [PhysicalDevice(f"/physical_device:GPU:{index}", "GPU") for index in range(_count_gpus())]
    return _filter_by_type(found, device_type)


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """Returns the devices on which operations can be placed. Device settings cannot be changed afterwards.

    Args:
      device_type: only devices of this type.
    """
    found = [LogicalDevice(f"/device:{name}", name.partition(":")[0]) for name in offered_devices({})]
    return _filter_by_type(found, device_type)


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Returns the devices that this process uses.

    Args:
      device_type: only devices of this type.
    """
    return _filter_by_type(list_physical_devices() if _wanted.visible is None else _wanted.visible, device_type)


def set_visible_devices(devices: Any, device_type: str | None = None) -> None:
    """Sets the devices that this process uses.

    Args:
      devices: one or more of `list_physical_devices`; without a GPU only the CPU is used.
      device_type: changes only which devices of this type are used.

    Raises:
      ValueError: this machine has no such device, or the device has the wrong type.
      RuntimeError: the process uses its devices already, or ``devices`` does not include the CPU.
    """
    wanted: list[PhysicalDevice] = [devices] if isinstance(devices, PhysicalDevice) else list(devices)
    there = list_physical_devices()
    for device in wanted:
        if device not in _filter_by_type(there, device_type):
            raise ValueError(f"Unrecognized device: {device!r}")
    kept = [] if device_type is None else [each for each in get_visible_devices() if each.device_type != device_type]
    # Keep the order of the machine: numbers of logical devices must not depend on the order in the program.
    visible = [device for device in there if device in (*kept, *wanted)]
    if visible == get_visible_devices():
        return
    _require_unused("Visible devices")
    if PhysicalDevice("/physical_device:CPU:0", "CPU") not in visible:
        raise RuntimeError("the CPU must stay visible: host operations run on it")
    gpus = [device.name.rpartition(":")[2] for device in visible if device.device_type == "GPU"]
    if virtual_gpus() and len(gpus) < virtual_gpus():
        raise RuntimeError("emulated GPUs are always visible: set HEADWATER_VIRTUAL_GPUS to the number wanted")
    if gpus:
        _jax.config.update("jax_cuda_visible_devices", ",".join(gpus))
    else:
        use_cpu_only()
    _wanted.visible = visible


def get_memory_growth(device: PhysicalDevice) -> bool:
    """Returns whether GPU memory is allocated only as needed.

    Raises:
      ValueError: this machine has no such device.
      KeyError: a CPU, whose memory is always allocated as needed.
    """
    _require_known(device)
    if device.device_type != "GPU":
        raise KeyError(device)
    if _wanted.memory_grows is not None:
        return _wanted.memory_grows
    return os.environ.get(_PREALLOCATE, "").lower() in ("false", "0")


def set_memory_growth(device: PhysicalDevice, enable: bool) -> None:
    """Sets whether GPU memory is allocated only as needed, rather than most of it at once.

    JAX has one setting for all GPUs of a process, and reads it when it first uses a GPU.

    Raises:
      ValueError: not a device of this machine, or a CPU, or a setting that differs from another GPU's.
      RuntimeError: the process uses its devices already.
    """
    _require_known(device)
    if device.device_type != "GPU":
        raise ValueError("Cannot set memory growth on non-GPU and non-Pluggable devices")
    if get_memory_growth(device) == bool(enable):
        return
    _require_unused("Physical devices")
    if _wanted.memory_grows is not None:
        raise ValueError("Memory growth cannot differ between GPU devices")
    _wanted.memory_grows = bool(enable)
    os.environ[_PREALLOCATE] = "false" if enable else "true"


def tensor_float_32_execution_enabled() -> bool:
    """Returns whether GPUs may round float32 values to 10 bits of mantissa before they multiply them; GPUs since Ampere
    do."""
    return _jax.config.jax_default_matmul_precision not in _WHOLE


def enable_tensor_float_32_execution(enabled: bool) -> None:
    """Sets whether GPUs may round float32 values to 10 bits of mantissa in matrix products and convolutions.

    Rounding is allowed by default. Has no effect on a CPU. Functions traced before are traced again at their next use.
    """
    if bool(enabled) != tensor_float_32_execution_enabled():
        _jax.config.update("jax_default_matmul_precision", None if enabled else _WHOLE[0])


def get_virtual_device_configuration(device: PhysicalDevice) -> list[VirtualDeviceConfiguration] | None:
    """Returns the logical devices of ``device``; None if it was not divided.

    Raises:
      ValueError: this machine has no such device.
    """
    _require_known(device)
    return _wanted.virtual_cpus if device.device_type == "CPU" else None


def set_virtual_device_configuration(
    device: PhysicalDevice, virtual_devices: Sequence[VirtualDeviceConfiguration]
) -> None:
    """Divides the CPU into several logical devices, ``CPU:0``, ``CPU:1`` ..., which share its cores.

    A ``device_count`` of a session or server takes precedence.

    Raises:
      ValueError: not a device of this machine; a GPU, which JAX cannot divide; or a memory limit for a CPU.
      RuntimeError: a session or server has used its devices already, or they were listed.
    """
    _require_known(device)
    if device.device_type != "CPU":
        raise ValueError(
            f"{device.name} cannot be several devices: JAX does not divide a GPU's memory. HEADWATER_VIRTUAL_GPUS "
            "emulates GPUs on the CPU"
        )
    if any(each.memory_limit is not None for each in virtual_devices):
        raise ValueError("Setting memory limit on CPU virtual devices is currently not supported")
    wanted = list(virtual_devices)
    if wanted == _wanted.virtual_cpus:
        return
    divide_cpu(len(wanted))
    _wanted.virtual_cpus = wanted


def get_intra_op_parallelism_threads() -> int:
    """Returns the number of threads that compute on the CPU; 0 for one per core."""
    return _wanted.cpu_threads or 0


def set_intra_op_parallelism_threads(num_threads: int) -> None:
    """Sets the number of threads that compute on the CPU.

    Raises:
      RuntimeError: the process uses its devices already.
    """
    if num_threads == get_intra_op_parallelism_threads():
        return
    _require_unused("Intra op parallelism")
    _wanted.cpu_threads = int(num_threads)
    if num_threads:
        os.environ["NPROC"] = str(int(num_threads))  # XLA's own variable
    else:
        os.environ.pop("NPROC", None)


def get_memory_info(device: str) -> dict[str, int]:
    """Returns the bytes of a device's memory that are in use (``current``), and their maximum (``peak``); 0 for a CPU.

    Args:
      device: such as ``GPU:0``.

    Raises:
      ValueError: there is no such device.
    """
    kind, _, number = device.upper().rpartition("/")[2].removeprefix("DEVICE:").partition(":")
    if not number.isdigit() or int(number) >= len(list_logical_devices(kind)):
        raise ValueError(f"Failed parsing device name: {device!r}; tf.config.list_logical_devices() lists the devices")
    memory: dict[str, int] = {} if kind == "CPU" else local_devices()[f"{kind}:{number}"].memory_stats() or {}
    return {"current": memory.get("bytes_in_use", 0), "peak": memory.get("peak_bytes_in_use", 0)}


def get_memory_usage(device: str) -> int:
    """Returns the bytes of a device's memory that are in use; see `get_memory_info`."""
    return get_memory_info(device)["current"]


def get_device_details(device: PhysicalDevice) -> dict[str, Any]:
    """Returns the name and the compute capability of a GPU; nothing for a CPU."""
    _require_known(device)
    if device.device_type == "CPU":
        return {}
    found = local_devices()[device.name.removeprefix("/physical_device:")]
    major, _, minor = str(getattr(found, "compute_capability", "0.0")).partition(".")
    return {"device_name": found.device_kind, "compute_capability": (int(major), int(minor or 0))}


def _filter_by_type(devices: list[_D], device_type: str | None) -> list[_D]:
    return [device for device in devices if device_type in (None, device.device_type)]


def _require_known(device: PhysicalDevice) -> None:
    if device not in list_physical_devices():
        raise ValueError(f"Unrecognized device: {device!r}")


def _require_unused(what: str) -> None:
    bridge: Any = jax_internals.xla_bridge
    if bridge.backends_are_initialized():
        raise RuntimeError(f"{what} cannot be modified after being initialized")


def _count_gpus() -> int:
    """Returns the number of GPUs that JAX finds."""
    if virtual_gpus():
        return virtual_gpus()
    # If there is no plugin for JAX, there is no GPU either: this saves importing JAX, which takes long.
    if _wanted.visible is None and has_cpu_only():
        return 0
    if any(map(importlib.util.find_spec, _CUDA_PLUGINS)):
        return _count_cuda_devices()
    return sum(name.startswith("GPU") for name in local_devices())


def _count_cuda_devices() -> int:
    """Queries CUDA's driver for its devices, without creating a context, which would allocate GPU memory."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return 0
    return count.value
