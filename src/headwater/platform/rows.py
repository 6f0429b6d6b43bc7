"""Conversion between records and rows of the database."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, fields
from typing import TYPE_CHECKING

from headwater.cluster.names import TaskName
from headwater.platform.backends.base import TaskPlace, Usage
from headwater.platform.records import Attempt, JobEvent, JobRecord, Sample, Token
from headwater.platform.spec import ROLES, JobSpec
from headwater.platform.states import Fault, JobPhase, JobState, Note, TaskPhase, TaskState
from headwater.platform.tables import AttemptRow, EventRow, JobRow, SampleRow, TaskRow, TokenRow

if TYPE_CHECKING:
    from headwater.data.io.json_types import JsonObject

# Fields that have the same name in the state and in the row.
_JOB_FIELDS = tuple(
    field.name for field in fields(JobState) if field.name not in ("spec", "phase", "then", "first", "tasks")
)
_TASK_FIELDS = tuple(
    field.name for field in fields(TaskState) if field.name not in ("name", "phase", "first", "metrics")
)
# Fields that have the same name in the record of a job and in its row.
_RECORD_FIELDS = ("id", "owner", "submitted_at", "backend", "archive", "handle", "handle_attempt", "holds", "sweep")
_USAGE_FIELDS = tuple(field.name for field in fields(Usage))


def job_values(record: JobRecord) -> dict[str, object]:
    """Returns the columns of a job's row."""
    state = record.state
    return {
        "name": state.spec.name,
        "settings": dict(record.settings),
        "spec": state.spec.model_dump(mode="json", exclude_defaults=True),
        "phase": state.phase.value,
        "then": state.then.value if state.then is not None else None,
        "first": _fault_values(state.first),
        **{name: getattr(record, name) for name in _RECORD_FIELDS},
        **{name: getattr(state, name) for name in _JOB_FIELDS},
    }


def task_values(record: JobRecord, task: TaskState) -> dict[str, object]:
    """Returns the columns of a task's row."""
    place, usage = record.places.get(task.name), record.usages.get(task.name)
    return {
        "job_id": record.id,
        "role": task.name.job,
        "number": task.name.index,
        "phase": task.phase.value,
        "first": _fault_values(task.first),
        "place": place.encode() if place is not None else None,
        "handle": record.handles.get(task.name),
        "usage": asdict(usage) if usage is not None else None,
        "metrics": dict(task.metrics),
        **{name: getattr(task, name) for name in _TASK_FIELDS},
    }


def job_record(row: JobRow, tasks: Iterable[TaskRow]) -> JobRecord:
    """Returns the job of a row, with its tasks in start order."""
    rows = sorted(tasks, key=lambda task: (_rank(task.role), task.number))
    named = [(TaskName(task.role, task.number), task) for task in rows]
    state = JobState(
        spec=JobSpec.model_validate(row.spec),
        phase=JobPhase(row.phase),
        then=JobPhase(row.then) if row.then is not None else None,
        first=_fault(row.first),
        tasks={
            name: TaskState(
                name=name,
                phase=TaskPhase(task.phase),
                first=_fault(task.first),
                metrics=task.metrics,
                **{field: getattr(task, field) for field in _TASK_FIELDS},
            )
            for name, task in named
        },
        **{name: getattr(row, name) for name in _JOB_FIELDS},
    )
    return JobRecord(
        **{name: getattr(row, name) for name in _RECORD_FIELDS},
        settings={name: str(value) for name, value in (row.settings or {}).items()},
        state=state,
        places={name: TaskPlace.decode(task.place) for name, task in named if task.place is not None},
        handles={name: task.handle for name, task in named if task.handle is not None},
        usages={name: Usage(**task.usage) for name, task in named if task.usage is not None},
    )


def event_record(row: EventRow) -> JobEvent:
    """Returns the event of a row."""
    note = Note(row.kind, row.text, row.task)  # pyright: ignore[reportArgumentType]  written by us from a Note
    return JobEvent(id=row.id, job_id=row.job_id, at=row.at, note=note)


def attempt_values(job_id: str, attempt: Attempt) -> dict[str, object]:
    """Returns the columns of an attempt's row."""
    return {"job_id": job_id, **asdict(attempt), "last_lines": list(attempt.last_lines)}


def attempt_record(row: AttemptRow) -> Attempt:
    """Returns the attempt of a row."""
    values: JsonObject = {field.name: getattr(row, field.name) for field in fields(Attempt)}
    values["last_lines"] = tuple(row.last_lines)
    return Attempt(**values)


def sample_values(job_id: str, sample: Sample) -> dict[str, object]:
    """Returns the columns of a sample's row."""
    usage = asdict(sample.usage) if sample.usage is not None else {}
    return {
        "job_id": job_id,
        "task": sample.task,
        "at": sample.at,
        "step": sample.step,
        "steps_per_s": sample.steps_per_s,
        "loss": sample.loss,
        "metrics": dict(sample.metrics),
        **{name: usage.get(name) for name in _USAGE_FIELDS},
    }


def sample_record(row: SampleRow) -> Sample:
    """Returns the sample of a row."""
    usage = None
    if row.cpu_s is not None and row.memory_bytes is not None:
        usage = Usage(**{name: getattr(row, name) for name in _USAGE_FIELDS})
    return Sample(
        task=row.task,
        at=row.at,
        step=row.step,
        steps_per_s=row.steps_per_s,
        loss=row.loss,
        metrics=row.metrics,
        usage=usage,
    )


def token_record(row: TokenRow) -> Token:
    """Returns the token of a row."""
    return Token(**{field.name: getattr(row, field.name) for field in fields(Token)})


def _rank(role: str) -> int:
    return [str(known) for known in ROLES].index(role)


def _fault_values(fault: Fault | None) -> dict[str, object] | None:
    return {**asdict(fault), "last_lines": list(fault.last_lines)} if fault is not None else None


def _fault(values: JsonObject | None) -> Fault | None:
    if values is None:
        return None
    lines: list[str] = values["last_lines"]
    others = {name: value for name, value in values.items() if name != "last_lines"}
    return Fault(**others, last_lines=tuple(lines))
