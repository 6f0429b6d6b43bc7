"""The diagram of a job's cluster: its tasks as boxes, with lines between tasks that communicate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headwater.cluster.telemetry.task_activity import TaskActivity
from headwater.platform.views import JobView, TaskView

BOX_WIDTH, BOX_HEIGHT = 196, 92
_GAP_X, _GAP_Y, _ROW_GAP, _MARGIN = 24, 76, 20, 12
_MAX_IN_ROW = 6
_MAX_EDGES = 600
_FASTEST = 1e9


@dataclass(frozen=True, kw_only=True, slots=True)
class Box:
    """A task, with the upper left corner of its box."""

    x: float
    y: float
    task: TaskView
    activity: TaskActivity


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """A connection between two tasks.

    Attributes:
      x1, y1, x2, y2: its end points.
      width: the width of the line, which increases with the rate.
      between: the labels of both tasks.
      rate: bytes per second in both directions; None if unknown.
    """

    x1: float
    y1: float
    x2: float
    y2: float
    width: float
    between: tuple[str, str]
    rate: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Picture:
    """The diagram of a cluster; lengths are in pixels before scaling."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]


def draw(job: JobView, activities: Mapping[str, TaskActivity]) -> Picture:
    """Draws a job's cluster: parameter servers on top, training tasks below them, an evaluator last.

    Args:
      activities: reports of its tasks, by label; may be incomplete.
    """
    layers = [
        [task for task in job.tasks if task.role in roles] for roles in (("ps",), ("chief", "worker"), ("evaluator",))
    ]
    rows = [(layer, row) for layer, tasks in enumerate(layers) for row in _rows(tasks)]
    widest = max((len(row) for _, row in rows), default=1)
    width = widest * BOX_WIDTH + (widest - 1) * _GAP_X + 2 * _MARGIN
    boxes: list[Box] = []
    y, previous = float(_MARGIN), -1
    for layer, row in rows:
        if previous >= 0:
            y += BOX_HEIGHT + (_ROW_GAP if layer == previous else _GAP_Y)
        previous = layer
        x = (width - len(row) * BOX_WIDTH - (len(row) - 1) * _GAP_X) / 2
        for task in row:
            boxes.append(Box(x=x, y=y, task=task, activity=activities.get(task.name, TaskActivity())))
            x += BOX_WIDTH + _GAP_X
    height = y + BOX_HEIGHT + _MARGIN if boxes else 2 * _MARGIN
    return Picture(width=width, height=height, boxes=tuple(boxes), lines=tuple(_lines(boxes)))


def _rows(tasks: Sequence[TaskView]) -> list[Sequence[TaskView]]:
    """Splits tasks into rows of about the same length."""
    if not tasks:
        return []
    rows = math.ceil(len(tasks) / _MAX_IN_ROW)
    length = math.ceil(len(tasks) / rows)
    return [tasks[start : start + length] for start in range(0, len(tasks), length)]


def _lines(boxes: Sequence[Box]) -> list[Line]:
    lines: list[Line] = []
    known = any(box.activity.bytes_per_s for box in boxes)
    for number, one in enumerate(boxes):
        for other in boxes[number + 1 :]:
            if len(lines) == _MAX_EDGES:
                return lines
            rate = _rate(one, other)
            if rate is not None or (not known and _may_communicate(one, other, boxes)):
                lines.append(_line(one, other, rate))
    return lines


def _rate(one: Box, other: Box) -> float | None:
    """Returns bytes per second between two tasks; both ends count the same bytes, so the greater value is used."""
    seen = [
        sum(box.activity.bytes_per_s[peer.task.name])
        for box, peer in ((one, other), (other, one))
        if peer.task.name in box.activity.bytes_per_s
    ]
    return max(seen, default=None)


def _may_communicate(one: Box, other: Box, boxes: Sequence[Box]) -> bool:
    """Infers from their roles whether two tasks communicate: each task with the ps, or without ps all training
    tasks with each other."""
    roles = {one.task.role, other.task.role}
    if "evaluator" in roles:
        return False
    if any(box.task.role == "ps" for box in boxes):
        return "ps" in roles and len(roles) > 1
    return True


def _line(one: Box, other: Box, rate: float | None) -> Line:
    x1, x2 = one.x + BOX_WIDTH / 2, other.x + BOX_WIDTH / 2
    y1, y2 = one.y + BOX_HEIGHT / 2, other.y + BOX_HEIGHT / 2
    if one.y < other.y:
        y1, y2 = one.y + BOX_HEIGHT, other.y
    width = 1.5 if not rate else 1.5 + 4.5 * min(1.0, math.log10(1 + rate) / math.log10(_FASTEST))
    return Line(x1=x1, y1=y1, x2=x2, y2=y2, width=round(width, 2), between=(one.task.name, other.task.name), rate=rate)
