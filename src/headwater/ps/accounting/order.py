"""The order of the examples of an epoch, computed from a seed equally on every worker."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def shuffled(seed: int, epoch: int, size: int) -> NDArray[np.int64]:
    """Returns the numbers of all examples in the order of an epoch.

    Args:
      seed: the seed for all epochs.
      epoch: from 0.
      size: number of examples.
    """
    return np.random.default_rng([seed, epoch]).permutation(size)
