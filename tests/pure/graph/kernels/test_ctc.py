"""Paths of CTC: scaled probabilities equal the results of logarithms, and are used within the range of float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headwater.graph.kernels import ctc
from headwater.tables import ctc_loops


def _drawn(seed: int, scale: float) -> tuple[Any, ...]:
    draw = np.random.default_rng(seed)
    time, batch, classes = int(draw.integers(1, 30)), int(draw.integers(1, 5)), int(draw.integers(2, 7))
    lengths = draw.integers(0, time + 1, batch)
    counts = np.array([draw.integers(0, min(length, 8) + 1) for length in lengths])
    path = np.full((batch, 2 * int(counts.max()) + 1), classes - 1)
    for row, count in enumerate(counts):
        path[row, 1 : 2 * count : 2] = draw.integers(0, classes - 1, count)
    return draw.normal(size=(time, batch, classes)) * scale, path, counts, lengths


def _paths(case: tuple[Any, ...], merge_repeated: bool) -> tuple[Any, ...]:
    inputs, path, counts, lengths = case
    return ctc.paths(inputs, path, counts, lengths, merge_repeated)


@pytest.mark.parametrize("merge_repeated", [False, True])
def test_scaled_probabilities_agree_with_logarithms(merge_repeated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [_drawn(seed, scale) for seed in range(20) for scale in (1, 20)]
    scaled = [_paths(case, merge_repeated) for case in cases]
    monkeypatch.setattr(ctc_loops, "paths", lambda *_: False)
    for case, found in zip(cases, scaled, strict=True):
        for got, expected in zip(found, _paths(case, merge_repeated), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("logit", [50, 1000])
def test_small_probabilities(logit: int) -> None:
    """Float64 holds the probability of a label for the first logit, and neither of them for the second."""
    time, labels = 60, 20
    inputs = np.zeros((time, 1, 3))
    inputs[:, 0, 2] = logit  # all but blanks is unlikely
    path = np.full((1, 2 * labels + 1), 2)
    path[0, 1::4], path[0, 3::4] = 0, 1
    loss, gradient = ctc.paths(inputs, path, np.array([labels]), np.array([time]), merge_repeated=True)
    assert 0.9 < loss[0] / (labels * logit) < 1
    # In each moment the shares of all paths add up to one, as the probabilities do.
    np.testing.assert_allclose(gradient.sum(2), 0, atol=1e-9)
    np.testing.assert_allclose(-gradient[:, 0, :2].sum(), labels, rtol=1e-6)
