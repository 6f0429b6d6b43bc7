"""``/metrics``: metrics of the platform for Prometheus.

All names begin with ``headwater_``. Metrics of single jobs and tasks cover unfinished jobs only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from fastapi import APIRouter, Request, Response
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder

import headwater
from headwater.cluster.telemetry.task_activity import TaskActivity
from headwater.platform.access import MayView, PlatformOf
from headwater.platform.backends.base import BackendError, HostCapacity, Resources, Usage
from headwater.platform.records import JobRecord
from headwater.platform.service import HOSTS_TIMEOUT_S, Platform
from headwater.platform.states import JobPhase, TaskPhase, TaskState, label
from headwater.platform.views import JobView

router: APIRouter = APIRouter(include_in_schema=False)

_JOB = ("job", "name")
_TASK = (*_JOB, "task")
_HOST = ("backend", "host", "resource")

_JOB_METRICS: tuple[tuple[str, str, Callable[[JobView], float | str | None]], ...] = (
    ("job_step", "Global step", lambda job: job.step),
    ("job_steps_per_second", "Steps of all tasks together, per second", lambda job: job.steps_per_s),
    ("job_loss", "Latest loss", lambda job: job.loss),
    ("job_workers", "Workers that the job requests", lambda job: job.workers),
    ("job_tasks_running", "Tasks that run", lambda job: job.tasks_running),
    ("job_restarts", "Restarts that count against the limit, of the job and its tasks", lambda job: job.restarts),
    ("job_requeues", "How often the job returned to the queue", lambda job: job.requeues),
)
_TASK_METRICS: tuple[tuple[str, str, Callable[[TaskState], float | None]], ...] = (
    ("task_running", "1 while the task runs, else 0", lambda task: float(task.phase is TaskPhase.RUNNING)),
    ("task_attempt", "How often the task was started before", lambda task: task.attempt),
    ("task_restarts", "Restarts of the task that count against the limit", lambda task: task.restarts),
    ("task_step", "Global step that the task reported", lambda task: task.step),
    ("task_steps_per_second", "Steps of the task itself, per second", lambda task: task.steps_per_s),
    ("task_loss", "Latest loss that the task reported", lambda task: task.loss),
)
_USAGE_METRICS: tuple[tuple[str, str, Callable[[Usage], float | None]], ...] = (
    ("task_memory_bytes", "Resident memory of the task", lambda usage: usage.memory_bytes),
    ("task_gpu_memory_bytes", "Memory of the task on its GPUs", lambda usage: usage.gpu_memory_bytes),
    ("task_gpu_utilization_ratio", "Busy share of the task's GPUs", lambda usage: usage.gpu_utilization),
)
_ACTIVITY_METRICS: tuple[tuple[str, str, Callable[[TaskActivity], float | None]], ...] = (
    (
        "task_staleness_mean",
        "Mean staleness of gradients applied by the task, in updates",
        lambda activity: activity.staleness,
    ),
    ("task_staleness_max", "Greatest staleness of a gradient, in updates", lambda task: _max_staleness(task)),
    ("task_traffic_bytes_per_second", "Bytes to and from other tasks, per second", lambda task: _traffic(task)),
)
_RESOURCE_METRICS: tuple[tuple[str, Callable[[Resources], float]], ...] = (
    ("cpus", lambda resources: resources.cpus),
    ("memory_bytes", lambda resources: resources.memory_bytes),
    ("gpus", lambda resources: resources.gpus),
)


@router.get("/metrics")
def metrics(request: Request, platform: PlatformOf, identity: MayView) -> Response:
    """Returns all metrics, in the format that the scraper accepts."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(platform))
    encode, content_type = choose_encoder(request.headers.get("accept", ""))
    return Response(encode(registry), headers={"Content-Type": content_type})


class _Collector:
    def __init__(self, platform: Platform) -> None:
        self._platform = platform

    def collect(self) -> Iterable[Metric]:
        """Yields the current metrics."""
        records = self._platform.manager.live()
        views = {record.id: JobView.of(record) for record in records}
        activities = {
            record.id: {label(name): activity for name, activity in record.activities.items()} for record in records
        }
        yield from server_metrics(self._platform)
        yield from job_metrics(records, views)
        yield from task_metrics(records, activities)


def server_metrics(platform: Platform) -> Iterable[Metric]:
    """Yields the number of jobs by phase, and the machines' resources."""
    build = GaugeMetricFamily("headwater_build_info", "The server's version", labels=("version",))
    build.add_metric((headwater.__version__,), 1.0)
    yield build
    counts = platform.store.counts()
    jobs = GaugeMetricFamily("headwater_jobs", "Jobs that the server remembers", labels=("phase",))
    for phase in JobPhase:
        jobs.add_metric((phase.value,), counts.get(phase, 0))
    yield jobs
    free = GaugeMetricFamily("headwater_host_free", "Resources of a machine that no task has reserved", labels=_HOST)
    total = GaugeMetricFamily("headwater_host_total", "Resources of a machine for jobs", labels=_HOST)
    usable = GaugeMetricFamily(
        "headwater_host_usable", "1 if tasks can be started now, else 0", labels=("backend", "host")
    )
    for name, host in _hosts(platform):
        usable.add_metric((name, host.host), float(not host.problem))
        for resource, amount in _RESOURCE_METRICS:
            free.add_metric((name, host.host, resource), amount(host.free))
            total.add_metric((name, host.host, resource), amount(host.total))
    yield from (free, total, usable)


def job_metrics(records: Sequence[JobRecord], views: Mapping[str, JobView]) -> Iterable[Metric]:
    """Yields the metrics of each unfinished job."""
    for name, what, value in _JOB_METRICS:
        values = [((view.id, view.name), value(view)) for view in views.values()]
        yield _gauge(name, what, _JOB, values)
    waiting = [
        ((record.id, record.state.spec.name), record.state.queued_at)
        for record in records
        if record.state.phase is JobPhase.QUEUED
    ]
    yield _gauge("job_queued_since_seconds", "Since when a job waits, in seconds since 1970", _JOB, waiting)


def task_metrics(
    records: Sequence[JobRecord], activities: Mapping[str, Mapping[str, TaskActivity]]
) -> Iterable[Metric]:
    """Yields progress, usage and traffic of each task of an unfinished job."""
    tasks = [
        ((record.id, record.state.spec.name, task.label), record, task)
        for record in records
        for task in record.state.tasks.values()
    ]
    usages = [(labels, record.usages[task.name]) for labels, record, task in tasks if task.name in record.usages]
    reported = [
        (labels, activities[record.id][task.label])
        for labels, record, task in tasks
        if task.label in activities.get(record.id, ())
    ]
    for name, what, value in _TASK_METRICS:
        yield _gauge(name, what, _TASK, [(labels, value(task)) for labels, _, task in tasks])
    cpu = CounterMetricFamily("headwater_task_cpu_seconds", "CPU time of the task", labels=_TASK)
    for labels, usage in usages:
        cpu.add_metric(labels, usage.cpu_s)
    yield cpu
    for name, what, value in _USAGE_METRICS:
        yield _gauge(name, what, _TASK, [(labels, value(usage)) for labels, usage in usages])
    for name, what, value in _ACTIVITY_METRICS:
        yield _gauge(name, what, _TASK, [(labels, value(activity)) for labels, activity in reported])


def _gauge(
    name: str, what: str, labels: Sequence[str], values: Iterable[tuple[Sequence[str], float | str | None]]
) -> Metric:
    metric = GaugeMetricFamily(f"headwater_{name}", what, labels=labels)
    for own, value in values:
        if value is not None:
            metric.add_metric(own, float(value))
    return metric


def _hosts(platform: Platform) -> Iterable[tuple[str, HostCapacity]]:
    for name, lane in platform.manager.lanes.items():
        try:
            hosts = lane.capacity(HOSTS_TIMEOUT_S).hosts
        except BackendError:  # the backend's resources are unknown while it does not answer
            continue
        for host in hosts:
            yield name, host


def _max_staleness(activity: TaskActivity) -> float | None:
    return activity.staleness_max if activity.staleness is not None else None


def _traffic(activity: TaskActivity) -> float | None:
    return math.fsum(sum(both) for both in activity.bytes_per_s.values()) if activity.bytes_per_s else None
