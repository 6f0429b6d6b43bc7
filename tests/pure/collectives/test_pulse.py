"""Heartbeats between the processes of a group, with a clock of the test's."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headwater.collectives.pulse import Pulse, heartbeat_s
from headwater.errors import InvalidArgumentError
from headwater.transport.channel import memory_pair


class Pair:
    """Two processes that hear each other; those lost in ``lost``."""

    def __init__(self) -> None:
        self.now = 0.0
        self.lost: list[tuple[str, int, str]] = []
        self.first, self.second = (Pulse(10, self._on_silent(name), clock=lambda: self.now) for name in "ab")
        ends = memory_pair()
        self.first.add(1, ends[0])
        self.second.add(0, ends[1])

    def _on_silent(self, name: str) -> Callable[[int, str], None]:
        def lost(rank: int, reason: str) -> None:
            self.lost.append((name, rank, reason))

        return lost


def test_who_beats_is_never_lost_however_long_it_computes() -> None:
    pair = Pair()
    for _ in range(100):
        pair.now += 9
        pair.first.beat()
        pair.second.beat()
    assert not pair.lost


def test_who_is_silent_is_lost_once() -> None:
    pair = Pair()
    for _ in range(5):
        pair.now += 4
        pair.first.beat()
    ((who, rank, reason),) = pair.lost
    assert (who, rank) == ("a", 1)
    assert reason.startswith("nothing was heard of it for 10 s")


def test_who_stood_still_itself_listens_before_it_judges() -> None:
    pair = Pair()
    for _ in range(5):
        pair.second.beat()
    pair.now += 100
    pair.first.beat()
    assert not pair.lost


def test_who_has_ended_is_not_silent() -> None:
    pair = Pair()
    pair.second.close()
    pair.now += 100
    pair.first.beat()
    pair.first.beat()
    assert not pair.lost


def test_a_process_that_was_started_anew_is_heard_over_its_new_channel() -> None:
    pair = Pair()
    pair.now += 9
    ends = memory_pair()
    pair.first.add(1, ends[0])
    pair.now += 9
    pair.first.beat()
    assert not pair.lost


@pytest.mark.parametrize(("text", "found"), [("", 10), ("3.5", 3.5)])
def test_the_environment_says_how_long(text: str, found: float) -> None:
    assert heartbeat_s({"HEADWATER_HEARTBEAT_S": text}) == found


@pytest.mark.parametrize("text", ["0", "-1", "soon", "nan"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="HEADWATER_HEARTBEAT_S"):
        heartbeat_s({"HEADWATER_HEARTBEAT_S": text})
