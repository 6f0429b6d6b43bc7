"""A compiled loop of the random number generator; see `headwater.graph.kernels.generator`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwater.tables.compiled import compiled

U32: Any = np.uint32


@compiled
def _mixed(first: Any, second: Any, a: int, b: int, c: int, d: int) -> Any:
    """Computes four rounds, with rotations by ``a`` to ``d`` bits."""
    for left in (a, b, c, d):
        first = U32(first + second)
        second = U32(U32(second << U32(left)) | U32(second >> U32(32 - left))) ^ first
    return first, second


@compiled
def threefry(word0: np.uint32, word1: np.uint32, first: NDArray[np.uint32], second: NDArray[np.uint32]) -> None:
    """Replaces counters, two vectors of uint32, by the random words of Threefry-2x32 with 20 rounds for a key."""
    word2 = word0 ^ word1 ^ U32(0x1BD11BDA)
    for i in range(len(first)):
        x, y = _mixed(U32(first[i] + word0), U32(second[i] + word1), 13, 15, 26, 6)
        x, y = _mixed(U32(x + word1), U32(y + word2 + U32(1)), 17, 29, 16, 24)
        x, y = _mixed(U32(x + word2), U32(y + word0 + U32(2)), 13, 15, 26, 6)
        x, y = _mixed(U32(x + word0), U32(y + word1 + U32(3)), 17, 29, 16, 24)
        x, y = _mixed(U32(x + word1), U32(y + word2 + U32(4)), 13, 15, 26, 6)
        first[i], second[i] = x + word2, y + word0 + U32(5)
