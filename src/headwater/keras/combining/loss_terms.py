"""Divisors of losses, so that the shares of a batch add up to the loss of the whole.

Keras divides a loss term by the number of its elements, by the number of unmasked elements, by the sum of their
weights, or not at all. The number of elements of a share is proportional to its rows; the other divisors are not. Let
share i have n_i rows and the term v_i = N_i / D_i, and let n = Σ n_i and D = Σ D_i. The term of share i is multiplied
by

    f_i = (D_i / D) (n / n_i),        so that Σ (n_i / n) f_i v_i = Σ N_i / D

A term that is a sum over the batch is multiplied by n / n_i. All values that are linear in the losses (gradients, the
loss itself, its means over epochs) are then means over the shares, weighted by rows. Penalties are equal in all shares,
so their mean counts them once.

Terms are numbered in the order in which a program computes them, the same in each trace.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from typing import Any

import keras
import numpy as np

from headwater.graph.registry import HostArray
from headwater.keras.internals import losses, reduction_metrics

_ops: Any = keras.ops


class Divisor(Enum):
    """The divisor of a loss term."""

    ROWS = "rows"  # the number of elements, or any number that is proportional to the rows of the share
    NONE = "none"  # a sum over the batch
    OWN = "own"  # the number of unmasked elements, or the sum of weights


class LossTerms:
    """The loss terms of one trace, within `recorded_losses`.

    Args:
      factors: the factor of each term whose divisor is not ROWS; None for no scaling.
      sums: numbers of terms that are sums over the batch although Keras does not declare them as sums, such as
        functions that return one number for a batch.

    Attributes:
      divisors: the divisor of each term.
      denominators: for each term whose divisor is not ROWS, the divisor's value in this share; 1 for a sum.
      values: the value of each term.
      averaged: the ``id`` of each metric that was updated with one number for a batch: such a metric is a mean over
        batches, not over examples.
    """

    def __init__(self, factors: Any = None, sums: Collection[int] = ()) -> None:
        self._factors = factors
        self._sums = sums
        self.divisors: list[Divisor] = []
        self.denominators: list[object] = []
        self.values: list[Any] = []
        self.averaged: set[int] = set()

    def scaled(self, value: Any, divisor: Divisor, denominator: Any) -> Any:
        """Records the next term and returns it multiplied by its factor."""
        if len(self.divisors) in self._sums:
            divisor, denominator = Divisor.NONE, np.float32(1)
        self.divisors.append(divisor)
        self.values.append(value)
        if divisor is Divisor.ROWS:
            return value
        number = len(self.denominators)
        self.denominators.append(denominator)
        if self._factors is None:
            return value
        return value * _ops.cast(self._factors[number], value.dtype)


_terms: ContextVar[LossTerms | None] = ContextVar("loss terms", default=None)


@contextmanager
def recorded_losses(factors: object = None, sums: Collection[int] = ()) -> Generator[LossTerms]:
    """A context that records Keras's losses, and multiplies them by ``factors``; see `LossTerms`."""
    terms = LossTerms(factors, sums)
    token = _terms.set(terms)
    try:
        yield terms
    finally:
        _terms.reset(token)


def factors_of(
    divisors: Sequence[Divisor], own: HostArray, whole: HostArray, part: float, dtype: Any = np.float32
) -> HostArray:
    """Returns the factor f_i (see the module) of each term whose divisor is not ROWS.

    Args:
      divisors: the divisor of each term.
      own: D_i of each term whose divisor is not ROWS.
      whole: Σ D_i of the same terms.
      part: n_i / n.
      dtype: type of the result.
    """
    sums = np.array([divisor is Divisor.NONE for divisor in divisors if divisor is not Divisor.ROWS], bool)
    weights = np.where(sums, 1.0, np.divide(own, whole, out=np.zeros(len(own)), where=np.asarray(whole) != 0))
    return (weights / part).astype(dtype)


def _divisor(values: Any, sample_weight: Any, mask: Any, reduction: str | None, dtype: Any) -> tuple[Divisor, object]:
    """The divisor that `keras.losses.Loss` uses for ``values``, as a kind and in this share."""
    if reduction == "sum":
        return Divisor.NONE, np.float32(1)
    if reduction == "mean_with_sample_weight":
        values = _ops.convert_to_tensor(values, dtype=dtype)
        weights = losses.apply_mask(sample_weight, mask, dtype=values.dtype, reduction=reduction)
        if weights is not None:
            weights = _ops.cast(weights, values.dtype)
            return Divisor.OWN, _ops.sum(losses.squeeze_or_expand_to_same_rank(values, weights)[1])
    elif reduction in ("sum_over_batch_size", "mean") and mask is not None:
        return Divisor.OWN, _ops.sum(_ops.cast(mask, np.float32))
    return Divisor.ROWS, None


def _watch() -> None:
    """Patches Keras's losses and mean metrics to report their terms to `recorded_losses`."""
    reduce = losses.reduce_weighted_values

    @functools.wraps(reduce)
    def reduce_recorded(
        values: object,
        sample_weight: object = None,
        mask: object = None,
        reduction: str | None = "sum_over_batch_size",
        dtype: object = None,
    ) -> Any:
        value = reduce(values, sample_weight, mask, reduction, dtype)
        terms = _terms.get()
        if terms is None:
            return value
        return terms.scaled(value, *_divisor(values, sample_weight, mask, reduction, dtype))

    losses.reduce_weighted_values = reduce_recorded
    for kind in (reduction_metrics.Mean, reduction_metrics.Sum):
        kind.update_state = _update_recorded(kind.update_state)


def _update_recorded(update: Any) -> Any:
    @functools.wraps(update)
    def recorded(self: Any, values: Any, sample_weight: Any = None) -> Any:
        terms = _terms.get()
        if terms is not None and sample_weight is None and not np.ndim(values):
            terms.averaged.add(id(self))
        return update(self, values, sample_weight)

    return recorded


_watch()
