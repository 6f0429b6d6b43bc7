"""What is known of a job and its tasks, what can happen to them, and what the policy says to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal

from headwater.cluster.names import TaskName
from headwater.platform.backends.base import Exited, Lost
from headwater.platform.spec import JobSpec


class JobPhase(StrEnum):
    """Where a job is in its life."""

    QUEUED = "queued"
    RUNNING = "running"
    ENDING = "ending"
    RESTARTING = "restarting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"

    @property
    def over(self) -> bool:
        """Whether nothing more happens unless somebody asks for it."""
        return self in (JobPhase.SUCCEEDED, JobPhase.FAILED, JobPhase.STOPPED)


class TaskPhase(StrEnum):
    """Where a task is in its life.

    ``waiting`` for its turn, ``starting`` once it is to be started, ``ending`` once it was asked to end.
    """

    WAITING = "waiting"
    STARTING = "starting"
    RUNNING = "running"
    ENDING = "ending"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"

    @property
    def alive(self) -> bool:
        """Whether there is, or may be, a process of the task."""
        return self in (TaskPhase.STARTING, TaskPhase.RUNNING, TaskPhase.ENDING)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """One failure of a task.

    Attributes:
      task: which, as people write it: ``worker-0``.
      at: when, in seconds since 1970.
      attempt: of the task, from 0.
      code: the exit code, None where there is none.
      reason: in words.
      last_lines: what it printed last.
    """

    task: str
    at: float
    attempt: int
    code: int | None
    reason: str
    last_lines: tuple[str, ...] = ()

    def __str__(self) -> str:
        said = next((line.strip() for line in reversed(self.last_lines) if line.strip()), "")
        return f"{self.task} failed: {self.reason}" + (f": {said[:300]}" if said else "")


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskState:
    """One task. Times are in seconds since 1970.

    Attributes:
      name: which.
      phase: where it is in its life.
      attempt: how often it has been started before, or may have been.
      placed: whether it has a place to run at.
      start_at: not to be started before.
      started_at: when this attempt began; None before.
      ended_at: when it ended; None before.
      restarts: failures that count against the limit.
      code: its exit code, once it has ended.
      reason: why it waits, ends or ended.
      verdict: why it is being ended by us as a failure of its own; empty where that is not so.
      first: its first failure since it was healthy.
      step: the global step that it reported last.
      steps_per_s: its speed, as reported.
      loss: its loss, as reported.
      metrics: further numbers that it reported, by name.
      together: whether it has reported that it cannot go on without the others.
      host: where an engine runs it, as far as that tells.
      progress_at: when its step last changed.
    """

    name: TaskName
    phase: TaskPhase = TaskPhase.WAITING
    attempt: int = 0
    placed: bool = False
    start_at: float = 0.0
    started_at: float | None = None
    ended_at: float | None = None
    restarts: int = 0
    code: int | None = None
    reason: str = ""
    verdict: str = ""
    first: Fault | None = None
    step: int | None = None
    steps_per_s: float | None = None
    loss: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    together: bool = False
    host: str = ""
    progress_at: float | None = None

    @property
    def label(self) -> str:
        """The task's name for people and files."""
        return label(self.name)


@dataclass(frozen=True, kw_only=True, slots=True)
class JobState:
    """One job. Times are in seconds since 1970.

    Attributes:
      spec: what it is.
      phase: where it is in its life.
      then: what follows on ``ending``.
      reason: why it is where it is: what it waits for, or what it ended with.
      workers: how many workers are wanted.
      ps: how many ``ps`` are wanted; None for as many as the job begins with.
      fixed: whether somebody chose that number, so that it is not to be found by what there is room for.
      queued_at: since when it waits for resources.
      not_before: a pause: it is neither placed nor restarted before.
      started_at: when it first ran; None before.
      attempt_at: when all of its tasks were last started together; None before.
      ended_at: when it was over; None before.
      restarts: of the whole job, that count against the limit.
      requeues: how often it went back to the queue after a preemption.
      attempt: how often the whole job has been started before.
      first: its first failure since it was healthy.
      spent: seconds that tasks of each role ran in lives that are over.
      preemptions: how often tasks, or all of it, were taken away by something that the engine prefers.
      lost_steps: steps that had to be made again after that.
      furthest: the step at which it was when it was last preempted, until it is known from where it went on.
      preempted_at: when that was.
      tasks: its tasks, in the order in which they are started.
      next_attempts: with which attempts tasks come back that were left out of ``tasks``, by label.
    """

    spec: JobSpec
    phase: JobPhase = JobPhase.QUEUED
    then: JobPhase | None = None
    reason: str = ""
    workers: int
    ps: int | None = None
    fixed: bool = False
    queued_at: float
    not_before: float = 0.0
    started_at: float | None = None
    attempt_at: float | None = None
    ended_at: float | None = None
    restarts: int = 0
    requeues: int = 0
    attempt: int = 0
    first: Fault | None = None
    spent: Mapping[str, float] = field(default_factory=dict[str, float])
    preemptions: int = 0
    lost_steps: int = 0
    furthest: int | None = None
    preempted_at: float | None = None
    tasks: Mapping[TaskName, TaskState] = field(default_factory=dict[TaskName, TaskState])
    next_attempts: Mapping[str, int] = field(default_factory=dict[str, int])

    def with_task(self, task: TaskState) -> JobState:
        """This state with ``task`` in place of what it was."""
        return replace(self, tasks={**self.tasks, task.name: task})


@dataclass(frozen=True, slots=True)
class Placed:
    """``tasks`` have places; ``workers``: how many there was room for, where that was to be found out."""

    tasks: tuple[TaskName, ...]
    workers: int | None = None


@dataclass(frozen=True, slots=True)
class NotPlaced:
    """There is no place for the tasks that need one, and why; ``ever``: whether there may be one later."""

    reason: str
    ever: bool = True


@dataclass(frozen=True, slots=True)
class Started:
    """The process of ``task`` runs."""

    task: TaskName


@dataclass(frozen=True, slots=True)
class CouldNotStart:
    """The place of ``task`` does not answer."""

    task: TaskName
    reason: str


@dataclass(frozen=True, slots=True)
class Progressed:
    """``task`` reported."""

    task: TaskName
    step: int | None
    steps_per_s: float | None = None
    loss: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    together: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """``task`` has ended, or is lost."""

    task: TaskName
    how: Exited | Lost


@dataclass(frozen=True, slots=True)
class AskStop:
    """Somebody wants the job to end; ``requeue``: and to go back to the queue, as after a preemption."""

    by: str
    requeue: bool = False


@dataclass(frozen=True, slots=True)
class AskRestart:
    """Somebody wants the job to start anew."""

    by: str


@dataclass(frozen=True, slots=True)
class AskScale:
    """Somebody wants another number of workers, or of ``ps``.

    Attributes:
      by: who.
      workers: how many; None for as many as there are.
      ps: likewise.
      anew: whether that needs a new start of all tasks.
      fixed: whether the number stays, whatever there is room for.
    """

    by: str
    workers: int | None = None
    anew: bool = False
    fixed: bool = True
    ps: int | None = None


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


Event = Placed | NotPlaced | Started | CouldNotStart | Progressed | Ended | AskStop | AskRestart | AskScale | Tick

NoteKind = Literal[
    "queued",
    "pending",
    "placed",
    "started",
    "succeeded",
    "failed",
    "restarting",
    "lost",
    "preempted",
    "stalled",
    "ending",
    "stopped",
    "scaled",
    "asked",
]


@dataclass(frozen=True, slots=True)
class Note:
    """Why something was decided, for the job's history.

    Attributes:
      kind: what sort of thing.
      text: in words.
      task: ``worker-0`` for what concerns one task; empty for the job.
    """

    kind: NoteKind
    text: str
    task: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """What follows: the next state, which says all that is to be done, and why."""

    state: JobState
    notes: tuple[Note, ...] = ()


def label(task: TaskName) -> str:
    """``worker-0``."""
    return f"{task.job}-{task.index}"


def task_of(text: str) -> TaskName:
    """The task that ``worker-0``, or ``worker 0``, names; ValueError for anything else."""
    role, separator, index = text.replace(" ", "-").rpartition("-")
    if not separator or not role or not index.isascii() or not index.isdigit():
        raise ValueError(f"{text!r} is no task; one looks like worker-0")
    return TaskName(role, int(index))
