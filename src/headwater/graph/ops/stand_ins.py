"""Stand-in GPUs: sets the number of devices that JAX makes of the CPU, before JAX computes anything."""

from __future__ import annotations

import jax

from headwater.cluster.virtual import virtual_gpus

if virtual_gpus():
    jax.config.update("jax_num_cpu_devices", 1 + virtual_gpus())
