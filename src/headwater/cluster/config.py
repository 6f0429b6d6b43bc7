"""``TF_CONFIG``: the variable in which a launcher gives each task the cluster, and its own place in it.

::

    TF_CONFIG='{"cluster": {"ps": ["a:2222"], "worker": ["b:2222", "c:2222"]},
                "task": {"type": "worker", "index": 1}}'

Errors are one line that names the field. The same checks serve other descriptions of clusters, such as the
flags ``--ps_hosts`` and ``--worker_hosts``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from headwater.cluster.addresses import Address, parse_address
from headwater.cluster.names import TaskName
from headwater.cluster.spec import ClusterSpec
from headwater.cluster.variables import ENDED

VARIABLE = "TF_CONFIG"
#: A job whose tasks need not be in the cluster: an evaluator reads checkpoints and does not communicate with other
#: tasks.
EVALUATOR = "evaluator"
#: Jobs whose one task is the chief: ``master`` is the older name.
CHIEFS = ("chief", "master")
#: Jobs whose tasks train, beginning with the chief's jobs.
TRAINING = (*CHIEFS, "worker")
_MAX_CHARACTERS = 16 << 20


class ClusterConfigError(ValueError):
    """An invalid description of a cluster.

    Attributes:
      field: the invalid field, such as ``"TF_CONFIG task.index"``.
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field} {problem}")
        self.field = field


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskConfig:
    """A cluster, and this process's place in it.

    Attributes:
      cluster: all tasks; empty if there are none but this process.
      task: this process's task; None if the configuration does not name it.
      rest: the other members of the JSON object, such as ``environment``.
    """

    cluster: ClusterSpec
    task: TaskName | None
    rest: Mapping[str, Any] = field(default_factory=dict[str, Any])


def task_config_from_environment(environ: Mapping[str, str] | None = None) -> TaskConfig | None:
    """Reads ``TF_CONFIG``; returns None if it is not set or empty.

    Args:
      environ: the process's own environment unless given.

    Raises:
      ClusterConfigError: ``TF_CONFIG`` is invalid.
    """
    text = (os.environ if environ is None else environ).get(VARIABLE, "").strip()
    return parse_task_config(text) if text else None


def parse_task_config(text: str, *, source: str = VARIABLE) -> TaskConfig:
    """Reads and checks ``TF_CONFIG``'s text.

    Args:
      text: a JSON object with ``cluster`` and ``task``, both optional.
      source: the name of the text in errors.

    Raises:
      ClusterConfigError: ``text`` is invalid; the message is one line that names the field.
    """
    members = _object(_json(text, source), source)
    cluster = _cluster(members.pop("cluster", {}), source)
    task = _task(members.pop("task", None), cluster, source)
    _check_chief(cluster, task, source)
    return TaskConfig(cluster=cluster, task=task, rest=members)


def chief_of(cluster: ClusterSpec) -> TaskName:
    """Returns the chief of a cluster with a chief or workers: the end of its program ends the job."""
    job = next((job for job in CHIEFS if job in cluster.jobs), "worker")
    indices = cluster.task_indices(job) if job in cluster.jobs else (0,)
    return TaskName(job, min(indices))


def ended_tasks(cluster: ClusterSpec, environ: Mapping[str, str] | None = None) -> frozenset[TaskName]:
    """Returns the workers in ``HEADWATER_ENDED``, whose programs ended before this task was started.

    Args:
      cluster: all tasks.
      environ: the process's own environment unless given.

    Raises:
      ClusterConfigError: the variable names a task that is the chief, or is not a worker of the cluster.
    """
    text = (os.environ if environ is None else environ).get(ENDED, "")
    tasks: set[TaskName] = set()
    for name in filter(None, (part.strip() for part in text.split(","))):
        try:
            task = TaskName.parse(name)
        except ValueError as error:
            raise ClusterConfigError(ENDED, f"is not valid: {error}") from error
        task = check_task(cluster, task.job, task.index, ENDED)
        if task.job != "worker" or task == chief_of(cluster):
            raise ClusterConfigError(ENDED, f"names {task}, but can only name workers other than the chief")
        tasks.add(task)
    return frozenset(tasks)


def parse_hosts(text: str, field: str) -> list[str]:
    """Returns the addresses in ``host:port,host:port``, after checking them.

    Args:
      text: addresses separated by commas; empty for none.
      field: the name of the text in errors, such as ``"--ps_hosts"``.

    Raises:
      ClusterConfigError: an address is invalid or duplicate.
    """
    addresses = [part for part in (part.strip() for part in text.split(",")) if part]
    _check_addresses((f"{field}[{number}]", address) for number, address in enumerate(addresses))
    return addresses


def check_cluster(cluster: ClusterSpec, source: str) -> None:
    """Raises `ClusterConfigError` if an address is invalid, or if two tasks have the same address."""
    _check_addresses((f"{source} cluster.{task.job}[{task.index}]", address) for task, address in cluster.tasks())


def check_task(cluster: ClusterSpec, job: str, index: int, source: str) -> TaskName:
    """Returns the task ``index`` of ``job``; raises `ClusterConfigError` if ``cluster`` has no such task."""
    if job not in cluster.jobs:
        raise ClusterConfigError(f"{source} task.type", f"is {job!r}, but the cluster has only {_listed(cluster.jobs)}")
    indices = cluster.task_indices(job)
    if index not in indices:
        known = f"has indices {_listed(indices)}" if indices else "has no tasks"
        raise ClusterConfigError(f"{source} task.index", f"is {index}, but job {job!r} {known}")
    return TaskName(job, index)


def _json(text: str, source: str) -> object:
    if len(text) > _MAX_CHARACTERS:
        raise ClusterConfigError(source, f"has {len(text)} characters, more than {_MAX_CHARACTERS}")
    try:
        return json.loads(text, object_pairs_hook=lambda pairs: _once(pairs, source))
    except ClusterConfigError:
        raise
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ClusterConfigError(source, f"is not JSON: {error.msg} ({where})") from error
    except (ValueError, RecursionError) as error:
        raise ClusterConfigError(source, f"is not JSON: {error}") from error


def _once(pairs: list[tuple[str, object]], source: str) -> dict[str, object]:
    # `json` keeps the last of equal names silently, which would hide a mistake.
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ClusterConfigError(source, f"has the member {twice!r} twice")
    return members


def _object(value: object, field: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ClusterConfigError(field, f"must be a JSON object, not {_shown(value)}")
    return cast("dict[str, object]", value)


def _cluster(value: object, source: str) -> ClusterSpec:
    jobs: dict[str, dict[int, str]] = {}
    for job, tasks in _object(value, f"{source} cluster").items():
        name = f"{source} cluster.{job}"
        if not job or "/" in job or ":" in job:
            raise ClusterConfigError(
                f"{source} cluster", f"has a job with the name {job!r}, which is not valid in device names"
            )
        if isinstance(tasks, list):
            entries = {str(number): address for number, address in enumerate(cast("list[Any]", tasks))}
        elif isinstance(tasks, dict):
            entries = cast("dict[str, Any]", tasks)
        else:
            raise ClusterConfigError(name, f"must be a list of addresses, not {_shown(tasks)}")
        for index, address in entries.items():
            if not isinstance(address, str):
                raise ClusterConfigError(f"{name}[{index}]", f"must be an address, not {_shown(address)}")
        jobs[job] = {_index(index, f"{name}[{index}]"): address for index, address in entries.items()}
    cluster = ClusterSpec(jobs)
    check_cluster(cluster, source)
    return cluster


def _task(value: object, cluster: ClusterSpec, source: str) -> TaskName | None:
    if value is None or value == {}:
        return None
    task = _object(value, f"{source} task")
    job = task.get("type")
    if not isinstance(job, str) or not job:
        raise ClusterConfigError(f"{source} task.type", f"must be the name of a job, not {_shown(job)}")
    index = _index(task.get("index", 0), f"{source} task.index")
    if job == EVALUATOR or not cluster:  # an evaluator need not be in the cluster
        return TaskName(job, index)
    return check_task(cluster, job, index, source)


def _check_chief(cluster: ClusterSpec, task: TaskName | None, source: str) -> None:
    """Rejects clusters with several chiefs, with TensorFlow's messages."""
    chiefs = [job for job in CHIEFS if job in cluster.jobs]
    for job in chiefs:
        if len(cluster.task_indices(job)) > 1:
            raise ClusterConfigError(f'The "cluster" in {source}', f'must have only one "{job}" node.')
    if len(chiefs) > 1:
        raise ClusterConfigError("If `master` node exists in `cluster`,", "job `chief` is not supported.")
    if not cluster and task is not None and task.index and task.job != EVALUATOR:
        raise ClusterConfigError(f'If "cluster" is not set in {source},', "task index must be 0.")


def _index(value: object, field: str) -> int:
    # The keys of JSON objects are strings. ``bool`` is a subclass of ``int``, but is not accepted as an index.
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10 and str(int(value)) == value:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise ClusterConfigError(field, f"must be a whole number from 0 on, not {_shown(value)}")


def _check_addresses(named: Iterable[tuple[str, str]]) -> None:
    seen: dict[Address, str] = {}
    for field_name, text in named:
        try:
            address = parse_address(text)
        except ValueError as error:
            raise ClusterConfigError(field_name, f"is not valid: {error}") from error
        if address.port == 0:
            raise ClusterConfigError(field_name, f"is {text!r}: with port 0, other tasks could not find it")
        if address in seen:
            raise ClusterConfigError(field_name, f"is {text!r}, which {seen[address]} is already")
        seen[address] = field_name


def _listed(values: list[Any]) -> str:
    shown = [str(value) for value in values[:8]] + ["..."] * (len(values) > 8)
    return ", ".join(shown) if shown else "no jobs"


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
