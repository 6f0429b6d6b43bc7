"""The devices of this process: ``CPU:0`` for all cores, and one device for each GPU.

With the environment variable ``HEADWATER_VIRTUAL_GPUS``, the CPU emulates that number of GPUs, each with its own
work queue, so that programs for several GPUs can be tested anywhere.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from headwater.cluster.addresses import parse_address
from headwater.cluster.task.lifetime import PS
from headwater.cores import usable_cores
from headwater.errors import InvalidArgumentError
from headwater.graph.kernels.pieces import limit_threads
from headwater.graph.ops.stand_ins import virtual_gpus
from headwater.graph.runtime.environment import variables_set
from headwater.import_hooks import on_import
from headwater.lazy_jax import is_jax_array, is_loaded, jax

if TYPE_CHECKING:
    from headwater.cluster.names import TaskName
    from headwater.cluster.spec import ClusterSpec
    from headwater.graph.ops.common import AnyArray

_NPROC = "NPROC"
"""XLA's variable for the number of threads that compute on the CPU. Read when JAX starts."""

_cpu_only = False
_cpu_threads: int | None = None
_cpus = 1
_shown = False


@cache
def local_devices() -> dict[str, Any]:
    """Returns JAX's devices by Headwater's names, e.g. ``{"CPU:0": ..., "GPU:0": ...}``.

    A process with an empty ``CUDA_VISIBLE_DEVICES``, such as a ``ps``, has no GPU.
    """
    with variables_set({} if _cpu_threads is None or _NPROC in os.environ else {_NPROC: str(_cpu_threads)}):
        cpus = _devices("cpu")
    found = {"CPU:0": cpus[0]}
    if not _cpu_only and virtual_gpus():
        return found | {f"GPU:{index}": device for index, device in enumerate(cpus[1 : 1 + virtual_gpus()])}
    default = jax.default_backend()
    if default in ("gpu", "cuda", "rocm"):
        found |= {f"GPU:{index}": device for index, device in enumerate(_devices(default))}
    return found


def device_names() -> Sequence[str]:
    """Returns the names of `local_devices`. Imports JAX only if it could find another device than the CPU.

    JAX starts its devices immediately when it is imported, with the settings made so far.
    """
    if not has_cpu_only():
        return list(local_devices())
    _start_with_jax()
    return ["CPU:0"]


@cache
def _start_with_jax() -> None:
    def start(_: object) -> None:
        local_devices()

    on_import("jax", start)


def has_cpu_only() -> bool:
    """Returns whether JAX could find no device other than the CPU; determined without importing JAX."""
    if virtual_gpus() and not _cpu_only:
        return False
    # Importing JAX is a large part of the start of a task, and a task whose parts run on kernels may never need it.
    chosen = os.environ.get("JAX_PLATFORMS", "") if not is_loaded() else cast(Any, jax).config.jax_platforms
    return _cpu_only or chosen == "cpu" or not _has_plugins()


@cache
def _has_plugins() -> bool:
    """Returns whether JAX could find a plugin for a device; examines the same packages, variables and entry points as
    JAX."""
    if any(map(importlib.util.find_spec, ("jax_plugins", "libtpu"))) or "PJRT_NAMES_AND_LIBRARY_PATHS" in os.environ:
        return True
    # Read as files: `importlib.metadata` would parse the metadata of all installed packages.
    points = (file for folder in sys.path for file in Path(folder).glob("*-info/entry_points.txt"))
    return any(b"[jax_plugins]" in file.read_bytes() for file in points)


def use_cpu_only() -> None:
    """Keeps this process off all GPUs, as on a parameter server. Must be called before anything is computed."""
    global _cpu_only
    _cpu_only = True
    on_import("jax", _exclude_gpus)


def _exclude_gpus(jax: Any) -> None:
    jax.config.update("jax_platforms", "cpu")


def share_machine(*, beside: int, sparing: int) -> None:
    """Limits this process to its share of the machine's cores. Must be called before anything is computed.

    If each of several processes had a thread for every core, a process would often wait for its own threads while other
    processes occupy the cores (docs/decisions/cores-of-a-machine.md). In addition, operations run in the calling
    thread: with few threads, handing an operation to another thread costs more than it gains. The environment variable
    ``NPROC``, if set, takes precedence. This function sets ``NPROC`` only while JAX starts, so that child processes do
    not inherit it.

    Args:
      beside: number of processes, including this one, that divide the cores.
      sparing: number of cores that these processes leave to others.
    """
    cores = usable_cores()
    if beside > 1 or sparing:
        global _cpu_threads
        if _cpu_threads is None:
            _cpu_threads = max(1, (cores - sparing) // beside)
            limit_threads(_cpu_threads)
    if not virtual_gpus():  # emulated GPUs have to compute at the same time
        on_import("jax", _dispatch_at_once)


def share_machine_with_tasks(cluster: ClusterSpec, task: TaskName) -> None:
    """Limits this process to the share of ``task`` of its machine's cores; see `share_machine`.

    One core is reserved for each ``ps`` of this machine, since a ``ps`` computes in short bursts; the other tasks share
    the remaining cores.
    """
    host = parse_address(cluster.task_address(task.job, task.index)).host
    here = [name.job for name, address in cluster.tasks() if parse_address(address).host == host]
    servers = here.count(PS)
    if task.job == PS:
        share_machine(beside=len(here), sparing=0)
    else:
        share_machine(beside=len(here) - servers, sparing=servers)


def _dispatch_at_once(jax: Any) -> None:
    # With asynchronous dispatch, another thread would run the operation while the thread of the plan, which has nothing
    # else to do, waits for it. That costs two wake-ups for each operation.
    jax.config.update("jax_cpu_enable_async_dispatch", False)


def _devices(backend: str | None = None) -> list[Any]:
    return cast(Any, jax).local_devices(backend=backend)


def devices_are_known() -> bool:
    """Returns whether `local_devices` was called before. After that call, changes of JAX's device settings have no
    effect."""
    return bool(local_devices.cache_info().currsize)


def offered_devices(counts: Mapping[str, int]) -> list[str]:
    """Returns the names of the devices of this process that a task offers.

    Args:
      counts: for ``GPU``, the maximum number of GPUs. For ``CPU``, the number of CPU devices, all of which are the same
        CPU; by default 1, or the number set by `divide_cpu`.
    """
    global _shown
    _shown = True
    gpus = [name for name in device_names() if name.startswith("GPU")]
    return [f"CPU:{index}" for index in range(max(1, counts.get("CPU", _cpus)))] + gpus[: counts.get("GPU")]


def divide_cpu(count: int) -> None:
    """Sets the number of CPUs that tasks offer without a ``device_count``.

    Raises:
      RuntimeError: a task has listed its devices already.
    """
    global _cpus
    if _shown:
        raise RuntimeError("Virtual devices cannot be modified after being initialized")
    _cpus = count


def describe(name: str) -> str:
    """Returns a readable description of a GPU; empty for a CPU."""
    kind, _, index = name.partition(":")
    if kind == "CPU":
        return ""
    device = local_device(name)
    if device.platform == "cpu":
        return f"device: {index}, name: a stand-in made of the CPU"
    capability = getattr(device, "compute_capability", "")
    return f"device: {index}, name: {device.device_kind}" + (
        f", compute capability: {capability}" if capability else ""
    )


def local_device(name: str) -> Any:
    """Returns JAX's device for ``name``; InvalidArgumentError if this process has no device of that name."""
    devices = local_devices()
    if name.startswith("CPU"):
        return devices["CPU:0"]
    if name not in devices:
        raise InvalidArgumentError(f"there is no device {name}; this task has {', '.join(devices)}")
    return devices[name]


@cache
def is_default(name: str) -> bool:
    """Returns whether computations run on this device by default, because it is the only one."""
    return has_cpu_only() or (len(local_devices()) == 1 and local_device(name) == _devices()[0])


@cache
def placed(name: str) -> dict[str, Any]:
    """Returns arguments that make ``jax.jit`` compute on this device. A function with these arguments also transfers
    NumPy arrays to the device, in a sixth of the time of a separate transfer."""
    if is_default(name):
        return {}
    there = cast(Any, jax).sharding.SingleDeviceSharding(local_device(name))
    return {"in_shardings": there, "out_shardings": there}


def moved(values: Sequence[AnyArray], device: object) -> list[AnyArray]:
    """Returns the arrays with JAX arrays of other devices moved to ``device`` (see `local_device`); NumPy arrays are
    unchanged."""
    found = list(values)
    away = [at for at, value in enumerate(found) if is_jax_array(value) and value.device != device]
    if away:
        for at, value in zip(away, cast(Any, jax).device_put([found[at] for at in away], device), strict=True):
            found[at] = value
    return found


def wait_until_computed(values: Iterable[Any]) -> None:
    """Waits until the arrays are computed. Arrays donated to a later update count as computed."""
    for value in values:
        if not value.is_deleted():
            try:
                # If another thread donates the array between the check and this call, the call raises.
                value.block_until_ready()
            except RuntimeError:
                if not value.is_deleted():
                    raise


def memory_bytes(name: str) -> int:
    """Returns the device's memory limit in bytes; 256 MiB for a CPU, as TensorFlow reports."""
    stats = memory_stats(name)
    return stats["bytes_limit"] if stats else 256 << 20


def memory_stats(name: str) -> dict[str, int] | None:
    """Returns JAX's memory statistics of a GPU, including ``bytes_limit`` and ``bytes_in_use``; None if unavailable."""
    if name.startswith("CPU") or virtual_gpus():
        return None
    device = local_device(name)
    stats: dict[str, int] | None = device.memory_stats()
    if stats is not None and not stats.get("bytes_limit"):  # not known before the device is first used
        cast(Any, jax).device_put(0, device).block_until_ready()
        stats = device.memory_stats()
    return stats if stats and stats.get("bytes_limit") else None
