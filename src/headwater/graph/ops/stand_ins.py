"""Stand-in GPUs: JAX is told how many devices to make of the CPU, which it has to know before it computes anything."""

from __future__ import annotations

import jax

from headwater.cluster.virtual import virtual_gpus

if virtual_gpus():
    jax.config.update("jax_num_cpu_devices", 1 + virtual_gpus())
