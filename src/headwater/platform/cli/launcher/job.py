"""What the launcher does next: a function of what the job's tasks have done so far.

The life of a job::

    RUNNING --- all workers ended with 0, or were
       |        killed when the work was complete -----> ENDING (exit code 0; the ps tasks are told to end)
       |------- a task failed ------------------------> ENDING (its exit code; all others are told to end)
       |------- interrupted by a signal --------------> ENDING (128 + its number; all are told to end)
       `------- one of tasks that need each other is lost -> RESTARTING (the others notice, and end)
    RESTARTING - no task runs ------------------------> RUNNING (all are started again)
       |-------- the grace period is over ------------> RESTARTING (what still runs is killed)
       `-------- a task failed by itself -------------> ENDING (its exit code)
    ENDING ---- the grace period is over -------------> ENDING (what still runs is killed)
       `------- no task runs -------------------------> OVER

`decide` takes a state, an event and the time, and gives the next state, what to do, and why. It starts, signals and
reads nothing itself.
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
#: What a task ends with to be started again (EX_TEMPFAIL).
START_AGAIN = 75

# How a task ends that was asked to, or killed.
_AS_ASKED = (0, -signal.SIGTERM, 128 + signal.SIGTERM, -signal.SIGKILL)


def label(task: TaskName) -> str:
    """The task's name for people, e.g. ``worker 0``."""
    return f"{task.job} {task.index}"


class Phase(Enum):
    """Where a job is in its life."""

    RUNNING = "running"
    RESTARTING = "restarting"
    ENDING = "ending"
    OVER = "over"


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """The first task that failed.

    Attributes:
      task: which.
      exit_code: what the launcher ends with for it: the task's own, 128 + n for one killed by signal n.
      reason: in words, e.g. ``killed by SIGSEGV``.
    """

    task: TaskName
    exit_code: int
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class JobState:
    """What is known of a job.

    Attributes:
      running: tasks whose process has not ended.
      working: those of them that the job waits for, which is all but ``ps``.
      phase: where the job is in its life.
      exit_code: what the launcher will end with.
      failure: the first task that failed, if one did.
      grace_s: seconds between asking a task to end and killing it.
      kill_at: when to kill what still runs, by the caller's clock; None while nothing is to be killed.
      killed: whether that was done.
      tasks: all tasks, in the order in which they are started.
      together: whether the tasks have said that they cannot go on without each other.
      restarts: how often all tasks have been started again.
      max_restarts: how often that is done at most; likewise how often a lost worker is replaced.
      elastic: whether workers may come and go.
      replaced: tasks in whose place another worker has been started.
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
class NeedEachOther:
    """A task has said that it cannot go on without the others."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The process of ``task`` ended; ``returncode`` is -n for one killed by signal n."""

    task: TaskName
    returncode: int


@dataclass(frozen=True, slots=True)
class CouldNotStart:
    """No process could be made for ``task``."""

    task: TaskName
    error: str


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The launcher got a signal that asks it to end."""

    signum: signal.Signals


@dataclass(frozen=True, slots=True)
class OutputLost:
    """The reader of the launcher's output is gone."""


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


Event = NeedEachOther | Ended | CouldNotStart | Interrupted | OutputLost | Tick


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
    """Give every task a fresh socket at which it will listen: the processes of before have taken theirs with them."""


@dataclass(frozen=True, slots=True)
class Replace:
    """Let another worker, which the cluster's spec does not have, take the place of ``task``, which is lost."""

    task: TaskName


Action = Start | Renew | Replace | Signal


@dataclass(frozen=True, slots=True)
class Decision:
    """The next state, what to do in which order, and why; the reason is empty where there is nothing to tell."""

    state: JobState
    actions: tuple[Action, ...] = ()
    reason: str = ""


def begin(tasks: Iterable[TaskName], *, grace_s: float, max_restarts: int = 0, elastic: bool = False) -> Decision:
    """A job of ``tasks``, all to be started."""
    order = tuple(tasks)
    state = JobState(
        running=frozenset(order),
        working=_working(order),
        grace_s=grace_s,
        tasks=order,
        max_restarts=max_restarts,
        elastic=elastic,
    )
    return Decision(state, tuple(Start(task) for task in order))


def _working(tasks: Iterable[TaskName]) -> frozenset[TaskName]:
    return frozenset(task for task in tasks if task.job != PS)


def decide(state: JobState, event: Event, now: float) -> Decision:
    """What ``event`` at time ``now`` (seconds) leads to."""
    match event:
        case NeedEachOther():
            return Decision(replace(state, together=True))
        case Ended(task, returncode):
            return _ended(state, task, _failure(task, returncode), returncode, now)
        case CouldNotStart(task, error):
            failure = Failure(task=task, exit_code=CANNOT_START, reason=f"could not be started: {error}")
            return _ended(state, task, failure, CANNOT_START, now)
        case Interrupted(signum):
            return _interrupted(state, signum, now)
        case OutputLost():
            # That the terminal is gone is also how a hangup shows that is being handled already.
            return _interrupted(state, signal.SIGPIPE, now) if state.phase is not Phase.ENDING else Decision(state)
        case Tick():
            if state.kill_at is None or now < state.kill_at:
                return Decision(state)
            return _kill(state, f"not ended {state.grace_s:g} s after being asked to")


def _ended(state: JobState, task: TaskName, failure: Failure | None, returncode: int, now: float) -> Decision:
    state = replace(state, running=state.running - {task}, working=state.working - {task})
    decision = Decision(state)
    if state.phase is Phase.RUNNING:
        reason = ""
        if failure is not None and _nothing_left(state, task, returncode):
            reason = f"{label(task)} is lost ({failure.reason}), but the work is done"
            decision, failure = Decision(state, reason=reason), None
        if failure is not None and _can_restart(state, returncode):
            decision = _restart(state, task, failure, now)
        elif failure is not None and _can_replace(state, task, returncode):
            return _replace(state, task, failure)
        elif failure is not None:
            state = replace(state, failure=failure)
            decision = _end(
                state, failure.exit_code, f"{label(task)} failed ({failure.reason}): ending the others", now
            )
        elif not state.working or (_is_complete(state) and state.working <= state.replaced):
            decision = _end(state, 0, "; ".join(filter(None, (reason, "all workers are done"))), now)
    elif state.phase is Phase.RESTARTING:
        if failure is not None and not _lost(returncode):
            # What has failed by itself would fail again. It may be seen to end after those that it let down.
            state = replace(state, failure=failure)
            reason = f"{label(task)} failed ({failure.reason}): not starting again"
            decision = _end(state, failure.exit_code, reason, now)
        elif not state.running:
            return _start_again(state)
    elif failure is not None and state.exit_code == 0 and returncode not in _AS_ASKED:
        # Asked to end after the work was done, and failed at that by itself.
        decision = Decision(replace(state, failure=failure, exit_code=failure.exit_code))
    elif task.job != PS and not state.working:
        decision = Decision(state, _terminate(state.running))
    if not decision.state.running:
        return replace(decision, state=replace(decision.state, phase=Phase.OVER))
    return decision


def _leader(state: JobState) -> TaskName:
    """The chief, or the worker that is chief where there is none."""
    chiefs = [task for task in state.tasks if task.job == "chief"]
    return chiefs[0] if chiefs else TaskName("worker", 0)


def _servers_ended(state: JobState) -> bool:
    """Whether the job has ``ps``, and all have ended by themselves, as they do when its work is complete."""
    return any(task.job == PS for task in state.tasks) and not any(task.job == PS for task in state.running)


def _is_complete(state: JobState) -> bool:
    """Whether no task is left that a worker started now could work with."""
    return _servers_ended(state) and _leader(state) not in state.running


def _nothing_left(state: JobState, task: TaskName, returncode: int) -> bool:
    """Whether a running job's work is complete without ``task``, which has failed."""
    if task.job == PS or task == _leader(state):
        return False
    if not _lost(returncode):
        return task in state.replaced and _is_complete(state)
    # Mirrored workers make all steps together: when the first is done, so are the others.
    return _servers_ended(state) or (state.together and _leader(state) not in state.running)


def _lost(returncode: int) -> bool:
    """Whether a task that ended so was taken away, or asks to be started again."""
    return returncode < 0 or returncode in (START_AGAIN, 128 + signal.SIGTERM, 128 + signal.SIGKILL)


def _can_restart(state: JobState, returncode: int) -> bool:
    return _lost(returncode) and (state.together or returncode == START_AGAIN) and state.restarts < state.max_restarts


def _can_replace(state: JobState, task: TaskName, returncode: int) -> bool:
    """Whether the others can go on without ``task``: a worker that is not the chief, and did not fail by itself."""
    chief = any(other.job == "chief" for other in state.tasks)
    leads = task.job != "worker" or (task.index == 0 and not chief)
    return state.elastic and not leads and _lost(returncode) and state.restarts < state.max_restarts


def _replace(state: JobState, task: TaskName, failure: Failure) -> Decision:
    number = state.restarts + 1
    reason = (
        f"{label(task)} is lost ({failure.reason}): the others go on, and another worker takes its place, "
        f"for time {number} of at most {state.max_restarts}"
    )
    state = replace(
        state,
        running=state.running | {task},
        working=state.working | {task},
        restarts=number,
        replaced=state.replaced | {task},
    )
    return Decision(state, (Replace(task),), reason)


def _restart(state: JobState, task: TaskName, failure: Failure, now: float) -> Decision:
    number = state.restarts + 1
    state = replace(state, phase=Phase.RESTARTING, restarts=number, kill_at=now + state.grace_s)
    reason = (
        f"{label(task)} is lost ({failure.reason}): all tasks start again from what was saved last, "
        f"for time {number} of at most {state.max_restarts}"
    )
    if not state.running:
        return replace(_start_again(state), reason=reason)
    # They are not told to end: a task that is lost lets down those that need it, and what they save then is whole.
    return Decision(state, (), reason)


def _start_again(state: JobState) -> Decision:
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
    return Decision(state, (Renew(), *(Start(task) for task in tasks)), "starting all tasks again")


def _interrupted(state: JobState, signum: signal.Signals, now: float) -> Decision:
    if state.phase in (Phase.RUNNING, Phase.RESTARTING):
        return _end(state, 128 + signum, f"interrupted by {signum.name}", now)
    if state.killed:
        return Decision(state)
    return _kill(replace(state, exit_code=state.exit_code or 128 + signum), f"interrupted again, by {signum.name}")


def _end(state: JobState, exit_code: int, reason: str, now: float) -> Decision:
    phase = Phase.ENDING if state.running else Phase.OVER
    state = replace(state, phase=phase, exit_code=exit_code, kill_at=now + state.grace_s)
    # What workers save at their end, a `ps` may hold: it is asked when they are gone.
    return Decision(state, _terminate(state.working or state.running), reason)


def _terminate(tasks: Iterable[TaskName]) -> tuple[Signal, ...]:
    return tuple(Signal(task, signal.SIGTERM) for task in sorted(tasks))


def _kill(state: JobState, reason: str) -> Decision:
    tasks = sorted(state.running)
    return Decision(
        replace(state, kill_at=None, killed=True),
        tuple(Signal(task, signal.SIGKILL) for task in tasks),
        f"killing {', '.join(map(label, tasks))}: {reason}",
    )


def _failure(task: TaskName, returncode: int) -> Failure | None:
    if returncode == 0:
        return None
    exit_code = returncode if returncode > 0 else 128 - returncode
    return Failure(task=task, exit_code=exit_code, reason=how_it_ended(returncode))
