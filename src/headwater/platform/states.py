"""States of jobs and tasks, events that change them, and decisions of the policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal

from headwater.cluster.names import TaskName
from headwater.cluster.telemetry.progress import Progress
from headwater.platform.backends.base import Exited, Lost
from headwater.platform.spec import JobSpec


class JobPhase(StrEnum):
    """The phase of a job's lifecycle."""

    QUEUED = "queued"
    RUNNING = "running"
    ENDING = "ending"
    RESTARTING = "restarting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"

    @property
    def over(self) -> bool:
        """Whether the job has ended, so that only a user's request, such as a restart, can change its phase."""
        return self in (JobPhase.SUCCEEDED, JobPhase.FAILED, JobPhase.STOPPED)


class TaskPhase(StrEnum):
    """The phase of a task's lifecycle.

    A ``waiting`` task waits to be placed on a host, or for its start time. A ``starting`` task has been placed, and the
    platform starts it or has started it, but its start is not confirmed yet. An ``ending`` task has been asked to end.
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
        """Whether the task has, or may have, a process."""
        return self in (TaskPhase.STARTING, TaskPhase.RUNNING, TaskPhase.ENDING)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """A failure of a task.

    Attributes:
      task: the task's label: ``worker-0``.
      at: when, in seconds since 1970.
      attempt: the task's attempt, from 0.
      code: the exit code; None without an exit code.
      reason: in words.
      last_lines: the last lines of the task's output.
    """

    task: str
    at: float
    attempt: int
    code: int | None
    reason: str
    last_lines: tuple[str, ...] = ()

    def __str__(self) -> str:
        last = next((line.strip() for line in reversed(self.last_lines) if line.strip()), "")
        return f"{self.task} failed: {self.reason}" + (f": {last[:300]}" if last else "")


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskState:
    """The state of a task. Times are in seconds since 1970.

    Attributes:
      name: the name of the task.
      phase: the phase of its lifecycle.
      attempt: the number of earlier starts, including starts that were never confirmed.
      placed: whether a host is reserved for it.
      start_at: the earliest time to start it.
      started_at: when this attempt began; None before.
      ended_at: when it ended; None before.
      restarts: the number of restarts that count against the job's limit; see `RestartSpec`.
      code: the task's exit code, once it has ended.
      reason: why the task waits, ends or has ended.
      verdict: the failure for which the platform ends the task, in words, such as a stall. Empty if the platform does
        not end the task, or ends it for another reason than a failure.
      first: the first failure of the current series of failures; None without one. A series ends when the task has run
        long enough without a failure.
      step: the global step that the task last reported.
      steps_per_s: its speed, as reported.
      loss: its loss, as reported.
      metrics: further metrics that it reported, by name.
      together: whether the task has reported that it makes each step together with all other workers, as in mirrored
        training, so that it cannot continue without them.
      host: its host, as reported by an engine.
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
        """The task's label, for people and in file names."""
        return label(self.name)

    def after(self, progress: Progress, now: float) -> TaskState:
        """Returns the state after a report of the task, which need not contain all values."""
        moved = progress.step is not None and progress.step != self.step
        return replace(
            self,
            step=progress.step if moved else self.step,
            steps_per_s=progress.steps_per_s,
            loss=self.loss if progress.loss is None else progress.loss,
            metrics=progress.metrics or self.metrics,
            together=self.together or bool(progress.together),
            progress_at=now if moved else self.progress_at,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class JobState:
    """The state of a job. Times are in seconds since 1970.

    Attributes:
      spec: its specification.
      phase: the phase of its lifecycle.
      then: in phase ``ending``, the phase that follows; otherwise None.
      reason: the reason of the phase: why the job waits, or how it ended.
      workers: the desired number of workers.
      ps: the desired number of ``ps``; None for the initial number.
      fixed: whether a user chose the number of workers, so that it does not follow the free resources.
      queued_at: the time at which the job began to wait for resources.
      not_before: the time before which the job is neither placed nor restarted: the end of the pause after a failure.
      started_at: the time of its first start; None before.
      attempt_at: when all of its tasks were last started together; None before.
      ended_at: when it ended; None before.
      restarts: the number of restarts of the whole job that count against the limit.
      requeues: how often the job returned to the queue after a preemption.
      attempt: the number of earlier starts of the whole job.
      first: the first failure of the current series of failures, as in `TaskState`.
      spent: seconds that finished attempts of tasks have run, by role.
      preemptions: how often tasks, or the whole job, were preempted.
      lost_steps: steps that had to be repeated after preemptions.
      furthest: the highest step that a task had reported when tasks were preempted. Once the step at which training
        resumes is known, the difference is added to ``lost_steps``, and ``furthest`` becomes None again.
      preempted_at: the time of the last preemption, until its lost steps are known; otherwise None.
      tasks: its tasks, in start order.
      next_attempts: the next attempt numbers of tasks that are currently not in ``tasks``, by label.
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
        """Returns this state with ``task`` replaced."""
        return replace(self, tasks={**self.tasks, task.name: task})


@dataclass(frozen=True, slots=True)
class Placed:
    """``tasks`` have been placed.

    Attributes:
      tasks: the names of the tasks.
      workers: for a job that starts with as many workers as fit, that number; otherwise None.
    """

    tasks: tuple[TaskName, ...]
    workers: int | None = None


@dataclass(frozen=True, slots=True)
class NotPlaced:
    """Tasks cannot be placed now.

    Attributes:
      reason: why, in words.
      temporary: whether the tasks can be placed later, for example when other tasks have ended.
    """

    reason: str
    temporary: bool = True


@dataclass(frozen=True, slots=True)
class Started:
    """The process of ``task`` has started."""

    task: TaskName


@dataclass(frozen=True, slots=True)
class CouldNotStart:
    """The host of ``task`` does not answer, or failed to start it."""

    task: TaskName
    reason: str


@dataclass(frozen=True, slots=True)
class Progressed:
    """``task`` has reported progress."""

    task: TaskName
    progress: Progress


@dataclass(frozen=True, slots=True)
class Ended:
    """``task`` has ended, or is lost."""

    task: TaskName
    how: Exited | Lost


@dataclass(frozen=True, slots=True)
class AskStop:
    """A request to stop the job, or with ``requeue`` to put it back into the queue, as after a preemption."""

    by: str
    requeue: bool = False


@dataclass(frozen=True, slots=True)
class AskRestart:
    """A request to restart the job."""

    by: str


@dataclass(frozen=True, slots=True)
class AskScale:
    """A request to change the number of workers or of ``ps``.

    Attributes:
      by: the name of the requester.
      workers: the desired number of workers; None for no change.
      ps: the desired number of ``ps``; None for no change.
      restart_all: whether the change requires a restart of all tasks.
      fixed: whether the job keeps exactly this number of workers, whatever resources are free.
    """

    by: str
    workers: int | None = None
    restart_all: bool = False
    fixed: bool = True
    ps: int | None = None


@dataclass(frozen=True, slots=True)
class JobTick:
    """Time has passed; deadlines and pauses are checked."""


Event = Placed | NotPlaced | Started | CouldNotStart | Progressed | Ended | AskStop | AskRestart | AskScale | JobTick

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
    """An event for the job's history, with its reason.

    Attributes:
      kind: the kind of event.
      text: in words.
      task: the label, such as ``worker-0``, of the task that the note concerns; empty for the job.
    """

    kind: NoteKind
    text: str
    task: str = ""


@dataclass(frozen=True, slots=True)
class JobDecision:
    """The result of the policy: the next state, which determines all actions, and notes for the history."""

    state: JobState
    notes: tuple[Note, ...] = ()


def label(task: TaskName) -> str:
    """Returns the label of a task: ``worker-0``."""
    return f"{task.job}-{task.index}"


def task_of(text: str) -> TaskName:
    """Parses ``worker-0`` or ``worker 0``; ValueError for anything else."""
    role, separator, index = text.replace(" ", "-").rpartition("-")
    if not separator or not role or not index.isascii() or not index.isdigit():
        raise ValueError(f"{text!r} is not a task; a task looks like worker-0")
    return TaskName(role, int(index))
