"""The launcher's state machine: decides the next actions from the events of the job's tasks.

Lifecycle of a job::

    RUNNING --- all workers exited with 0, or were
       |        killed when the work was complete -----> ENDING (exit code 0; the ps tasks are asked to end)
       |------- a task failed ------------------------> ENDING (its exit code; all others are asked to end)
       |------- interrupted by a signal --------------> ENDING (128 + its number; all are asked to end)
       `------- a task that other tasks need is lost -> RESTARTING (the other tasks notice, and end)
    RESTARTING - no task runs ------------------------> RUNNING (all are restarted)
       |-------- the grace period is over ------------> RESTARTING (remaining tasks are killed)
       `-------- a task failed by its own fault ------> ENDING (its exit code)
    ENDING ---- the grace period is over -------------> ENDING (remaining tasks are killed)
       `------- no task runs -------------------------> OVER

`decide` maps a state, an event and the time to the next state, the actions to perform, and the reason. It is a pure
function.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from headwater.cluster.names import TaskName
from headwater.platform.host.processes import how_it_ended

PS = "ps"
CANNOT_START = 127
#: The exit code of a task that asks to be restarted (EX_TEMPFAIL).
START_AGAIN = 75

# Return codes of tasks that were asked to end, or killed.
_REQUESTED_CODES = (0, -signal.SIGTERM, 128 + signal.SIGTERM, -signal.SIGKILL)


def label(task: TaskName) -> str:
    """Returns the task's name for people, e.g. ``worker 0``."""
    return f"{task.job} {task.index}"


class Phase(Enum):
    """The phase of a job's lifecycle."""

    RUNNING = "running"
    RESTARTING = "restarting"
    ENDING = "ending"
    OVER = "over"


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """The first task that failed.

    Attributes:
      exit_code: the launcher's exit code for this failure: the exit code of the task, or 128 + n for a task killed by
        signal n.
      reason: the reason in words, e.g. ``killed by SIGSEGV``.
    """

    task: TaskName
    exit_code: int
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class JobState:
    """The state of a job.

    Attributes:
      running: tasks with a running process.
      working: the running tasks that the job waits for, which are all but ``ps``.
      phase: the phase of the job's lifecycle.
      exit_code: the launcher's exit code when the job is over.
      failure: the first task that failed, if one did.
      grace_s: seconds between asking a task to end and killing it.
      kill_at: when to kill the remaining tasks, by the caller's clock; None while nothing is to be killed.
      killed: whether the remaining tasks have been killed.
      tasks: all tasks, in start order.
      together: whether a task has reported that the tasks need each other.
      restarts: how often all tasks have been restarted, or a lost worker replaced.
      max_restarts: the limit of ``restarts``.
      elastic: whether workers can join and leave.
      replaced: tasks that another worker has replaced.
    """

    running: frozenset[TaskName]
    working: frozenset[TaskName]
    phase: Phase = Phase.RUNNING
    exit_code: int = 0
    failure: Failure | None = None
    grace_s: float
    kill_at: float | None = None
    killed: bool = False
    tasks: tuple[TaskName, ...] = ()
    together: bool = False
    restarts: int = 0
    max_restarts: int = 0
    elastic: bool = False
    replaced: frozenset[TaskName] = frozenset()


@dataclass(frozen=True, slots=True)
class CannotContinueAlone:
    """A task has reported that it cannot continue without the other tasks."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The process of ``task`` has exited; ``returncode`` is -n if signal n killed it."""

    task: TaskName
    returncode: int


@dataclass(frozen=True, slots=True)
class CouldNotStart:
    """Starting the process of ``task`` failed."""

    task: TaskName
    error: str


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The launcher received a signal that asks it to end."""

    signum: signal.Signals


@dataclass(frozen=True, slots=True)
class OutputLost:
    """The launcher's output can no longer be written: its reader has exited."""


@dataclass(frozen=True, slots=True)
class LaunchTick:
    """Time has passed."""


Event = CannotContinueAlone | Ended | CouldNotStart | Interrupted | OutputLost | LaunchTick


@dataclass(frozen=True, slots=True)
class Start:
    """Start the process of ``task``."""

    task: TaskName


@dataclass(frozen=True, slots=True)
class Signal:
    """Send ``signum`` to ``task``: SIGTERM to its process, SIGKILL to all processes of its group."""

    task: TaskName
    signum: signal.Signals


@dataclass(frozen=True, slots=True)
class Renew:
    """Reserve a new listening socket for every task: the old sockets were closed with their processes."""


@dataclass(frozen=True, slots=True)
class Replace:
    """Start a joining worker, which the cluster's spec does not contain, in place of the lost ``task``."""

    task: TaskName


Action = Start | Renew | Replace | Signal


@dataclass(frozen=True, slots=True)
class LaunchDecision:
    """The next state, the actions in order, and the reason, which is empty if there is nothing to report."""

    state: JobState
    actions: tuple[Action, ...] = ()
    reason: str = ""


def initial_decision(
    tasks: Iterable[TaskName], *, grace_s: float, max_restarts: int = 0, elastic: bool = False
) -> LaunchDecision:
    """Returns the initial decision of a job: start all of ``tasks``."""
    order = tuple(tasks)
    state = JobState(
        running=frozenset(order),
        working=_working(order),
        grace_s=grace_s,
        tasks=order,
        max_restarts=max_restarts,
        elastic=elastic,
    )
    return LaunchDecision(state, tuple(Start(task) for task in order))


def _working(tasks: Iterable[TaskName]) -> frozenset[TaskName]:
    return frozenset(task for task in tasks if task.job != PS)


def decide(state: JobState, event: Event, now: float) -> LaunchDecision:
    """Returns the decision for ``event`` at time ``now`` (seconds)."""
    match event:
        case CannotContinueAlone():
            return LaunchDecision(replace(state, together=True))
        case Ended(task, returncode):
            return _handle_end(state, task, _failure(task, returncode), returncode, now)
        case CouldNotStart(task, error):
            failure = Failure(task=task, exit_code=CANNOT_START, reason=f"could not be started: {error}")
            return _handle_end(state, task, failure, CANNOT_START, now)
        case Interrupted(signum):
            return _interrupted(state, signum, now)
        case OutputLost():
            # A hangup also closes the terminal; in phase ENDING it is already being handled.
            return (
                _interrupted(state, signal.SIGPIPE, now) if state.phase is not Phase.ENDING else LaunchDecision(state)
            )
        case LaunchTick():
            if state.kill_at is None or now < state.kill_at:
                return LaunchDecision(state)
            return _kill(state, f"tasks still run {state.grace_s:g} s after they were asked to end")


def _handle_end(
    state: JobState, task: TaskName, failure: Failure | None, returncode: int, now: float
) -> LaunchDecision:
    state = replace(state, running=state.running - {task}, working=state.working - {task})
    decision = LaunchDecision(state)
    if state.phase is Phase.RUNNING:
        reason = ""
        if failure is not None and _is_irrelevant(state, task, returncode):
            reason = f"{label(task)} is lost ({failure.reason}), but the work is done"
            decision, failure = LaunchDecision(state, reason=reason), None
        if failure is not None and _can_restart(state, returncode):
            decision = _restart(state, task, failure, now)
        elif failure is not None and _can_replace(state, task, returncode):
            return _replace(state, task, failure)
        elif failure is not None:
            state = replace(state, failure=failure)
            decision = _end(
                state, failure.exit_code, f"{label(task)} failed ({failure.reason}): ending the other tasks", now
            )
        elif not state.working or (_is_complete(state) and state.working <= state.replaced):
            decision = _end(state, 0, "; ".join(filter(None, (reason, "all workers are done"))), now)
    elif state.phase is Phase.RESTARTING:
        if failure is not None and not _is_loss(returncode):
            # A failure by a task's own fault would recur after a restart. Its exit may be noticed late, after other
            # tasks have failed because of it and the restart has begun.
            state = replace(state, failure=failure)
            reason = f"{label(task)} failed ({failure.reason}): no restart"
            decision = _end(state, failure.exit_code, reason, now)
        elif not state.running:
            return _start_again(state)
    elif failure is not None and state.exit_code == 0 and returncode not in _REQUESTED_CODES:
        # The work was done and the task was asked to end, but failed by its own fault meanwhile.
        decision = LaunchDecision(replace(state, failure=failure, exit_code=failure.exit_code))
    elif task.job != PS and not state.working:
        decision = LaunchDecision(state, _terminate(state.running))
    if not decision.state.running:
        return replace(decision, state=replace(decision.state, phase=Phase.OVER))
    return decision


def _leader(state: JobState) -> TaskName:
    """Returns the chief, or the worker that acts as chief if there is none."""
    chiefs = [task for task in state.tasks if task.job == "chief"]
    return chiefs[0] if chiefs else TaskName("worker", 0)


def _have_servers_ended(state: JobState) -> bool:
    """Returns whether the job has ``ps``, and all have exited by themselves, as they do when the work is complete."""
    return any(task.job == PS for task in state.tasks) and not any(task.job == PS for task in state.running)


def _is_complete(state: JobState) -> bool:
    """Returns whether no task is left that a newly started worker could join."""
    return _have_servers_ended(state) and _leader(state) not in state.running


def _is_irrelevant(state: JobState, task: TaskName, returncode: int) -> bool:
    """Returns whether the failure of ``task`` is irrelevant, because the running job's work is complete."""
    if task.job == PS or task == _leader(state):
        return False
    if not _is_loss(returncode):
        return task in state.replaced and _is_complete(state)
    # Mirrored workers perform all steps together: when the first worker has finished, all have finished.
    return _have_servers_ended(state) or (state.together and _leader(state) not in state.running)


def _is_loss(returncode: int) -> bool:
    """Returns whether a return code means that the task was killed from outside, or requests a restart."""
    return returncode < 0 or returncode in (START_AGAIN, 128 + signal.SIGTERM, 128 + signal.SIGKILL)


def _can_restart(state: JobState, returncode: int) -> bool:
    return (
        _is_loss(returncode) and (state.together or returncode == START_AGAIN) and state.restarts < state.max_restarts
    )


def _can_replace(state: JobState, task: TaskName, returncode: int) -> bool:
    """Returns whether the other tasks can continue without ``task``: a lost worker that is not the chief."""
    chief = any(other.job == "chief" for other in state.tasks)
    leads = task.job != "worker" or (task.index == 0 and not chief)
    return state.elastic and not leads and _is_loss(returncode) and state.restarts < state.max_restarts


def _replace(state: JobState, task: TaskName, failure: Failure) -> LaunchDecision:
    number = state.restarts + 1
    reason = (
        f"{label(task)} is lost ({failure.reason}): all other tasks continue, and another worker takes its place, "
        f"replacement {number} of at most {state.max_restarts}"
    )
    state = replace(
        state,
        running=state.running | {task},
        working=state.working | {task},
        restarts=number,
        replaced=state.replaced | {task},
    )
    return LaunchDecision(state, (Replace(task),), reason)


def _restart(state: JobState, task: TaskName, failure: Failure, now: float) -> LaunchDecision:
    number = state.restarts + 1
    state = replace(state, phase=Phase.RESTARTING, restarts=number, kill_at=now + state.grace_s)
    reason = (
        f"{label(task)} is lost ({failure.reason}): all tasks restart from the last save, "
        f"restart {number} of at most {state.max_restarts}"
    )
    if not state.running:
        return replace(_start_again(state), reason=reason)
    # The other tasks are not asked to end, because they notice the loss by themselves. A request to end could interrupt
    # their last save.
    return LaunchDecision(state, (), reason)


def _start_again(state: JobState) -> LaunchDecision:
    tasks = state.tasks
    state = replace(
        state,
        phase=Phase.RUNNING,
        running=frozenset(tasks),
        working=_working(tasks),
        kill_at=None,
        killed=False,
        replaced=frozenset(),
    )
    return LaunchDecision(state, (Renew(), *(Start(task) for task in tasks)), "restarting all tasks")


def _interrupted(state: JobState, signum: signal.Signals, now: float) -> LaunchDecision:
    if state.phase in (Phase.RUNNING, Phase.RESTARTING):
        return _end(state, 128 + signum, f"interrupted by {signum.name}", now)
    if state.killed:
        return LaunchDecision(state)
    return _kill(replace(state, exit_code=state.exit_code or 128 + signum), f"interrupted again, by {signum.name}")


def _end(state: JobState, exit_code: int, reason: str, now: float) -> LaunchDecision:
    phase = Phase.ENDING if state.running else Phase.OVER
    state = replace(state, phase=phase, exit_code=exit_code, kill_at=now + state.grace_s)
    # Workers may still save values that a `ps` holds, so a `ps` is asked to end after the last worker.
    return LaunchDecision(state, _terminate(state.working or state.running), reason)


def _terminate(tasks: Iterable[TaskName]) -> tuple[Signal, ...]:
    return tuple(Signal(task, signal.SIGTERM) for task in sorted(tasks))


def _kill(state: JobState, reason: str) -> LaunchDecision:
    tasks = sorted(state.running)
    return LaunchDecision(
        replace(state, kill_at=None, killed=True),
        tuple(Signal(task, signal.SIGKILL) for task in tasks),
        f"killing {', '.join(map(label, tasks))}: {reason}",
    )


def _failure(task: TaskName, returncode: int) -> Failure | None:
    if returncode == 0:
        return None
    exit_code = returncode if returncode > 0 else 128 - returncode
    return Failure(task=task, exit_code=exit_code, reason=how_it_ended(returncode))
