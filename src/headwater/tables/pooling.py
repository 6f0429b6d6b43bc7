"""Compiled pooling of bags of rows, and its gradients."""

from __future__ import annotations

import numpy as np

from headwater.tables.compiled import U64, Matrix, Reals, Words, compiled, reals_at


@compiled
def pool(rows: Matrix[np.float32], inverse: Words, offsets: Words, weights: Reals, kind: int) -> Matrix[np.float32]:
    """Pools the rows of bags.

    Args:
      rows: the rows of distinct keys, [m, dim].
      inverse: the index of each id's row, [n].
      offsets: the start of each bag, and the end of the last one, [bags + 1].
      weights: the weights of the ids, [n], or [0] for all 1.
      kind: 0 sum, 1 mean (divided by the sum of the weights), 2 sqrtn (by the root of the sum of their squares).

    Returns:
      [bags, dim]; zeros for an empty bag.
    """
    bags, dim = len(offsets) - 1, rows.shape[1]
    out = np.zeros((bags, dim), np.float32)
    sums, values = reals_at(out.ctypes.data, out.size), reals_at(rows.ctypes.data, rows.size)
    for bag in range(bags):
        divisor = _divisor(offsets[bag], offsets[bag + 1], weights, kind)
        for i in range(offsets[bag], offsets[bag + 1]):
            weight = (weights[i] if len(weights) > 0 else np.float32(1.0)) / divisor
            into, start = U64(bag * dim), U64(inverse[i] * dim)  # unsigned, as in `headwater.tables.row_loops`
            for j in range(U64(dim)):
                sums[into + j] += weight * values[start + j]
    return out


@compiled
def pool_gradients(
    gradients: Matrix[np.float32], inverse: Words, offsets: Words, weights: Reals, kind: int, count: int
) -> Matrix[np.float32]:
    """Returns the gradients of ``count`` distinct rows, [count, dim], from the gradients of their bags, [bags, dim]."""
    dim = gradients.shape[1]
    total = np.zeros((count, dim), np.float32)
    sums, values = reals_at(total.ctypes.data, total.size), reals_at(gradients.ctypes.data, gradients.size)
    for bag in range(len(offsets) - 1):
        divisor = _divisor(offsets[bag], offsets[bag + 1], weights, kind)
        for i in range(offsets[bag], offsets[bag + 1]):
            weight = (weights[i] if len(weights) > 0 else np.float32(1.0)) / divisor
            into, start = U64(inverse[i] * dim), U64(bag * dim)
            for j in range(U64(dim)):
                sums[into + j] += weight * values[start + j]
    return total


@compiled
def bag_divisors(offsets: Words, weights: Reals, kind: int) -> Reals:
    """Returns the divisor of each bag's sum, [bags]; arguments as for `pool`."""
    out = np.empty(len(offsets) - 1, np.float32)
    for bag in range(len(out)):
        out[bag] = _divisor(offsets[bag], offsets[bag + 1], weights, kind)
    return out


@compiled
def _divisor(start: int, stop: int, weights: Reals, kind: int) -> object:
    """Returns the divisor of a bag's sum; 1 instead of 0."""
    if kind == 0 or start == stop:
        return np.float32(1.0)
    total = np.float32(0.0)
    for i in range(start, stop):
        weight = weights[i] if len(weights) > 0 else np.float32(1.0)
        total += weight if kind == 1 else weight * weight
    if kind == 2:
        total = np.float32(np.sqrt(total))
    return total if total != 0.0 else np.float32(1.0)
