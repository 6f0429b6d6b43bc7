"""``tf.config``: defaults for sessions without a ``ConfigProto``, and settings of eager execution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headwater.graph.runtime.device_settings import list_logical_devices
from headwater.tensorboard_protos import config_pb2

_POLICIES: Final = ("silent", "silent_for_int32", "warn", "explicit")
_SWITCHES: Final = (
    "layout_optimizer",
    "constant_folding",
    "shape_optimization",
    "remapping",
    "arithmetic_optimization",
    "dependency_optimization",
    "loop_optimization",
    "function_optimization",
    "debug_stripper",
    "scoped_allocator_optimization",
    "pin_to_host_optimization",
    "implementation_selector",
    "auto_mixed_precision",
    "disable_model_pruning",
    "disable_meta_optimizer",
    "min_graph_nodes",
)


class _Settings:
    """The settings of this process."""

    soft_placement = False
    log_placement = False
    inter_op_threads = 0
    jit = False
    policy = "silent"
    synchronous = True
    optimizer: Mapping[str, bool | int] = {}
    used = False


_settings = _Settings()


def default_config() -> Any:
    """Returns the ``ConfigProto`` for sessions that are created without one; None if no default was set. Sessions call
    this function when they are created."""
    _settings.used = True
    if not (_settings.soft_placement or _settings.log_placement):
        return None
    return config_pb2.ConfigProto(
        allow_soft_placement=_settings.soft_placement, log_device_placement=_settings.log_placement
    )


def get_soft_device_placement() -> bool:
    """Returns whether operations may run on other devices than requested, in sessions without a configuration."""
    return _settings.soft_placement


def set_soft_device_placement(enabled: bool) -> None:
    """Sets whether operations may run on other devices than requested, in sessions without a configuration."""
    _settings.soft_placement = bool(enabled)


def get_log_device_placement() -> bool:
    """Returns whether sessions without a configuration log the devices of operations."""
    return _settings.log_placement


def set_log_device_placement(enabled: bool) -> None:
    """Sets whether sessions without a configuration log the devices of operations.

    Raises:
      RuntimeError: a session without a configuration was created before.
    """
    if enabled != _settings.log_placement and _settings.used:
        raise RuntimeError("Device placement logging must be set at program startup")
    _settings.log_placement = bool(enabled)


def get_inter_op_parallelism_threads() -> int:
    """Returns the value of `set_inter_op_parallelism_threads`; 0 if it was not called."""
    return _settings.inter_op_threads


def set_inter_op_parallelism_threads(num_threads: int) -> None:
    """Stores the number, without effect: a task runs the instructions of a plan one after the other.

    Raises:
      RuntimeError: a session without a configuration was created before.
    """
    if num_threads != _settings.inter_op_threads and _settings.used:
        raise RuntimeError("Inter op parallelism cannot be modified after initialization.")
    _settings.inter_op_threads = int(num_threads)


def get_jit() -> bool:
    """Returns the setting of `set_jit`."""
    return _settings.jit


def set_jit(enabled: bool) -> None:
    """Stores the setting, without effect: each task decides when to compile a part of a step."""
    _settings.jit = bool(enabled)


def get_experimental_options() -> dict[str, bool | int]:
    """Returns the options that were set by `set_experimental_options`, with the defaults of two switches."""
    return {"disable_model_pruning": False, "disable_meta_optimizer": False, **_settings.optimizer}


def get_compiler() -> str:
    """Returns ``autoclustering`` if `set_compiler` has been called with it, else an empty text."""
    return "autoclustering" if _settings.jit else ""


def set_compiler(enabled: bool | str) -> None:
    """Stores the setting of TensorFlow 2, ``True`` or ``autoclustering``, without effect; see `set_jit`."""
    _settings.jit = enabled in (True, "autoclustering")


def set_experimental_options(options: Mapping[str, bool | int]) -> None:
    """Stores switches of TensorFlow's graph optimizer, without effect: this process has no such optimizer.

    Args:
      options: switches by name, which are added to those of earlier calls; unknown names are ignored.
    """
    given = {**_settings.optimizer, **options}
    _settings.optimizer = {name: given[name] for name in _SWITCHES if name in given}


def get_device_policy() -> str:
    """Returns the policy of `set_device_policy`."""
    return _settings.policy


def set_device_policy(device_policy: str | None) -> None:
    """Stores how eager operations treat inputs from other devices; graphs always copy them.

    Args:
      device_policy: ``silent``, ``silent_for_int32``, ``warn``, ``explicit``, or None for ``silent``.

    Raises:
      ValueError: ``device_policy`` has an invalid value.
    """
    policy = device_policy or "silent"
    if policy not in _POLICIES:
        raise ValueError(f"Not a valid device policy: {device_policy!r}")
    _settings.policy = policy


def get_synchronous_execution() -> bool:
    """Returns the value of `set_synchronous_execution`."""
    return _settings.synchronous


def set_synchronous_execution(enable: bool | None) -> None:
    """Stores whether eager operations are synchronous; a session's run always waits for its results."""
    _settings.synchronous = True if enable is None else bool(enable)


def list_devices() -> list[str]:
    """Returns the full names of this process's devices, for sessions without a cluster."""
    return [f"/job:localhost/replica:0/task:0{device.name}" for device in list_logical_devices()]
