"""Progress of the job's tasks, from their reports or, without reports, from their output."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from headwater.cluster.names import TaskName
from headwater.cluster.telemetry.printed import read_line
from headwater.cluster.telemetry.progress import Progress
from headwater.platform.cli.launcher.job import label

# The job's speed is measured over the reports of this last period, in seconds.
_WINDOW_S = 5.0
# A task's speed that was reported longer ago than this is not shown, in seconds.
_STALE_AFTER_S = 10.0


@dataclass(slots=True)
class _TaskProgress:
    steps_per_s: float
    at: float


class StatusBoard:
    """Collects progress and renders it as one line.

    Times are seconds of the caller's clock.

    Args:
      tasks: the tasks that report.
      started: when the job started.
    """

    def __init__(self, tasks: Sequence[TaskName], started: float) -> None:
        self._tasks = {str(task): task for task in tasks}
        self._started = started
        self._speeds: dict[TaskName, _TaskProgress] = {}
        self._steps: deque[tuple[float, int]] = deque()
        self._loss: float | None = None
        self._steps_reported = self._losses_reported = False

    def report(self, progress: Progress, now: float) -> None:
        """Adds a report; ignores reports of unknown tasks."""
        task = self._tasks.get(progress.task)
        if task is None:
            return
        if progress.steps_per_s is not None:
            self._speeds[task] = _TaskProgress(progress.steps_per_s, now)
        self._record_progress(progress.step, progress.loss, now)
        self._steps_reported = self._steps_reported or progress.step is not None
        self._losses_reported = self._losses_reported or progress.loss is not None

    def add_line(self, line: str, now: float) -> None:
        """Adds a line of a task's output. A step and a loss in it are used only until tasks send reports."""
        if self._steps_reported and self._losses_reported:
            return
        printed = read_line(line)
        if printed is not None:
            step = None if self._steps_reported else printed.step
            self._record_progress(step, None if self._losses_reported else printed.loss, now)

    def render(self, now: float) -> str:
        """Returns one line: global step, steps per second in total and per task, loss, time since the start."""
        parts: list[str] = []
        if self._steps:
            parts.append(f"step {self._steps[-1][1]:,}")
        speeds = {task: entry.steps_per_s for task, entry in self._speeds.items() if now - entry.at < _STALE_AFTER_S}
        each = ", ".join(f"{label(task)} {speeds[task]:,.0f}" for task in sorted(speeds))
        total = sum(speeds.values()) if speeds else self._total_speed()
        if total is not None:
            parts.append(f"{total:,.0f} steps/s" + (f" ({each})" if len(speeds) > 1 else ""))
        if self._loss is not None:
            parts.append(f"loss {self._loss:.4g}")
        minutes, seconds = divmod(int(now - self._started), 60)
        parts.append(f"{minutes}:{seconds:02d}")
        return " · ".join(parts)

    def _record_progress(self, step: int | None, loss: float | None, now: float) -> None:
        if loss is not None:
            self._loss = loss
        if step is None or (self._steps and step < self._steps[-1][1]):
            return  # the step is global: a lower step is from an older report
        self._steps.append((now, step))
        while len(self._steps) > 2 and self._steps[0][0] < now - _WINDOW_S:
            self._steps.popleft()

    def _total_speed(self) -> float | None:
        if len(self._steps) < 2:
            return None
        (first_at, first), (last_at, last) = self._steps[0], self._steps[-1]
        return (last - first) / (last_at - first_at) if last_at > first_at else None
