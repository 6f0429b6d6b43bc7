"""GPUs of this machine: their names, their assignment to tasks, and their usage.

The usage is read from NVIDIA's management library, through the module ``pynvml``, if both are installed.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any


VISIBLE = "CUDA_VISIBLE_DEVICES"
#: Variables for a task that computes on CPUs only, and must not allocate GPU memory.
CPU_ONLY: Mapping[str, str] = MappingProxyType({VISIBLE: "", "JAX_PLATFORMS": "cpu"})

_NVIDIA_GPUS = Path("/proc/driver/nvidia/gpus")


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuUse:
    """GPU usage of processes.

    Attributes:
      memory_bytes: memory of these processes on these GPUs.
      utilization: the busy share of these GPUs, 0 to 1, by all processes.
    """

    memory_bytes: int
    utilization: float


def find_gpus(env: Mapping[str, str], driver: Path = _NVIDIA_GPUS) -> tuple[str, ...]:
    """Returns the GPUs of this machine, named as in ``CUDA_VISIBLE_DEVICES``; if that variable is set, only the GPUs in
    it."""
    visible = env.get(VISIBLE)
    if visible is not None:
        return tuple(name for name in (part.strip() for part in visible.split(",")) if name and name != "-1")
    try:
        return tuple(str(number) for number, _ in enumerate(driver.iterdir()))
    except OSError:  # no such driver
        return ()


def gpu_use(gpus: Sequence[str], pids: Collection[int]) -> GpuUse | None:
    """Returns usage of ``gpus``, named as by `find_gpus`, by processes ``pids``; None if it cannot be measured."""
    nvml = _nvml()
    if nvml is None or not gpus:
        return None
    memory, busy = 0, 0.0
    try:
        for name in gpus:
            device = nvml.nvmlDeviceGetHandleByIndex(int(name)) if name.isdecimal() else _by_uuid(nvml, name)
            busy += nvml.nvmlDeviceGetUtilizationRates(device).gpu / 100
            memory += sum(
                process.usedGpuMemory or 0
                for process in nvml.nvmlDeviceGetComputeRunningProcesses(device)
                if process.pid in pids
            )
    except nvml.NVMLError:  # the device does not exist, or does not report usage
        return None
    return GpuUse(memory_bytes=memory, utilization=busy / len(gpus))


def _by_uuid(nvml: ModuleType, name: str) -> object:
    return nvml.nvmlDeviceGetHandleByUUID(name.encode())


@functools.cache
def _nvml() -> ModuleType | None:
    """Returns the initialised module ``pynvml``; None if it or the driver is not installed."""
    try:
        import pynvml  # noqa: PLC0415  # pyright: ignore[reportMissingImports]  optional, as is the driver below it
    except ImportError:
        return None
    nvml: Any = pynvml
    with contextlib.suppress(nvml.NVMLError):
        nvml.nvmlInit()
        return nvml
    return None
