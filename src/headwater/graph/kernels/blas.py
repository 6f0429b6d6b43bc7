"""The number of threads in which NumPy's BLAS multiplies matrices.

OpenBLAS has a thread for each core, which spin while they wait for each other. Where several tasks share a machine, or
XLA computes beside, one that waits takes the core from one that works: a product of 100 × 784 × 100 then takes 10 to
50 ms in place of 0.5. Products that are worth several threads are those of parts that are compiled.
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
    """Has OpenBLAS, where NumPy brought one, use the calling thread only; whether that was possible.

    What a user has set in ``OPENBLAS_NUM_THREADS`` or ``OMP_NUM_THREADS`` holds.
    """
    if any(variable in os.environ for variable in _VARIABLES):
        return False
    for path in (Path(np.__file__).parent.parent / "numpy.libs").glob("*openblas*"):
        library = ctypes.CDLL(str(path))  # loaded already: the same one
        for name in _SETTERS:
            setter = getattr(library, name, None)
            if setter is not None:
                setter(ctypes.c_int(1))
                return True
    return False
