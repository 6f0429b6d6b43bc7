"""A compiled loop over the paths of connectionist temporal classification; see `headwater.graph.kernels.ctc`."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from headwater.tables.compiled import Matrix, Words, compiled

Cube = Annotated[NDArray[np.float64], 3]

#: The product of two numbers of at least this size is a normal number of float64, neither subnormal nor 0.
_MIN_FACTOR = 1e-140


@compiled
def paths(
    probabilities: Cube,
    path: Matrix[np.int64],
    counts: Words,
    lengths: Words,
    skip: Matrix[np.bool_],
    stay: Matrix[np.bool_],
    likelihood: NDArray[np.float64],
    shares: Cube,
) -> bool:
    """Computes the likelihood of each sequence, and the fractions of its paths that emit each class.

    Forward and backward probabilities are divided by their sum in each time step. Only states that a path can reach
    from the start, and from which it can reach the end, are visited. The underflow of a
    product is negligible, unless all products of its time step underflow.

    Args:
      probabilities: probabilities of the classes, ``[time, batch, classes]``.
      path: the class of each state, ``[batch, states]``.
      counts: number of states of each sequence, ``[batch]``.
      lengths: number of time steps of each sequence, ``[batch]``.
      skip, stay: whether a path may enter a state from two states before it, or stay in it, ``[batch, states]``.
      likelihood: output: the logarithms of the likelihoods, ``[batch]``, -inf without a path; passed as zeros.
      shares: output: the fractions, ``[time, batch, classes]``; passed as zeros.

    Returns:
      False if all probabilities of a time step are too small for float64.
    """
    size = path.shape[1]
    alpha = np.empty((probabilities.shape[0], size))
    beta, after = np.empty(size), np.empty(size)
    first, last = np.empty(size, np.int64), np.empty(size, np.int64)
    for row in range(path.shape[0]):
        length, count = lengths[row], counts[row]
        if length == 0:
            continue
        # The earliest and the latest time at which a path can be in each state.
        for state in range(count):
            first[state] = 0 if state < 2 else first[state - (2 if skip[row, state] else 1)] + 1
        for state in range(count - 1, -1, -1):
            behind = 2 if state + 2 < count and skip[row, state + 2] else 1
            last[state] = length - 1 if state > count - 3 else last[state + behind] - 1
        if min(first[count - 1], first[max(count - 2, 0)]) >= length:
            likelihood[row] = -math.inf
            continue
        total = 0.0
        for step in range(length):
            scale = 0.0
            for state in range(count):
                value = 0.0
                if first[state] <= step <= last[state]:
                    if step == 0:
                        value = 1.0
                    else:
                        if stay[row, state]:
                            value += alpha[step - 1, state]
                        if state > 0:
                            value += alpha[step - 1, state - 1]
                        if skip[row, state]:
                            value += alpha[step - 1, state - 2]
                    value *= probabilities[step, row, path[row, state]]
                alpha[step, state] = value
                scale += value
            if scale < _MIN_FACTOR:
                return False
            total += math.log(scale)
            for state in range(count):
                alpha[step, state] /= scale
        likelihood[row] = total
        for step in range(length - 1, -1, -1):
            scale = share = 0.0
            for state in range(count):
                value = 0.0
                if first[state] <= step <= last[state]:
                    if step == length - 1:
                        value = 1.0
                    else:
                        if stay[row, state]:
                            value += after[state]
                        if state + 1 < count:
                            value += after[state + 1]
                        if state + 2 < count and skip[row, state + 2]:
                            value += after[state + 2]
                beta[state] = value
                share += value * alpha[step, state]
            if share < _MIN_FACTOR:
                return False
            for state in range(count):
                fraction = beta[state] * alpha[step, state] / share
                shares[step, row, path[row, state]] += fraction
                after[state] = beta[state] * probabilities[step, row, path[row, state]]
                scale += after[state]
            for state in range(count):
                after[state] /= scale
    return True
