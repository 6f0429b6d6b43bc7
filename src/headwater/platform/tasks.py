"""What one task of a job is started with: its command line and its environment, on every backend the same."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import headwater
from headwater.cluster.config import EVALUATOR
from headwater.cluster.names import TaskName
from headwater.platform.spec import FOLDERS, JobSpec, Role

#: How this machine calls the command ``headwater`` of this very installation.
HERE = (sys.executable, str(Path(headwater.__file__).with_name("__main__.py")))
#: How any other machine does.
ELSEWHERE = ("headwater",)


def cluster_of(addresses: Mapping[TaskName, str]) -> dict[str, list[str]]:
    """``TF_CONFIG``'s ``cluster``, of the address of each task; an evaluator is in none."""
    cluster: dict[str, list[str]] = {}
    for task in sorted(addresses):
        if task.job != EVALUATOR:
            cluster.setdefault(task.job, []).append(addresses[task])
    return cluster


def task_command(
    spec: JobSpec,
    task: TaskName,
    cluster: Mapping[str, Sequence[str]],
    *,
    headwater_command: Sequence[str] = HERE,
) -> tuple[str, ...]:
    """The command line of ``task``.

    Args:
      spec: the job.
      task: which task.
      cluster: the addresses of all tasks, for jobs that ask for them as flags.
      headwater_command: how the task's machine calls ``headwater``.
    """
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
    """The variables of ``task``: its place in the cluster, the job's folders, and what the job's file says.

    What only the task's machine can know, such as its GPUs, its backend adds.
    """
    config = {
        "cluster": {job: list(addresses) for job, addresses in cluster.items()},
        "task": {"type": task.job, "index": task.index},
        "environment": "cloud",
    }
    folders = {f"HEADWATER_{name.upper()}": value for name in FOLDERS if (value := getattr(spec, name)) is not None}
    role: Role = task.job  # pyright: ignore[reportAssignmentType]  tasks are made of roles
    return {
        "PYTHONUNBUFFERED": "1",
        "TF_CONFIG": json.dumps(config),
        "HEADWATER_JOB_ID": job_id,
        "HEADWATER_ATTEMPT": str(attempt),
        **folders,
        **spec.env,
        **spec.role(role).env,
    }


def _filled(text: str, spec: JobSpec) -> str:
    """``text`` with the job's folders in place of their names in braces."""
    for name in FOLDERS:
        text = text.replace(f"{{{name}}}", getattr(spec, name) or "")
    return text
