"""Placement: the resources of hosts, their reservations, and the choice of a host for each task.

`Reservations` only keeps account: it starts nothing and queries no host. It is not thread-safe.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headwater.cluster.names import TaskName
from headwater.platform.backends.base import HostCapacity, NotEnough, Resources, TaskPlace, TaskRequest

# Sums of fractional CPUs have rounding errors.
_EPSILON = 1e-6


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """The resources of a host.

    Attributes:
      name: the name of the host.
      cores: the numbers of its cores.
      memory_bytes: its memory, in bytes.
      gpus: the names of its GPUs.
      labels: the labels that a request's selector is matched with.
    """

    name: str
    cores: tuple[int, ...]
    memory_bytes: int
    gpus: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def total(self) -> Resources:
        """All resources of the host."""
        return Resources(cpus=len(self.cores), memory_bytes=self.memory_bytes, gpus=len(self.gpus))


@dataclass(frozen=True, kw_only=True, slots=True)
class Assignment:
    """The host and the resources chosen for one task.

    Attributes: as in `TaskPlace`.
    """

    task: TaskName
    host: str
    resources: Resources
    cores: tuple[int, ...]
    gpus: tuple[str, ...]


_Taken = dict[tuple[str, TaskName], Assignment]


class _Account:
    """The reservations of one host."""

    def __init__(self, host: Host, taken: _Taken) -> None:
        self.host = host
        self.taken = taken

    def free(self) -> Resources:
        taken = [assignment.resources for assignment in self.taken.values()]
        total = self.host.total
        return Resources(
            cpus=max(0.0, total.cpus - sum(resources.cpus for resources in taken)),
            memory_bytes=max(0, total.memory_bytes - sum(resources.memory_bytes for resources in taken)),
            gpus=len(self.free_gpus()),
        )

    def free_gpus(self) -> list[str]:
        taken = {gpu for assignment in self.taken.values() for gpu in assignment.gpus}
        return [gpu for gpu in self.host.gpus if gpu not in taken]

    def free_cores(self) -> list[int]:
        taken = {core for assignment in self.taken.values() for core in assignment.cores}
        return [core for core in self.host.cores if core not in taken]

    def assignment_for(self, request: TaskRequest) -> Assignment:
        """Returns free resources for a request, which must fit; does not reserve them."""
        # Tasks with fractions of CPUs share cores, so they are not bound to cores.
        whole = request.resources.cpus >= 1 and request.resources.cpus == int(request.resources.cpus)
        return Assignment(
            task=request.task,
            host=self.host.name,
            resources=request.resources,
            cores=tuple(self.free_cores()[: int(request.resources.cpus)]) if whole else (),
            gpus=tuple(self.free_gpus()[: request.resources.gpus]),
        )


class Reservations:
    """The reservations of all hosts, by job and task."""

    def __init__(self) -> None:
        self._accounts: dict[str, _Account] = {}
        # Includes hosts that have not been added yet: their tasks were placed by the server before its restart.
        self._taken: defaultdict[str, _Taken] = defaultdict(_Taken)

    def set_host(self, host: Host) -> None:
        """Adds a host, or updates its resources."""
        self._accounts[host.name] = _Account(host, self._taken[host.name])

    def capacity(self, problems: Mapping[str, str]) -> tuple[HostCapacity, ...]:
        """Returns all hosts. ``problems`` has, by host, the reason why no task can be started there."""
        known = tuple(
            HostCapacity(host=name, total=account.host.total, free=account.free(), problem=problems.get(name, ""))
            for name, account in self._accounts.items()
        )
        unknown = tuple(
            HostCapacity(host=name, total=Resources(), free=Resources(), problem=problem)
            for name, problem in problems.items()
            if name not in self._accounts
        )
        return known + unknown

    def place(
        self, job_id: str, requests: Sequence[TaskRequest], *, problems: Mapping[str, str]
    ) -> tuple[Assignment, ...]:
        """Chooses a host for each of ``requests``, and reserves the resources: for all of them or for none.

        Tasks that are hard to place are placed first. Tasks with GPUs are packed, so that whole hosts stay free for
        tasks that need all GPUs of a host; tasks without GPUs are spread.

        Args:
          job_id: the job of the tasks.
          requests: the tasks, with their resources.
          problems: the hosts on which no task can be started, with the reasons.

        Raises:
          NotEnough: not all tasks can be placed. The error is not temporary if the tasks could not be placed on empty
            hosts either, and the resources of all hosts are known.
        """
        try:
            return self._place(job_id, requests, problems)
        except NotEnough as error:
            if not problems.keys() <= self._accounts.keys():
                raise
            empty = Reservations()
            for account in self._accounts.values():
                empty.set_host(account.host)
            try:
                empty._place(job_id, requests, {})
            except NotEnough as never:
                raise NotEnough(str(never), temporary=False) from None
            raise error

    def restore(self, job_id: str, places: Sequence[TaskPlace]) -> None:
        """Restores earlier reservations, also on hosts that are yet to be added."""
        for place in places:
            self._taken[place.host][job_id, place.task] = Assignment(
                task=place.task, host=place.host, resources=place.resources, cores=place.cores, gpus=place.gpus
            )

    def release(self, job_id: str, tasks: Sequence[TaskName] | None = None) -> None:
        """Frees the reservations of ``tasks`` of the job; None for all its tasks."""
        for taken in self._taken.values():
            for key in [key for key in taken if key[0] == job_id and (tasks is None or key[1] in tasks)]:
                del taken[key]

    def _place(
        self, job_id: str, requests: Sequence[TaskRequest], problems: Mapping[str, str]
    ) -> tuple[Assignment, ...]:
        placed: dict[TaskName, Assignment] = {}
        hardest_first = sorted(
            requests, key=lambda one: (one.resources.gpus, one.resources.memory_bytes, one.resources.cpus), reverse=True
        )
        for request in hardest_first:
            account = self._choose(request, problems)
            if account is None:
                self.release(job_id, list(placed))
                raise NotEnough(self._shortage(request, problems, among=len(placed)), temporary=True)
            placed[request.task] = account.taken[job_id, request.task] = account.assignment_for(request)
        return tuple(placed[request.task] for request in requests)

    def _choose(self, request: TaskRequest, problems: Mapping[str, str]) -> _Account | None:
        able = [
            account
            for account in self._accounts.values()
            if account.host.name not in problems
            and _matches(account.host, request)
            and not _missing(request.resources, account.free())
        ]
        if not able:
            return None
        if request.resources.gpus:
            return min(able, key=lambda account: account.free().gpus)
        return max(able, key=lambda account: (account.free().cpus, -len(account.taken)))

    def _shortage(self, request: TaskRequest, problems: Mapping[str, str], *, among: int) -> str:
        reasons = [f"{name}: {problem}" for name, problem in problems.items() if name not in self._accounts]
        for name, account in self._accounts.items():
            if name in problems:
                reasons.append(f"{name}: {problems[name]}")
            elif not _matches(account.host, request):
                reasons.append(f"{name} does not have the labels {_listed(request.selector)}")
            else:
                of_total = _missing(request.resources, account.host.total)
                missing = of_total or _missing(request.resources, account.free())
                reasons.append(f"{name} has {' and '.join(missing)}{'' if of_total else ' free'}")
        others = f", after {among} other tasks of this job" if among else ""
        asked = _asked(request.resources)
        return f"{request.task.job} {request.task.index} asks for {asked}{others}: {'; '.join(reasons) or 'no hosts'}"


def _matches(host: Host, request: TaskRequest) -> bool:
    return all(host.labels.get(name) == value for name, value in request.selector.items())


def _missing(asked: Resources, there: Resources) -> list[str]:
    """Describes the resources of ``there`` that are less than ``asked``, in words."""
    short: list[str] = []
    if asked.cpus > there.cpus + _EPSILON:
        short.append(f"{there.cpus:g} CPUs")
    if asked.memory_bytes > there.memory_bytes:
        short.append(f"{_gib(there.memory_bytes)} of memory")
    if asked.gpus > there.gpus:
        short.append(f"{there.gpus} GPUs")
    return short


def _asked(resources: Resources) -> str:
    parts = [f"{resources.cpus:g} CPUs"] if resources.cpus else []
    parts += [f"{_gib(resources.memory_bytes)} of memory"] if resources.memory_bytes else []
    parts += [f"{resources.gpus} GPUs"] if resources.gpus else []
    return ", ".join(parts) or "a place"


def _gib(size: int) -> str:
    return f"{size / (1 << 30):.2f} GiB"


def _listed(selector: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in selector.items())
