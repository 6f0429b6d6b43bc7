"""Decisions about jobs, on a clock of the test."""

from __future__ import annotations

import signal
from collections.abc import Iterable

import pytest

from headwater.cluster.names import TaskName
from headwater.cluster.telemetry.progress import Progress
from headwater.platform import policy
from headwater.platform.backends.base import Exited, Lost
from headwater.platform.policy import NotPossible
from headwater.platform.spec import parse_job
from headwater.platform.states import (
    AskRestart,
    AskScale,
    AskStop,
    CouldNotStart,
    Ended,
    Event,
    JobPhase,
    JobState,
    JobTick,
    NotPlaced,
    Placed,
    Progressed,
    Started,
    TaskPhase,
    label,
    task_of,
)

PS = TaskName("ps", 0)
CHIEF = TaskName("chief", 0)
EVALUATOR = TaskName("evaluator", 0)


def worker(index: int) -> TaskName:
    return TaskName("worker", index)


def at_step(task: TaskName, step: int, *, together: bool | None = None) -> Progressed:
    return Progressed(task, Progress(task=str(task), step=step, together=together))


class Job:
    """A job and its clock; tasks start when they are started, and end when they are asked to."""

    def __init__(self, text: str = "", *, now: float = 1000.0) -> None:
        self.now = now
        self.state: JobState = policy.initial_state(parse_job("name: a\nprogram: b\n" + text), now)
        self.notes: list[str] = []

    def happens(self, *events: Event) -> Job:
        for event in events:
            decision = policy.decide(self.state, event, self.now)
            self.state = decision.state
            self.notes += [f"{note.kind}: {note.text}" for note in decision.notes]
        return self

    def after(self, seconds: float) -> Job:
        self.now += seconds
        return self.happens(JobTick())

    def placed(self) -> Job:
        self.happens(Placed(policy.needs_place(self.state, self.now)))
        return self.started()

    def started(self) -> Job:
        return self.happens(*(Started(name) for name in self.in_phase(TaskPhase.STARTING)))

    def ended(self, *names: TaskName, code: int = 0, stopped: bool = False, lines: Iterable[str] = ()) -> Job:
        for name in names:
            reason = f"exit code {code}"
            self.happens(Ended(name, Exited(code=code, reason=reason, stopped=stopped, last_lines=tuple(lines))))
        return self

    def all_ended(self) -> Job:
        """All that were asked to end do."""
        return self.ended(*self.in_phase(TaskPhase.ENDING), code=-signal.SIGTERM, stopped=True)

    def in_phase(self, phase: TaskPhase) -> list[TaskName]:
        return [name for name, task in self.state.tasks.items() if task.phase is phase]

    @property
    def phase(self) -> JobPhase:
        return self.state.phase


def test_ps_and_evaluator_continue_until_the_evaluator_has_finished() -> None:
    job = Job("ps: 1\nworkers: 2\nchief: true\nevaluator: true").placed()
    assert job.phase is JobPhase.RUNNING
    job.ended(worker(0), worker(1))
    assert job.phase is JobPhase.RUNNING
    job.ended(CHIEF).after(599.0)
    assert job.phase is JobPhase.RUNNING
    assert job.notes.count("pending: all workers are done; waits for the evaluator") == 1
    job.ended(EVALUATOR)
    assert job.in_phase(TaskPhase.ENDING) == [PS]
    job.all_ended()
    assert job.phase is JobPhase.SUCCEEDED
    assert job.state.ended_at == job.now
    assert not any(task.placed for task in job.state.tasks.values())


@pytest.mark.parametrize("text", ["{evaluator: 5s}", "{evaluator: 1h, run: 5s}"])
def test_an_evaluator_has_a_deadline_of_its_own(text: str) -> None:
    job = Job(f"ps: 1\nevaluator: true\ndeadlines: {text}").placed().ended(worker(0)).after(4.9)
    assert job.phase is JobPhase.RUNNING
    job.after(0.2)
    assert (job.in_phase(TaskPhase.ENDING), job.state.then) == ([PS, EVALUATOR], JobPhase.SUCCEEDED)
    now = Job("ps: 1\nevaluator: true\ndeadlines: {evaluator: 0s}").placed().ended(worker(0))
    assert now.in_phase(TaskPhase.ENDING) == [PS, EVALUATOR]


@pytest.mark.parametrize("code", [1, -signal.SIGKILL, -signal.SIGTERM])
def test_an_evaluator_that_fails_after_the_work_is_done_fails_no_job(code: int) -> None:
    job = Job("ps: 1\nevaluator: true").placed().ended(worker(0)).ended(EVALUATOR, code=code)
    assert (job.in_phase(TaskPhase.ENDING), job.state.then) == ([PS], JobPhase.SUCCEEDED)
    assert f"lost: evaluator-0 ended after the work was done: exit code {code}" in job.notes


@pytest.mark.parametrize("how", [-signal.SIGKILL, 128 + signal.SIGTERM, None])
def test_a_worker_that_is_killed_when_all_ps_are_done_is_no_failure(how: int | None) -> None:
    lost = Ended(worker(1), Lost(reason="its host is gone") if how is None else Exited(code=how, reason="killed"))
    job = Job("ps: 2\nworkers: 3\nrestart: {limit: 0}").placed().ended(PS, TaskName("ps", 1), worker(0))
    job.happens(lost)
    assert job.phase is JobPhase.RUNNING
    job.ended(worker(2))
    assert job.phase is JobPhase.SUCCEEDED
    early = Job("ps: 2\nworkers: 2\nrestart: {limit: 0}").placed().ended(PS, worker(0)).happens(lost)
    assert early.state.then is not JobPhase.SUCCEEDED


def test_a_worker_that_was_started_again_too_late_is_awaited_no_longer_than_others_end() -> None:
    def late() -> Job:
        job = Job("ps: 1\nworkers: 2\nrestart: {limit: 1}\ndeadlines: {grace: 20s}").placed()
        job.ended(worker(1), code=-signal.SIGKILL).after(1.0).started()
        return job.ended(worker(0), PS)

    hangs = late().after(19.9)
    assert hangs.phase is JobPhase.RUNNING
    hangs.after(0.1)
    assert (hangs.in_phase(TaskPhase.ENDING), hangs.state.then) == ([worker(1)], JobPhase.SUCCEEDED)
    assert late().ended(worker(1), code=1).phase is JobPhase.SUCCEEDED
    waiting = Job("ps: 1\nworkers: 2").placed().ended(worker(1), code=-signal.SIGKILL).ended(worker(0), PS)
    assert waiting.phase is JobPhase.SUCCEEDED


def test_mirrored_workers_are_done_when_the_first_is() -> None:
    together = at_step(worker(1), 3, together=True)
    job = Job("workers: 2").placed().happens(together).ended(worker(0)).ended(worker(1), code=-signal.SIGKILL)
    assert job.phase is JobPhase.SUCCEEDED
    alone = Job("workers: 2").placed().ended(worker(0)).ended(worker(1), code=-signal.SIGKILL)
    assert alone.state.phase is JobPhase.RESTARTING
    chief = Job("workers: 2").placed().happens(together).ended(worker(1)).ended(worker(0), code=-signal.SIGKILL)
    assert chief.state.phase is JobPhase.RESTARTING


@pytest.mark.parametrize(("name", "code"), [(worker(0), -signal.SIGKILL), (worker(1), 1)])
def test_a_task_is_not_started_again_alone_after_its_ps_have_ended(name: TaskName, code: int) -> None:
    job = Job("ps: 1\nworkers: 2").placed().ended(PS).ended(name, code=code).all_ended()
    assert (job.phase, job.state.restarts) == (JobPhase.RESTARTING, 1)


def test_with_ps_a_task_restarts_alone_after_growing_pauses() -> None:
    job = Job("ps: 1\nworkers: 2\nrestart: {limit: 4, backoff: 2s, max_backoff: 5s}").placed()
    for pause in (2.0, 4.0, 5.0, 5.0):
        job.ended(worker(0), code=1)
        assert job.phase is JobPhase.RUNNING
        assert job.state.tasks[worker(1)].phase is TaskPhase.RUNNING
        assert job.state.tasks[worker(0)].start_at == job.now + pause
        job.after(pause - 0.01)
        assert job.state.tasks[worker(0)].phase is TaskPhase.WAITING
        job.after(0.01)
        assert job.state.tasks[worker(0)].phase is TaskPhase.STARTING
        job.started()
    assert job.state.tasks[worker(0)].attempt == 4
    job.ended(worker(0), code=1).all_ended()
    assert job.phase is JobPhase.FAILED


def test_a_job_that_fails_says_its_first_error_and_not_its_last() -> None:
    job = Job("ps: 1\nworkers: 2\nrestart: {limit: 1, backoff: 1s}").placed()
    job.ended(worker(0), code=3, lines=["ValueError: the cause", ""])
    job.ended(worker(1), code=1, lines=["a consequence"])
    job.after(1.0).started().ended(worker(1), code=9, lines=["another"]).all_ended()
    assert job.phase is JobPhase.FAILED
    assert job.state.reason == "worker-0 failed: exit code 3: ValueError: the cause (after 1 restarts)"
    assert job.state.first is not None
    assert job.state.first.code == 3


def test_healthy_task_resets_its_restart_count() -> None:
    job = Job("ps: 1\nrestart: {limit: 1, backoff: 1s, reset_after: 100s}").placed()
    for _ in range(5):
        job.ended(worker(0), code=1).after(1.0).started().after(100.0)
        assert job.phase is JobPhase.RUNNING
        assert job.state.tasks[worker(0)].restarts == 1
    job.ended(worker(0), code=1).after(1.0).started().ended(worker(0), code=2).all_ended()
    assert job.phase is JobPhase.FAILED


def test_without_ps_a_failure_restarts_all_tasks() -> None:
    job = Job("workers: 2\nrestart: {limit: 1, backoff: 3s}").placed()
    job.ended(worker(0), code=1)
    assert (job.phase, job.state.then) == (JobPhase.ENDING, JobPhase.RESTARTING)
    assert job.in_phase(TaskPhase.ENDING) == [worker(1)]
    # What dies because another one died does not count.
    job.ended(worker(1), code=134)
    assert (job.phase, job.state.restarts) == (JobPhase.RESTARTING, 1)
    job.after(3.0)
    assert job.in_phase(TaskPhase.STARTING) == [worker(0), worker(1)]
    assert all(task.placed for task in job.state.tasks.values())
    job.started().ended(worker(1), code=7).all_ended()
    assert job.phase is JobPhase.FAILED
    assert job.state.reason.startswith("worker-0 failed: exit code 1")


def test_never_means_never() -> None:
    job = Job("ps: 1\nrestart: {policy: never}").placed().ended(worker(0), code=1).all_ended()
    assert (job.phase, job.state.reason) == (JobPhase.FAILED, "worker-0 failed: exit code 1")


def test_a_task_without_progress_is_ended_and_restarted() -> None:
    job = Job("ps: 1\nworkers: 2\ndeadlines: {progress: 60s}").placed()
    job.after(50.0).happens(at_step(worker(0), 10), at_step(worker(1), 10))
    job.after(30.0).happens(at_step(worker(0), 20), at_step(worker(1), 10))
    job.after(30.0)
    assert job.in_phase(TaskPhase.ENDING) == [worker(1)]
    assert any("worker-1: no progress for 60 s, since step 10" in note for note in job.notes)
    job.all_ended()
    task = job.state.tasks[worker(1)]
    assert (task.phase, task.restarts) == (TaskPhase.WAITING, 1)
    assert "no progress" in task.reason


def test_a_task_that_never_makes_a_step_is_noticed() -> None:
    job = Job("workers: 1\ndeadlines: {progress: 60s}\nrestart: {limit: 0}").placed().after(60.0).all_ended()
    assert (job.phase, job.state.reason) == (
        JobPhase.FAILED,
        "worker-0 failed: no progress for 60 s, since its start",
    )


@pytest.mark.parametrize("code", [-signal.SIGTERM, 128 + signal.SIGTERM])
def test_preempted_job_returns_to_the_queue(code: int) -> None:
    job = Job("workers: 2").placed()
    job.ended(worker(0), code=code)
    # The others have their grace period to save what they have.
    assert (job.phase, job.in_phase(TaskPhase.ENDING)) == (JobPhase.ENDING, [worker(1)])
    job.all_ended()
    assert (job.phase, job.state.requeues, job.state.restarts) == (JobPhase.QUEUED, 1, 0)
    assert not any(task.placed for task in job.state.tasks.values())
    job.placed()
    assert job.phase is JobPhase.RUNNING
    assert {task.attempt for task in job.state.tasks.values()} == {1}


def test_a_preempted_job_fails_where_it_is_not_to_be_requeued() -> None:
    job = Job("workers: 1\nrequeue: false").placed().ended(worker(0), code=143)
    assert job.phase is JobPhase.FAILED
    assert "preempted" in job.state.reason


def test_with_ps_a_preempted_task_starts_again_alone() -> None:
    job = Job("ps: 1\nworkers: 2").placed().ended(worker(1), code=143)
    assert (job.phase, job.in_phase(TaskPhase.STARTING)) == (JobPhase.RUNNING, [worker(1)])
    assert job.state.tasks[worker(1)].restarts == 0


def test_removal_of_a_host_requeues_its_job() -> None:
    job = Job("ps: 1\nworkers: 1").placed()
    how = Exited(code=0, reason="the node is drained", preempted=True)
    job.happens(Ended(worker(0), how)).all_ended()
    assert (job.phase, job.state.requeues) == (JobPhase.QUEUED, 1)


def test_a_job_waits_for_resources_with_the_reason_until_its_deadline() -> None:
    job = Job("deadlines: {pending: 60s}").happens(NotPlaced("needs 8 GPUs, but there are 2"))
    assert (job.phase, job.state.reason) == (JobPhase.QUEUED, "needs 8 GPUs, but there are 2")
    job.happens(NotPlaced("needs 8 GPUs, but there are 2"))
    assert job.notes == ["pending: needs 8 GPUs, but there are 2"]
    job.after(60.0)
    assert job.phase is JobPhase.FAILED
    assert job.state.reason == "still pending after 60 s: needs 8 GPUs, but there are 2"


def test_a_job_ends_at_its_deadline() -> None:
    job = Job("ps: 1\ndeadlines: {run: 1h}").placed().after(3600.0).all_ended()
    assert (job.phase, job.state.reason) == (JobPhase.FAILED, "ran for longer than its deadline of 3600 s")


def test_a_worker_of_a_lost_host_gets_another_place() -> None:
    job = Job("ps: 1\nworkers: 2\nrestart: {backoff: 1s}").placed()
    job.happens(Ended(worker(1), Lost(reason="host b does not answer")))
    assert job.phase is JobPhase.RUNNING
    assert policy.needs_place(job.state, job.now) == ()
    job.after(1.0)
    assert policy.needs_place(job.state, job.now) == (worker(1),)
    job.placed()
    assert job.state.tasks[worker(1)].attempt == 1


def test_a_lost_ps_takes_the_whole_job_to_another_place() -> None:
    job = Job("ps: 1\nworkers: 2").placed().happens(Ended(PS, Lost(reason="host a does not answer"))).all_ended()
    assert (job.phase, job.state.tasks[PS].restarts) == (JobPhase.QUEUED, 1)


def test_a_worker_that_never_found_room_is_not_awaited_when_the_others_are_done() -> None:
    job = Job("ps: 1\nworkers: 1:3").placed().happens(AskScale("eve", 2)).placed().happens(AskScale("eve", 3))
    job.ended(worker(0)).happens(Ended(worker(1), Lost(reason="host b does not answer"))).after(60.0)
    assert policy.needs_place(job.state, job.now) == (worker(1), worker(2))
    # Nobody else has done what the lost one was about to do.
    assert job.phase is JobPhase.RUNNING
    job.happens(Placed((worker(1),))).started().ended(worker(1))
    assert (job.phase, job.in_phase(TaskPhase.ENDING)) == (JobPhase.ENDING, [PS])
    assert job.all_ended().phase is JobPhase.SUCCEEDED


def test_restarted_tasks_keep_all_places_or_none() -> None:
    both = (worker(0), worker(1))
    job = Job("workers: 2\nrestart: {backoff: 1s}").placed().ended(worker(0), code=1).all_ended()
    assert job.phase is JobPhase.RESTARTING
    job.after(1.0).started().ended(worker(0), code=1).happens(Ended(worker(1), Lost(reason="host b does not answer")))
    assert (job.phase, policy.needs_place(job.after(2.0).state, job.now)) == (JobPhase.QUEUED, both)
    # Likewise a task that already waited for a place.
    job = Job("ps: 1\nworkers: 1:2").placed().happens(AskScale("eve", 2), AskRestart("eve")).all_ended()
    assert (job.phase, policy.needs_place(job.state, job.now)) == (JobPhase.QUEUED, (PS, *both))


def test_a_task_that_cannot_be_started_is_a_failure_of_its_own() -> None:
    job = Job("workers: 1\nrestart: {limit: 1, backoff: 1s}")
    job.happens(Placed((worker(0),)), CouldNotStart(worker(0), "host a does not answer"))
    assert (job.phase, job.state.restarts) == (JobPhase.QUEUED, 1)
    # Perhaps it was started all the same: the next one must not be taken for it.
    assert job.state.tasks[worker(0)].attempt == 1
    job.after(1.0).happens(Placed((worker(0),)), CouldNotStart(worker(0), "again"))
    assert job.phase is JobPhase.FAILED
    assert "host a does not answer" in job.state.reason


def test_stopping() -> None:
    job = Job("ps: 1").placed().happens(AskStop("eve"))
    assert (job.phase, job.in_phase(TaskPhase.ENDING)) == (JobPhase.ENDING, [PS, worker(0)])
    job.ended(worker(0)).all_ended()
    assert (job.phase, job.state.reason) == (JobPhase.STOPPED, "stopped by eve")
    with pytest.raises(NotPossible, match="stopped already"):
        job.happens(AskStop("eve"))


def test_stopping_a_waiting_job() -> None:
    assert Job().happens(AskStop("eve")).phase is JobPhase.STOPPED


def test_requeued_job_saves_and_restarts() -> None:
    job = Job().placed().happens(AskStop("eve", requeue=True)).ended(worker(0), code=0, stopped=True)
    assert (job.phase, job.state.requeues) == (JobPhase.QUEUED, 1)
    with pytest.raises(NotPossible, match="only a running job"):
        job.happens(AskStop("eve", requeue=True))


def test_restart_of_running_and_ended_jobs() -> None:
    job = Job("workers: 2").placed().happens(AskRestart("eve"))
    assert (job.phase, job.state.then) == (JobPhase.ENDING, JobPhase.RESTARTING)
    job.all_ended().after(0.0)
    assert job.in_phase(TaskPhase.STARTING) == [worker(0), worker(1)]
    job.started().ended(worker(0), worker(1))
    assert job.phase is JobPhase.SUCCEEDED
    job.happens(AskRestart("eve"))
    assert (job.phase, job.state.ended_at) == (JobPhase.QUEUED, None)
    assert job.placed().phase is JobPhase.RUNNING


def test_scaling_up_and_down_leaves_the_others_alone() -> None:
    job = Job("ps: 1\nworkers: 1:4").placed().happens(AskScale("eve", 3))
    assert policy.needs_place(job.state, job.now) == (worker(1), worker(2))
    job.placed()
    assert job.in_phase(TaskPhase.RUNNING) == [PS, worker(0), worker(1), worker(2)]
    job.happens(AskScale("eve", 2))
    assert job.in_phase(TaskPhase.ENDING) == [worker(2)]
    job.all_ended()
    assert (job.state.tasks[worker(2)].phase, job.state.tasks[worker(2)].placed) == (TaskPhase.STOPPED, False)
    job.happens(AskScale("eve", 3)).placed()
    assert job.state.tasks[worker(2)].attempt == 1
    job.happens(AskScale("eve", 2)).all_ended()
    job.ended(worker(0), worker(1)).all_ended()
    assert job.phase is JobPhase.SUCCEEDED


def test_scaling_ps_leaves_the_others_alone() -> None:
    third = TaskName("ps", 2)
    job = Job("ps: 2:3\nworkers: 1:4").placed().happens(AskScale("eve", ps=3))
    assert policy.needs_place(job.state, job.now) == (third,)
    job.placed()
    assert job.in_phase(TaskPhase.RUNNING) == [PS, TaskName("ps", 1), worker(0), third]
    job.happens(AskScale("eve", 2))
    assert (job.state.ps, job.state.workers) == (3, 2)
    job.placed().happens(AskScale("eve", ps=2))
    assert job.in_phase(TaskPhase.ENDING) == [third]
    job.all_ended()
    assert job.state.tasks[third].phase is TaskPhase.STOPPED
    assert job.phase is JobPhase.RUNNING
    with pytest.raises(NotPossible, match="ps must be within 2:3"):
        job.happens(AskScale("eve", ps=4))
    with pytest.raises(NotPossible, match="this backend starts all ps"):
        job.happens(AskScale("eve", ps=3, restart_all=True))


def test_scaling_without_ps_restarts_all_tasks() -> None:
    job = Job("workers: 1:4").placed().happens(AskScale("eve", 2)).all_ended()
    assert (job.phase, list(job.state.tasks)) == (JobPhase.QUEUED, [worker(0), worker(1)])


def test_a_returning_task_continues_its_attempt_numbers() -> None:
    job = Job("workers: {count: 1:3, cpus: 1}").happens(Placed((worker(0), worker(1), worker(2)), 3)).started()
    job.happens(AskRestart("eve")).all_ended().after(0.0).started()
    job.happens(AskStop("eve", requeue=True)).all_ended().happens(Placed((worker(0),), 1)).started()
    assert list(job.state.tasks) == [worker(0)]
    job.happens(AskScale("eve", 3)).all_ended()
    assert {name: task.attempt for name, task in job.state.tasks.items()} == {worker(0): 3, worker(1): 2, worker(2): 2}
    # Tasks added and removed while nothing runs skip no attempt numbers either.
    job.happens(AskScale("eve", 2), AskScale("eve", 3))
    assert job.state.tasks[worker(2)].attempt == 2


def test_returning_ps_and_workers_continue_their_attempt_numbers() -> None:
    third = TaskName("ps", 2)
    job = Job("ps: 2:3\nworkers: 1:2").happens(AskScale("eve", 2, ps=3)).placed()
    job.happens(AskStop("eve", requeue=True)).all_ended().happens(AskScale("eve", 1, ps=2)).placed()
    assert third not in job.state.tasks
    job.happens(AskScale("eve", 2, ps=3))
    assert (job.state.tasks[third].attempt, job.state.tasks[worker(1)].attempt) == (1, 1)


def test_restart_does_not_restart_workers_removed_by_scaling() -> None:
    job = Job("ps: 1\nworkers: 1:2").happens(AskScale("eve", 2)).placed().happens(AskScale("eve", 1)).all_ended()
    job.happens(AskRestart("eve")).all_ended().after(0.0).started()
    assert policy.needs_place(job.state, job.now) == ()
    assert job.in_phase(TaskPhase.RUNNING) == [PS, worker(0)]
    assert job.happens(AskScale("eve", 2)).state.tasks[worker(1)].attempt == 1


def test_worker_added_again_before_its_end_restarts() -> None:
    job = Job("ps: 1\nworkers: 1:2").happens(AskScale("eve", 2)).placed()
    job.happens(AskScale("eve", 1), AskScale("eve", 2)).all_ended()
    assert policy.needs_place(job.state, job.now) == (worker(1),)
    assert job.placed().state.tasks[worker(1)].attempt == 1
    assert job.in_phase(TaskPhase.RUNNING) == [PS, worker(0), worker(1)]


@pytest.mark.parametrize("asked", [AskStop("eve", requeue=True), AskRestart("eve")])
def test_an_attempt_that_was_about_to_start_is_not_made_again(asked: Event) -> None:
    # Its process may have run: the next one must have another attempt number.
    job = Job("workers: 2").happens(Placed((worker(0), worker(1)))).happens(Started(worker(0)), asked).all_ended()
    assert {task.attempt for task in job.after(0.0).placed().state.tasks.values()} == {1}


def test_a_task_that_waits_for_a_place_keeps_its_attempt() -> None:
    job = Job("ps: 1\nworkers: 1:2").placed().happens(AskScale("eve", 2))
    job.happens(AskStop("eve", requeue=True)).all_ended()
    assert {name: task.attempt for name, task in job.state.tasks.items()} == {PS: 1, worker(0): 1, worker(1): 0}


@pytest.mark.parametrize("workers", [0, 5])
def test_scaling_out_of_the_range(workers: int) -> None:
    with pytest.raises(NotPossible, match="within 1:4"):
        Job("workers: 1:4").happens(AskScale("eve", workers))


def test_a_range_of_workers_with_requests_uses_the_free_resources() -> None:
    assert policy.worker_choices(Job("workers: 2:4").state) == (2,)
    counted = Job("workers: {count: 2:4, gpus: 1}")
    assert policy.worker_choices(counted.state) == (4, 3, 2)
    trial = policy.with_workers(counted.state, 3)
    counted.happens(Placed(tuple(trial.tasks), 3))
    assert counted.in_phase(TaskPhase.STARTING) == [worker(0), worker(1), worker(2)]
    counted.happens(AskScale("eve", 2))
    assert policy.worker_choices(counted.state) == (2,)


def test_late_events_have_no_effect() -> None:
    job = Job().placed().ended(worker(0))
    assert job.phase is JobPhase.SUCCEEDED
    before = job.state
    job.ended(worker(0), code=1).happens(Started(worker(0)), at_step(worker(0), 5), Ended(PS, Lost(reason="x")))
    assert job.state == before


def test_task_names() -> None:
    assert label(worker(3)) == "worker-3"
    assert task_of("worker-3") == task_of("worker 3") == worker(3)
    with pytest.raises(ValueError, match="looks like worker-0"):
        task_of("worker")


@pytest.mark.parametrize("count", [1, 2])
def test_a_failure_is_reported_once(count: int) -> None:
    job = Job(f"workers: {count}\nrestart: {{limit: 1, backoff: 0}}").placed()
    job.ended(worker(0), code=3, lines=["ValueError: no labels"]).all_ended().after(0.0).placed()
    job.ended(worker(0), code=3).all_ended()
    assert job.phase is JobPhase.FAILED
    assert job.state.reason == "worker-0 failed: exit code 3: ValueError: no labels (after 1 restarts)"
    assert [note for note in job.notes if "ValueError" in note] == [
        "failed: worker-0 failed: exit code 3: ValueError: no labels"
    ]
    assert job.notes[-1] == "failed: the job has failed (after 1 restarts)"


def test_failure_of_the_whole_job_is_reported_with_its_reason() -> None:
    job = Job("deadlines: {run: 60s}").placed().after(61.0).all_ended()
    reason = "ran for longer than its deadline of 60 s"
    assert job.notes[-2:] == [f"ending: ends its tasks: {reason}", f"failed: {reason}"]
