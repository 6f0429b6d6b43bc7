"""The end of a job as seen by a task, and the membership of its cluster."""

from __future__ import annotations

import pytest

from headwater.cluster.names import TaskName
from headwater.cluster.spec import ClusterSpec
from headwater.cluster.task.lifetime import (
    Connected,
    ConnectionReport,
    Disconnected,
    Event,
    Expected,
    FirstFrame,
    JobOver,
    Joined,
    LifetimeDecision,
    LifetimeState,
    connection_report,
    decide,
    ever_connected,
    first_state,
    is_needed,
    left_everywhere,
    place_in,
)
from headwater.errors import ResourceExhaustedError

PS = TaskName("ps", 0)
CLUSTER = ClusterSpec({"ps": ["p:1", "q:1"], "worker": ["a:1", "b:1"], "evaluator": ["e:1"]})
CHIEF, OTHER = "/job:worker/task:0", "/job:worker/task:1"


def after(*events: Event, state: LifetimeState | None = None) -> LifetimeDecision:
    decision = LifetimeDecision(first_state(CLUSTER, PS) if state is None else state)
    for event in events:
        decision = decide(decision.state, event)
    return decision


def gone(task: str, generation: int = 1) -> tuple[Event, ...]:
    incarnation = task, generation
    return Connected(incarnation), FirstFrame(incarnation), Disconnected(incarnation, served=True)


def test_a_job_is_over_when_the_chief_is_done_and_all_workers_have_left() -> None:
    assert after(*gone(CHIEF), *gone(OTHER), JobOver()).ends
    assert not after(*gone(CHIEF), *gone(OTHER)).ends


def test_a_task_is_needed_while_the_job_runs_and_a_worker_is_connected() -> None:
    assert is_needed(after(Connected((OTHER, 1))).state)
    assert not is_needed(after(Connected(("/job:ps/task:1", 1))).state)
    assert not is_needed(after(*gone(OTHER)).state)
    assert not is_needed(after(Connected((OTHER, 1)), JobOver()).state)


def test_a_task_that_starts_after_a_worker_has_ended_does_not_wait_for_it() -> None:
    assert after(*gone(CHIEF), JobOver(), state=first_state(CLUSTER, PS, {OTHER})).ends
    assert not after(*gone(CHIEF), JobOver()).ends


def test_a_task_expected_again_is_awaited_until_it_connects_or_is_given_up() -> None:
    expected = after(*gone(CHIEF), *gone(OTHER), Expected(frozenset({OTHER})), JobOver())
    assert not expected.ends
    assert after(*gone(OTHER, 2), state=expected.state).ends
    assert after(Expected(frozenset({OTHER}), awaited=False), state=expected.state).ends
    assert not after(*gone(CHIEF), *gone(OTHER), Expected(frozenset({OTHER}), awaited=False)).ends


def test_a_chief_that_had_nothing_to_do_here_is_not_awaited() -> None:
    assert after(*gone(OTHER), JobOver(CHIEF)).ends
    assert not after(JobOver(CHIEF)).ends


def test_a_worker_that_others_have_seen_leave_is_not_awaited() -> None:
    elsewhere = after(*gone(CHIEF), *gone(OTHER)).state
    told = ConnectionReport.decode(connection_report(elsewhere).encode())
    assert left_everywhere([told]) == {CHIEF, OTHER}
    assert after(JobOver(CHIEF, left_everywhere([told]))).ends


def test_a_worker_connected_to_any_server_is_not_lost() -> None:
    left, here = after(*gone(OTHER)).state, after(Connected((OTHER, 2))).state
    assert left_everywhere([connection_report(left), connection_report(here)]) == frozenset()


def test_a_late_worker_is_awaited_by_name() -> None:
    decision = after(*gone(CHIEF), JobOver())
    assert not decision.ends
    assert decision.reason == f"the job is over; waits for {OTHER} to connect and to leave"
    assert after(*gone(OTHER), state=decision.state).ends


def test_a_probe_of_a_worker_is_no_connection() -> None:
    over = after(*gone(CHIEF), JobOver()).state
    incarnation = (OTHER, 1)
    assert not after(Connected(incarnation), Disconnected(incarnation, served=False), state=over).ends


def test_a_worker_that_still_trains_is_awaited_by_name() -> None:
    decision = after(*gone(CHIEF), Connected((OTHER, 7)), FirstFrame((OTHER, 7)), JobOver())
    assert not decision.ends
    assert decision.reason == f"the job is over; waits for {OTHER} to leave"
    assert after(Disconnected((OTHER, 7), served=True), state=decision.state).ends


def test_other_parameter_servers_and_evaluators_are_not_waited_for() -> None:
    assert after(Connected(("/job:ps/task:1", 3)), *gone(CHIEF), *gone(OTHER), JobOver()).ends


def test_an_incarnation_is_lost_with_its_last_channel() -> None:
    incarnation = (OTHER, 5)
    assert after(Connected(incarnation), Connected(incarnation), Disconnected(incarnation, served=True)).lost is None
    assert after(*gone(OTHER, 5)).lost == incarnation
    # Another life of the same task is another one.
    assert after(Connected((OTHER, 6)), *gone(OTHER, 5)).lost == incarnation


def test_a_task_that_joined_leaves_with_its_last_channel_and_its_place_is_free() -> None:
    joined = after(Joined("/job:worker/task:2", "c:1")).state
    assert joined.cluster["/job:worker/task:2"] == "c:1"
    assert place_in(joined, "worker", None) == TaskName("worker", 3)
    left = after(*gone("/job:worker/task:2"), state=joined)
    assert left.reason == "/job:worker/task:2 has left the cluster"
    assert place_in(left.state, "worker", None) == TaskName("worker", 2)


def test_the_next_incarnation_of_a_task_awaits_late_tasks() -> None:
    """A task that was connected, and ends while this task is disconnected, does not return."""
    before = after(Connected((CHIEF, 1)), FirstFrame((CHIEF, 1)), Connected((OTHER, 1))).state
    assert ever_connected(before) == {CHIEF}
    state = first_state(CLUSTER, PS, connected_before=ever_connected(before))
    assert ever_connected(state) == {CHIEF}
    assert not after(JobOver(), state=state).ends
    assert after(*gone(OTHER), JobOver(), state=state).ends
    assert not after(Connected((CHIEF, 1)), *gone(OTHER), JobOver(), state=state).ends


def test_a_probing_connection_does_not_remove_a_task() -> None:
    joined = after(Joined("/job:worker/task:2", "c:1")).state
    incarnation = ("/job:worker/task:2", 1)
    looked = after(Connected(incarnation), Disconnected(incarnation, served=False), state=joined).state
    assert "/job:worker/task:2" in looked.cluster


def test_places_are_limited_to_tasks_that_are_there() -> None:
    with pytest.raises(ResourceExhaustedError, match="no more than 2 tasks of job worker"):
        place_in(first_state(CLUSTER, PS), "worker", 2)
    state = after(*gone(OTHER)).state
    # The task that left keeps its number, as it may return.
    assert place_in(state, "worker", 2) == TaskName("worker", 2)


def test_a_worker_does_not_wait_for_its_own_job() -> None:
    state = first_state(CLUSTER, TaskName("worker", 0))
    assert decide(state, JobOver()).ends
