"""Stand-in GPUs: JAX is told how many devices to make of the CPU, which it has to know before it computes anything."""

from __future__ import annotations

import os

import jax

_VARIABLE = "HEADWATER_VIRTUAL_GPUS"
_MOST = 64


def virtual_gpus() -> int:
    """How many GPUs the CPU stands in for.

    Raises:
      ValueError: the environment variable is not a number from 0 to 64.
    """
    text = os.environ.get(_VARIABLE, "").strip() or "0"
    if not text.isdecimal() or int(text) > _MOST:
        raise ValueError(f"{_VARIABLE} must be a number from 0 to {_MOST}, not {text!r}")
    return int(text)


if virtual_gpus():
    jax.config.update("jax_num_cpu_devices", 1 + virtual_gpus())
