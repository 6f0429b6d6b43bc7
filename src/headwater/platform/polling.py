"""Polling of a job's tasks, and sampling of the results."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.cluster.names import TaskName
from headwater.cluster.telemetry.task_activity import TaskActivity
from headwater.platform.backends.base import Exited, Lost, Running, TaskBackend, Usage
from headwater.platform.records import Attempt, JobRecord, Sample
from headwater.platform.states import Ended, Event, Progressed, TaskPhase, TaskState

# About this many samples are kept for each tenfold of a task's run time.
_SAMPLES = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class PollResult:
    """The result of polling a job's tasks.

    Attributes:
      events: the events since the last poll, in order.
      usages: the resource usage of each running task.
      activities: the traffic, staleness and waits that each running task reports in addition to its progress.
    """

    events: tuple[Event, ...]
    usages: dict[TaskName, Usage]
    activities: dict[TaskName, TaskActivity]


def poll_tasks(record: JobRecord, backend: TaskBackend, now: float) -> PollResult:
    """Polls all tasks of a job that may have a process; raises `BackendError`."""
    ends: list[tuple[float, Ended]] = []
    moves: list[Event] = []
    usages: dict[TaskName, Usage] = {}
    activities: dict[TaskName, TaskActivity] = {}
    for name, task in record.state.tasks.items():
        if not task.phase.alive or task.phase is TaskPhase.STARTING:
            continue
        handle = record.handles.get(name)
        if handle is None:
            ends.append((0.0, Ended(name, Exited(code=-15, reason="was never started", stopped=True))))
            continue
        status = backend.poll(handle)
        progress = None if isinstance(status, Lost) else status.progress
        if progress is not None and task.after(progress, now) != task:
            moves.append(Progressed(name, progress))
        if progress is not None and progress.activity is not None and isinstance(status, Running):
            activities[name] = progress.activity
        if not isinstance(status, Running):
            ends.append((status.at if isinstance(status, Exited) else now, Ended(name, status)))
        elif status.usage is not None:
            usages[name] = status.usage
    # Order by time, so that the first failure is the earliest failure, not the failure that was polled first.
    ends.sort(key=lambda entry: entry[0])
    return PollResult(events=(*moves, *(end for _, end in ends)), usages=usages, activities=activities)


def ended_attempt(begun: Attempt, task: TaskState, how: Exited | Lost, now: float) -> Attempt:
    """Returns the attempt ``begun`` of ``task``, completed with its end."""
    return Attempt(
        task=begun.task,
        attempt=begun.attempt,
        host=begun.host,
        started_at=begun.started_at,
        ended_at=how.at or now if isinstance(how, Exited) else now,
        code=how.code if isinstance(how, Exited) else None,
        reason=task.verdict or how.reason,
        last_lines=how.last_lines if isinstance(how, Exited) else (),
    )


class Sampler:
    """Samples running tasks, initially every ``interval_s``, and less often the longer a task runs."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._at: dict[tuple[str, TaskName], float] = {}

    def due_samples(self, record: JobRecord, now: float) -> list[Sample]:
        """Returns the samples of a job that are due."""
        samples: list[Sample] = []
        for name, task in record.state.tasks.items():
            usage = record.usages.get(name)
            if not task.phase.alive and task.ended_at is not None and task.step is not None:
                # Always sample the final progress, however short the attempt was.
                if self._at.get((record.id, name), 0.0) < task.ended_at:
                    self._at[record.id, name] = task.ended_at
                    samples.append(
                        Sample(task=task.label, at=task.ended_at, step=task.step, loss=task.loss, metrics=task.metrics)
                    )
                continue
            if task.phase is not TaskPhase.RUNNING or task.started_at is None or (task.step is None and usage is None):
                continue
            interval = max(self._interval_s, (now - task.started_at) / _SAMPLES)
            if now - self._at.get((record.id, name), 0.0) >= interval:
                self._at[record.id, name] = now
                samples.append(
                    Sample(
                        task=task.label,
                        at=now,
                        step=task.step,
                        steps_per_s=task.steps_per_s,
                        loss=task.loss,
                        metrics=task.metrics,
                        usage=usage,
                    )
                )
        return samples

    def forget(self, job_id: str) -> None:
        """Forgets a job that is over."""
        self._at = {key: at for key, at in self._at.items() if key[0] != job_id}
