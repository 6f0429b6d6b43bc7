"""`ClusterSpec`: the jobs of a cluster and the addresses of their tasks."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, SupportsIndex, TypeAlias, cast

from headwater.cluster.addresses import strip_blanks
from headwater.cluster.names import TaskName
from headwater.tensorboard_protos import cluster_pb2

#: The addresses of a job's tasks: in order, or by index if some are missing.
Tasks: TypeAlias = Sequence[str] | Mapping[int, str]


class ClusterSpec:
    """The tasks of a cluster and their addresses. Immutable.

    A job's tasks are a list, or a dict from index to address if this task knows only some of them::

        ClusterSpec({"ps": ["ps0:2222", "ps1:2222"], "worker": {1: "worker1:2222"}})

    Blanks in addresses are removed. Addresses are not checked here, but when they are used.

    Args:
      cluster: a dict from job names to tasks, another spec, or a ``ClusterDef`` message.

    Raises:
      TypeError: ``cluster``, a job's name, its tasks, an index or an address is of another type.
      ValueError: an index is negative.
    """

    def __init__(self, cluster: ClusterSpec | Mapping[str, Tasks] | Any) -> None:
        if isinstance(cluster, ClusterSpec):
            self._jobs: dict[str, dict[int, str]] = cluster._jobs
        elif isinstance(cluster, Mapping):
            jobs = cast("Mapping[object, object]", cluster)
            self._jobs = {_text(job, "job name"): _tasks(job, tasks) for job, tasks in jobs.items()}
        elif _is_cluster_def(cluster):
            self._jobs = {job.name: _tasks(job.name, dict(job.tasks)) for job in cluster.job}
        else:
            raise TypeError(
                "`cluster` must be a dict from job names to their tasks' addresses, a ClusterSpec or a ClusterDef, "
                f"not {type(cluster).__name__}"
            )

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs."""
        return list(self._jobs)

    def num_tasks(self, job_name: str) -> int:
        """Returns the number of tasks of the job that this spec knows; raises ValueError for an unknown job."""
        return len(self._job(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """Returns the indices of the tasks that this spec knows, ascending; raises ValueError for an unknown job."""
        return list(self._job(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """Returns the address of one task; raises ValueError for an unknown job or index."""
        tasks = self._job(job_name)
        if task_index not in tasks:
            raise ValueError(f"job {job_name!r} has no task {task_index!r} in this cluster, only {list(tasks)}")
        return tasks[task_index]

    def job_tasks(self, job_name: str) -> list[str | None]:
        """Returns the addresses of a job's tasks by index, None for unknown ones; ValueError for an unknown job."""
        tasks = self._job(job_name)
        return [tasks.get(index) for index in range(max(tasks, default=-1) + 1)]

    def tasks(self) -> Iterable[tuple[TaskName, str]]:
        """Returns every task with its address, job by job."""
        return [
            (TaskName(job, index), address) for job, tasks in self._jobs.items() for index, address in tasks.items()
        ]

    def as_dict(self) -> dict[str, list[str] | dict[int, str]]:
        """Returns a dict for an equal spec: lists for jobs with all tasks from 0 on, dicts for other jobs."""
        return {
            job: list(tasks.values()) if tasks and list(tasks) == list(range(len(tasks))) else dict(tasks)
            for job, tasks in self._jobs.items()
        }

    def as_cluster_def(self) -> Any:
        """Returns this spec as a ``ClusterDef`` message."""
        message = cluster_pb2.ClusterDef()
        for name, tasks in sorted(self._jobs.items()):
            job = message.job.add(name=name)
            for index, address in tasks.items():
                job.tasks[index] = address
        return message

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClusterSpec) and self._jobs == other._jobs

    def __hash__(self) -> int:
        return hash(frozenset((job, tuple(tasks.items())) for job, tasks in self._jobs.items()))

    def __repr__(self) -> str:
        return f"ClusterSpec({self.as_dict()!r})"

    def _job(self, job_name: str) -> dict[int, str]:
        if job_name not in self._jobs:
            raise ValueError(f"this cluster has no job {job_name!r}, only {self.jobs}")
        return self._jobs[job_name]


def _is_cluster_def(value: object) -> bool:
    # Compare by name, to accept messages of another copy of the same proto, such as TensorFlow's own.
    return getattr(getattr(value, "DESCRIPTOR", None), "name", None) == "ClusterDef"


def _text(value: object, what: str) -> str:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, str):
        return value
    raise TypeError(f"{what} {value!r} must be a str, not {type(value).__name__}")


def _tasks(job: object, tasks: object) -> dict[int, str]:
    if isinstance(tasks, Mapping):
        by_index = cast("Mapping[Any, Any]", tasks)
    elif isinstance(tasks, (list, tuple)):
        by_index = dict(enumerate(cast("Sequence[Any]", tasks)))
    else:
        raise TypeError(f"the tasks of job {job!r} must be a list of addresses or a dict from indices to addresses")
    addresses = {
        _index(job, index): strip_blanks(_text(address, f"address of task {index!r} of job {job!r}"))
        for index, address in by_index.items()
    }
    return dict(sorted(addresses.items()))


def _index(job: object, index: SupportsIndex) -> int:
    try:
        number = operator.index(index)
    except TypeError:
        raise TypeError(f"task index {index!r} of job {job!r} must be an int, not {type(index).__name__}") from None
    if number < 0:
        raise ValueError(f"task index {number} of job {job!r} is negative")
    return number
