"""Selection of checkpoints to keep."""

from __future__ import annotations

from headwater.tf1.training.kept_checkpoints import KeptCheckpoints

HOUR_S = 3600.0


class Clock:
    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        return self.now


def test_the_last_ones_are_kept() -> None:
    kept = KeptCheckpoints(2, 1e6)
    assert [kept.add(name) for name in "abcd"] == [None, None, "a", "b"]
    assert kept.paths == ["c", "d"]


def test_a_rewritten_checkpoint_counts_once() -> None:
    kept = KeptCheckpoints(2, 1e6)
    assert [kept.add(name) for name in "abab"] == [None] * 4
    assert kept.paths == ["a", "b"]


def test_all_are_kept_where_no_number_is_given() -> None:
    kept = KeptCheckpoints(0, 1e6)
    assert [kept.add(name) for name in "abc"] == [None] * 3
    assert kept.paths == []


def test_checkpoints_are_kept_forever_at_an_interval() -> None:
    clock = Clock()
    kept = KeptCheckpoints(1, 2, clock=clock)
    deleted: list[str | None] = []
    for hour in range(8):
        clock.now = 1e9 + hour * HOUR_S + 1
        deleted.append(kept.add(str(hour)))
    # Of hours 0 to 6, those that were saved first after 2, 4 and 6 hours stay.
    assert deleted == [None, "0", "1", None, "3", None, "5", None]


def test_checkpoints_of_an_earlier_run() -> None:
    kept = KeptCheckpoints(2, 1e6)
    kept.set([("a", 1.0), ("b", 2.0)])
    assert kept.add("c") == "a"
    kept.find(["no such file"])
    assert kept.paths == []
