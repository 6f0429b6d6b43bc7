"""Durations and sizes in the notation of job files: ``90s``, ``1h30m``, ``4GiB``."""

from __future__ import annotations

import math
import re
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = r"\d+(?:\.\d+)?(?:ms|s|m|h|d)"
DURATION_PATTERN = rf"^(?:{_PART})+$"
_PARTS = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_BYTES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
SIZE_PATTERN = r"^\d+(?:\.\d+)? ?(?:k|M|G|T|Ki|Mi|Gi|Ti)?B?$"
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?(k|M|G|T|Ki|Mi|Gi|Ti)?B?")
# Limits that leave room for sums in 64-bit clocks and database integers.
_MAX_SECONDS = 10 * 366 * 86400.0
_MAX_BYTES = 2**60


def parse_duration(value: object) -> float:
    """Returns ``value`` in seconds: a number of seconds, or text such as ``"90s"`` or ``"1h30m"``.

    Raises:
      ValueError: ``value`` is not a duration, or is negative, or exceeds ten years.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    elif isinstance(value, str) and re.fullmatch(DURATION_PATTERN, value):
        seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PARTS.findall(value))
    else:
        raise ValueError(f"must be a time such as 30s, 10m or 1h30m, but is {value!r}")
    if not math.isfinite(seconds) or not 0 <= seconds <= _MAX_SECONDS:
        raise ValueError(f"must be between 0 and 10 years, but is {value!r}")
    return seconds


def parse_size(value: object) -> int:
    """Returns ``value`` in bytes: a number of bytes, or text such as ``"512MiB"``, ``"4Gi"`` or ``"4GB"``.

    Raises:
      ValueError: ``value`` is not a size, or is negative, or exceeds 2**60.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        size = value
    elif isinstance(value, str) and (match := _SIZE.fullmatch(value)) and len(value) < 40:
        size = round(float(match[1]) * _BYTES[match[2] or ""])
    else:
        raise ValueError(f"must be a size such as 512MiB or 4GiB, but is {value!r}")
    if not 0 <= size <= _MAX_BYTES:
        raise ValueError(f"must be between 0 and 2**60 bytes, but is {value!r}")
    return size


Duration = Annotated[
    float,
    BeforeValidator(parse_duration),
    WithJsonSchema(
        {
            "anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": DURATION_PATTERN}],
            "description": "A time: a number of seconds, or text such as 30s, 10m or 1h30m.",
        }
    ),
]
"""A duration in seconds."""

Size = Annotated[
    int,
    BeforeValidator(parse_size),
    WithJsonSchema(
        {
            "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": SIZE_PATTERN}],
            "description": "A size: a number of bytes, or text such as 512MiB or 4GiB.",
        }
    ),
]
"""A size in bytes."""
