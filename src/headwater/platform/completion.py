"""Completion of a job's work: a pure function of its state and the time.

The work is complete when all workers and the chief have exited without an error. Until then, the failure of a worker
other than the leader is ignored if no work was left for that worker, see `is_done_without`. With parameter servers, no
work is left once the ``ps`` have ended, because they exit by themselves when they are no longer needed. In mirrored
training, no work is left once the first worker has exited without an error, because all workers make each step
together.
"""

from __future__ import annotations

import math
import signal
from dataclasses import replace

from headwater.cluster.names import TaskName
from headwater.platform.backends.base import Exited
from headwater.platform.states import JobState, Note, TaskPhase, TaskState

#: The roles whose tasks decide the end of the job; all other tasks serve them.
WORKING = ("worker", "chief")


def is_killed(how: Exited) -> bool:
    """Returns whether a task was killed from outside."""
    return how.preempted or how.code < 0 or how.code in (128 + signal.SIGKILL, 128 + signal.SIGTERM)


def done_at(state: JobState, now: float) -> float | None:
    """Returns when the last worker or chief finished its work; None if one of them has not finished."""
    working = [task for task in state.tasks.values() if task.name.job in WORKING]
    wanted = [task for task in working if task.phase is not TaskPhase.STOPPED and not _is_absent(state, task, now)]
    if not wanted or not all(task.phase is TaskPhase.SUCCEEDED for task in wanted):
        return None
    return max(task.ended_at or 0.0 for task in wanted)


def _is_absent(state: JobState, task: TaskState, now: float) -> bool:
    """Returns whether a job can end without waiting for ``task``, a worker or the chief.

    A job does not wait for a worker that cannot be placed if the job is elastic or the worker has never started.
    Otherwise several jobs could deadlock: each would hold the places of its finished workers and wait for a place for
    one more. A worker that was restarted alone may find that the ``ps`` have already ended: the job waits for such a
    worker only for the period ``grace``.
    """
    if task.phase is TaskPhase.WAITING and not task.placed and (state.spec.elastic or not task.attempt):
        return True
    complete = _complete_at(state)
    if complete is None or task.phase is TaskPhase.SUCCEEDED or not _was_restarted_alone(state, task):
        return False
    return task.phase is TaskPhase.WAITING or now >= complete + state.spec.deadlines.grace


def _leader(state: JobState) -> TaskState | None:
    """Returns the chief, or the worker that acts as chief if there is none."""
    return state.tasks.get(TaskName("chief", 0)) or state.tasks.get(TaskName("worker", 0))


def have_servers_ended(state: JobState) -> bool:
    """Returns whether the job has ``ps`` that have all exited by themselves, as they do when its work is complete."""
    servers = [task for task in state.tasks.values() if task.name.job == "ps"]
    return bool(servers) and all(task.phase is TaskPhase.SUCCEEDED for task in servers)


def _complete_at(state: JobState) -> float | None:
    """Returns when the chief and all ``ps`` had exited by themselves; None before, or if there are no ``ps``."""
    leader = _leader(state)
    if not have_servers_ended(state) or leader is None or leader.phase is not TaskPhase.SUCCEEDED:
        return None
    return max(task.ended_at or 0.0 for name, task in state.tasks.items() if name.job == "ps" or task is leader)


def _was_restarted_alone(state: JobState, task: TaskState) -> bool:
    """Returns whether ``task`` is a worker other than the chief that was restarted by itself since the last start of
    the whole job."""
    leader = _leader(state)
    return leader is not None and task.name != leader.name and task.attempt > state.attempt


def is_done_without(state: JobState, task: TaskState, now: float, *, killed: bool) -> bool:
    """Returns whether the job's work is complete without ``task``, so that the failure of ``task`` can be ignored.

    Args:
      state: the state of the job.
      task: a task that has failed.
      now: the time.
      killed: whether the task was killed from outside.
    """
    if task.name.job not in WORKING:
        return done_at(state, now) is not None
    leader = _leader(state)
    if leader is None or task.name == leader.name:
        return False
    if not killed:
        return _complete_at(state) is not None and _was_restarted_alone(state, task)
    return have_servers_ended(state) or (task.together and leader.phase is TaskPhase.SUCCEEDED)


def validates(state: JobState, done: float, now: float) -> bool:
    """Returns whether an evaluator still has time to validate a training whose workers were ``done`` at that time."""
    deadlines = state.spec.deadlines
    until = math.inf if deadlines.evaluator is None else done + deadlines.evaluator
    if deadlines.run is not None and state.started_at is not None:
        until = min(until, state.started_at + deadlines.run)
    running = (TaskPhase.STARTING, TaskPhase.RUNNING)
    return now < until and any(task.name.job == "evaluator" and task.phase in running for task in state.tasks.values())


def waits_for_evaluator(state: JobState) -> tuple[JobState, tuple[Note, ...]]:
    """Returns the state of a job that only waits for its evaluator, and a note on the first call."""
    reason = "all workers are done; waits for the evaluator"
    notes = (Note("pending", reason),) if state.reason != reason else ()
    return replace(state, reason=reason), notes
