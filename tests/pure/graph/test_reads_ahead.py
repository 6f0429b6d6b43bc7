"""When a request reads ahead, by how often that has served."""

from __future__ import annotations

import numpy as np

from headwater.graph.master.ahead import MAX_BYTES, ReadsAhead, Values

VALUES = Values(7, [np.zeros(2)])


def runs_until_wanted(ahead: ReadsAhead) -> int:
    """How many runs bring the next one nothing."""
    count = 0
    while not ahead.wants_values():
        count += 1
    return count


def test_a_request_that_is_run_once_asks_for_nothing() -> None:
    ahead = ReadsAhead(0)
    assert [ahead.wants_values() for _ in range(3)] == [False, True, True]


def test_values_are_used_by_one_run_only() -> None:
    ahead = ReadsAhead(0)
    assert ahead.pop_values() is None
    ahead.keep_values(VALUES)
    ahead.keep_values(Values(8, [np.zeros(2)]))
    values = ahead.pop_values()
    assert values is not None
    assert values.version == 8
    assert ahead.pop_values() is None


def test_failed_reads_ahead_are_tried_less_often() -> None:
    ahead = ReadsAhead(0)
    runs_until_wanted(ahead)
    pauses = []
    for _ in range(8):
        ahead.record_outcome(current=False)
        pauses.append(runs_until_wanted(ahead))
    assert pauses == [16, 32, 64, 128, 256, 512, 1024, 1024]
    for _ in range(12):
        ahead.record_outcome(current=True)
    assert runs_until_wanted(ahead) == 0


def test_values_that_are_large_are_asked_for_once() -> None:
    ahead = ReadsAhead(0)
    ahead.keep_values(Values(1, [np.zeros(MAX_BYTES + 1, np.uint8)]))
    assert ahead.pop_values() is None
    assert not ahead.pays
