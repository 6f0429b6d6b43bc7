"""The barrier of synchronous replicas: a replica that would wait forever gets an error."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from headwater.errors import AbortedError, OutOfRangeError
from headwater.graph.resources.step_barrier import StepBarrier


class Clock:
    """Gives the time that a test says."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Waits:
    """A step that looks once more each time that something has happened meanwhile.

    Args:
      events: what happens while it waits, one after the other, and after each the clock advances by 3 seconds.
    """

    def __init__(self, clock: Clock, *events: Callable[[], None]) -> None:
        self._clock = clock
        self._events = iter(events)

    def wait_until(self, condition: threading.Condition, ready: Callable[[], bool], what: str) -> None:
        del what
        while not ready():
            condition.release()
            try:
                next(self._events)()
                self._clock.now += 3
            finally:
                condition.acquire()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def barrier(clock: Clock) -> StepBarrier:
    barrier = StepBarrier(clock)
    barrier.join("replica")
    barrier.start("chief", 100, 0, 0)
    return barrier


def test_the_next_step_ends_the_wait(barrier: StepBarrier, clock: Clock) -> None:
    assert barrier.wait(Waits(clock, lambda: barrier.set("chief", 101, 0, 2)), "replica", 100) == 101


def test_an_older_step_that_is_restored_voids_the_wait(barrier: StepBarrier, clock: Clock) -> None:
    with pytest.raises(AbortedError, match="restarted the training at step 60: the step of this replica is void"):
        barrier.wait(Waits(clock, lambda: barrier.start("the next chief", 60, 1, 0)), "replica", 100)
    with pytest.raises(AbortedError):
        barrier.set("chief", 101, 0, 2)  # a late request of the chief's earlier process
    assert barrier.step == 60


def test_reconnected_replica_keeps_its_start(barrier: StepBarrier, clock: Clock) -> None:
    def away_while_the_chief_starts_anew() -> None:
        barrier.session_ended("replica", "its last connection has ended")
        barrier.start("the next chief", 100, 1, 0)

    with pytest.raises(AbortedError, match="the step of this replica is void"):
        barrier.wait(Waits(clock, away_while_the_chief_starts_anew), "replica", 100)
    barrier.forget_session("replica")
    barrier.join("replica")
    assert barrier.wait(Waits(clock, lambda: barrier.set("the next chief", 101, 0, 2)), "replica", 100) == 101


def test_the_end_of_the_job_ends_the_wait(barrier: StepBarrier, clock: Clock) -> None:
    with pytest.raises(OutOfRangeError, match="no step after 100: /job:worker/task:0 is done"):
        barrier.wait(Waits(clock, lambda: barrier.job_over("/job:worker/task:0 is done")), "replica", 100)
    barrier.start("another program", 0, 1, 0)
    assert barrier.wait(Waits(clock, lambda: barrier.set("another program", 1, 0, 2)), "another program", 0) == 1


def test_a_wait_for_a_lost_chief_is_reported(
    barrier: StepBarrier, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    nothing = [lambda: None] * 3
    ended = lambda: barrier.session_ended("chief", "its last connection has ended")  # noqa: E731 - it is one
    barrier.wait(Waits(clock, ended, *nothing, lambda: barrier.set("chief", 101, 0, 2)), "replica", 100)
    gone = "the session of the chief has ended (its last connection has ended)"
    assert caplog.messages == [
        f"1 replicas have waited for {seconds} s for the gradients of other replicas for step 100; {gone}"
        for seconds in (6, 12)
    ]


def test_a_replica_takes_a_token_that_another_one_has_left(barrier: StepBarrier, clock: Clock) -> None:
    barrier.issue_tokens("chief", 100, 2)
    at_once = Waits(clock)
    assert [barrier.wait(at_once, "replica", 100) for _ in range(2)] == [100, 100]
    assert barrier.wait(Waits(clock, lambda: barrier.set("chief", 101, 0, 2)), "replica", 100) == 101
    assert barrier.wait(at_once, "replica", 101) == 101
    assert barrier.wait(Waits(clock, lambda: barrier.set("chief", 102, 0, 2)), "replica", 101) == 102


def test_tokens_of_an_earlier_start_are_discarded(barrier: StepBarrier, clock: Clock) -> None:
    barrier.issue_tokens("chief", 100, 2)
    barrier.start("the next chief", 60, 1, 0)
    with pytest.raises(AbortedError):
        barrier.issue_tokens("chief", 100, 2)
    barrier.join("replica")
    assert barrier.wait(Waits(clock, lambda: barrier.set("the next chief", 61, 0, 2)), "replica", 60) == 61
    barrier.issue_tokens("the next chief", 61, 1)
    assert barrier.wait(Waits(clock), "replica", 61) == 61
    with pytest.raises(OutOfRangeError):
        barrier.wait(Waits(clock, lambda: barrier.job_over("the chief is done")), "replica", 61)
