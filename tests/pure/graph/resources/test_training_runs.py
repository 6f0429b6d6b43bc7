"""The sessions that take part in synchronous training after a restart by the chief."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headwater.graph.resources.training_runs import (
    Members,
    Start,
    TrainingRuns,
    Verdict,
    continue_run,
    has_forgotten,
    is_void,
    start_run,
    verdict_on,
    void_text,
    with_session,
    without_session,
)


def test_replica_connected_before_the_first_start_takes_part() -> None:
    runs = start_run(with_session(TrainingRuns(), "worker"), "chief", 60, 0)
    assert not is_void(runs, "worker")
    assert verdict_on(runs, "worker", 60, 60) is Verdict.TAKE
    assert verdict_on(runs, "worker", 59, 60) is Verdict.STALE


def test_replica_that_waits_for_a_later_step_is_void() -> None:
    runs = with_session(with_session(TrainingRuns(), "worker"), "other")
    runs = start_run(runs, "chief", 60, 0, stranded=["worker"])
    assert is_void(runs, "worker")
    assert not is_void(runs, "other")


def test_restarted_task_voids_replicas_that_gave_elsewhere() -> None:
    runs = start_run(with_session(TrainingRuns(), "worker"), "chief", 60, elsewhere=2)
    assert is_void(runs, "worker")  # what it gave to another task, which has seen two starts, is forgotten there
    assert not is_void(runs, "chief")


def test_each_start_has_its_own_identifier() -> None:
    runs = start_run(with_session(TrainingRuns(), "worker"), "chief", 0, 0)
    runs = start_run(runs, "chief's next session", 60, 0)
    assert is_void(runs, "worker")
    assert is_void(runs, "chief")
    assert not is_void(runs, "chief's next session")
    # The very step that is asked for, but made with variables that are gone.
    assert verdict_on(runs, "worker", 60, 60) is Verdict.VOID
    assert "at step 60" in void_text(runs)
    assert verdict_on(with_session(runs, "worker"), "worker", 60, 60) is Verdict.TAKE


def test_a_session_that_never_joined_is_judged_by_its_step() -> None:
    runs = start_run(start_run(TrainingRuns(), "chief", 100, 0), "chief", 60, 0)
    assert verdict_on(runs, "another", 100, 60) is Verdict.VOID
    assert verdict_on(runs, "another", 60, 60) is Verdict.TAKE


def test_all_workers_resume_at_the_step_of_the_training() -> None:
    runs = continue_run(with_session(start_run(TrainingRuns(), "chief", 100, 0), "worker"), 60)
    assert not is_void(runs, "worker")
    assert verdict_on(runs, "worker", 100, 60) is Verdict.VOID


def test_a_session_that_is_over_is_forgotten() -> None:
    runs = without_session(start_run(with_session(TrainingRuns(), "worker"), "chief", 0, 0), "worker")
    assert set(runs.sessions) == {"chief"}


def test_gradients_count_in_the_start_that_they_are_of() -> None:
    assert Start().counts(0)
    assert not Start().counts(7)  # the task was restarted, and does not know of it yet
    assert Start(7, first=True).counts(0)  # it was on its way as the training began
    assert not Start(7).counts(0)
    assert Start(7).counts(7)
    assert not Start(8).counts(7)


def test_gradient_forgotten_by_a_task_does_not_count() -> None:
    here = Members().with_session("worker").with_gradient("worker")
    assert not has_forgotten([here, Members().with_session("worker")])  # it has joined, and is about to give
    assert has_forgotten([here, Members()])
    assert has_forgotten([here, Members().with_session("other")])
    assert not has_forgotten([Members().with_session("worker"), Members()])  # it is about to join
    assert not has_forgotten([])


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 1), st.booleans())), st.integers(0, 1))
def test_forgotten_gradients_are_detected_at_once(events: list[tuple[str, int, bool]], anew: int) -> None:
    tasks = [Members(), Members()]
    gave: list[set[str]] = [set(), set()]

    for session, task, gives in events:
        if not gives:  # who joins, joins everywhere
            tasks = [one.with_session(session) for one in tasks]
        elif session in tasks[task].known:
            tasks[task] = tasks[task].with_gradient(session)
            gave[task].add(session)
    assert not has_forgotten(Members.decode(one.encode()) for one in tasks)
    tasks[anew] = Members()
    assert has_forgotten(tasks) == bool(gave[1 - anew])


_EVENTS = st.one_of(
    st.tuples(st.just("join"), st.sampled_from("abc"), st.just(0)),
    st.tuples(st.just("start"), st.sampled_from("abc"), st.integers(0, 3)),
    st.tuples(st.just("leave"), st.sampled_from("abc"), st.just(0)),
)


@given(st.lists(_EVENTS))
def test_gradients_of_an_earlier_start_do_not_count(events: list[tuple[str, str, int]]) -> None:
    runs = TrainingRuns()
    in_this_life: set[str] = set()
    ever: set[str] = set()
    for kind, session, step in events:
        match kind:
            case "join":
                runs = with_session(runs, session)
                in_this_life.add(session)
                ever.add(session)
            case "start":
                first = runs.run_number == 0
                runs = start_run(runs, session, step, 0)
                in_this_life = (in_this_life if first else set()) | {session}
                ever.add(session)
            case _:
                runs = without_session(runs, session)
                in_this_life.discard(session)
                ever.discard(session)
        assert {its for its in ever if not is_void(runs, its)} == in_this_life
