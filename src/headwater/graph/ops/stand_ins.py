"""Stand-in GPUs: sets the number of devices that JAX makes of the CPU, before JAX computes anything."""

from __future__ import annotations

from typing import Any

from headwater.cluster.virtual import virtual_gpus
from headwater.import_hooks import on_import


def _add_devices(jax: Any) -> None:
    jax.config.update("jax_num_cpu_devices", 1 + virtual_gpus())


if virtual_gpus():
    on_import("jax", _add_devices)
