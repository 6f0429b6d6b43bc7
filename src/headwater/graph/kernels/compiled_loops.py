"""Decides when operations on the host use compiled loops, with the same results, instead of NumPy."""

from __future__ import annotations

import sys
from typing import Final

_LOADING_NS: Final = 500_000_000
"""The time of loading numba and one loop, in nanoseconds. A program with few such operations does not load it."""
_CALL_NS: Final = 20_000
"""A call with less estimated work than this uses NumPy."""
_LOOPS: Final = "headwater.tables.compiled"
_done_ns = 0


def compiled_loops_pay(work_ns: int) -> bool:
    """Returns whether to use a compiled loop of `headwater.tables`.

    This is the ski rental problem: the caller loads numba as soon as the estimated time of the work done without it
    equals the time of loading it. Loading holds the interpreter's lock, so that in the background, beside such work, it
    took three times as long and delayed the work as much.

    Args:
      work_ns: estimated time of the work without a compiled loop, in nanoseconds.
    """
    global _done_ns  # shared by all threads without a lock: an addition may be lost
    if work_ns < _CALL_NS:
        return False
    if _LOOPS in sys.modules:
        return True
    _done_ns += work_ns
    return _done_ns > _LOADING_NS
