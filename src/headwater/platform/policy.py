"""The policy of a job: a pure function of its state, an event, and the time.

::

    QUEUED ------ places found ------------------> RUNNING
       |--------- pending for too long ----------> FAILED
    RUNNING ----- workers and chief are done ----> RUNNING while an evaluator still runs, up to its deadline
       |--------- the evaluator is done, too ----> ENDING, then SUCCEEDED; remaining tasks are asked to end
       |--------- a task failed, task scope -----> RUNNING; the task is restarted after a pause
       |--------- a task failed, job scope ------> ENDING, then RESTARTING, then RUNNING
       |--------- failed once too often ---------> ENDING, then FAILED, with the first error
       |--------- preempted, task scope ---------> RUNNING; the task is restarted, see below
       |--------- preempted, job scope ----------> ENDING, then QUEUED
       |--------- preempted, not ``requeue`` ----> ENDING, then FAILED
       |--------- the run deadline has passed ---> ENDING, then FAILED
       `--------- asked to stop -----------------> ENDING, then STOPPED
    ENDING ------ no task is left ---------------> the phase in `JobState.then`

If a preempted task has also lost its host, it restarts alone only if it is a worker or the evaluator of an ``elastic``
job. Otherwise the whole job returns to the queue.

`decide` performs no I/O. The state that it returns determines all actions: tasks that are `STARTING` must be started,
tasks that are `ENDING` must be asked to end, a job that is over must have no places. So a manager that reconciles the
state can be killed at any moment and resume from the stored state alone.

Before restart n (from 0), the task or job pauses for ``backoff * 2**n``, at most ``max_backoff``. The count n returns
to 0 once the task or job has run for ``reset_after``.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import replace

from headwater.cluster.names import TaskName
from headwater.platform.backends.base import Exited, Lost
from headwater.platform.completion import (
    WORKING,
    done_at,
    have_servers_ended,
    is_done_without,
    is_killed,
    validates,
    waits_for_evaluator,
)
from headwater.platform.spec import ROLES, JobSpec, RestartSpec
from headwater.platform.states import (
    AskRestart,
    AskScale,
    AskStop,
    CouldNotStart,
    Ended,
    Event,
    Fault,
    JobDecision,
    JobPhase,
    JobState,
    JobTick,
    Note,
    NotPlaced,
    Placed,
    Progressed,
    Started,
    TaskPhase,
    TaskState,
)

# The exit code of a task with a missing or broken program: restarting it would not help.
_CANNOT_RUN = 127
# Return codes of a task that SIGTERM has ended. A task counts as preempted if the platform did not send the signal.
_TERMINATED = (-signal.SIGTERM, 128 + signal.SIGTERM)


class NotPossible(ValueError):
    """The request is not possible in the job's current state; the message has the reason."""


def initial_state(spec: JobSpec, now: float, *, workers: int | None = None) -> JobState:
    """Returns the state of a job submitted at ``now``."""
    wanted = spec.workers.count.least if workers is None else workers
    return JobState(
        spec=spec,
        workers=wanted,
        fixed=workers is not None,
        queued_at=now,
        tasks=_tasks(spec, wanted),
        reason="just submitted",
    )


def worker_choices(state: JobState) -> tuple[int, ...]:
    """Returns the numbers of workers with which a queued job may start, the best first.

    If the job specifies a range of workers, and they request CPUs, memory or GPUs, the choices are all numbers of the
    range, the greatest first. Otherwise, or if a user has chosen a number, there is only one choice.
    """
    asked = state.spec.workers
    if state.fixed or not (asked.cpus or asked.memory or asked.gpus):
        return (state.workers,)
    return tuple(range(asked.count.most, asked.count.least - 1, -1))


def with_workers(state: JobState, workers: int) -> JobState:
    """Returns the state of a queued job with its number of workers changed to ``workers``."""
    return _with_wanted_tasks(replace(state, workers=workers))


def needs_place(state: JobState, now: float) -> tuple[TaskName, ...]:
    """Returns the tasks that must be placed now."""
    if now < state.not_before or state.phase not in (JobPhase.QUEUED, JobPhase.RUNNING):
        return ()
    return tuple(
        name
        for name, task in state.tasks.items()
        if not task.placed and task.phase is TaskPhase.WAITING and now >= task.start_at
    )


def decide(state: JobState, event: Event, now: float) -> JobDecision:
    """Returns the decision for ``event`` at ``now``.

    Args:
      state: the state before the event.
      now: in seconds since 1970.

    Raises:
      NotPossible: the event is a request that the state does not allow.
    """
    decision = _HANDLERS[type(event)](state, event, now)
    settled = _apply_consequences(decision.state, now)
    return JobDecision(settled.state, decision.notes + settled.notes)


def pause(rules: RestartSpec, restarts: int) -> float:
    """Returns the seconds until the next start, after ``restarts`` restarts (without those after preemptions)."""
    return min(rules.max_backoff, rules.backoff * 2.0 ** min(restarts, 60))


def _handle_placement(state: JobState, event: Placed, now: float) -> JobDecision:
    notes: tuple[Note, ...] = ()
    if state.phase is JobPhase.QUEUED:
        if event.workers is not None:
            state = with_workers(state, event.workers)
        state = replace(
            state, phase=JobPhase.RUNNING, reason="", started_at=state.started_at or now, attempt_at=now, then=None
        )
        notes = (Note("placed", f"starts with {_describe_tasks(state)}"),)
    for name in event.tasks:
        task = state.tasks.get(name)
        if task is not None:
            state = state.with_task(replace(task, placed=True))
    return JobDecision(replace(state, reason="") if state.phase is JobPhase.RUNNING else state, notes)


def _handle_failed_placement(state: JobState, event: NotPlaced, now: float) -> JobDecision:
    if state.phase is JobPhase.QUEUED and not event.temporary:
        return _end_tasks(state, JobPhase.FAILED, f"no host of this server is large enough: {event.reason}")
    if state.reason == event.reason or state.phase not in (JobPhase.QUEUED, JobPhase.RUNNING):
        return JobDecision(state)
    return JobDecision(replace(state, reason=event.reason), (Note("pending", event.reason),))


def _handle_start(state: JobState, event: Started, now: float) -> JobDecision:
    task = state.tasks.get(event.task)
    if task is None or task.phase is not TaskPhase.STARTING:
        return JobDecision(state)
    again = f", attempt {task.attempt + 1}" if task.attempt else ""
    task = replace(task, phase=TaskPhase.RUNNING, started_at=now, ended_at=None, code=None, reason="", progress_at=now)
    return JobDecision(state.with_task(task), (Note("started", f"{task.label} runs{again}", task.label),))


def _handle_progress(state: JobState, event: Progressed, now: float) -> JobDecision:
    task = state.tasks.get(event.task)
    if task is None or not task.phase.alive:
        return JobDecision(state)
    return JobDecision(state.with_task(task.after(event.progress, now)))


def _could_not_start(state: JobState, event: CouldNotStart, now: float) -> JobDecision:
    task = state.tasks.get(event.task)
    if task is None or not task.phase.alive:
        return JobDecision(state)
    return _handle_loss(state, task, f"could not be started: {event.reason}", now)


def _handle_end(state: JobState, event: Ended, now: float) -> JobDecision:
    task = state.tasks.get(event.task)
    if task is None or not task.phase.alive:
        return JobDecision(state)
    if isinstance(event.how, Lost):
        return _handle_loss(state, task, event.how.reason, now)
    # The order of the following checks matters: the exit code is considered last. An exit code says little about a task
    # that was asked to end, that this server has killed (``verdict`` has the reason), or whose job has no work left.
    how = event.how
    # A task that ends before its start was confirmed may have run, so this attempt counts as started.
    began = now if task.started_at is None else task.started_at
    task = replace(task, code=how.code, started_at=began, ended_at=now, reason=how.reason, steps_per_s=None)
    if state.phase is not JobPhase.RUNNING:
        return JobDecision(state.with_task(replace(task, phase=_final_phase(task, how), verdict="")))
    if how.code and is_done_without(state, task, now, killed=not task.verdict and is_killed(how)):
        return _handle_end_after_work(state, task)
    if task.verdict:
        return _handle_failure(state, replace(task, verdict=""), fault_of(task, how, task.verdict, now), now)
    # Scaling down has removed the task; scaling up may have added it again meanwhile.
    if task.phase is TaskPhase.ENDING:
        away = replace(task, phase=TaskPhase.STOPPED, placed=False)
        return JobDecision(state.with_task(_next_attempt(away, now, "") if task.name in _wanted_tasks(state) else away))
    if how.preempted or (how.code in _TERMINATED and not how.stopped):
        return _handle_preemption(state, task, how, now)
    if how.code == 0:
        note = Note("succeeded", f"{task.label} is done", task.label)
        return JobDecision(state.with_task(replace(task, phase=TaskPhase.SUCCEEDED)), (note,))
    return _handle_failure(state, task, fault_of(task, how, how.reason, now), now)


def _handle_end_after_work(state: JobState, task: TaskState) -> JobDecision:
    phase = TaskPhase.STOPPED if task.name.job in WORKING else TaskPhase.FAILED
    text = f"{task.label} ended after the work was done: {task.reason}"
    return JobDecision(
        state.with_task(replace(task, phase=phase, reason=text, verdict="")), (Note("lost", text, task.label),)
    )


def _scope(state: JobState) -> str:
    """Returns the scope of a restart: the job's setting, but always ``job`` once its ``ps`` have ended, because a task
    that is restarted alone could not train without them."""
    return "job" if have_servers_ended(state) else state.spec.restart_scope


def _final_phase(task: TaskState, how: Exited) -> TaskPhase:
    """Returns the final phase of a task that ends while its job is ending."""
    if how.code == 0:
        return TaskPhase.SUCCEEDED
    return TaskPhase.STOPPED if how.stopped or task.phase is TaskPhase.ENDING else TaskPhase.FAILED


def _handle_failure(state: JobState, task: TaskState, fault: Fault, now: float) -> JobDecision:
    """Handles a failure that counts against the restart limit: restarts the task or the job by the job's rules, or ends
    the job."""
    rules = state.spec.restart
    task = replace(task, phase=TaskPhase.FAILED, reason=fault.reason, ended_at=now)
    scope = _scope(state)
    healthy_since = task.started_at if scope == "task" else state.attempt_at
    if healthy_since is not None and now - healthy_since >= rules.reset_after:
        task = replace(task, restarts=0, first=None)
        state = replace(state, restarts=0, first=None)
    # The first of a series of failures has the cause; later failures are often only consequences.
    first = state.first if state.first is not None else fault
    task = replace(task, first=task.first or fault)
    state = replace(state.with_task(task), first=first)
    note = Note("failed", str(fault), task.label)
    restarts = task.restarts if scope == "task" else state.restarts
    hopeless = fault.code == _CANNOT_RUN
    if rules.policy == "never" or restarts >= rules.limit or hopeless:
        times = f" (after {restarts} restarts)" if restarts else ""
        decision = _end_tasks(state, JobPhase.FAILED, f"{first}{times}", noted=True)
        return JobDecision(decision.state, (note, *decision.notes))
    wait = pause(rules, restarts)
    again = f"restart {restarts + 1} of {rules.limit}, after {wait:g} s"
    if scope == "task":
        task = _next_attempt(replace(task, restarts=restarts + 1), now + wait, f"{fault.reason}; {again}")
        return JobDecision(state.with_task(task), (note, Note("restarting", f"{task.label}: {again}", task.label)))
    state = replace(state, restarts=restarts + 1, not_before=now + wait)
    decision = _end_tasks(state, JobPhase.RESTARTING, f"{fault}; {again} of all tasks", noted=True)
    return JobDecision(decision.state, (note, Note("restarting", f"all tasks: {again}"), *decision.notes))


def _handle_loss(state: JobState, task: TaskState, reason: str, now: float) -> JobDecision:
    """Handles the loss of a task's place. A worker or evaluator gets another place; if other tasks use the address of
    the lost task, the whole job is placed again."""
    if state.phase is JobPhase.RUNNING and not task.verdict and is_done_without(state, task, now, killed=True):
        return _handle_end_after_work(state, replace(task, reason=reason, ended_at=now, placed=False, steps_per_s=None))
    if (
        state.phase is JobPhase.RUNNING
        and _may_wait_for_place(state, task)
        and state.spec.restart_scope == "task"
        and not task.verdict
    ):
        note = Note("preempted", f"{task.label} was preempted: {reason}", task.label)
        away = _next_attempt(replace(task, placed=False, ended_at=now), now, f"{note.text}; it starts again")
        return JobDecision(state.with_task(away), (note,))
    if state.phase is not JobPhase.RUNNING:
        gone = replace(task, phase=TaskPhase.FAILED, reason=reason, ended_at=now, placed=False)
        return JobDecision(state.with_task(gone), (Note("lost", f"{task.label}: {reason}", task.label),))
    fault = Fault(task=task.label, at=now, attempt=task.attempt, code=None, reason=reason)
    decision = _handle_failure(state, replace(task, verdict="", steps_per_s=None), fault, now)
    state = decision.state
    if state.phase is JobPhase.RUNNING and task.name.job in ("worker", "evaluator"):
        state = state.with_task(replace(state.tasks[task.name], placed=False))
    elif state.phase is JobPhase.RUNNING:
        ending = _end_tasks(state, JobPhase.QUEUED, f"{task.label} is lost ({reason}): the job needs another place")
        return JobDecision(ending.state, decision.notes + ending.notes)
    elif state.then is JobPhase.RESTARTING:
        state = replace(state, then=JobPhase.QUEUED)
    return JobDecision(state, decision.notes)


def _handle_preemption(state: JobState, task: TaskState, how: Exited, now: float) -> JobDecision:
    why = how.reason if how.preempted else f"{how.reason}, which this server did not ask for"
    note = Note("preempted", f"{task.label} was preempted: {why}", task.label)
    # A preemption is not the job's fault, so it does not count as a restart and may happen any number of times.
    state = state.with_task(replace(task, phase=TaskPhase.STOPPED))
    if not state.spec.requeue:
        decision = _end_tasks(state, JobPhase.FAILED, note.text, noted=True)
    elif _scope(state) == "task" and (not how.preempted or _may_wait_for_place(state, task)):
        # If the host is taken away, the task needs another place. All other tasks continue meanwhile.
        placed = not how.preempted
        again = _next_attempt(replace(task, placed=placed), now, f"{note.text}; it starts again")
        return JobDecision(state.with_task(again), (note,))
    else:
        state = replace(state, requeues=state.requeues + 1)
        decision = _end_tasks(state, JobPhase.QUEUED, f"{note.text}; the job returns to the queue", noted=True)
    return JobDecision(decision.state, (note, *decision.notes))


def _may_wait_for_place(state: JobState, task: TaskState) -> bool:
    """Returns whether a job continues while a task that has lost its host waits for another place."""
    return state.spec.elastic and task.name.job in ("worker", "evaluator")


def _decide_stop(state: JobState, event: AskStop, now: float) -> JobDecision:
    note = Note("asked", f"{event.by} asked to {'requeue' if event.requeue else 'stop'} the job")
    if state.phase.over:
        raise NotPossible(f"the job is {state.phase} already")
    if event.requeue:
        if state.phase is not JobPhase.RUNNING:
            raise NotPossible(f"only a running job can be requeued, but it is {state.phase}")
        decision = _end_tasks(replace(state, requeues=state.requeues + 1), JobPhase.QUEUED, note.text, noted=True)
    else:
        decision = _end_tasks(state, JobPhase.STOPPED, f"stopped by {event.by}", noted=True)
    return JobDecision(decision.state, (note, *decision.notes))


def _decide_restart(state: JobState, event: AskRestart, now: float) -> JobDecision:
    note = Note("asked", f"{event.by} requested a restart")
    fresh = replace(state, restarts=0, first=None, not_before=0.0)
    fresh = replace(fresh, tasks={name: replace(task, restarts=0, first=None) for name, task in fresh.tasks.items()})
    if state.phase.over:
        queued = _requeue(fresh, f"restarted by {event.by}", now)
        return JobDecision(replace(queued, started_at=None, ended_at=None), (note,))
    if state.phase is JobPhase.QUEUED:
        return JobDecision(replace(fresh, queued_at=now), (note,))
    if state.phase is JobPhase.ENDING and state.then is not None and state.then.over:
        raise NotPossible(f"the job is ending and will be in phase '{state.then}'; restart it after that")
    decision = _end_tasks(fresh, JobPhase.RESTARTING, f"restarted by {event.by}", noted=True)
    return JobDecision(decision.state, (note, *decision.notes))


def _decide_scale(state: JobState, event: AskScale, now: float) -> JobDecision:
    least = state.spec.ps.count.least
    before = least if state.ps is None else state.ps
    workers = state.workers if event.workers is None else event.workers
    ps = before if event.ps is None else event.ps
    try:
        state.spec.counts(workers, ps)
    except ValueError as error:
        raise NotPossible(str(error)) from error
    if event.workers == 0 and not state.spec.chief.count.most:
        raise NotPossible("workers must be at least 1 without a chief")
    changes = [
        f"from {was} to {now_wanted} {what}"
        for was, now_wanted, what in ((state.workers, workers, "workers"), (before, ps, "ps"))
        if was != now_wanted
    ]
    if not changes:
        return JobDecision(state)
    if event.restart_all and ps != before:
        raise NotPossible("this backend starts all ps together; the number of ps of a running job cannot change")
    note = Note("scaled", f"{event.by} scaled the job {' and '.join(changes)}")
    scaled = replace(state, workers=workers, fixed=event.fixed if workers != state.workers else state.fixed, ps=ps)
    if state.phase is JobPhase.RUNNING and state.spec.restart_scope == "task" and not event.restart_all:
        return JobDecision(_apply_scaling(scaled, now), (note,))
    if state.phase is JobPhase.RUNNING:
        decision = _end_tasks(replace(scaled, not_before=0.0), JobPhase.QUEUED, note.text)
        return JobDecision(decision.state, (note, *decision.notes))
    if state.phase is JobPhase.QUEUED:
        scaled = _with_wanted_tasks(scaled)
    elif state.phase is JobPhase.RESTARTING:
        scaled = _requeue(scaled, note.text, now)
    elif state.phase is JobPhase.ENDING and state.then is JobPhase.RESTARTING:
        scaled = replace(scaled, then=JobPhase.QUEUED)
    return JobDecision(scaled, (note,))


def _apply_scaling(state: JobState, now: float) -> JobState:
    """Applies a changed number of workers or ``ps`` to a running job: new tasks wait to be placed, surplus tasks are
    asked to end."""
    wanted = _wanted_tasks(state)
    for name, task in state.tasks.items():
        if name in wanted:
            continue
        if task.phase is TaskPhase.WAITING:
            state = state.with_task(replace(task, phase=TaskPhase.STOPPED, placed=False, ended_at=now))
        elif task.phase in (TaskPhase.RUNNING, TaskPhase.STARTING):
            state = state.with_task(replace(task, phase=TaskPhase.ENDING, reason="no longer wanted"))
    for name, task in wanted.items():
        if name not in state.tasks:
            state = state.with_task(task)
        elif task.phase is TaskPhase.STOPPED:  # the task was removed by scaling down, and is added again
            state = state.with_task(_next_attempt(task, now, ""))
    return state


def _tick(state: JobState, event: JobTick, now: float) -> JobDecision:
    deadlines = state.spec.deadlines
    match state.phase:
        case JobPhase.QUEUED if deadlines.pending is not None and now >= state.queued_at + deadlines.pending:
            waited = f"still pending after {deadlines.pending:g} s"
            return _end_tasks(state, JobPhase.FAILED, f"{waited}: {state.reason}" if state.reason else waited)
        case JobPhase.RESTARTING if now >= state.not_before:
            state = _with_wanted_tasks(state)  # without tasks that were removed by scaling down
            tasks = {name: _next_attempt(task, now, "") for name, task in state.tasks.items()}
            state = replace(state, phase=JobPhase.RUNNING, reason="", attempt_at=now, attempt=state.attempt + 1)
            return JobDecision(replace(state, tasks=tasks))
        case JobPhase.RUNNING:
            return _tick_running(state, now)
        case _:
            return JobDecision(state)


def _tick_running(state: JobState, now: float) -> JobDecision:
    limit = state.spec.deadlines.run
    over = limit is not None and state.started_at is not None and now >= state.started_at + limit
    if over and done_at(state, now) is None:
        return _end_tasks(state, JobPhase.FAILED, f"ran for longer than its deadline of {limit:g} s")
    notes: list[Note] = []
    for task in tuple(state.tasks.values()):
        verdict = stall(state, task, now)
        if verdict is not None:
            state = state.with_task(replace(task, phase=TaskPhase.ENDING, verdict=verdict, reason=verdict))
            notes.append(Note("stalled", f"{task.label}: {verdict}; ending it", task.label))
    return JobDecision(state, tuple(notes))


def stall(state: JobState, task: TaskState, now: float) -> str | None:
    """Returns why a task counts as stalled; None if it does not."""
    limit = state.spec.deadlines.progress
    if limit is None or task.name.job not in WORKING or task.phase is not TaskPhase.RUNNING:
        return None
    if task.progress_at is None or now < task.progress_at + limit:
        return None
    at = f"step {task.step}" if task.step is not None else "its start"
    return f"no progress for {limit:g} s, since {at}"


def _apply_consequences(state: JobState, now: float) -> JobDecision:
    """Applies the consequences of the state and the time: starts tasks that are due, ends a job whose work is done, and
    enters the next phase after all tasks have ended."""
    notes: tuple[Note, ...] = ()
    if state.phase is JobPhase.RUNNING:
        done = done_at(state, now)
        if done is not None and validates(state, done, now):
            state, notes = waits_for_evaluator(state)
        elif done is not None:
            decision = _end_tasks(state, JobPhase.SUCCEEDED, "all workers are done")
            state, notes = decision.state, decision.notes
    if state.phase is JobPhase.RUNNING:
        for task in tuple(state.tasks.values()):
            if task.phase is TaskPhase.WAITING and task.placed and now >= task.start_at:
                state = state.with_task(replace(task, phase=TaskPhase.STARTING))
    if state.phase is JobPhase.ENDING and not any(task.phase.alive for task in state.tasks.values()):
        over = _over(state, now)
        state, notes = over.state, notes + over.notes
    return JobDecision(state, notes)


def _end_tasks(state: JobState, then: JobPhase, reason: str, *, noted: bool = False) -> JobDecision:
    """Asks all tasks to end; ``then`` is the phase after that. If ``noted``, the reason is in an earlier note, and the
    note returned here omits it."""
    tasks: dict[TaskName, TaskState] = {}
    for name, task in state.tasks.items():
        if task.phase.alive:
            tasks[name] = replace(task, phase=TaskPhase.ENDING, verdict="")
        elif task.phase is TaskPhase.WAITING:
            tasks[name] = replace(task, phase=TaskPhase.STOPPED)
        else:
            tasks[name] = task
    ends = any(task.phase.alive for task in tasks.values())
    state = replace(state, phase=JobPhase.ENDING, then=then, reason=reason, tasks=tasks)
    why = "" if noted else f": {reason}"
    return JobDecision(state, (Note("ending", f"ends its tasks{why}"),) if ends else ())


def _over(state: JobState, now: float) -> JobDecision:
    assert state.then is not None
    match state.then:
        case JobPhase.RESTARTING if all(task.placed for task in _wanted_tasks(state).values()):
            return JobDecision(replace(state, phase=JobPhase.RESTARTING, then=None))
        case JobPhase.QUEUED | JobPhase.RESTARTING:
            # Release all places: jobs that keep some places while they wait for others could deadlock each other.
            return JobDecision(_requeue(state, state.reason, now), (Note("queued", state.reason),))
        case JobPhase.SUCCEEDED | JobPhase.FAILED | JobPhase.STOPPED:
            notes = {JobPhase.SUCCEEDED: "succeeded", JobPhase.FAILED: "failed", JobPhase.STOPPED: "stopped"}
            tasks = {name: replace(task, placed=False) for name, task in state.tasks.items()}
            kind = notes[state.then]
            state = replace(state, phase=state.then, then=None, ended_at=now, tasks=tasks)
            return JobDecision(state, (Note(kind, _outcome(state)),))  # pyright: ignore[reportArgumentType]
        case _:
            raise AssertionError(f"unexpected phase after all tasks have ended: {state.then}")


def _outcome(state: JobState) -> str:
    """Returns why the job ended, for its event list. The first failure is not repeated: it has its own note."""
    cause = str(state.first) if state.phase is JobPhase.FAILED and state.first is not None else ""
    if not cause or not state.reason.startswith(cause):
        return state.reason
    return f"the job has failed{state.reason.removeprefix(cause)}"


def _requeue(state: JobState, reason: str, now: float) -> JobState:
    state = replace(state, phase=JobPhase.QUEUED, then=None, reason=reason, queued_at=now, attempt=state.attempt + 1)
    state = _with_wanted_tasks(state)
    tasks = {name: _next_attempt(replace(task, placed=False), 0.0, "") for name, task in state.tasks.items()}
    return replace(state, tasks=tasks)


def _next_attempt(task: TaskState, start_at: float, reason: str) -> TaskState:
    """Returns ``task`` prepared for another start. The attempt number increases, unless the present attempt cannot have
    started."""
    tried = task.started_at is not None or task.phase.alive or task.phase is TaskPhase.FAILED
    attempt = task.attempt + 1 if tried else task.attempt
    return replace(
        task,
        phase=TaskPhase.WAITING,
        attempt=attempt,
        start_at=start_at,
        reason=reason,
        verdict="",
        progress_at=None,
        started_at=None,
        steps_per_s=None,
    )


def _with_wanted_tasks(state: JobState) -> JobState:
    """Returns ``state`` with the tasks that are wanted now; stores the next attempt number of dropped tasks."""
    wanted = _wanted_tasks(state)
    dropped_attempts = {
        task.label: _next_attempt(task, 0.0, "").attempt for name, task in state.tasks.items() if name not in wanted
    }
    return replace(state, tasks=wanted, next_attempts={**state.next_attempts, **dropped_attempts})


def _wanted_tasks(state: JobState) -> dict[TaskName, TaskState]:
    """Returns the tasks that are wanted now: existing ones unchanged, others in their initial state."""
    return {
        name: state.tasks.get(name) or replace(fresh, attempt=state.next_attempts.get(fresh.label, 0))
        for name, fresh in _tasks(state.spec, state.workers, state.ps).items()
    }


def _tasks(spec: JobSpec, workers: int, ps: int | None = None) -> dict[TaskName, TaskState]:
    counts = spec.counts(workers, ps)
    names = [TaskName(role, index) for role in ROLES for index in range(counts.get(role, 0))]
    return {name: TaskState(name=name) for name in names}


def fault_of(task: TaskState, how: Exited, reason: str, now: float) -> Fault:
    """Returns the failure described by the end of a task."""
    return Fault(
        task=task.label, at=how.at or now, attempt=task.attempt, code=how.code, reason=reason, last_lines=how.last_lines
    )


def _describe_tasks(state: JobState) -> str:
    counts: dict[str, int] = {}
    for name in state.tasks:
        counts[name.job] = counts.get(name.job, 0) + 1
    return ", ".join(f"{count} {role}{'s' if count > 1 and role != 'ps' else ''}" for role, count in counts.items())


_HANDLERS: dict[type[Event], Callable[[JobState, Event, float], JobDecision]] = {  # pyright: ignore[reportAssignmentType]
    Placed: _handle_placement,
    NotPlaced: _handle_failed_placement,
    Started: _handle_start,
    CouldNotStart: _could_not_start,
    Progressed: _handle_progress,
    Ended: _handle_end,
    AskStop: _decide_stop,
    AskRestart: _decide_restart,
    AskScale: _decide_scale,
    JobTick: _tick,
}
