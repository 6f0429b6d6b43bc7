"""Virtual GPUs: the CPU emulates several GPUs, so that programs for several GPUs can be tested anywhere."""

from __future__ import annotations

import os

_VARIABLE = "HEADWATER_VIRTUAL_GPUS"
_MAX_GPUS = 64


def virtual_gpus() -> int:
    """Returns the number of GPUs that the CPU emulates.

    Raises:
      ValueError: the environment variable is not a number from 0 to 64.
    """
    text = os.environ.get(_VARIABLE, "").strip() or "0"
    if not text.isdecimal() or int(text) > _MAX_GPUS:
        raise ValueError(f"{_VARIABLE} must be a number from 0 to {_MAX_GPUS}, not {text!r}")
    return int(text)
