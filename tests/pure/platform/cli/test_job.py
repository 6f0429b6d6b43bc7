"""The launcher's decisions, event by event."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.cluster.names import TaskName
from headwater.platform.cli.launcher.job import (
    START_AGAIN,
    CannotContinueAlone,
    CouldNotStart,
    Ended,
    Event,
    Interrupted,
    JobState,
    LaunchTick,
    OutputLost,
    Phase,
    Renew,
    Replace,
    Signal,
    Start,
    decide,
    initial_decision,
)

PS, FIRST, SECOND = TaskName("ps", 0), TaskName("worker", 0), TaskName("worker", 1)
TASKS = (PS, FIRST, SECOND)
GRACE_S = 4.0


def running() -> JobState:
    return initial_decision(TASKS, grace_s=GRACE_S).state


def after(state: JobState, *events: Event, now: float = 0.0) -> JobState:
    for event in events:
        state = decide(state, event, now).state
    return state


def terminate(tasks: Sequence[TaskName], signum: signal.Signals = signal.SIGTERM) -> tuple[Signal, ...]:
    return tuple(Signal(task, signum) for task in tasks)


def test_all_are_started_in_order() -> None:
    decision = initial_decision(TASKS, grace_s=GRACE_S)
    assert decision.actions == tuple(Start(task) for task in TASKS)
    assert decision.state.phase is Phase.RUNNING


def test_the_ps_is_ended_when_all_workers_are_done() -> None:
    first = decide(running(), Ended(FIRST, 0), 1.0)
    assert first.actions == ()
    assert first.state.phase is Phase.RUNNING
    last = decide(first.state, Ended(SECOND, 0), 2.0)
    assert last.actions == terminate([PS])
    assert last.reason == "all workers are done"
    assert last.state.kill_at == 2.0 + GRACE_S
    over = decide(last.state, Ended(PS, 0), 3.0).state
    assert (over.phase, over.exit_code, over.failure) == (Phase.OVER, 0, None)


@pytest.mark.parametrize("returncode", [0, -signal.SIGTERM, 128 + signal.SIGTERM, -signal.SIGKILL])
def test_a_ps_that_ends_as_asked_has_not_failed(returncode: int) -> None:
    state = after(running(), Ended(FIRST, 0), Ended(SECOND, 0), Ended(PS, returncode))
    assert (state.phase, state.exit_code, state.failure) == (Phase.OVER, 0, None)


def test_a_ps_that_fails_while_ending_has_failed() -> None:
    state = after(running(), Ended(FIRST, 0), Ended(SECOND, 0), Ended(PS, 5))
    assert (state.phase, state.exit_code) == (Phase.OVER, 5)
    assert state.failure is not None
    assert state.failure.task == PS


def test_a_ps_may_end_before_the_workers() -> None:
    state = after(running(), Ended(PS, 0))
    assert state.phase is Phase.RUNNING
    assert after(state, Ended(FIRST, 0), Ended(SECOND, 0)).phase is Phase.OVER


@pytest.mark.parametrize(
    ("returncode", "exit_code", "reason"),
    [(3, 3, "exit code 3"), (-signal.SIGSEGV, 139, "killed by SIGSEGV"), (-signal.SIGRTMIN - 1, 163, "signal 35")],
)
def test_a_failure_ends_all_others_and_gives_its_exit_code(returncode: int, exit_code: int, reason: str) -> None:
    decision = decide(running(), Ended(SECOND, returncode), 1.0)
    assert decision.actions == terminate([FIRST])
    assert decision.state.failure is not None
    assert decision.state.failure.task == SECOND
    assert reason in decision.state.failure.reason
    decision = decide(decision.state, Ended(FIRST, -signal.SIGTERM), 2.0)
    assert decision.actions == terminate([PS]), "it may hold what the worker saved at its end"
    over = after(decision.state, Ended(PS, 1))
    assert (over.phase, over.exit_code, over.failure) == (Phase.OVER, exit_code, decision.state.failure)


def test_a_task_that_cannot_start_has_failed() -> None:
    decision = decide(running(), CouldNotStart(FIRST, "no memory"), 0.0)
    assert decision.state.exit_code == 127
    assert decision.state.failure is not None
    assert "no memory" in decision.state.failure.reason
    assert decision.actions == terminate([SECOND])


def test_running_task_is_killed_after_the_grace_period() -> None:
    state = after(running(), Ended(FIRST, 0), Ended(SECOND, 0), now=10.0)
    assert decide(state, LaunchTick(), 10.0 + GRACE_S - 0.01).actions == ()
    decision = decide(state, LaunchTick(), 10.0 + GRACE_S)
    assert decision.actions == terminate([PS], signal.SIGKILL)
    assert decision.reason == "killing ps 0: tasks still run 4 s after they were asked to end"
    assert decide(decision.state, LaunchTick(), 100.0).actions == ()


def test_an_interruption_ends_all() -> None:
    decision = decide(running(), Interrupted(signal.SIGINT), 1.0)
    assert decision.actions == terminate([FIRST, SECOND])
    last = decide(after(decision.state, Ended(FIRST, -signal.SIGTERM)), Ended(SECOND, -signal.SIGTERM), 1.0)
    assert last.actions == terminate([PS])
    over = after(last.state, Ended(PS, -signal.SIGTERM))
    assert (over.phase, over.exit_code, over.failure) == (Phase.OVER, 130, None)


def test_a_second_interruption_kills() -> None:
    state = after(running(), Interrupted(signal.SIGTERM), Ended(FIRST, 0))
    decision = decide(state, Interrupted(signal.SIGINT), 1.0)
    assert decision.actions == terminate([PS, SECOND], signal.SIGKILL)
    assert decision.state.exit_code == 143
    assert decide(decision.state, Interrupted(signal.SIGINT), 1.0).actions == ()


def test_a_closed_output_ends_all_tasks_without_a_second_interruption() -> None:
    assert after(running(), OutputLost()).exit_code == 141
    hung_up = after(running(), Interrupted(signal.SIGHUP))
    assert decide(hung_up, OutputLost(), 1.0).actions == ()


RETURNCODES = st.sampled_from([0, 0, 1, 3, -signal.SIGKILL, -signal.SIGTERM])
NOISE = st.sampled_from([LaunchTick(), OutputLost(), Interrupted(signal.SIGINT), Interrupted(signal.SIGHUP)])


@given(st.permutations(TASKS), st.lists(RETURNCODES, min_size=3, max_size=3), st.lists(st.none() | NOISE, max_size=6))
def test_a_job_is_over_exactly_when_nothing_runs(
    order: list[TaskName], returncodes: list[int], noise: list[Event | None]
) -> None:
    ends: list[Event] = [Ended(task, code) for task, code in zip(order, returncodes, strict=True)]
    events: list[Event] = []
    for position, event in enumerate(ends):
        events += [extra for extra in noise[position * 2 : position * 2 + 2] if extra is not None]
        events.append(event)
    state = running()
    for now, event in enumerate(events):
        before = state
        decision = decide(state, event, float(now))
        state = decision.state
        assert (state.phase is Phase.OVER) == (not state.running)
        assert {action.task for action in decision.actions if isinstance(action, Signal)} <= state.running
        assert before.failure is None or state.failure == before.failure
    assert (state.exit_code == 0) <= (state.failure is None)


def together(**settings: Any) -> JobState:
    """A job of two workers that have said that they need each other."""
    begun = initial_decision([FIRST, SECOND], grace_s=4, max_restarts=2).state
    return replace(decide(begun, CannotContinueAlone(), 0).state, **settings)


def test_tasks_that_need_each_other_all_start_again_when_one_is_killed() -> None:
    lost = decide(together(), Ended(SECOND, -signal.SIGKILL), 10)
    assert lost.state.phase is Phase.RESTARTING
    assert lost.actions == ()  # the other one notices by itself
    assert "worker 1 is lost (killed by SIGKILL)" in lost.reason
    again = decide(lost.state, Ended(FIRST, START_AGAIN), 11)
    assert again.state.phase is Phase.RUNNING
    assert again.state.running == again.state.working == {FIRST, SECOND}
    assert again.actions == (Renew(), Start(FIRST), Start(SECOND))
    assert (again.state.restarts, again.state.failure, again.state.kill_at) == (1, None, None)


def test_a_task_that_does_not_notice_is_killed_and_started_again() -> None:
    lost = decide(together(), Ended(SECOND, -signal.SIGKILL), 10)
    assert decide(lost.state, LaunchTick(), 13).actions == ()
    killing = decide(lost.state, LaunchTick(), 14)
    assert killing.actions == (Signal(FIRST, signal.SIGKILL),)
    again = decide(killing.state, Ended(FIRST, -signal.SIGKILL), 14)
    assert again.state.phase is Phase.RUNNING


def test_tasks_are_not_started_again_more_often_than_asked_for() -> None:
    ended = decide(together(restarts=2), Ended(SECOND, -signal.SIGKILL), 10)
    assert ended.state.phase is Phase.ENDING
    assert ended.state.exit_code == 128 + signal.SIGKILL


def test_a_task_that_failed_by_itself_is_not_started_again() -> None:
    assert decide(together(), Ended(SECOND, 1), 10).state.phase is Phase.ENDING
    # Also when the one that it let down is seen to end first.
    lost = decide(together(), Ended(FIRST, START_AGAIN), 10)
    over = decide(lost.state, Ended(SECOND, 1), 10)
    assert (over.state.phase, over.state.exit_code) == (Phase.OVER, 1)


def test_a_signal_ends_a_job_that_is_starting_again() -> None:
    lost = decide(together(), Ended(SECOND, -signal.SIGKILL), 10)
    ending = decide(lost.state, Interrupted(signal.SIGTERM), 11)
    assert ending.state.phase is Phase.ENDING
    assert ending.actions == (Signal(FIRST, signal.SIGTERM),)


def test_a_single_task_that_asks_for_it_starts_again_at_once() -> None:
    begun = initial_decision([FIRST], grace_s=4, max_restarts=1).state
    again = decide(begun, Ended(FIRST, START_AGAIN), 1)
    assert again.actions == (Renew(), Start(FIRST))
    assert decide(again.state, Ended(FIRST, START_AGAIN), 2).state.exit_code == START_AGAIN


def test_a_lost_worker_of_an_elastic_job_is_replaced() -> None:
    state = initial_decision(TASKS, grace_s=GRACE_S, max_restarts=1, elastic=True).state
    decision = decide(state, Ended(SECOND, -9), 1.0)
    assert decision.actions == (Replace(SECOND),)
    assert "worker 1 is lost (killed by SIGKILL): all other tasks continue, and another worker takes" in decision.reason
    assert decision.state.running == frozenset(TASKS)
    # It was the last time; and a failure of its own is one of the job.
    for returncode in (-9, 1):
        assert decide(decision.state, Ended(SECOND, returncode), 2.0).state.phase is Phase.ENDING


def test_the_chief_of_an_elastic_job_is_not_replaced() -> None:
    state = initial_decision(TASKS, grace_s=GRACE_S, max_restarts=1, elastic=True).state
    for task in (PS, FIRST):
        decision = decide(state, Ended(task, -9), 1.0)
        assert decision.state.phase is Phase.ENDING
        assert decision.state.exit_code == 137


KILLED = -signal.SIGKILL


@pytest.mark.parametrize("elastic", [False, True])
def test_a_worker_that_is_killed_when_the_ps_are_done_is_no_failure(elastic: bool) -> None:
    started = initial_decision(TASKS, grace_s=GRACE_S, max_restarts=3, elastic=elastic).state
    for order in ((Ended(PS, 0), Ended(SECOND, KILLED), Ended(FIRST, 0)), (Ended(FIRST, 0), Ended(PS, 0))):
        state = after(started, *order)
        if state.phase is Phase.RUNNING:
            last = decide(state, Ended(SECOND, KILLED), 1.0)
            assert last.reason == "worker 1 is lost (killed by SIGKILL), but the work is done; all workers are done"
            state = last.state
        assert (state.phase, state.exit_code, state.failure) == (Phase.OVER, 0, None)
    assert after(started, Ended(PS, 0), Ended(FIRST, KILLED)).exit_code == 137
    assert after(started, Ended(PS, 0), Ended(FIRST, 0), Ended(SECOND, 3)).exit_code == 3


def test_a_worker_in_the_place_of_a_lost_one_is_not_awaited_when_the_work_is_done() -> None:
    started = initial_decision(TASKS, grace_s=GRACE_S, max_restarts=3, elastic=True).state
    replaced = after(started, Ended(SECOND, KILLED), Ended(FIRST, 0))
    decision = decide(replaced, Ended(PS, 0), 1.0)
    assert decision.actions == terminate([SECOND])
    over = after(decision.state, Ended(SECOND, -signal.SIGTERM))
    assert (over.phase, over.exit_code) == (Phase.OVER, 0)


def test_mirrored_workers_are_done_when_the_first_is() -> None:
    started = initial_decision([FIRST, SECOND], grace_s=GRACE_S, max_restarts=3).state
    together = after(started, CannotContinueAlone(), Ended(FIRST, 0), Ended(SECOND, KILLED))
    assert (together.phase, together.exit_code) == (Phase.OVER, 0)
    assert after(started, CannotContinueAlone(), Ended(SECOND, 0), Ended(FIRST, KILLED)).phase is Phase.RUNNING
    assert after(started, Ended(FIRST, 0), Ended(SECOND, KILLED)).exit_code == 137
