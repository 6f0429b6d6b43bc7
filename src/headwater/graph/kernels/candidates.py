"""Random samples of classes, equal to the samples of the compiled forms in `headwater.graph.ops.candidates`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from headwater.graph.kernels.common import Arrays
from headwater.graph.kernels.generator import Key, Keys, fold_in
from headwater.graph.kernels.random import uniform_float64, uniform_int
from headwater.graph.kernels.registry import NoKernel, kernel

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray

Draw = Callable[[Keys, int], "HostArray"]
"""Draws a number of classes with a key. If the words of the key are columns of several keys, the result has a row of
classes for each key."""
Probability = Callable[["HostArray"], "HostArray"]

_TURNS: Final = 2


def _sample(
    key: Key,
    true_classes: HostArray,
    draw: Draw,
    probability: Probability,
    range_max: int,
    *,
    num_sampled: int,
    unique: bool,
    **attrs: object,
) -> Arrays:
    """Draws ``num_sampled`` classes; also returns the expected counts of the true classes and of the drawn classes."""
    del attrs
    if unique and num_sampled > range_max:
        raise NoKernel  # the executable explains the error
    chosen, tries = _different(key, draw, num_sampled) if unique else (draw(key, num_sampled), None)

    def expected(of: HostArray) -> HostArray:
        p = probability(of)
        return (num_sampled * p if tries is None else -np.expm1(tries * np.log1p(-p))).astype(np.float32)

    return chosen, expected(true_classes), expected(chosen)


def _different(key: Key, draw: Draw, count: int) -> tuple[HostArray, int]:
    """Draws ``count`` different classes, in the order of first occurrence; also returns the number of draws."""
    kept: dict[int, None] = {}
    tries = turn = 0
    while True:
        # Draw for two turns at once: one turn is rarely enough, and for such small arrays, two turns take no longer
        # than one.
        keys = np.array([fold_in(key, turn + ahead) for ahead in range(_TURNS)], np.uint32)
        for drawn in draw((keys[:, :1], keys[:, 1:]), count).reshape(-1).tolist():
            if len(kept) == count:
                return np.array(list(kept), np.int64), tries
            kept[drawn] = None
            tries += 1
        turn += _TURNS


@kernel("UniformCandidateSampler")
def uniform_candidates(key: Key, true_classes: HostArray, *, range_max: int, **attrs: Any) -> Arrays:
    """Samples classes below ``range_max`` with equal probabilities."""

    def draw(key: Keys, count: int) -> HostArray:
        return uniform_int(key, np.array([count]), np.array(0, np.int64), np.array(range_max, np.int64))

    def probability(classes: HostArray) -> HostArray:
        return np.full(classes.shape, 1.0 / range_max)

    return _sample(key, true_classes, draw, probability, range_max, **attrs)


@kernel("LogUniformCandidateSampler")
def log_uniform_candidates(key: Key, true_classes: HostArray, *, range_max: int, **attrs: Any) -> Arrays:
    """Samples class k with probability log((k + 2) / (k + 1)) / log(range_max + 1), which approximates Zipf's law."""
    whole = np.log1p(range_max)

    def draw(key: Keys, count: int) -> HostArray:
        found = np.exp(uniform_float64(key, count) * whole).astype(np.int64) - 1
        return np.minimum(np.maximum(found, 0), range_max - 1)

    def probability(classes: HostArray) -> HostArray:
        return np.log((classes + 2.0) / (classes + 1.0)) / whole

    return _sample(key, true_classes, draw, probability, range_max, **attrs)
