"""When a job's work is complete: a pure function of its state and the time.

It is when all workers and the chief have ended without an error. A worker other than the first may fail later than
that, and fails no job: ``ps`` end by themselves when they are needed no more, and mirrored workers make all steps
together, so that the end of the first tells that there is nothing left to do.
"""

from __future__ import annotations

import math
import signal
from dataclasses import replace

from headwater.cluster.names import TaskName
from headwater.platform.backends.base import Exited
from headwater.platform.states import JobState, Note, TaskPhase, TaskState

#: The roles whose end ends the job; all other tasks serve them.
WORKING = ("worker", "chief")


def is_killed(how: Exited) -> bool:
    """Whether a task did not end by itself."""
    return how.preempted or how.code < 0 or how.code in (128 + signal.SIGKILL, 128 + signal.SIGTERM)


def done_at(state: JobState, now: float) -> float | None:
    """When the last of the workers and the chief had done its work; None where some have not."""
    working = [task for task in state.tasks.values() if task.name.job in WORKING]
    wanted = [task for task in working if task.phase is not TaskPhase.STOPPED and not _is_absent(state, task, now)]
    if not wanted or not all(task.phase is TaskPhase.SUCCEEDED for task in wanted):
        return None
    return max(task.ended_at or 0.0 for task in wanted)


def _is_absent(state: JobState, task: TaskState, now: float) -> bool:
    """Whether the end of a job does not wait for a worker or chief.

    A worker for which there is no room is not waited for where workers come and go, or if it never began: jobs that all
    wait for one more, and keep the places of workers that are done, would wait for each other. One that was started
    again alone finds no ``ps`` any more where these have ended: it has the period ``grace`` for whatever it does.
    """
    if task.phase is TaskPhase.WAITING and not task.placed and (state.spec.elastic or not task.attempt):
        return True
    complete = _complete_at(state)
    if complete is None or task.phase is TaskPhase.SUCCEEDED or not _again_alone(state, task):
        return False
    return task.phase is TaskPhase.WAITING or now >= complete + state.spec.deadlines.grace


def _leader(state: JobState) -> TaskState | None:
    """The chief, or the worker that is chief where there is none."""
    return state.tasks.get(TaskName("chief", 0)) or state.tasks.get(TaskName("worker", 0))


def servers_ended(state: JobState) -> bool:
    """Whether the job has ``ps``, and all have ended by themselves, as they do when its work is complete."""
    servers = [task for task in state.tasks.values() if task.name.job == "ps"]
    return bool(servers) and all(task.phase is TaskPhase.SUCCEEDED for task in servers)


def _complete_at(state: JobState) -> float | None:
    """When the chief and all ``ps`` had ended by themselves; None where some have not, or where there are no ``ps``."""
    leader = _leader(state)
    if not servers_ended(state) or leader is None or leader.phase is not TaskPhase.SUCCEEDED:
        return None
    return max(task.ended_at or 0.0 for name, task in state.tasks.items() if name.job == "ps" or task is leader)


def _again_alone(state: JobState, task: TaskState) -> bool:
    """Whether a worker that does not lead has been started more often than the whole job."""
    leader = _leader(state)
    return leader is not None and task.name != leader.name and task.attempt > state.attempt


def nothing_left(state: JobState, task: TaskState, now: float, *, killed: bool) -> bool:
    """Whether the job's work is complete without ``task``, so that its failure changes nothing.

    Args:
      state: of the job.
      task: a task that has failed.
      now: the time.
      killed: whether it did not fail by itself.
    """
    if task.name.job not in WORKING:
        return done_at(state, now) is not None
    leader = _leader(state)
    if leader is None or task.name == leader.name:
        return False
    if not killed:
        return _complete_at(state) is not None and _again_alone(state, task)
    return servers_ended(state) or (task.together and leader.phase is TaskPhase.SUCCEEDED)


def validates(state: JobState, done: float, now: float) -> bool:
    """Whether an evaluator still has time for the end of a training whose workers were ``done`` at that time."""
    deadlines = state.spec.deadlines
    until = math.inf if deadlines.evaluator is None else done + deadlines.evaluator
    if deadlines.run is not None and state.started_at is not None:
        until = min(until, state.started_at + deadlines.run)
    running = (TaskPhase.STARTING, TaskPhase.RUNNING)
    return now < until and any(task.name.job == "evaluator" and task.phase in running for task in state.tasks.values())


def waits_for_evaluator(state: JobState) -> tuple[JobState, tuple[Note, ...]]:
    """A job that is complete but for its evaluator, and what its history says of that the first time."""
    reason = "all workers are done; waits for the evaluator"
    notes = (Note("pending", reason),) if state.reason != reason else ()
    return replace(state, reason=reason), notes
