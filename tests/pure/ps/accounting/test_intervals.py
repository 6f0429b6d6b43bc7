"""Sets of whole numbers as ranges."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from headwater.ps.accounting.intervals import Intervals

SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 12)).map(lambda one: (one[0], one[0] + one[1])))


def numbers(spans: list[tuple[int, int]]) -> set[int]:
    return {number for start, stop in spans for number in range(start, stop)}


@given(SPANS, st.integers(0, 50), st.integers(0, 60))
def test_intervals_behave_like_sets_of_numbers(spans: list[tuple[int, int]], start: int, stop: int) -> None:
    found, expected = Intervals(spans), numbers(spans)
    assert numbers(list(found)) == expected
    assert len(found) == len(expected)
    assert found.end == max(expected, default=-1) + 1
    assert numbers(found.gaps(start, stop)) == set(range(start, stop)) - expected
    assert found.next_absent(start) == next(number for number in range(start, 120) if number not in expected)


@given(SPANS)
def test_ranges_that_touch_are_one(spans: list[tuple[int, int]]) -> None:
    found = list(Intervals(spans))
    assert all(one[1] < other[0] for one, other in itertools.pairwise(found))
