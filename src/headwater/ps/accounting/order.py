"""The order in which an epoch has its examples: the same at every worker, from a seed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def shuffled(seed: int, epoch: int, size: int) -> NDArray[np.int64]:
    """The numbers of all examples in the order of an epoch.

    Args:
      seed: of all epochs.
      epoch: from 0.
      size: number of examples.
    """
    return np.random.default_rng([seed, epoch]).permutation(size)
