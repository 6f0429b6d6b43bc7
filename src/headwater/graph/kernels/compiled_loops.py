"""Decides when operations on the host use compiled loops, with the same results, instead of NumPy."""

from __future__ import annotations

import sys
from typing import Final

import numpy as np

from headwater.graph.background import Compilation

_LOADING_NS: Final = 500_000_000
"""The time of loading numba and one loop, in nanoseconds. A program with few such operations does not load it."""
_CALL_NS: Final = 20_000
"""A call with less estimated work than this uses NumPy."""
_LOOPS: Final = "headwater.tables.compiled"
_done_ns = 0
_loading: Compilation | None = None


def compiled_loops_pay(work_ns: int) -> bool:
    """Whether to use a compiled loop of `headwater.tables`.

    This is the ski rental problem: numba is loaded as soon as the estimated time of the work done without it equals the
    time of loading it. It is loaded in the background, and NumPy continues to do the work until it is loaded.

    Args:
      work_ns: estimated time of the work without a compiled loop, in nanoseconds.
    """
    global _done_ns, _loading  # shared by all threads without a lock: numba may be requested twice, and is loaded once
    if work_ns < _CALL_NS:
        return False
    if _loading is not None:
        return _loading.has_ended
    if _LOOPS in sys.modules:
        return True
    _done_ns += work_ns
    if _done_ns > _LOADING_NS:
        _loading = Compilation(_load_numba, "the import of numba")
    return False


def _load_numba() -> None:
    """Imports numba, and makes it initialise its compiler, which takes as long as the import, by calling one loop."""
    from headwater.tables.random_loops import threefry  # noqa: PLC0415  loads numba, only if needed

    threefry(np.uint32(0), np.uint32(0), np.zeros(1, np.uint32), np.zeros(1, np.uint32))
