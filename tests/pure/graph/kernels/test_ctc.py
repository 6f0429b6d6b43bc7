"""Paths of CTC: scaled probabilities equal the results of logarithms, and are used within the range of float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headwater.graph.kernels import ctc


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
    monkeypatch.setattr(ctc, "_scaled", lambda *_: None)
    for case, found in zip(cases, scaled, strict=True):
        for got, expected in zip(found, _paths(case, merge_repeated), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-8)


def test_probabilities_that_float64_does_not_hold_are_computed_as_logarithms() -> None:
    time, labels = 60, 20
    inputs = np.zeros((time, 1, 3))
    inputs[:, 0, 2] = 50  # all but blanks is unlikely
    path = np.full((1, 2 * labels + 1), 2)
    path[0, 1::4], path[0, 3::4] = 0, 1
    loss, gradient = ctc.paths(inputs, path, np.array([labels]), np.array([time]), merge_repeated=True)
    assert 900 < loss[0] < 1000
    # In each moment the shares of all paths add up to one, as the probabilities do.
    np.testing.assert_allclose(gradient.sum(2), 0, atol=1e-9)
    np.testing.assert_allclose(-gradient[:, 0, :2].sum(), labels, rtol=1e-6)


@pytest.mark.parametrize("merge_repeated", [False, True])
def test_the_compiled_loop_computes_the_same_bits(merge_repeated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [_drawn(seed, 1) for seed in range(20)]
    found: list[list[Any]] = []
    monkeypatch.setattr(ctc, "compiled_loops_pay", lambda *_: False)
    found.append([_paths(case, merge_repeated) for case in cases])
    monkeypatch.setattr(ctc, "compiled_loops_pay", lambda *_: True)
    found.append([_paths(case, merge_repeated) for case in cases])
    for numpy, loop in zip(*found, strict=True):
        for one, other in zip(numpy, loop, strict=True):
            np.testing.assert_array_equal(one, other)
