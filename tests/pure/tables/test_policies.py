"""Selection of keys that get a row, and of rows to evict."""

import numpy as np
import pytest

from headwater.tables import Admission, Age, LeastFrequent, LeastRecent
from headwater.tables.policies import admitted_by_chance, should_promote

COUNTS = np.array([5, 1, 1, 9])
STEPS = np.array([4, 8, 2, 1])


def test_least_recent():
    assert LeastRecent().victims(COUNTS, STEPS, 2).tolist() == [3, 2]
    assert not LeastRecent().expired(COUNTS, STEPS, 1000).any()


def test_least_frequent_and_then_least_recent():
    assert LeastFrequent().victims(COUNTS, STEPS, 3).tolist() == [2, 1, 0]
    assert not LeastFrequent().expired(COUNTS, STEPS, 1000).any()


def test_age():
    assert Age(5).expired(COUNTS, STEPS, 8).tolist() == [False, False, True, True]
    assert Age(5).victims(COUNTS, STEPS, 1).tolist() == [3]
    with pytest.raises(ValueError, match="steps"):
        Age(0)


def test_chance_depends_on_seed_key_and_step_only():
    drawn = [admitted_by_chance(1, key, 0, 0.25) for key in range(4000)]
    assert drawn == [admitted_by_chance(1, key, 0, 0.25) for key in range(4000)]
    assert 900 < sum(drawn) < 1100
    assert drawn != [admitted_by_chance(2, key, 0, 0.25) for key in range(4000)]
    assert drawn != [admitted_by_chance(1, key, 1, 0.25) for key in range(4000)]


def test_a_row_that_is_used_once_promotes_nothing():
    assert should_promote(7, 6)
    assert not should_promote(6, 6)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"sightings": 0}, "sightings"),
        ({"probability": 0.0}, "probability"),
        ({"sightings": 2, "probability": 0.5}, "not both"),
        ({"candidates": 1}, "candidates"),
    ],
)
def test_invalid_admission_policies_are_rejected(fields, named):
    with pytest.raises(ValueError, match=named):
        Admission(**fields)
