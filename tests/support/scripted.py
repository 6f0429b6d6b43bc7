"""Backends without processes: the test determines the states of tasks and jobs, and injects faults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from headwater.cluster.names import TaskName
from headwater.platform.backends.base import (
    BackendError,
    Capacity,
    Exited,
    JobBackend,
    JobOrder,
    JobReport,
    Lost,
    NotEnough,
    Running,
    TaskBackend,
    TaskOrder,
    TaskPlace,
    TaskRequest,
    TaskState,
)
from headwater.platform.spec import JobSpec


class Killed(BaseException):
    """Simulates a kill of the server. A BaseException, so that no handler of errors catches it."""


class ScriptedTasks(TaskBackend):
    """A backend of tasks without processes. A test may use it with several managers, one after the other.

    Attributes:
      tasks: the state of each attempt that was started, by handle.
      starts: the handles of all started attempts, each once.
      stops: the handles of the attempts that were asked to end.
      orders: the order of each attempt, by handle.
      reserved: by job, the tasks that have places.
      room: the maximum number of tasks that have places.
      die_after_start: whether the server is killed after the next start, before it learns of the success.
      die_before_release: whether the server is killed before it releases the next places.
      unreachable: the message with which starts fail; empty if they succeed.
      unstartable: tasks whose start fails.
      no_place: tasks for which no place can be reserved, because a host does not answer.
      cannot_release: the error with which releases fail.
      meanwhile: called once, after the next reservation or release, before the server learns of its success.
    """

    name: ClassVar[str] = "local"

    def __init__(self, room: int = 100) -> None:
        self.tasks: dict[str, TaskState] = {}
        self.starts: list[str] = []
        self.stops: list[str] = []
        self.orders: dict[str, TaskOrder] = {}
        self.reserved: dict[str, set[TaskName]] = {}
        self.room = room
        self.die_after_start = False
        self.die_before_release = False
        self.unreachable = ""
        self.unstartable: set[TaskName] = set()
        self.no_place: set[TaskName] = set()
        self.cannot_release: BackendError | None = None
        self.meanwhile: Callable[[], object] | None = None

    def capacity(self) -> Capacity:
        return Capacity(hosts=())

    def reserve(self, job_id: str, requests: Sequence[TaskRequest]) -> tuple[TaskPlace, ...]:
        if sum(map(len, self.reserved.values())) + len(requests) > self.room:
            raise NotEnough(f"{len(requests)} tasks do not fit", temporary=True)
        if self.no_place & {request.task for request in requests}:
            raise BackendError("host h does not answer", temporary=True)
        mine, asked = self.reserved.setdefault(job_id, set()), {request.task for request in requests}
        assert not mine & asked, "a task that has a place is to get another one"
        mine |= asked
        self._let_happen()
        return tuple(
            TaskPlace(task=request.task, host="h", address=f"h:{request.task.job}{request.task.index}")
            for request in requests
        )

    def restore(self, job_id: str, places: Sequence[TaskPlace]) -> None:
        self.reserved[job_id] = {place.task for place in places}

    def release(self, job_id: str, tasks: Sequence[TaskName] | None = None) -> None:
        if self.die_before_release:
            self.die_before_release = False
            raise Killed
        if self.cannot_release is not None:
            raise self.cannot_release
        if tasks is None:
            self.reserved.pop(job_id, None)
        else:
            self.reserved[job_id].difference_update(tasks)
        self._let_happen()

    def start(self, order: TaskOrder) -> str:
        if self.unreachable or order.task in self.unstartable:
            raise BackendError(self.unreachable or "no room for a process")
        handle = f"{order.task.job}-{order.task.index}#{order.attempt}"
        if handle not in self.tasks:
            self.tasks[handle] = Running()
            self.starts.append(handle)
            self.orders[handle] = order
        if self.die_after_start:
            self.die_after_start = False
            raise Killed
        return handle

    def poll(self, handle: str) -> TaskState:
        return self.tasks[handle]

    def stop(self, handle: str, *, grace_s: float) -> None:
        self.stops.append(handle)

    def adopt(self, handle: str) -> bool:
        return isinstance(self.tasks[handle], Running)

    def forget(self, job_id: str) -> None:
        self.reserved.pop(job_id, None)

    def ends(self, handle: str, code: int = 0, *, at: float = 0.0, stopped: bool = False) -> None:
        """Sets the state of a task to exited."""
        self.tasks[handle] = Exited(code=code, reason=f"exit code {code}", at=at, stopped=stopped)

    def is_lost(self, handle: str) -> None:
        """Sets the state of a task to lost, as its host is gone."""
        self.tasks[handle] = Lost(reason="host h does not answer")

    def _let_happen(self) -> None:
        happens, self.meanwhile = self.meanwhile, None
        if happens is not None:
            happens()

    def all_asked_end(self) -> None:
        """Ends all running tasks that were asked to end."""
        for handle in self.stops:
            if isinstance(self.tasks[handle], Running):
                self.ends(handle, -15, stopped=True)


class ScriptedEngine(JobBackend):
    """A backend of whole jobs, without an engine.

    Attributes:
      reports: the report on each submitted job, by handle.
      orders: the order of each submitted job, by handle.
      stopped: the handles of jobs that were asked to end.
      deleted: the handles of jobs that were deleted.
      removed: the ids of jobs for which `remove` was called, which deletes all attempts.
      refuses: the error with which submissions fail.
      cannot_delete: the error with which deletions fail.
      meanwhile: called once, after the next submission, before the server learns the job's handle.
    """

    name: ClassVar[str] = "slurm"

    def __init__(self) -> None:
        self.reports: dict[str, JobReport] = {}
        self.orders: dict[str, JobOrder] = {}
        self.stopped: list[str] = []
        self.deleted: list[str] = []
        self.removed: list[str] = []
        self.refuses: BackendError | None = None
        self.cannot_delete: BackendError | None = None
        self.meanwhile: Callable[[], object] | None = None

    def capacity(self) -> Capacity:
        return Capacity(hosts=())

    def submit_job(self, order: JobOrder) -> str:
        if self.refuses is not None:
            raise self.refuses
        handle = f"#{order.attempt}"
        self.orders[handle] = order
        self.reports.setdefault(handle, JobReport(phase="waiting", reason="Priority"))
        happens, self.meanwhile = self.meanwhile, None
        if happens is not None:
            happens()
        return handle

    def poll_job(self, handle: str) -> JobReport:
        return self.reports[handle]

    def stop_job(self, handle: str, *, grace_s: float) -> None:
        self.stopped.append(handle)

    def delete_job(self, handle: str) -> None:
        if self.cannot_delete is not None:
            raise self.cannot_delete
        self.deleted.append(handle)

    def remove(self, job_id: str, spec: JobSpec) -> None:
        if self.cannot_delete is not None:
            raise self.cannot_delete
        self.removed.append(job_id)
