"""Sums of contributions to updates and epochs."""

from __future__ import annotations

import numpy as np
import pytest

from headwater.ps.epoch_sums import ADD, ADD_MAX, LAST, MAX, EpochSums


def numbers(*values: float, codes: tuple[int, ...] = ()) -> np.ndarray:
    return np.array([values, codes] if codes else values, np.float32)


@pytest.mark.parametrize("codes", [(), (ADD, ADD)])
def test_sums_before_an_update_lack_its_contributions(codes: tuple[int, ...]) -> None:
    sums = EpochSums()
    assert not sums.before(0, 5)
    sums.add("a", 0, numbers(1, 2, codes=codes), version=5)
    assert not sums.before(0, 5)
    sums.add("b", 0, numbers(3, 4, codes=codes), version=5)
    assert sums.before(0, 6)[0].tolist() == [4, 6]
    sums.add("a", 0, numbers(5, 5, codes=codes), version=6)
    assert sums.before(0, 6)[0].tolist() == [4, 6]
    assert sums.of(0)[0].tolist() == sums.before(0, 7)[0].tolist() == [9, 11]
    sums.add("b", 1, numbers(1, 1, codes=codes), version=7)
    assert sums.before(0, 7)[0].tolist() == [9, 11]


def test_codes_select_how_contributions_are_combined() -> None:
    sums = EpochSums()
    codes = (ADD, LAST, MAX, ADD_MAX)
    for version, first, second in ((1, 1.0, 4.0), (2, 2.0, 3.0)):
        sums.add("a", 0, numbers(*[first] * 4, codes=codes), version)
        sums.add("b", 0, numbers(*[second] * 4, codes=codes), version)
    assert sums.of(0)[0].tolist() == [10, 5, 4, 7]
