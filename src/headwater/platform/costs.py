"""The cost of a job: how long its tasks ran, how often they were preempted, and how many steps were lost.

`account` compares two states of a job, before and after one decision, so that it counts in the same way on every
backend.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from headwater.platform.spec import ROLES
from headwater.platform.states import JobState, Note, TaskState

_HOUR_S = 3600.0
# Costs below this many task-hours are not shown.
_MIN_SHOWN_H = 0.005


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """The cost of a job up to some moment.

    Attributes:
      task_hours: hours that tasks ran, by role; without roles that did not run.
      cpu_hours: the same hours times the CPUs that the role requests.
      gpu_hours: the same hours times the GPUs that the role requests.
      preemptions: how often tasks, or the whole job, were preempted.
      lost_steps: steps that were repeated after preemptions, because they had not been saved.
    """

    task_hours: Mapping[str, float]
    cpu_hours: float
    gpu_hours: float
    preemptions: int
    lost_steps: int


def account(before: JobState, after: JobState, notes: Iterable[Note], now: float) -> JobState:
    """Adds the cost up to ``now`` to a job's state.

    Args:
      before: the job's state before the change.
      after: its state after the change.
      notes: the notes of the change.
      now: the time of the change, in seconds.

    Returns:
      ``after`` with the cost.
    """
    spent = dict(after.spent)
    for name, task in before.tasks.items():
        if task.started_at is None or (task.ended_at is not None and task.ended_at >= task.started_at):
            continue
        later = after.tasks.get(name)
        if later is not None and later.started_at == task.started_at and not _over(later):
            continue
        ended = later.ended_at if later is not None and later.ended_at is not None else now
        spent[name.job] = spent.get(name.job, 0.0) + max(0.0, ended - task.started_at)
    if spent != after.spent:
        after = replace(after, spent=spent)
    taken = sum(note.kind == "preempted" for note in notes)
    if taken:
        after = replace(after, preemptions=after.preemptions + taken, preempted_at=now)
        steps = [task.step for task in before.tasks.values() if task.step is not None]
        if after.furthest is None and steps:
            after = replace(after, furthest=max(steps))
    return _with_lost_steps(before, after)


def cost(state: JobState, now: float) -> Cost:
    """Returns the cost of a job up to ``now``."""
    seconds = dict(state.spent)
    for name, task in state.tasks.items():
        if task.started_at is not None and not _over(task):
            seconds[name.job] = seconds.get(name.job, 0.0) + max(0.0, now - task.started_at)
    asked = {role: state.spec.role(role) for role in ROLES}
    return Cost(
        task_hours={role: seconds[role] / _HOUR_S for role in ROLES if seconds.get(role)},
        cpu_hours=sum(asked[role].cpus * seconds.get(role, 0.0) for role in ROLES) / _HOUR_S,
        gpu_hours=sum(asked[role].gpus * seconds.get(role, 0.0) for role in ROLES) / _HOUR_S,
        preemptions=state.preemptions,
        lost_steps=state.lost_steps,
    )


def cost_in_words(cost: Cost) -> str:
    """Returns ``cost`` in words; empty if less than `_MIN_SHOWN_H` hours have run and no task was preempted."""
    total = sum(cost.task_hours.values())
    if total < _MIN_SHOWN_H and not cost.preemptions:
        return ""
    kinds = ", ".join(f"{role} {hours:.2f}" for role, hours in cost.task_hours.items())
    text = f"Cost: {total:.2f} task-hours ({kinds})"
    text += f", {cost.cpu_hours:.2f} CPU-hours" if cost.cpu_hours else ""
    text += f", {cost.gpu_hours:.2f} GPU-hours" if cost.gpu_hours else ""
    if cost.preemptions:
        times = f"{cost.preemptions} time{'s' if cost.preemptions > 1 else ''}"
        text += f". Preempted {times}: {cost.lost_steps:,} steps had to be repeated"
    return text


def _over(task: TaskState) -> bool:
    return task.ended_at is not None and (task.started_at is None or task.ended_at >= task.started_at)


def _with_lost_steps(before: JobState, after: JobState) -> JobState:
    """Returns ``after`` with the steps lost by the last preemption, once a task reports where training resumed."""
    if after.furthest is None or after.preempted_at is None:
        return after
    for name, task in after.tasks.items():
        known = before.tasks.get(name)
        if task.step is None or (known is not None and known.step == task.step):
            continue
        lives = task.started_at is not None and task.started_at >= after.preempted_at
        # Only restarted tasks show where training resumed; tasks that were not preempted continue with their old steps.
        if task.step < after.furthest or lives:
            lost = max(0, after.furthest - task.step)
            return replace(after, lost_steps=after.lost_steps + lost, furthest=None, preempted_at=None)
    return after
