"""Operations on host arrays of any shape, without tracing or compilation: NumPy, BLAS and compiled loops."""

from __future__ import annotations

from typing import Final

#: The modules of this package that register kernels.
KERNEL_MODULES: Final[tuple[str, ...]] = (
    "arrays",
    "blocks",
    "candidates",
    "convolution",
    "decompositions",
    "elementwise",
    "images",
    "indexing",
    "matrices",
    "nn",
    "normalization",
    "optimizers",
    "pooling",
    "random",
    "reductions",
    "routing",
    "segments",
    "slices",
    "sparse",
    "special",
    "updates",
)
