"""The processor cores of this process."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Returns the number of cores on which this process may run."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
