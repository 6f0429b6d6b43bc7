"""JSON representations of jobs, tasks and related records in the API."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict

from headwater.data.io.json_types import Json, JsonObject
from headwater.platform.backends.base import HostCapacity
from headwater.platform.costs import cost, cost_in_words
from headwater.platform.records import JobEvent, JobRecord
from headwater.platform.states import JobPhase, JobState, TaskPhase, TaskState

HIDDEN = "(hidden)"
"""The placeholder of a variable's value that the reader may not see."""


class ApiView(BaseModel):
    """Base of all representations. Times are seconds since 1970, sizes bytes."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, from_attributes=True)


class RecordView(ApiView):
    """Base of representations whose fields are attributes of a record."""

    @classmethod
    def of(cls, record: object) -> Self:
        """Returns the view of ``record``."""
        return cls.model_validate(record)


def _number(value: Json) -> Json:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


Loss = Annotated[float | Literal["nan", "inf", "-inf"] | None, BeforeValidator(_number)]
"""A loss. Values that are not finite are strings, since JSON has no numbers for them."""


class ProblemView(ApiView):
    """A wrong field."""

    field: str
    line: int | None
    message: str


class ErrorView(ApiView):
    """The reason why a request was refused."""

    message: str
    problems: list[ProblemView] = []


class UsageView(RecordView):
    """Resource usage of a task."""

    cpu_s: float
    memory_bytes: int
    gpu_memory_bytes: int | None
    gpu_utilization: float | None


class FaultView(RecordView):
    """A failure of a task."""

    task: str
    at: float
    attempt: int
    code: int | None
    reason: str
    last_lines: list[str]


class TaskView(ApiView):
    """A task of a job."""

    name: str
    role: str
    index: int
    phase: TaskPhase
    attempt: int
    restarts: int
    host: str | None
    address: str | None
    started_at: float | None
    ended_at: float | None
    code: int | None
    reason: str
    step: int | None
    steps_per_s: float | None
    loss: Loss
    metrics: Mapping[str, Loss]
    usage: UsageView | None

    @classmethod
    def of(cls, record: JobRecord, task: TaskState) -> Self:
        """Returns the view of ``task``."""
        place, usage = record.places.get(task.name), record.usages.get(task.name)
        return cls(
            name=task.label,
            role=task.name.job,
            index=task.name.index,
            phase=task.phase,
            attempt=task.attempt,
            restarts=task.restarts,
            host=place.host if place is not None else task.host or None,
            address=place.address if place is not None else None,
            started_at=task.started_at,
            ended_at=task.ended_at,
            code=task.code,
            reason=task.reason,
            step=task.step,
            steps_per_s=task.steps_per_s,
            loss=task.loss,
            metrics=task.metrics,
            usage=UsageView.of(usage) if usage is not None else None,
        )


class CostView(ApiView):
    """The cost of a job: hours by role, CPU and GPU hours, effects of preemptions, and a summary in words."""

    task_hours: dict[str, float]
    cpu_hours: float
    gpu_hours: float
    preemptions: int
    lost_steps: int
    text: str

    @classmethod
    def of(cls, state: JobState) -> Self:
        """Returns the cost of ``state`` up to now, rounded so that it changes each half minute, not with each call."""
        spent = cost(state, time.time())
        return cls(
            task_hours={role: round(hours, 2) for role, hours in spent.task_hours.items()},
            cpu_hours=round(spent.cpu_hours, 2),
            gpu_hours=round(spent.gpu_hours, 2),
            preemptions=spent.preemptions,
            lost_steps=spent.lost_steps,
            text=cost_in_words(spent),
        )


class JobSummary(ApiView):
    """A job in a list.

    Attributes:
      step: the greatest global step of the job's tasks.
      steps_per_s: the sum of the speeds of the job's tasks.
      tasks_running: the number of the job's running tasks.
      sweep: the sweep that it belongs to; None without one.
      settings: the values of this job that differ within its sweep.
    """

    id: str
    name: str
    owner: str
    backend: str
    phase: JobPhase
    reason: str
    workers: int
    tasks_running: int
    tasks_total: int
    priority: int
    submitted_at: float
    queued_at: float
    started_at: float | None
    ended_at: float | None
    restarts: int
    requeues: int
    step: int | None
    steps_per_s: float | None
    loss: Loss
    sweep: str | None
    settings: dict[str, str]

    @classmethod
    def of(cls, record: JobRecord) -> Self:
        """Returns the summary of ``record``."""
        return cls(**_summary(record))


class JobView(JobSummary):
    """A job with all details.

    Attributes:
      workers_range: the range of the number of workers, e.g. ``2:8``.
      first_error: the first failure since the job was last healthy; if the job has failed, the cause.
      cost: the job's cost up to now.
      spec: the job's fields as in a job file, without fields that have their defaults.
    """

    workers_range: str
    first_error: FaultView | None
    cost: CostView
    tasks: list[TaskView]
    spec: JsonObject

    @classmethod
    def of(cls, record: JobRecord, *, values: bool = True) -> Self:
        """Returns the view of ``record``; without ``values``, only the names of its environment variables are shown."""
        state = record.state
        spec = state.spec.model_dump(mode="json", exclude_defaults=True)
        if not values:
            _hide_variables(spec)
        return cls(
            **_summary(record),
            workers_range=str(state.spec.workers.count),
            first_error=FaultView.of(state.first) if state.first is not None else None,
            cost=CostView.of(state),
            tasks=[TaskView.of(record, task) for task in state.tasks.values()],
            spec=spec,
        )


class JobList(ApiView):
    """Jobs, the latest first; ``before`` continues the list, None at its end."""

    jobs: list[JobSummary]
    before: float | None


class EventView(ApiView):
    """An event in a job's history, with its reason."""

    id: int
    job_id: str
    at: float
    task: str
    kind: str
    text: str

    @classmethod
    def of(cls, event: JobEvent) -> Self:
        """Returns the view of ``event``."""
        note = event.note
        return cls(id=event.id, job_id=event.job_id, at=event.at, task=note.task, kind=note.kind, text=note.text)


class AttemptView(RecordView):
    """An attempt, which is one start of one task."""

    task: str
    attempt: int
    host: str
    started_at: float
    ended_at: float | None
    code: int | None
    reason: str
    last_lines: list[str]


class SampleView(RecordView):
    """Speed and resource usage of a task at one moment."""

    task: str
    at: float
    step: int | None
    steps_per_s: float | None
    loss: Loss
    metrics: Mapping[str, Loss]
    usage: UsageView | None


class LogView(ApiView):
    """A part of a task's log.

    Attributes:
      offset: the offset of the part in the log, in bytes.
      next_offset: the offset of the end of this part, where the next part begins.
      size: the current size of the whole log.
    """

    task: str
    text: str
    offset: int
    next_offset: int
    size: int


class FoundLine(ApiView):
    """A line found by a search; ``offset`` is its offset in its task's log, in bytes."""

    task: str
    at: float | None
    line: str
    offset: int


class FoundView(ApiView):
    """Lines that contain a text. ``cursor`` continues the search; None at its end."""

    lines: list[FoundLine]
    cursor: str | None


class ResourcesView(RecordView):
    """CPUs, memory and GPUs."""

    cpus: float
    memory_bytes: int
    gpus: int


class HostView(ApiView):
    """A machine for tasks; ``problem`` has the reason if no task can be started there now."""

    backend: str
    host: str
    total: ResourcesView
    free: ResourcesView
    problem: str

    @classmethod
    def of(cls, backend: str, host: HostCapacity) -> Self:
        """Returns the view of ``host``."""
        return cls(
            backend=backend,
            host=host.host,
            total=ResourcesView.of(host.total),
            free=ResourcesView.of(host.free),
            problem=host.problem,
        )


class SecretView(RecordView):
    """A secret, without its value."""

    name: str
    owner: str
    stored_at: float


class TokenView(RecordView):
    """A token, without its secret."""

    id: str
    name: str
    role: Literal["view", "run", "admin"]
    created_at: float
    expires_at: float | None
    last_used_at: float | None


class NewTokenView(TokenView):
    """A new token. Its secret is shown here and never again."""

    secret: str


def _hide_variables(part: JsonObject) -> None:
    for name, value in part.items():
        if isinstance(value, dict):
            fields = cast("JsonObject", value)
            if name == "env":
                # The name of a secret is not confidential.
                part[name] = {key: content if isinstance(content, dict) else HIDDEN for key, content in fields.items()}
            else:
                _hide_variables(fields)


def _summary(record: JobRecord) -> JsonObject:
    state = record.state
    tasks = list(state.tasks.values())
    steps = [task.step for task in tasks if task.step is not None]
    speeds = [task.steps_per_s for task in tasks if task.steps_per_s is not None]
    losses = [task.loss for task in tasks if task.loss is not None]
    return {
        "id": record.id,
        "name": state.spec.name,
        "owner": record.owner,
        "backend": record.backend,
        "phase": state.phase,
        "reason": state.reason,
        "workers": state.workers,
        "tasks_running": sum(task.phase in (TaskPhase.RUNNING, TaskPhase.ENDING) for task in tasks),
        "tasks_total": len(tasks),
        "priority": state.spec.priority,
        "submitted_at": record.submitted_at,
        "queued_at": state.queued_at,
        "started_at": state.started_at,
        "ended_at": state.ended_at,
        "restarts": state.restarts + sum(task.restarts for task in tasks),
        "requeues": state.requeues,
        "step": max(steps, default=None),
        "steps_per_s": sum(speeds) if speeds else None,
        "loss": losses[-1] if losses else None,
        "sweep": record.sweep,
        "settings": dict(record.settings),
    }
