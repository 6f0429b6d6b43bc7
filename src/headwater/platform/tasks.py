"""The command line and the environment of a job's tasks, the same on every backend."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import headwater
from headwater.cluster.config import EVALUATOR
from headwater.cluster.names import TaskName
from headwater.cluster.telemetry.printed import PATTERN_VARIABLE
from headwater.cluster.variables import ENDED, FIRST_PS, SHARDS, has_two_copies
from headwater.platform.backends.base import Resources, TaskOrder, TaskRequest
from headwater.platform.host.programs import PROGRAM
from headwater.platform.records import JobRecord
from headwater.platform.spec import FOLDERS, JobSpec, Role, SecretRef
from headwater.platform.states import TaskPhase

#: The command ``headwater`` of this installation, for tasks on this machine.
LOCAL_COMMAND = (sys.executable, str(Path(headwater.__file__).with_name("__main__.py")))
#: A placeholder for the command, which the machine of the task replaces by its own installation.
COMMAND_PLACEHOLDER = ("headwater",)


def cluster_of(addresses: Mapping[TaskName, str]) -> dict[str, list[str]]:
    """Returns ``cluster`` of ``TF_CONFIG``, from the address of each task; without evaluators.

    The addresses are a list by index. A task without a place that precedes one with a place gets an address that cannot
    be resolved.
    """
    cluster: dict[str, list[str]] = {}
    for task in sorted(addresses):
        if task.job != EVALUATOR:
            known = cluster.setdefault(task.job, [])
            known += [f"{task.job}-{away}.away.invalid:1" for away in range(len(known), task.index)]
            known.append(addresses[task])
    return cluster


def task_command(
    spec: JobSpec,
    task: TaskName,
    cluster: Mapping[str, Sequence[str]],
    *,
    headwater_command: Sequence[str] = LOCAL_COMMAND,
) -> tuple[str, ...]:
    """Returns the command line of ``task``.

    Args:
      spec: the job.
      cluster: the addresses of all tasks, for jobs that pass them as flags.
      headwater_command: the command ``headwater`` on the task's machine.
    """
    cluster = _cluster_for(spec, task, cluster)
    arguments = [_filled(argument, spec) for argument in spec.args]
    if spec.flags:
        arguments += [
            f"--ps_hosts={','.join(cluster.get('ps', ()))}",
            f"--worker_hosts={','.join(cluster.get('worker', ()))}",
            f"--job_name={task.job}",
            f"--task_index={task.index}",
        ]
    if spec.command is not None:
        return (*(_filled(part, spec) for part in spec.command), *arguments)
    lead = [spec.program] if spec.program is not None else ["-m", spec.module or ""]
    return (*headwater_command, "exec", *lead, *arguments)


def task_environment(
    spec: JobSpec, task: TaskName, cluster: Mapping[str, Sequence[str]], *, job_id: str, attempt: int
) -> dict[str, str]:
    """Returns the environment of ``task``: its place in the cluster, the job's folders, variables of the job's file.

    The backend adds variables that only the task's machine knows, such as its GPUs; secrets are in `task_secrets`.
    """
    cluster = _cluster_for(spec, task, cluster)
    config = {
        "cluster": {job: list(addresses) for job, addresses in cluster.items()},
        "task": {"type": task.job, "index": task.index},
        "environment": "cloud",
    }
    folders = {f"HEADWATER_{name.upper()}": value for name in FOLDERS if (value := getattr(spec, name)) is not None}
    shards: dict[str, str] = {}
    if spec.ps.count.most > spec.ps.count.least:
        # The number of shards cannot change after the start of the training, so there are two for each ps of the
        # maximum number.
        shards = {SHARDS: str(2 * spec.ps.count.most), FIRST_PS: str(spec.ps.count.least)}
    variables = {name: value for name, value in _variables(spec, task).items() if isinstance(value, str)}
    return {
        "PYTHONUNBUFFERED": "1",
        "TF_CONFIG": json.dumps(config),
        "HEADWATER_JOB_ID": job_id,
        "HEADWATER_ATTEMPT": str(attempt),
        **({PROGRAM: spec.program} if spec.program is not None else {}),
        **({PATTERN_VARIABLE: spec.progress.pattern} if spec.progress.pattern is not None else {}),
        **folders,
        **shards,
        **variables,
    }


def _cluster_for(spec: JobSpec, task: TaskName, cluster: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[str]]:
    """Returns the part of the cluster in the configuration of ``task``.

    A graph with replicated ``ps`` places operations only on the first ``ps``, which always exist; tasks learn of
    further ones from each other.
    """
    least = spec.ps.count.least
    if spec.ps.count.most == least or not has_two_copies(_variables(spec, task)):
        return cluster
    known = max(least, task.index + 1) if task.job == "ps" else least
    return {job: addresses[:known] if job == "ps" else addresses for job, addresses in cluster.items()}


def task_secrets(spec: JobSpec, task: TaskName) -> dict[str, str]:
    """Returns the variables of ``task`` whose values are secrets, each with the secret's name."""
    return {name: value.secret for name, value in _variables(spec, task).items() if isinstance(value, SecretRef)}


def task_requests(spec: JobSpec, names: Iterable[TaskName]) -> list[TaskRequest]:
    """Returns the resources to reserve for the tasks ``names`` of a job."""
    requests: list[TaskRequest] = []
    for name in names:
        role: Role = name.job  # pyright: ignore[reportAssignmentType]  tasks are made of roles
        asked = spec.role(role)
        resources = Resources(cpus=asked.cpus, memory_bytes=asked.memory, gpus=asked.gpus)
        requests.append(TaskRequest(task=name, resources=resources, selector=asked.node_selector))
    return requests


def task_order(
    record: JobRecord, name: TaskName, *, archive: Path | None, log_path: Path, secrets: Mapping[str, str]
) -> TaskOrder:
    """Returns the order to start a placed task; ``secrets`` are all secrets of its job, values by name."""
    spec, attempt = record.state.spec, record.state.tasks[name].attempt
    cluster = cluster_of({known: place.address for known, place in record.places.items()})
    ended = _ended(record)
    return TaskOrder(
        job_id=record.id,
        attempt=attempt,
        place=record.places[name],
        argv=task_command(spec, name, cluster, headwater_command=COMMAND_PLACEHOLDER),
        env={
            **task_environment(spec, name, cluster, job_id=record.id, attempt=attempt),
            **({ENDED: ",".join(map(str, ended))} if ended else {}),
        },
        secrets={variable: secrets[secret] for variable, secret in task_secrets(spec, name).items()},
        # A relative folder is within the job's folder on its host, which is kept between attempts.
        cwd=spec.workdir or ".",
        archive=archive,
        log_path=log_path,
    )


def _ended(record: JobRecord) -> list[TaskName]:
    """Returns the workers whose programs have succeeded, except a worker that is the chief, because the end of the
    chief ends the job."""
    chief = TaskName("worker", 0)
    return [
        name
        for name, task in sorted(record.state.tasks.items())
        if task.phase is TaskPhase.SUCCEEDED
        and name.job == "worker"
        and name in record.places
        and (name != chief or record.state.spec.chief.count.most)
    ]


def _variables(spec: JobSpec, task: TaskName) -> dict[str, str | SecretRef]:
    role: Role = task.job  # pyright: ignore[reportAssignmentType]  tasks are made of roles
    return {**spec.env, **spec.role(role).env}


def _filled(text: str, spec: JobSpec) -> str:
    """Returns ``text`` with the job's folders substituted for their names in braces."""
    for name in FOLDERS:
        text = text.replace(f"{{{name}}}", getattr(spec, name) or "")
    return text
