"""Sizes in words."""

from __future__ import annotations

from typing import Final

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


def size_text(nbytes: float, largest: str = "TiB") -> str:
    """Returns a size as text, e.g. ``1.5 GiB``, in units up to ``largest``."""
    at = 0
    while nbytes >= 1024 and _UNITS[at] != largest:
        nbytes, at = nbytes / 1024, at + 1
    return f"{nbytes:.1f} {_UNITS[at]}" if at else f"{nbytes:.0f} B"
