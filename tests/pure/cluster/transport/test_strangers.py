"""Who goes when too many connections have not proved who they are: by rule, on a clock of the test's own."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.cluster.transport.strangers import GRACE_S, Strangers


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True, eq=False)
class Connection:
    host: str


def crowd(clock: Clock, most: int = 3, deadline_s: float = 10.0) -> Strangers[Connection]:
    return Strangers(most, deadline_s, clock)


def test_there_is_room_up_to_the_bound() -> None:
    strangers = crowd(Clock())
    for _ in range(3):
        assert strangers.to_drop() is None
        strangers.add(Connection("a"))
    assert strangers.to_drop() is not None


def test_the_oldest_goes_first_once_it_is_not_new() -> None:
    clock = Clock()
    strangers = crowd(clock)
    connections = [Connection("a") for _ in range(3)]
    for connection in connections:
        strangers.add(connection)
        clock.now += GRACE_S / 4
    assert strangers.to_drop() == (connections[0], pytest.approx(GRACE_S / 4))
    clock.now += GRACE_S
    assert strangers.to_drop() == (connections[0], 0.0)
    assert strangers.remove(connections[0])
    assert not strangers.remove(connections[0])
    strangers.add(Connection("a"))
    assert strangers.to_drop() == (connections[1], 0.0)


def test_a_host_takes_room_from_itself() -> None:
    clock = Clock()
    strangers = crowd(clock)
    quiet, *loud = connections = [Connection("quiet"), Connection("loud"), Connection("loud")]
    for connection in connections:
        strangers.add(connection)
    clock.now += 5
    assert strangers.to_drop() == (loud[0], 0.0)
    assert strangers.remove(quiet)
    strangers.add(Connection("third"))
    assert strangers.to_drop() == (loud[0], 0.0)


def test_time_runs_out() -> None:
    clock = Clock()
    strangers = crowd(clock)
    assert strangers.next_deadline_s() is None
    first, second = Connection("a"), Connection("b")
    strangers.add(first)
    clock.now += 4
    strangers.add(second)
    assert strangers.next_deadline_s() == 6
    assert strangers.remaining_s(second) == 10
    clock.now += 6
    assert strangers.overdue() == [first]
    strangers.forgive(3)
    assert strangers.overdue() == []
    assert strangers.next_deadline_s() == 3


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.floats(0, 1))), st.integers(1, 5))
def test_there_are_never_more_than_the_bound(arrivals: list[tuple[str, float]], most: int) -> None:
    """As the accepting thread does it: another one is accepted only once one may be dropped for it."""
    clock = Clock()
    strangers = crowd(clock, most)
    for host, pause in arrivals:
        clock.now += pause
        found = strangers.to_drop()
        if found is not None:
            oldest, in_s = found
            clock.now += in_s
            counts = {other: sum(one.host == other for one in strangers.all()) for other in "abcdef"}
            assert counts[oldest.host] == max(counts.values())
            assert strangers.remove(oldest)
        strangers.add(Connection(host))
        assert len(strangers) <= most
