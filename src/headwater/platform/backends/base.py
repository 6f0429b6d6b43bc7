"""The interface between the platform and the engines that run the tasks of its jobs.

There are two kinds of backends. A `TaskBackend` (this machine, hosts over ssh, Ray) runs single tasks: its caller
decides when to start and restart each of them. A `JobBackend` (Kubernetes, Slurm) takes a whole job, and the engine
below it places, restarts and ends its tasks by the job's own rules.

All methods block only briefly and may be called from any thread. Handles and places are text (JSON); the caller stores
them and may pass them to another process, after a restart of the server.

Lifecycle of a task with a `TaskBackend`::

    places = backend.reserve(job_id, requests)        # all or none; store them
    handle = backend.start(order)                     # store it; idempotent for the same order
    backend.poll(handle)                              # Running, Exited or Lost
    backend.stop(handle, grace_s=30)                  # requests a graceful end, then kills; poll reports the end
    backend.release(job_id)                           # frees resources and ports

After a restart of the server, call ``backend.restore(job_id, places)`` for the reservations, then `adopt` for each
handle. An order whose handle was not stored in time is started again with the same attempt, which returns the handle
of the running task.
"""

from __future__ import annotations

import dataclasses
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from headwater.cluster.names import TaskName
from headwater.cluster.telemetry.progress import Progress

if TYPE_CHECKING:
    from headwater.platform.spec import JobSpec


class BackendError(Exception):
    """The engine failed to carry out a request; the message names the failure, its place and a remedy.

    Attributes:
      temporary: whether the same call may succeed later, for example once a host answers again.
    """

    def __init__(self, message: str, *, temporary: bool = False) -> None:
        super().__init__(message)
        self.temporary = temporary


class NotEnough(BackendError):
    """The requested resources are not free (temporary), or do not exist; the message names the missing resource."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Resources:
    """Resources of one task.

    Attributes:
      cpus: CPU cores; a task with a whole number of cores is pinned to its own if the backend supports it. 0
        reserves none.
      memory_bytes: memory, in bytes; a task that uses more is ended. 0 reserves none and sets no limit.
      gpus: whole GPUs.
    """

    cpus: float = 0.0
    memory_bytes: int = 0
    gpus: int = 0

    def __post_init__(self) -> None:
        for name in ("cpus", "memory_bytes", "gpus"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, but is {getattr(self, name)}")


@dataclass(frozen=True, kw_only=True, slots=True)
class HostCapacity:
    """One host's resources.

    Attributes:
      host: the name of the host.
      total: all of its resources.
      free: resources that no task has reserved.
      problem: the reason why no task can be started on the host now; empty if a task can be started.
    """

    host: str
    total: Resources
    free: Resources
    problem: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Capacity:
    """All hosts of a backend."""

    hosts: tuple[HostCapacity, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskRequest:
    """A request to place a task.

    Attributes:
      task: its name.
      resources: the resources to reserve.
      selector: labels that its host must carry.
    """

    task: TaskName
    resources: Resources = field(default_factory=Resources)
    selector: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskPlace:
    """The location of a task, with the resources reserved for it there.

    Attributes:
      task: its name.
      host: the backend's name of the host.
      address: the ``host:port`` at which the other tasks reach the task; its entry in ``TF_CONFIG``.
      resources: the reserved resources.
      cores: numbers of the cores that the task is pinned to; empty if it may use all cores.
      gpus: names of its GPUs, as in ``CUDA_VISIBLE_DEVICES``.
      detail: further values of the backend, by name.
    """

    task: TaskName
    host: str
    address: str
    resources: Resources = field(default_factory=Resources)
    cores: tuple[int, ...] = ()
    gpus: tuple[str, ...] = ()
    detail: Mapping[str, str] = field(default_factory=dict[str, str])

    def encode(self) -> str:
        """Returns this place as text, for `decode`."""
        return json.dumps(dataclasses.asdict(self))

    @staticmethod
    def decode(text: str) -> TaskPlace:
        """Parses the text of `encode`."""
        fields = json.loads(text)
        return TaskPlace(
            task=TaskName(**fields["task"]),
            host=fields["host"],
            address=fields["address"],
            resources=Resources(**fields["resources"]),
            cores=tuple(fields["cores"]),
            gpus=tuple(fields["gpus"]),
            detail=fields["detail"],
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskOrder:
    """A task to start.

    Attributes:
      job_id: the job; letters, digits, ``-`` and ``_``; unique among all jobs of this server, including deleted ones.
      attempt: how often this task has been started before. Before attempt n starts, remains of earlier attempts are
        ended. Starting the same attempt a second time is idempotent.
      place: the place from `TaskBackend.reserve`.
      argv: the task's command line.
      env: variables in addition to the host's. The backend adds variables with values that only the backend knows: the
        GPUs, the socket that listens at the task's address, the destination of progress reports.
      secrets: further variables; their values must not occur in any file or message of a backend.
      cwd: the task's working directory, on its host. A relative path is within the job's folder on that host, which is
        shared by the job's tasks there and initially empty.
      archive: a tar or zip file on this machine that is unpacked into the job's folder before the first task starts
        there.
      log_path: a file on this machine to which the task's output is appended.
      max_log_bytes: the maximum size of the log; further output is dropped.
    """

    job_id: str
    attempt: int
    place: TaskPlace
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: str = "."
    archive: Path | None = None
    log_path: Path
    max_log_bytes: int = 1 << 30

    @property
    def task(self) -> TaskName:
        """The name of the task."""
        return self.place.task


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """Resource usage of a task, including all processes that it started.

    Attributes:
      cpu_s: seconds of CPU time since its start.
      memory_bytes: resident memory now.
      gpu_memory_bytes: memory on GPUs now; None if unknown.
      gpu_utilization: the busy share of its GPUs, 0 to 1; None if unknown.
    """

    cpu_s: float
    memory_bytes: int
    gpu_memory_bytes: int | None = None
    gpu_utilization: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Running:
    """The task's process runs, or will start without further calls of the backend's methods.

    Attributes:
      started_at: the time of the start, in seconds since 1970 by the clock of the task's host.
      progress: its latest progress report; None if there was none.
      usage: its resource usage; None if the backend cannot measure it.
      waiting: the reason why the engine has not started the task yet; empty after the start.
      host: its host, if the engine reports one.
    """

    started_at: float = 0.0
    progress: Progress | None = None
    usage: Usage | None = None
    waiting: str = ""
    host: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Exited:
    """The task's process ended, with all processes that it started.

    Attributes:
      code: 0 to 255; -n when signal n killed it.
      reason: the reason of the end in words, such as ``exit code 3``, ``killed by SIGSEGV`` or ``used 2.1 GiB of 2.0
        GiB of memory``.
      stopped: whether it ended after a request by `TaskBackend.stop` or by the engine.
      preempted: whether the engine took its host away, so that the task did not fail by its own fault.
      at: the time of the end, in seconds since 1970 by the clock of the task's host.
      last_lines: the last lines of its output.
      progress: its latest progress report; None if there was none.
      host: its host, if the engine reports one.
    """

    code: int
    reason: str
    stopped: bool = False
    preempted: bool = False
    at: float = 0.0
    last_lines: tuple[str, ...] = ()
    progress: Progress | None = None
    host: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Lost:
    """The task has ended with an unknown exit status, or its host has not answered for long.

    Attributes:
      reason: the reason in words, such as ``host b has not answered for 40 s: connection refused``.
    """

    reason: str


TaskState = Running | Exited | Lost


class AnyBackend(ABC):
    """The interface that both kinds of backends share.

    Attributes:
      name: the backend's name in the ``backend:`` field of job files.
    """

    name: ClassVar[str]

    @classmethod
    def refusals(cls, spec: JobSpec, *, has_archive: bool) -> list[tuple[str, str]]:
        """Returns the parts of a job that this backend does not support, as fields and reasons; does not query an
        engine.

        Args:
          spec: the job.
          has_archive: whether its program is in an archive.
        """
        del spec, has_archive
        return []

    @abstractmethod
    def capacity(self) -> Capacity:
        """Returns all hosts and their free resources, as far as the backend reports them; raises `BackendError`."""

    def close(self) -> None:  # noqa: B027  most backends have nothing to release
        """Closes connections and threads. Running tasks continue."""


class TaskBackend(AnyBackend):
    """Runs single tasks."""

    kind: ClassVar[Literal["tasks"]] = "tasks"

    @abstractmethod
    def reserve(self, job_id: str, requests: Sequence[TaskRequest]) -> tuple[TaskPlace, ...]:
        """Reserves resources and an address for each task of ``requests``: for all of them or for none.

        May be called again for more tasks of the same job.

        Raises:
          NotEnough: the resources are not free, or do not exist.
          BackendError: a host does not answer.
        """

    @abstractmethod
    def restore(self, job_id: str, places: Sequence[TaskPlace]) -> None:
        """Restores the reservations of ``places`` after a restart of the server."""

    @abstractmethod
    def release(self, job_id: str, tasks: Sequence[TaskName] | None = None) -> None:
        """Frees the reservations of ``tasks`` of the job (by default, of all its tasks), and kills those that run.

        Raises:
          BackendError: a host does not answer. The release may be incomplete and must be repeated.
        """

    @abstractmethod
    def start(self, order: TaskOrder) -> str:
        """Starts a task and returns its handle.

        A command that cannot be run is not an error here: the task exits with code 127.

        Raises:
          BackendError: the host does not answer, or an earlier attempt survives SIGKILL.
        """

    @abstractmethod
    def poll(self, handle: str) -> TaskState:
        """Returns the state of the task. An exit between two polls is still reported."""

    @abstractmethod
    def stop(self, handle: str, *, grace_s: float) -> None:
        """Sends SIGTERM, and SIGKILL to all remaining processes ``grace_s`` seconds later; waits for neither.

        Does nothing if the task has ended. A repeated call can only shorten the remaining time.
        """

    @abstractmethod
    def adopt(self, handle: str) -> bool:
        """Returns whether the task still runs; copying its output to its log resumes."""

    @abstractmethod
    def forget(self, job_id: str) -> None:
        """Removes the files that hosts keep of a released job: its records and its folder."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobOrder:
    """A whole job to submit.

    Attributes:
      job_id: as in `TaskOrder`.
      attempt: how often the job has been submitted before. Before attempt n starts, remains of earlier attempts are
        ended. Submitting the same attempt a second time is idempotent.
      spec: the job's specification.
      log_dir: a folder on this machine that gets ``<role>-<index>.log`` for each task.
      archive: a tar or zip file on this machine that is unpacked into the tasks' working folder.
      secrets: the values of the secrets that the job names, by their names.
      least: the minimum number of workers of a preemptible job; ``spec`` has the maximum number.
    """

    job_id: str
    attempt: int
    spec: JobSpec
    log_dir: Path
    archive: Path | None = None
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    least: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class JobReport:
    """The state of a job as reported by its engine.

    Attributes:
      phase: ``waiting`` for resources, ``running``, ``succeeded``, or one of these ends. ``failed``: the job has
        failed, and its own rules do not allow the engine to restart it. ``lost``: its hosts are gone, or the engine
        no longer knows the job, so another start may help. ``preempted``: the engine needed its resources for
        another job. ``crowded``: some of its tasks have waited too long for a place, so the other tasks must release
        their resources. ``cancelled``: a user of the engine ended it.
      reason: why the job waits or has ended; may be empty.
      tasks: the state of each task.
      restarts: how often the engine has restarted each task; tasks without restarts may be missing.
      again: whether the job's own rules, which the engine does not know, allow another submission after a failure.
      pause_s: seconds before a ``crowded`` job is to be submitted again, so that other jobs can be placed.
    """

    phase: Literal["waiting", "running", "succeeded", "failed", "lost", "preempted", "crowded", "cancelled"]
    reason: str = ""
    tasks: Mapping[TaskName, TaskState] = field(default_factory=dict[TaskName, TaskState])
    restarts: Mapping[TaskName, int] = field(default_factory=dict[TaskName, int])
    again: bool = False
    pause_s: float = 0.0


class JobBackend(AnyBackend):
    """Submits whole jobs to an engine that places, restarts and ends their tasks."""

    kind: ClassVar[Literal["jobs"]] = "jobs"
    #: Whether the engine can preempt and replace single workers of a preemptible job. Such a job is submitted with its
    #: maximum number of workers.
    elastic: ClassVar[bool] = False

    @abstractmethod
    def submit_job(self, order: JobOrder) -> str:
        """Submits a job and returns its handle.

        Raises:
          BackendError: the engine does not answer, or refuses the job.
        """

    @abstractmethod
    def poll_job(self, handle: str) -> JobReport:
        """Returns the state of the job; also fetches its tasks' output since the last call."""

    @abstractmethod
    def stop_job(self, handle: str, *, grace_s: float) -> None:
        """Requests a graceful end of all tasks and has them killed ``grace_s`` seconds later; waits for neither.

        To be called repeatedly until the job has ended: the engine may end a ``ps`` only after the last worker.
        """

    @abstractmethod
    def delete_job(self, handle: str) -> None:
        """Removes all objects of the job from the engine, and kills its remaining tasks."""

    def remove(self, job_id: str, spec: JobSpec) -> None:
        """Removes the engine's objects of a job without a handle, for example after a failed submission."""
        del job_id, spec


Backend = TaskBackend | JobBackend
