"""Jobs that an engine (Kubernetes, Slurm) runs as a whole: what its reports mean for a job's state.

The engine places, restarts and ends tasks. Here a job is handed over, its reports are followed, and it is taken back
when it is to end; all that concerns waiting, wishes and what comes after the end is `headwater.platform.policy`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from headwater.platform import policy
from headwater.platform.backends.base import (
    BackendError,
    Exited,
    JobBackend,
    JobOrder,
    JobReport,
    Lost,
    Running,
)
from headwater.platform.backends.base import (
    TaskState as Found,
)
from headwater.platform.records import JobRecord
from headwater.platform.spec import Count, JobSpec
from headwater.platform.states import Decision, JobPhase, JobState, Note, TaskPhase, TaskState, Tick

_GONE = ("succeeded", "failed", "lost", "preempted", "cancelled")


def advance(
    record: JobRecord,
    backend: JobBackend,
    *,
    log_dir: Path,
    archive: Path | None,
    now: float,
    store: Callable[[JobRecord, tuple[Note, ...]], None],
) -> JobRecord:
    """One turn of a job that an engine runs.

    Args:
      record: the job as it was.
      backend: the engine.
      log_dir: a folder for what tasks print.
      archive: what is unpacked into the tasks' working folder; None for nothing.
      now: in seconds since 1970.
      store: stores what was decided, before and after it is done.

    Returns:
      The job as it is.
    """
    record = _keep(record, policy.decide(record.state, Tick(), now), store)
    state = record.state
    if record.handle is None:
        due = state.phase is JobPhase.RUNNING or (state.phase is JobPhase.QUEUED and now >= state.not_before)
        return _submit(record, backend, log_dir=log_dir, archive=archive, now=now, store=store) if due else record
    if state.phase.over:
        return record
    if state.phase is JobPhase.ENDING:
        backend.stop_job(record.handle, grace_s=state.spec.deadlines.grace)
    report = backend.poll_job(record.handle)
    if report.phase in _GONE:
        # Deleted before it is stored that it may be submitted anew: a second deletion does no harm.
        decision = reported(state, report, now)
        if not decision.state.phase.over:
            backend.delete_job(record.handle)
            record = replace(record, handle=None)
        return _keep(record, decision, store)
    return _keep(record, reported(state, report, now), store)


def reported(state: JobState, report: JobReport, now: float) -> Decision:
    """What an engine's report at ``now`` leads to."""
    notes: list[Note] = []
    for name, task in state.tasks.items():
        restarts = report.restarts.get(name, task.attempt)
        if restarts > task.attempt:
            notes.append(Note("restarting", f"{task.label} was started again by the engine", task.label))
        moved = _task(replace(task, attempt=restarts), report.tasks.get(name), now)
        if moved.phase is not task.phase and moved.phase is TaskPhase.FAILED:
            notes.append(Note("failed", f"{task.label} failed: {moved.reason}", task.label))
        state = state.with_task(moved)
    if report.phase == "waiting":
        if state.phase is JobPhase.RUNNING:
            # The engine has taken it back by itself, as after a preemption or the failure of a node.
            state = replace(state, phase=JobPhase.QUEUED, queued_at=now, reason=report.reason)
            notes.append(Note("queued", f"the engine has none of its tasks run any more: {report.reason}"))
        elif state.phase is JobPhase.QUEUED and report.reason and report.reason != state.reason:
            state = replace(state, reason=report.reason)
            notes.append(Note("pending", report.reason))
        return Decision(state, tuple(notes))
    if report.phase == "running":
        if state.phase is JobPhase.QUEUED:
            state = replace(
                state, phase=JobPhase.RUNNING, reason="", started_at=state.started_at or now, attempt_at=now
            )
            notes.append(Note("started", "the engine runs it"))
        return Decision(state, tuple(notes))
    tasks = {name: _final(task, report, now) for name, task in state.tasks.items()}
    state = replace(state, tasks=tasks)
    if state.phase is not JobPhase.ENDING:
        decision = _conclusion(state, report, now)
        state = decision.state
        notes += decision.notes
    settled = policy.decide(state, Tick(), now)
    return Decision(settled.state, (*notes, *settled.notes))


def with_count(spec: JobSpec, workers: int) -> JobSpec:
    """``spec`` with one number of workers instead of a range."""
    asked = spec.workers.model_copy(update={"count": Count(least=workers, most=workers)})
    return spec.model_copy(update={"workers": asked})


def _submit(
    record: JobRecord,
    backend: JobBackend,
    *,
    log_dir: Path,
    archive: Path | None,
    now: float,
    store: Callable[[JobRecord, tuple[Note, ...]], None],
) -> JobRecord:
    state = record.state
    log_dir.mkdir(parents=True, exist_ok=True)
    order = JobOrder(
        job_id=record.id,
        attempt=state.attempt,
        spec=with_count(state.spec, state.workers),
        log_dir=log_dir,
        archive=archive,
    )
    try:
        handle = backend.submit_job(order)
    except BackendError as error:
        if error.temporary:
            if state.reason == str(error):
                return record
            waiting = replace(state, reason=str(error))
            return _keep(record, Decision(waiting, (Note("pending", str(error)),)), store)
        failed = replace(state, phase=JobPhase.ENDING, then=JobPhase.FAILED, reason=str(error))
        return _keep(record, policy.decide(failed, Tick(), now), store)
    tasks = {name: replace(task, phase=TaskPhase.STARTING) for name, task in state.tasks.items()}
    state = replace(state, tasks=tasks, reason=f"handed to {backend.name}")
    return _keep(replace(record, handle=handle), Decision(state, (Note("placed", state.reason),)), store)


def _keep(record: JobRecord, decision: Decision, store: Callable[[JobRecord, tuple[Note, ...]], None]) -> JobRecord:
    moved = record.with_state(decision.state)
    store(moved, decision.notes)
    return moved


def _conclusion(state: JobState, report: JobReport, now: float) -> Decision:
    """What follows on the end that the engine reports."""

    def ends(then: JobPhase, reason: str, *notes: Note) -> Decision:
        return Decision(replace(state, phase=JobPhase.ENDING, then=then, reason=reason), notes)

    rules = state.spec.restart
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
            return ends(JobPhase.QUEUED, f"{report.reason}; the job goes back to the queue", note)
        case "lost" if rules.policy != "never" and state.restarts < rules.limit:
            pause = policy.pause(rules, state.restarts)
            again = f"restart {state.restarts + 1} of {rules.limit}, after {pause:g} s"
            state = replace(state, restarts=state.restarts + 1, not_before=now + pause)
            return ends(JobPhase.QUEUED, f"{report.reason}; {again}", Note("lost", report.reason))
        case _:
            return ends(JobPhase.FAILED, report.reason or "the engine reports a failure")


def _task(task: TaskState, found: Found | None, now: float) -> TaskState:
    ending = task.phase is TaskPhase.ENDING
    match found:
        case Running():
            phase = TaskPhase.STARTING if found.waiting else TaskPhase.RUNNING
            progress = found.progress
            task = replace(
                task,
                phase=TaskPhase.ENDING if ending else phase,
                reason=found.waiting,
                started_at=task.started_at or found.started_at or now,
            )
            if progress is None:
                return task
            return replace(
                task,
                step=task.step if progress.step is None else progress.step,
                steps_per_s=progress.steps_per_s,
                loss=task.loss if progress.loss is None else progress.loss,
            )
        case Exited():
            stopped = TaskPhase.STOPPED if found.stopped or ending else TaskPhase.FAILED
            phase = TaskPhase.SUCCEEDED if found.code == 0 else stopped
            return replace(
                task, phase=phase, code=found.code, reason=found.reason, ended_at=found.at or now, steps_per_s=None
            )
        case Lost():
            return replace(task, phase=TaskPhase.FAILED, reason=found.reason, ended_at=now, steps_per_s=None)
        case None:
            return task


def _final(task: TaskState, report: JobReport, now: float) -> TaskState:
    """A task of a job of which the engine runs nothing any more."""
    if task.phase.alive:
        return replace(task, phase=TaskPhase.STOPPED, reason=report.reason, ended_at=now, steps_per_s=None)
    return task
