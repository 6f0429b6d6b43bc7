"""Jobs that an engine (Kubernetes, Slurm) runs as a whole: the effect of its reports on a job's state.

The engine places, restarts and ends tasks. This module submits a job, follows the engine's reports, and deletes the
engine's objects when the job must end; queueing, user requests and cleanup after the end are decided by
`headwater.platform.policy`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from headwater.cluster.names import TaskName
from headwater.cluster.telemetry.task_activity import TaskActivity
from headwater.platform import policy
from headwater.platform.backends.base import BackendError, Exited, JobBackend, JobOrder, JobReport, Lost, Running
from headwater.platform.backends.base import TaskState as Found
from headwater.platform.completion import done_at, validates, waits_for_evaluator
from headwater.platform.live import LiveJobs
from headwater.platform.records import JobRecord
from headwater.platform.spec import Count, JobSpec
from headwater.platform.states import Fault, JobDecision, JobPhase, JobState, JobTick, Note, TaskPhase, TaskState

# Reported start times that differ by at most this belong to the same start, in seconds.
_SAME_START_S = 1.0
_ENDED_PHASES = ("succeeded", "failed", "lost", "preempted", "crowded", "cancelled")


class EngineJobs:
    """The jobs of one engine.

    Args:
      jobs: all unfinished jobs of the server.
      backend: the engine.
      log_dir: returns the folder of a job's logs.
      archive: returns the archive that is unpacked as the tasks' working folder; None if the job has none.
      secrets: returns the values of the secrets that a job names.
    """

    def __init__(
        self,
        jobs: LiveJobs,
        backend: JobBackend,
        *,
        log_dir: Callable[[str], Path],
        archive: Callable[[JobRecord], Path | None],
        secrets: Callable[[JobRecord], Mapping[str, str]],
    ) -> None:
        self._jobs = jobs
        self._backend = backend
        self._log_dir = log_dir
        self._archive = archive
        self._secrets = secrets

    def advance(self, record: JobRecord) -> None:
        """Processes a job once: queries the engine, applies its report, and performs the actions that are due.

        Raises:
          BackendError: the engine could not be reached, or refused a request.
          JobIsGone: the job has been deleted.
        """
        record = self._jobs.apply_step(record, handle_tick)
        state = record.state
        if record.handle is not None and record.handle_attempt != state.attempt:
            # The handle is of an earlier attempt, which must be removed before the next one starts.
            record = self._delete_from_engine(record)
        if record.handle is None:
            due = state.phase is JobPhase.RUNNING or (
                state.phase is JobPhase.QUEUED and self._jobs.clock() >= state.not_before
            )
            if due:
                self._submit(record)
            elif state.phase.over:
                # Remove objects of a submission that failed or was stopped halfway.
                self._backend.remove(record.id, state.spec)
                self._jobs.drop_if_over(self._jobs.decide(record, alter=lambda now: replace(now, holds=False)))
            return
        if state.phase.over:
            self._jobs.drop_if_over(record)
            return
        if state.phase is JobPhase.ENDING:
            self._backend.stop_job(record.handle, grace_s=state.spec.deadlines.grace)
        report = self._backend.poll_job(record.handle)
        # Decide first only to know whether the job continues. If so, delete the engine's objects before the decision is
        # stored, which allows another submission. After a crash in between, the deletion is repeated without harm.
        again = report.phase in _ENDED_PHASES and not handle_report(state, report, self._jobs.clock()).state.phase.over
        if again:
            self._backend.delete_job(record.handle)
        record = self._jobs.apply_step(
            record,
            lambda now, at: handle_report(now, report, at),
            alter=lambda now: replace(now, handle=None if again else now.handle, activities=_activities(report)),
        )
        self._jobs.drop_if_over(record)

    def _delete_from_engine(self, record: JobRecord) -> JobRecord:
        assert record.handle is not None
        self._backend.delete_job(record.handle)
        return self._jobs.decide(record, alter=lambda now: replace(now, handle=None))

    def _submit(self, record: JobRecord) -> None:
        # From here on, objects may exist, even if the server is killed before it stores the handle.
        self._jobs.mark_held(record)
        state = record.state
        log_dir = self._log_dir(record.id)
        log_dir.mkdir(parents=True, exist_ok=True)
        try:
            order = JobOrder(
                job_id=record.id,
                attempt=state.attempt,
                spec=with_count(state.spec, state.workers),
                log_dir=log_dir,
                archive=self._archive(record),
                secrets=self._secrets(record),
                least=min(state.spec.workers.count.least, state.workers),
            )
            handle = self._backend.submit_job(order)
        except BackendError as error:
            refusal = error
            self._jobs.apply_step(record, lambda now, at: _after_refusal(now, refusal, at))
            return
        taken = {"handle": handle, "handle_attempt": state.attempt, "holds": False}
        self._jobs.apply_step(
            record,
            lambda now, _: _record_submission(now, state.attempt, self._backend.name),
            # If the job was stopped in the meantime, the next call of `advance` removes its objects.
            alter=lambda now: now if now.state.phase.over else replace(now, **taken),
        )


def handle_tick(state: JobState, now: float) -> JobDecision:
    """Checks pauses and deadlines at ``now``; restarts a running job if a task has made no progress for too long."""
    stalled = _restart_stalled_job(state, now)
    decision = policy.decide(stalled.state, JobTick(), now)
    return JobDecision(decision.state, stalled.notes + decision.notes)


def _restart_stalled_job(state: JobState, now: float) -> JobDecision:
    if state.phase is not JobPhase.RUNNING:
        return JobDecision(state)
    for task in state.tasks.values():
        verdict = policy.stall(state, task, now)
        if verdict is not None:
            note = Note("stalled", f"{task.label}: {verdict}", task.label)
            decision = _resubmit(state, f"{task.label}: {verdict}", now)
            return JobDecision(decision.state, (note, *decision.notes))
    return JobDecision(state)


def handle_report(state: JobState, report: JobReport, now: float) -> JobDecision:
    """Returns the decision for an engine's report at ``now``: first about each task, then about the job."""
    notes: list[Note] = []
    faults: list[Fault] = []
    for name, task in state.tasks.items():
        if state.first is not None and state.first.task == task.label and _is_healthy(state, task, now):
            state = replace(state, first=None)
        # The engine's count decreases when it forgets deleted tasks, so only an increase counts.
        further = max(0, report.restarts.get(name, 0) - task.restarts)
        if further:
            notes.append(Note("restarting", f"{task.label} was restarted by the engine", task.label))
            attempt, restarts = task.attempt + further, task.restarts + further
            task = replace(task, attempt=attempt, restarts=restarts, started_at=None, progress_at=None)
        status = report.tasks.get(name)
        is_running = state.phase is JobPhase.RUNNING and report.phase == "running"
        if is_running and isinstance(status, Exited) and status.preempted:
            continue  # not a failure: a later report will show whether the engine replaces the task
        if is_running and _replaced(task, status):
            where = f" from {task.host}" if task.host else ""
            notes.append(Note("preempted", f"{task.label} was preempted{where} and will restart", task.label))
            # A restart that the engine has counted is a new attempt already.
            task = replace(task, attempt=task.attempt + (not further), started_at=None, progress_at=None)
        moved = _task_after(task, status, now)
        state = state.with_task(moved)
        if moved.phase is not task.phase and isinstance(status, Exited) and moved.phase is TaskPhase.FAILED:
            faults.append(policy.fault_of(moved, status, status.reason, now))
            notes.append(Note("failed", str(faults[-1]), task.label))
        elif moved.phase is not task.phase and moved.phase is TaskPhase.FAILED:
            notes.append(Note("failed", f"{task.label} failed: {moved.reason}", task.label))
    if faults and state.first is None:
        state = replace(state, first=min(faults, key=lambda fault: fault.at))
    if report.phase == "waiting":
        if state.phase is JobPhase.RUNNING:
            # The engine requeued the job by itself, for example after a preemption or a node failure.
            state = replace(state, phase=JobPhase.QUEUED, queued_at=now, reason=report.reason)
            notes.append(Note("preempted", f"the engine has requeued the job: {report.reason}"))
        elif state.phase is JobPhase.QUEUED and report.reason and report.reason != state.reason:
            state = replace(state, reason=report.reason)
            notes.append(Note("pending", report.reason))
        return JobDecision(state, tuple(notes))
    if report.phase == "running":
        if state.phase is JobPhase.QUEUED:
            state = replace(
                state, phase=JobPhase.RUNNING, reason="", started_at=state.started_at or now, attempt_at=now
            )
            notes.append(Note("started", "the engine has started the job"))
        return JobDecision(state, tuple(notes))
    done = done_at(state, now) if report.phase == "succeeded" and state.phase is JobPhase.RUNNING else None
    if done is not None and validates(state, done, now):
        state, waits = waits_for_evaluator(state)
        return JobDecision(state, (*notes, *waits))
    tasks = {name: _ended(task, report, now) for name, task in state.tasks.items()}
    state = replace(state, tasks=tasks)
    if state.phase is not JobPhase.ENDING:
        decision = _final_decision(state, report, now)
        state = decision.state
        notes += decision.notes
    settled = policy.decide(state, JobTick(), now)
    return JobDecision(settled.state, (*notes, *settled.notes))


def _is_healthy(state: JobState, task: TaskState, now: float) -> bool:
    """Returns whether a task has run long enough for its earlier failures to be forgotten."""
    if task.phase is not TaskPhase.RUNNING or task.started_at is None:
        return False
    return now - task.started_at >= state.spec.restart.reset_after


def with_count(spec: JobSpec, workers: int) -> JobSpec:
    """Returns ``spec`` with a fixed number of workers instead of a range."""
    asked = spec.workers.model_copy(update={"count": Count(least=workers, most=workers)})
    return spec.model_copy(update={"workers": asked})


def _record_submission(state: JobState, attempt: int, engine: str) -> JobDecision:
    if state.attempt != attempt or state.phase not in (JobPhase.QUEUED, JobPhase.RUNNING):
        return JobDecision(state)
    tasks = {name: replace(task, phase=TaskPhase.STARTING, restarts=0) for name, task in state.tasks.items()}
    state = replace(state, tasks=tasks, reason=f"handed to {engine}")
    return JobDecision(state, (Note("placed", state.reason),))


def _after_refusal(state: JobState, error: BackendError, now: float) -> JobDecision:
    if state.phase not in (JobPhase.QUEUED, JobPhase.RUNNING):
        return JobDecision(state)
    if error.temporary:
        if state.reason == str(error):
            return JobDecision(state)
        return JobDecision(replace(state, reason=str(error)), (Note("pending", str(error)),))
    failed = replace(state, phase=JobPhase.ENDING, then=JobPhase.FAILED, reason=str(error))
    return policy.decide(failed, JobTick(), now)


def _resubmit(state: JobState, reason: str, now: float, *notes: Note) -> JobDecision:
    """Ends all tasks, and resubmits the job if its rules allow another restart; otherwise it fails."""
    rules = state.spec.restart
    if state.attempt_at is not None and now - state.attempt_at >= rules.reset_after:
        state = replace(state, restarts=0, first=None)
    if rules.policy == "never" or state.restarts >= rules.limit:
        times = f" (after {state.restarts} restarts)" if state.restarts else ""
        return JobDecision(
            replace(state, phase=JobPhase.ENDING, then=JobPhase.FAILED, reason=f"{reason}{times}"), notes
        )
    pause = policy.pause(rules, state.restarts)
    again = f"{reason}; restart {state.restarts + 1} of {rules.limit}, after {pause:g} s"
    state = replace(state, restarts=state.restarts + 1, not_before=now + pause)
    return JobDecision(replace(state, phase=JobPhase.ENDING, then=JobPhase.QUEUED, reason=again), notes)


def _activities(report: JobReport) -> dict[TaskName, TaskActivity]:
    return {
        name: status.progress.activity
        for name, status in report.tasks.items()
        if isinstance(status, Running) and status.progress is not None and status.progress.activity is not None
    }


def _final_decision(state: JobState, report: JobReport, now: float) -> JobDecision:
    """Returns the decision for a final report of the engine."""

    def ends(then: JobPhase, reason: str, *notes: Note) -> JobDecision:
        return JobDecision(replace(state, phase=JobPhase.ENDING, then=then, reason=reason), notes)

    match report.phase:
        case "succeeded":
            return ends(JobPhase.SUCCEEDED, "all workers are done")
        case "cancelled":
            return ends(JobPhase.STOPPED, report.reason)
        case "preempted":
            note = Note("preempted", report.reason)
            if not state.spec.requeue:
                return ends(JobPhase.FAILED, report.reason, note)
            state = replace(state, requeues=state.requeues + 1)
            return ends(JobPhase.QUEUED, f"{report.reason}; the job returns to the queue", note)
        case "crowded":
            state = replace(state, not_before=now + report.pause_s)
            again = f"{report.reason}; its resources are released, and it is retried after {report.pause_s:.0f} s"
            return ends(JobPhase.QUEUED, again, Note("pending", again))
        case "lost":
            return _resubmit(state, report.reason, now, Note("lost", report.reason))
        case "failed" if report.again:
            return _resubmit(state, report.reason, now)
        case _:
            return ends(JobPhase.FAILED, _cause(state, report.reason) or "the engine reports a failure")


def _cause(state: JobState, reason: str) -> str:
    """Returns ``reason``, with the last output lines of the failed task if ``reason`` is the reason of the first
    failure."""
    first = state.first
    if first is None or first.reason not in reason:
        return reason
    return f"{first}{reason.partition(first.reason)[2]}"


def _task_after(task: TaskState, status: Found | None, now: float) -> TaskState:
    """Returns a task's state after a report; None: the report does not mention the task."""
    ending = task.phase is TaskPhase.ENDING
    match status:
        case Running():
            phase = TaskPhase.STARTING if status.waiting else TaskPhase.RUNNING
            began = None if status.waiting else task.started_at or status.started_at or now
            task = replace(
                task,
                phase=TaskPhase.ENDING if ending else phase,
                reason=status.waiting,
                started_at=began,
                host=status.host or task.host,
                progress_at=task.progress_at or (None if status.waiting else now),
            )
            return task if status.progress is None else task.after(status.progress, now)
        case Exited():
            asked = status.stopped or status.preempted or ending
            stopped = TaskPhase.STOPPED if asked else TaskPhase.FAILED
            phase = TaskPhase.SUCCEEDED if status.code == 0 else stopped
            return replace(
                task if status.progress is None else task.after(status.progress, now),
                phase=phase,
                code=status.code,
                reason=status.reason,
                ended_at=task.ended_at or status.at or now,
                steps_per_s=None,
                host=status.host or task.host,
            )
        case Lost():
            return replace(task, phase=TaskPhase.FAILED, reason=status.reason, ended_at=now, steps_per_s=None)
        case None:
            return task


def _replaced(task: TaskState, status: Found | None) -> bool:
    """Returns whether the engine replaces the process of a running task that has not failed.

    The engine then reports the task as waiting, or with a later start.
    """
    if task.phase is not TaskPhase.RUNNING or task.started_at is None:
        return False
    return isinstance(status, Running) and (bool(status.waiting) or status.started_at > task.started_at + _SAME_START_S)


def _ended(task: TaskState, report: JobReport, now: float) -> TaskState:
    """Returns the final state of a task after the engine has ended the job: a task that was alive is stopped."""
    if task.phase.alive:
        return replace(task, phase=TaskPhase.STOPPED, reason=report.reason, ended_at=now, steps_per_s=None)
    return task
