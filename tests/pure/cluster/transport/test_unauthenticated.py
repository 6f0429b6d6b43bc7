"""Selection of unauthenticated connections to close, on a clock of the test."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.cluster.transport.unauthenticated import GRACE_S, UnauthenticatedConnections


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True, eq=False)
class Connection:
    host: str


def crowd(clock: Clock, most: int = 3, deadline_s: float = 10.0) -> UnauthenticatedConnections[Connection]:
    return UnauthenticatedConnections(most, deadline_s, clock)


def test_there_is_room_up_to_the_bound() -> None:
    unauthenticated = crowd(Clock())
    for _ in range(3):
        assert unauthenticated.connection_to_drop() is None
        unauthenticated.add(Connection("a"))
    assert unauthenticated.connection_to_drop() is not None


def test_the_oldest_connection_is_dropped_after_its_grace_time() -> None:
    clock = Clock()
    unauthenticated = crowd(clock)
    connections = [Connection("a") for _ in range(3)]
    for connection in connections:
        unauthenticated.add(connection)
        clock.now += GRACE_S / 4
    assert unauthenticated.connection_to_drop() == (connections[0], pytest.approx(GRACE_S / 4))
    clock.now += GRACE_S
    assert unauthenticated.connection_to_drop() == (connections[0], 0.0)
    assert unauthenticated.remove(connections[0])
    assert not unauthenticated.remove(connections[0])
    unauthenticated.add(Connection("a"))
    assert unauthenticated.connection_to_drop() == (connections[1], 0.0)


def test_a_host_takes_room_from_itself() -> None:
    clock = Clock()
    unauthenticated = crowd(clock)
    quiet, *loud = connections = [Connection("quiet"), Connection("loud"), Connection("loud")]
    for connection in connections:
        unauthenticated.add(connection)
    clock.now += 5
    assert unauthenticated.connection_to_drop() == (loud[0], 0.0)
    assert unauthenticated.remove(quiet)
    unauthenticated.add(Connection("third"))
    assert unauthenticated.connection_to_drop() == (loud[0], 0.0)


def test_time_runs_out() -> None:
    clock = Clock()
    unauthenticated = crowd(clock)
    assert unauthenticated.next_deadline_s() is None
    first, second = Connection("a"), Connection("b")
    unauthenticated.add(first)
    clock.now += 4
    unauthenticated.add(second)
    assert unauthenticated.next_deadline_s() == 6
    assert unauthenticated.remaining_s(second) == 10
    clock.now += 6
    assert unauthenticated.overdue() == [first]
    unauthenticated.extend_deadlines(3)
    assert unauthenticated.overdue() == []
    assert unauthenticated.next_deadline_s() == 3


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.floats(0, 1))), st.integers(1, 5))
def test_there_are_never_more_than_the_bound(arrivals: list[tuple[str, float]], most: int) -> None:
    """As the accepting thread does it: another one is accepted only once one may be dropped for it."""
    clock = Clock()
    unauthenticated = crowd(clock, most)
    for host, pause in arrivals:
        clock.now += pause
        found = unauthenticated.connection_to_drop()
        if found is not None:
            oldest, in_s = found
            clock.now += in_s
            counts = {other: sum(one.host == other for one in unauthenticated.all()) for other in "abcdef"}
            assert counts[oldest.host] == max(counts.values())
            assert unauthenticated.remove(oldest)
        unauthenticated.add(Connection(host))
        assert len(unauthenticated) <= most
