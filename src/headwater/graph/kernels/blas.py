"""The number of threads in which NumPy's BLAS multiplies matrices.

OpenBLAS has a thread for each core, and the threads spin while they wait for each other. If several tasks share a
machine, or XLA computes at the same time, spinning threads occupy cores that working threads need: a product of
100 × 784 × 100 then takes 10 to 50 ms instead of 0.5 ms. Products that are large enough for several threads run in
compiled parts, so one thread is enough here.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path

import numpy as np

_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
_SETTERS = ("scipy_openblas_set_num_threads64_", "openblas_set_num_threads64_", "openblas_set_num_threads")


@cache
def use_one_thread() -> bool:
    """Makes NumPy's bundled OpenBLAS, if any, use only the calling thread; returns whether it did.

    A user's ``OPENBLAS_NUM_THREADS`` or ``OMP_NUM_THREADS`` takes precedence.
    """
    if any(variable in os.environ for variable in _VARIABLES):
        return False
    for path in (Path(np.__file__).parent.parent / "numpy.libs").glob("*openblas*"):
        library = ctypes.CDLL(str(path))  # NumPy has loaded this library, so this returns the same instance
        for name in _SETTERS:
            setter = getattr(library, name, None)
            if setter is not None:
                setter(ctypes.c_int(1))
                return True
    return False
