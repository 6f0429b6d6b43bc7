"""Queries of devices for tests."""

from __future__ import annotations

from typing import Any

from headwater.graph.runtime.devices import local_devices


def gpu_device_name() -> str:
    """Name of the first GPU of this process, e.g. ``/device:GPU:0``; empty without one."""
    return next((f"/device:{name}" for name in local_devices() if name.startswith("GPU")), "")


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: Any = None) -> bool:
    """Returns whether this process has a GPU, or an emulated one.

    Args:
      cuda_only: do not count emulated GPUs.
      min_cuda_compute_capability: ``(major, minor)`` that a GPU must have at least.
    """
    gpus = [device for name, device in local_devices().items() if name.startswith("GPU")]
    real = [device for device in gpus if device.platform != "cpu"]
    if min_cuda_compute_capability is None:
        return bool(real if cuda_only else gpus)
    wanted = tuple(min_cuda_compute_capability)
    return any(_capability(device) >= wanted for device in real)


def _capability(device: object) -> tuple[int, ...]:
    return tuple(int(part) for part in str(getattr(device, "compute_capability", "0")).split("."))


def is_built_with_cuda() -> bool:
    """Returns whether JAX can use NVIDIA's GPUs here."""
    return any(device.platform in ("gpu", "cuda") for device in local_devices().values())


def is_built_with_rocm() -> bool:
    """Returns whether JAX can use AMD's GPUs here."""
    return any(device.platform == "rocm" for device in local_devices().values())


def is_built_with_gpu_support() -> bool:
    """Returns whether JAX can use GPUs here."""
    return is_built_with_cuda() or is_built_with_rocm()
