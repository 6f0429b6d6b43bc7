"""Decides when operations on the host use compiled loops, with the same results, instead of NumPy."""

from __future__ import annotations

import sys
from typing import Final

_LOADING_NS: Final = 500_000_000
"""The time of loading numba and one loop, in nanoseconds. A program with few such operations must not wait for it."""
_CALL_NS: Final = 20_000
"""A call with less estimated work than this uses NumPy."""
_done_ns = 0


def compiled_loops_pay(work_ns: int) -> bool:
    """Whether to use a compiled loop of `headwater.tables`.

    This is the ski rental problem: numba is loaded as soon as the estimated time of the work done without it equals the
    time of loading it.

    Args:
      work_ns: estimated time of the work without a compiled loop, in nanoseconds.
    """
    global _done_ns  # shared by all threads without a lock, since it need not be exact
    if work_ns < _CALL_NS:
        return False
    _done_ns += work_ns
    return "headwater.tables.compiled" in sys.modules or _done_ns > _LOADING_NS
