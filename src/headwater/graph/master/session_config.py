"""Settings in a ``ConfigProto``: for a session's master, for its task, and for the whole process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.cluster.devices import canonical_device_name
from headwater.errors import InvalidArgumentError
from headwater.graph.master.master import SessionOptions
from headwater.graph.runtime.process import ProcessSettings


def session_options(config: Any) -> SessionOptions:
    """Returns the options of a session's master in ``config``; None is the default configuration."""
    if config is None:
        return SessionOptions()
    return SessionOptions(
        soft_placement=config.allow_soft_placement,
        log_placement=config.log_device_placement,
        device_filters=tuple(canonical_device_name(name) for name in config.device_filters),
        timeout_s=config.operation_timeout_in_ms / 1e3 or None,
        isolated=config.isolate_session_state,
        jit_level=config.graph_options.optimizer_options.global_jit_level,
    )


def device_counts(config: Any) -> Mapping[str, int]:
    """Returns the number of devices of each type that a task may offer, from ``device_count``.

    Raises:
      InvalidArgumentError: a number is negative.
    """
    counts = {} if config is None else {str(kind).upper(): int(count) for kind, count in config.device_count.items()}
    for kind, count in counts.items():
        if count < 0:
            raise InvalidArgumentError(f"device_count[{kind!r}] of the ConfigProto must not be {count}")
    return counts


def process_settings(config: Any) -> ProcessSettings:
    """Returns the settings of the whole process.

    Raises:
      InvalidArgumentError: a field is out of range.
    """
    if config is None:
        return ProcessSettings()
    gpus = config.gpu_options
    fraction = float(gpus.per_process_gpu_memory_fraction)
    if not 0 <= fraction <= 1:
        raise InvalidArgumentError(f"gpu_options.per_process_gpu_memory_fraction must be from 0 to 1, not {fraction}")
    return ProcessSettings(
        cpu_threads=max(0, config.intra_op_parallelism_threads),
        gpu_memory_fraction=fraction,
        gpu_memory_grows=gpus.allow_growth,
        visible_gpus=gpus.visible_device_list,
    )
