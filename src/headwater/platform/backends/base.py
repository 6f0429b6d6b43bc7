"""The interface between the platform and what runs the tasks of its jobs.

There are two kinds of backends. A `TaskBackend` (this machine, hosts over ssh, Ray) runs one task at a time: its
caller decides what to start and when to start it again. A `JobBackend` (Kubernetes, Slurm) takes a whole job, and the
engine below it places, restarts and ends its tasks by the job's own rules.

All methods block, briefly; all may be called from any thread. Handles and places are text (JSON) that is stored and
given back later, also to another process, after a restart of the server.

How a task's life goes with a `TaskBackend`::

    places = backend.reserve(job_id, requests)        # all or none; store them
    handle = backend.start(order)                     # store it; the same order again gives the same task
    backend.poll(handle)                              # Running, Exited or Lost
    backend.stop(handle, grace_s=30)                  # asks the task to end, and kills it later; poll tells when
    backend.release(job_id)                           # resources and ports are free again

After a restart of the server: ``backend.restore(job_id, places)`` for what is reserved, then `adopt` for each handle.
An order whose handle was not stored in time is started again with the same attempt: that finds the task that runs.
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
    """The engine did not do what it was asked; the message says what, where, and what to look at.

    Attributes:
      temporary: whether the same call may succeed later, as when a host does not answer.
    """

    def __init__(self, message: str, *, temporary: bool = False) -> None:
        super().__init__(message)
        self.temporary = temporary


class NotEnough(BackendError):
    """What was asked for is not free, or not there at all; the message names what is short.

    Attributes:
      ever: whether it can be had when other tasks have ended.
    """

    def __init__(self, message: str, *, ever: bool) -> None:
        super().__init__(message, temporary=ever)
        self.ever = ever


@dataclass(frozen=True, kw_only=True, slots=True)
class Resources:
    """What one task takes.

    Attributes:
      cpus: CPU cores; a task that takes a whole number of them is kept to its own, where the backend can see to it. 0
        takes none into account.
      memory_bytes: memory, in bytes; a task that takes more is ended. 0 takes none into account and sets no limit.
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
      host: its name.
      total: all of it.
      free: what no task has reserved.
      problem: why nothing can be started there now; empty where it can.
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
    """A task that is to be placed.

    Attributes:
      task: which.
      resources: what it takes.
      selector: labels that its host must carry.
    """

    task: TaskName
    resources: Resources = field(default_factory=Resources)
    selector: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a task runs, and what is its own there.

    Attributes:
      task: which.
      host: the host, as the backend calls it.
      address: the ``host:port`` at which the other tasks reach it: what belongs into ``TF_CONFIG``.
      resources: what it was given.
      cores: numbers of the cores that it is kept to; empty where it may use all.
      gpus: names of its GPUs, as ``CUDA_VISIBLE_DEVICES`` writes them.
      detail: what else the backend has to know, by name.
    """

    task: TaskName
    host: str
    address: str
    resources: Resources = field(default_factory=Resources)
    cores: tuple[int, ...] = ()
    gpus: tuple[str, ...] = ()
    detail: Mapping[str, str] = field(default_factory=dict[str, str])

    def encode(self) -> str:
        """This place as text, for `decode`."""
        return json.dumps(dataclasses.asdict(self))

    @staticmethod
    def decode(text: str) -> Place:
        """Reads what `encode` gave."""
        fields = json.loads(text)
        return Place(
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
      job_id: the job; letters, digits, ``-`` and ``_``; unique among all jobs that this server ever had.
      attempt: how often this task has been started before. Before attempt n starts, what is left of earlier ones is
        ended; the same attempt a second time is the same task, not another one.
      place: where, as `TaskBackend.reserve` gave it.
      argv: its command line.
      env: variables besides those of the host. The backend adds those that only it can know: the GPUs, the socket that
        listens at the task's address, where progress is reported to.
      secrets: further variables, whose values no file and no message of a backend may show.
      cwd: its working directory, on its host. A relative one is within a folder that the job has on each host, shared
        by its tasks there, and empty at first.
      archive: a tar or zip file on this machine that is unpacked into the job's folder before the first task starts
        there.
      log_path: a file on this machine that gets what the task prints, appended.
      max_log_bytes: what is printed beyond is dropped.

    """

    job_id: str
    attempt: int
    place: Place
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: str = "."
    archive: Path | None = None
    log_path: Path
    max_log_bytes: int = 1 << 30

    @property
    def task(self) -> TaskName:
        """Which task."""
        return self.place.task


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """What a task, with all processes that it started, uses.

    Attributes:
      cpu_s: seconds of CPU time since its start.
      memory_bytes: resident memory now.
      gpu_memory_bytes: memory on GPUs now; None where that cannot be told.
      gpu_utilization: the busy share of its GPUs, 0 to 1; None where that cannot be told.
    """

    cpu_s: float
    memory_bytes: int
    gpu_memory_bytes: int | None = None
    gpu_utilization: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Running:
    """The task's process runs, or will without further calls.

    Attributes:
      started_at: when, in seconds since 1970 by its host's clock.
      progress: the latest that it reported, None when it never did.
      usage: what it uses; None where the backend cannot tell.
      waiting: why the engine has not started it yet; empty when it has.
      host: where, as far as the engine tells.
    """

    started_at: float = 0.0
    progress: Progress | None = None
    usage: Usage | None = None
    waiting: str = ""
    host: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Exited:
    """The task's process ended, and nothing of it is left.

    Attributes:
      code: 0 to 255; -n when signal n killed it.
      reason: in words, such as ``exit code 3``, ``killed by SIGSEGV`` or ``used 2.1 GiB of 2.0 GiB of memory``.
      stopped: whether it ended after `TaskBackend.stop` or the engine had asked it to.
      preempted: whether the engine took its host away, so that the task itself is not to blame.
      at: when, in seconds since 1970 by its host's clock.
      last_lines: the last lines that it printed.
      progress: the latest that it reported, None when it never did.
      host: where, as far as the engine tells.
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
    """The task is gone and how it ended is unknown, or its host has not answered for long.

    Attributes:
      reason: in words, such as ``host b does not answer since 40 s: connection refused``.
    """

    reason: str


TaskState = Running | Exited | Lost


class AnyBackend(ABC):
    """What both kinds of backends have.

    Attributes:
      name: what ``backend:`` in a job's file calls it.
    """

    name: ClassVar[str]

    @classmethod
    def refusals(cls, spec: JobSpec, *, has_archive: bool) -> list[tuple[str, str]]:
        """What this backend cannot do of a job, as fields and reasons, before anything is asked of it.

        Args:
          spec: the job.
          has_archive: whether its program comes in an archive.
        """
        del spec, has_archive
        return []

    @abstractmethod
    def capacity(self) -> Capacity:
        """All hosts and what is free on them, as far as the backend tells; raises `BackendError`."""

    def close(self) -> None:  # noqa: B027  most have nothing to let go of
        """Lets go of connections and threads. What runs goes on."""


class TaskBackend(AnyBackend):
    """Runs single tasks."""

    kind: ClassVar[Literal["tasks"]] = "tasks"

    @abstractmethod
    def reserve(self, job_id: str, requests: Sequence[TaskRequest]) -> tuple[Place, ...]:
        """Sets resources and an address aside for each task of ``requests``: for all of them or for none.

        May be called again for more tasks of the same job.

        Raises:
          NotEnough: they are not to be had now, or never.
          BackendError: a host does not answer.
        """

    @abstractmethod
    def restore(self, job_id: str, places: Sequence[Place]) -> None:
        """Takes ``places``, reserved before the server's restart, into account again."""

    @abstractmethod
    def release(self, job_id: str, tasks: Sequence[TaskName] | None = None) -> None:
        """Frees what was reserved for ``tasks`` of the job, all unless given. What still runs of them is killed.

        Raises:
          BackendError: a host does not answer. It may have been done in part, and is to be asked for again.
        """

    @abstractmethod
    def start(self, order: TaskOrder) -> str:
        """Starts a task and returns its handle.

        A command that cannot be run at all is no error here, but a task that exits with code 127.

        Raises:
          BackendError: the host does not answer, or an earlier attempt does not end even when killed.
        """

    @abstractmethod
    def poll(self, handle: str) -> TaskState:
        """What has become of the task. An end that happened between two questions is still told."""

    @abstractmethod
    def stop(self, handle: str, *, grace_s: float) -> None:
        """Sends SIGTERM, and SIGKILL ``grace_s`` seconds later to all that is left; does not wait for either.

        A task that has ended is no error. Calling it again can only shorten the time that is left.
        """

    @abstractmethod
    def adopt(self, handle: str) -> bool:
        """Whether the task is still ours and runs. Its log file is filled again from now on."""

    @abstractmethod
    def forget(self, job_id: str) -> None:
        """Removes what hosts keep of a released job: its records and the job's own folder."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobOrder:
    """A whole job to submit.

    Attributes:
      job_id: as in `TaskOrder`.
      attempt: how often the job has been submitted before. Before attempt n starts, what is left of earlier ones is
        ended; the same attempt a second time is the same job, not another one.
      spec: what it is.
      log_dir: a folder on this machine that gets ``<role>-<index>.log`` for each task.
      archive: a tar or zip file on this machine that is unpacked into the tasks' working folder.
      secrets: the values of the secrets that the job names, by their names.
      least: with how many workers a preemptible job goes on; ``spec`` has as many as it may have.
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
    """What is known of a job.

    Attributes:
      phase: ``waiting`` for resources, ``running``, ``succeeded``; ``failed`` for good, by the job's own rules;
        ``lost`` with what it ran on, or where the engine knows nothing of it, so that another start may help;
        ``preempted`` by something that the engine prefers; ``crowded``: only some of its tasks found room, for so long
        that all is to be given back; ``cancelled`` by somebody who told the engine so.
      reason: why it waits or ended; empty where there is nothing to tell.
      tasks: what is known of each task.
      restarts: how often the engine has started each task again; tasks that are not in it were started once.
      again: whether a job that failed may be submitted again by its own rules, which the engine does not know.
      pause_s: seconds before a job that is ``crowded`` is to be tried again, so that others get a turn.
    """

    phase: Literal["waiting", "running", "succeeded", "failed", "lost", "preempted", "crowded", "cancelled"]
    reason: str = ""
    tasks: Mapping[TaskName, TaskState] = field(default_factory=dict[TaskName, TaskState])
    restarts: Mapping[TaskName, int] = field(default_factory=dict[TaskName, int])
    again: bool = False
    pause_s: float = 0.0


class JobBackend(AnyBackend):
    """Hands whole jobs to an engine that places, restarts and ends their tasks."""

    kind: ClassVar[Literal["jobs"]] = "jobs"
    #: Whether workers of a preemptible job come and go one by one, so that it is submitted with as many as it may have.
    elastic: ClassVar[bool] = False

    @abstractmethod
    def submit_job(self, order: JobOrder) -> str:
        """Submits a job and returns its handle.

        Raises:
          BackendError: the engine does not answer, or refuses the job.
        """

    @abstractmethod
    def poll_job(self, handle: str) -> JobReport:
        """What has become of the job; also fetches what its tasks have printed since the last call."""

    @abstractmethod
    def stop_job(self, handle: str, *, grace_s: float) -> None:
        """Asks all tasks to end and has them killed ``grace_s`` seconds later; does not wait for either.

        To be called again until the job has ended: the engine may end a ``ps`` only when no worker is left.
        """

    @abstractmethod
    def delete_job(self, handle: str) -> None:
        """Removes what the engine keeps of the job. What still runs of it is killed."""

    def remove(self, job_id: str, spec: JobSpec) -> None:
        """Removes what the engine may have of a job for which there is no handle, as of a submission that failed."""
        del job_id, spec


Backend = TaskBackend | JobBackend
