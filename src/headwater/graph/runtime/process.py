"""Settings of JAX that hold for the whole process, and only until its devices are there."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Final

import jax

from headwater.graph.runtime.devices import devices_are_known, local_devices
from headwater.graph.runtime.environment import variables_set

_log: Final = logging.getLogger("headwater")
_jax: Any = jax


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessSettings:
    """What a program wants of the process's devices.

    Attributes:
      cpu_threads: how many threads compute on the CPU; 0 leaves it to JAX, which takes one for each core.
      gpu_memory_fraction: share of a GPU's memory that is taken at once; 0 leaves it to JAX.
      gpu_memory_grows: take a GPU's memory only as it is needed.
      visible_gpus: numbers of the GPUs to use, with commas between; all when empty.
    """

    cpu_threads: int = 0
    gpu_memory_fraction: float = 0.0
    gpu_memory_grows: bool = False
    visible_gpus: str = ""

    def environment(self) -> dict[str, str]:
        """The variables by which JAX hears of it: XLA's own for threads, JAX's for memory."""
        found: dict[str, str] = {}
        if self.cpu_threads:
            found["NPROC"] = str(self.cpu_threads)
        if self.gpu_memory_fraction:
            found["XLA_PYTHON_CLIENT_MEM_FRACTION"] = str(self.gpu_memory_fraction)
        if self.gpu_memory_grows:
            found["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
        return found


_DEFAULT: Final = ProcessSettings()
_applied: set[ProcessSettings] = set()


def configure(settings: ProcessSettings) -> bool:
    """Starts JAX's devices with ``settings``; says whether they hold.

    They do where nothing has used a device yet; else a warning says once that they change nothing.
    """
    if settings == _DEFAULT or settings in _applied:
        return True
    if devices_are_known():
        _log.warning("%s changes nothing: this process's devices are in use already", settings)
        _applied.add(settings)  # has been said
        return False
    if settings.visible_gpus:
        _jax.config.update("jax_cuda_visible_devices", settings.visible_gpus)
    with variables_set(settings.environment()):
        local_devices()
    _applied.add(settings)
    return True
