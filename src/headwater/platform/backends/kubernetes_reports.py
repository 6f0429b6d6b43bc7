"""Translates objects of a Kubernetes cluster to states of tasks and hosts: pure functions of its API's responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from headwater.cluster.names import TaskName
from headwater.platform.backends import kubernetes_objects as objects
from headwater.platform.backends.base import Exited, HostCapacity, JobReport, Resources, Running, TaskState

if TYPE_CHECKING:
    from headwater.data.io.json_types import Json, JsonObject


#: Phases of pods that have ended.
DONE = ("Succeeded", "Failed")
#: A shell's exit code for a program that does not exist or is not executable.
CANNOT_RUN = 127
_OUT_OF_MEMORY = "OOMKilled"
_PREEMPTION_REASONS = ("Evicted", "Preempting", "NodeLost", "Shutdown", "NodeShutdown", "Terminated")


def labelled_task(one: Mapping[str, Json]) -> TaskName:
    """Returns the task in an object's labels."""
    labels = one["metadata"]["labels"]
    return TaskName(labels[objects.ROLE_LABEL], int(labels[objects.INDEX_LABEL]))


def condition(one: Mapping[str, Json], *types: str) -> Mapping[str, Json] | None:
    """Returns the first true condition of a Job, pod or node that is of one of ``types``; None without one."""
    for entry in one.get("status", {}).get("conditions") or ():
        if entry["type"] in types and entry["status"] == "True":
            return entry
    return None


def job_report(
    jobs: Mapping[TaskName, Mapping[str, object]],
    tasks: Mapping[TaskName, TaskState],
    restarts: Mapping[TaskName, int],
    *,
    expected: Sequence[TaskName],
    chief: bool,
    without: Sequence[TaskName],
) -> JobReport:
    """Decides the state of a job.

    Args:
      jobs: the existing Jobs, by task.
      tasks: the state of each task's latest pod.
      restarts: how often each task has been restarted.
      expected: the tasks that must have a Job.
      chief: whether the job has a chief, which then decides its success; otherwise all workers do.
      without: workers that cannot be placed, although the job can continue without them.
    """
    for task, job in jobs.items():
        failed = condition(job, "Failed")
        if failed is not None and task.job != "evaluator":
            state = tasks[task]
            cause = state.reason if isinstance(state, Exited) and state.code else failed.get("message", "")
            reason = f"{task.job} {task.index} failed: {cause or failed.get('reason', 'no reason given')}"
            return JobReport(phase="failed", reason=reason, tasks=tasks, restarts=restarts)
    deciding = [
        task for task in tasks if (task.job == "chief" or (task.job == "worker" and not chief)) and task not in without
    ]
    if deciding and all(task in jobs and condition(jobs[task], "Complete") is not None for task in deciding):
        return JobReport(phase="succeeded", tasks=tasks, restarts=restarts)
    missing = [task for task in expected if task not in jobs]
    if missing:
        reason = f"the Job of {missing[0].job} {missing[0].index} does not exist: another client has deleted it"
        return JobReport(phase="lost", reason=reason, tasks=tasks, restarts=restarts)
    waiting = [(task, state) for task, state in tasks.items() if isinstance(state, Running) and state.waiting]
    if len(waiting) == len(tasks):
        task, state = waiting[0]
        return JobReport(
            phase="waiting", reason=f"{task.job} {task.index}: {state.waiting}", tasks=tasks, restarts=restarts
        )
    return JobReport(phase="running", tasks=tasks, restarts=restarts)


def without_node(pod: Mapping[str, Json]) -> bool:
    """Returns whether a pod waits because no node has room for it."""
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(one["type"] == "PodScheduled" and one.get("reason") == "Unschedulable" for one in conditions)


def is_suspended(job: Mapping[str, Json]) -> bool:
    """Returns whether a Job waits in a queue."""
    return bool(job["spec"].get("suspend"))


def failed_too_often(pods: Mapping[TaskName, list[dict[str, object]]], limit: int) -> TaskName | None:
    """Returns a task that has failed more than ``limit`` times by its own fault; None without one."""
    return next((task for task, attempts in pods.items() if count_failures(attempts) > limit), None)


def count_failures(attempts: list[dict[str, object]]) -> int:
    """Counts a task's pods that have failed and were neither stopped nor evicted."""
    ends = [end for end in map(task_state, attempts) if isinstance(end, Exited)]
    return sum(end.code != 0 and not end.preempted and not end.stopped for end in ends)


def last_failure_reason(state: TaskState) -> str:
    """Returns the reason of the last failure of a task that has failed too often."""
    return state.reason if isinstance(state, Exited) else "it has failed repeatedly"


def cannot_run(pod: Mapping[str, Json]) -> bool:
    """Returns whether the pod's program cannot be run."""
    statuses = pod.get("status", {}).get("containerStatuses") or ()
    return any(one.get("state", {}).get("terminated", {}).get("exitCode") == CANNOT_RUN for one in statuses)


def task_state(pod: Mapping[str, Json]) -> Running | Exited:
    """Returns the state of a pod's task."""
    status = pod.get("status", {})
    containers = {one["name"]: one.get("state", {}) for one in status.get("containerStatuses") or ()}
    ended = containers.get(objects.CONTAINER, {}).get("terminated")
    stopped = "deletionTimestamp" in pod["metadata"]
    taken_away = status.get("reason") in _PREEMPTION_REASONS or condition(pod, "DisruptionTarget") is not None
    if ended is not None:
        code = int(ended["exitCode"])
        reason = "ran out of memory" if ended.get("reason") == _OUT_OF_MEMORY else f"exit code {code}"
        return Exited(
            code=code, reason=reason, stopped=stopped, preempted=taken_away, at=_time(ended.get("finishedAt"))
        )
    before: list[JsonObject] = status.get("initContainerStatuses") or []
    unpacking: JsonObject = (before[0].get("state", {}).get("terminated") or {}) if before else {}
    if unpacking.get("exitCode"):
        messages = [line for line in str(unpacking.get("message") or "").splitlines() if line.strip()]
        code, why = (
            int(unpacking["exitCode"]),
            messages[-1].strip() if messages else f"exit code {unpacking['exitCode']}",
        )
        at = _time(unpacking.get("finishedAt"))
        return Exited(code=code, reason=f"its archive could not be unpacked: {why}", stopped=stopped, at=at)
    if status.get("phase") in DONE:
        code = 0 if status["phase"] == "Succeeded" else 1
        reason = status.get("message") or status.get("reason") or status["phase"]
        return Exited(code=code, reason=reason, stopped=stopped, preempted=taken_away)
    if status.get("phase") == "Running":
        return Running(started_at=_time(status.get("startTime")))
    unscheduled = next(
        (one for one in status.get("conditions") or () if one["type"] == "PodScheduled" and one["status"] == "False"),
        None,
    )
    if unscheduled is not None:
        return Running(waiting=unscheduled.get("message") or unscheduled.get("reason") or "not scheduled yet")
    held = [state["waiting"] for state in containers.values() if "waiting" in state]
    if held:
        return Running(waiting=held[0].get("message") or held[0].get("reason") or "its container is being created")
    return Running(waiting="not scheduled yet")


def _time(text: str | None) -> float:
    return datetime.fromisoformat(text).timestamp() if text else 0.0


def host_capacity(node: Mapping[str, Json], taken: list[Mapping[str, Json]]) -> HostCapacity:
    """Returns a node's resources: all of them, and the rest after the pods' requests ``taken``."""
    total = node["status"].get("allocatable", {})
    gpu = next((name for name in total if name.endswith("/gpu")), "")

    def sum_of(name: str) -> float:
        return sum(_quantity(asked.get(name, "0")) for asked in taken)

    ready = condition(node, "Ready") is not None
    closed = bool(node["spec"].get("unschedulable"))
    return HostCapacity(
        host=node["metadata"]["name"],
        total=Resources(
            cpus=_quantity(total.get("cpu", "0")),
            memory_bytes=int(_quantity(total.get("memory", "0"))),
            gpus=int(_quantity(total.get(gpu, "0"))),
        ),
        free=Resources(
            cpus=max(0.0, _quantity(total.get("cpu", "0")) - sum_of("cpu")),
            memory_bytes=max(0, int(_quantity(total.get("memory", "0")) - sum_of("memory"))),
            gpus=max(0, int(_quantity(total.get(gpu, "0")) - sum_of(gpu))),
        ),
        problem="" if ready and not closed else "it accepts no pods" if closed else "it is not ready",
    )


def _quantity(text: str) -> float:
    from kubernetes.utils import quantity  # noqa: PLC0415  an extra

    module: Any = quantity
    return float(module.parse_quantity(text))
