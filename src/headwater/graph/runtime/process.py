"""Settings of JAX for the whole process, which have to be made before its devices are used."""

from __future__ import annotations

import functools
import logging
from dataclasses import dataclass
from typing import Any, Final

from headwater.graph.kernels.pieces import limit_threads
from headwater.graph.runtime.devices import devices_are_known, local_devices
from headwater.graph.runtime.environment import variables_set
from headwater.import_hooks import on_import

_log: Final = logging.getLogger("headwater")


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessSettings:
    """A program's settings of the process's devices.

    Attributes:
      cpu_threads: number of threads that compute on the CPU; 0 for JAX's default, one per core.
      gpu_memory_fraction: fraction of a GPU's memory that is allocated at once; 0 for JAX's default.
      gpu_memory_grows: whether to allocate a GPU's memory only as needed.
      visible_gpus: comma-separated numbers of the GPUs to use; all if empty.
    """

    cpu_threads: int = 0
    gpu_memory_fraction: float = 0.0
    gpu_memory_grows: bool = False
    visible_gpus: str = ""

    def environment(self) -> dict[str, str]:
        """Returns the environment variables for these settings: XLA's for threads, JAX's for memory."""
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
    """Starts JAX's devices with ``settings`` when JAX is imported; returns whether they take effect.

    They take effect if no device has been used yet; otherwise a warning is logged once.
    """
    if settings == _DEFAULT or settings in _applied:
        return True
    if devices_are_known() or _applied:
        _log.warning("%s has no effect: this process's devices are already in use", settings)
        _applied.add(settings)  # so that the warning is not logged again
        return False
    if settings.cpu_threads:
        limit_threads(settings.cpu_threads)
    on_import("jax", functools.partial(_start, settings))
    _applied.add(settings)
    return True


def _start(settings: ProcessSettings, jax: Any) -> None:
    if settings.visible_gpus:
        jax.config.update("jax_cuda_visible_devices", settings.visible_gpus)
    with variables_set(settings.environment()):
        local_devices()
