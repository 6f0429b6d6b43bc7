"""The devices of this process by the names that strategies take.

`headwater.graph.runtime.devices` does the same for graphs, which need JAX's 64-bit types. Keras runs with JAX's own
defaults, so this module has its own list.
"""

from __future__ import annotations

import importlib.util
import os
from functools import cache
from pathlib import Path
from typing import Any

import jax

from headwater.cluster.devices import parse_device
from headwater.cluster.virtual import virtual_gpus
from headwater.errors import InvalidArgumentError

_NVIDIA_GPUS = Path("/proc/driver/nvidia/gpus")
_PLUGINS = ("jax_cuda12_plugin", "jax_cuda13_plugin")


@cache
def local_devices() -> dict[str, object]:
    """Returns JAX's devices of this process by Headwater's names, e.g. ``{"CPU:0": ..., "GPU:0": ...}``.

    With the environment variable ``HEADWATER_VIRTUAL_GPUS``, the CPU emulates that number of GPUs.
    """
    stand_ins = virtual_gpus()
    make_stand_ins()
    cpus: list[object] = jax.local_devices(backend="cpu")
    if stand_ins:
        return {"CPU:0": cpus[0]} | {f"GPU:{index}": cpu for index, cpu in enumerate(cpus[1 : 1 + stand_ins])}
    devices: dict[str, Any] = {f"CPU:{index}": cpu for index, cpu in enumerate(cpus)}
    if jax.default_backend() != "cpu":
        devices |= {f"GPU:{index}": device for index, device in enumerate(jax.local_devices())}
    return devices


def make_stand_ins() -> None:
    """Sets JAX's number of CPU devices, which must be set before JAX is initialised."""
    if not virtual_gpus():
        return
    try:
        jax.config.update("jax_num_cpu_devices", 1 + virtual_gpus())
    except RuntimeError:
        # JAX is initialised already, and its number of devices is fixed. A missing device is reported at its use.
        return


def canonical_device(name: str) -> str:
    """Converts a name to a key of `local_devices`: ``GPU:0`` for ``/gpu:0`` or ``/job:worker/device:GPU:0``.

    Raises:
      ValueError: ``name`` is not the name of a device.
    """
    device = parse_device(name if name.startswith("/") else f"/{name}")
    if device.device_type is None:
        raise ValueError(f"device {name!r} must name a CPU or a GPU, such as '/gpu:0'")
    return f"{device.device_type}:{device.device_index or 0}"


def local_device(name: str) -> object:
    """Returns JAX's device for a result of `canonical_device`.

    Raises:
      InvalidArgumentError: this process has no device of that name.
    """
    devices = local_devices()
    if name not in devices:
        raise InvalidArgumentError(f"device {name} does not exist; this process has {', '.join(devices)}")
    return devices[name]


def replica_devices() -> list[str]:
    """The names of the default devices for replicas: all GPUs, or the CPU."""
    gpus = [name for name in local_devices() if name.startswith("GPU")]
    return gpus or ["CPU:0"]


def has_gpus() -> bool:
    """Returns whether JAX will use GPUs, as far as this is known before JAX is initialised."""
    platforms = os.environ.get("JAX_PLATFORMS", "").lower().split(",")
    if platforms == ["cpu"] or os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1") or virtual_gpus():
        return False
    return bool({"cuda", "gpu", "rocm"}.intersection(platforms)) or (
        _NVIDIA_GPUS.is_dir() and any(map(importlib.util.find_spec, _PLUGINS))
    )
