"""The processes to start: the tasks, their addresses, command lines and environments."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from headwater.cluster.names import TaskName
from headwater.cluster.telemetry.progress import STATUS_VARIABLE
from headwater.cluster.variables import LAUNCH_TOKEN, LISTEN_FDS, LOG_DIR, MAX_WORKERS
from headwater.platform.cli.arguments import Invocation
from headwater.platform.cli.child import PARENT
from headwater.platform.cli.execute import interpreter_command
from headwater.platform.cli.launcher.job import PS
from headwater.platform.host.gpus import CPU_ONLY, VISIBLE
from headwater.platform.host.guard import JOB, job_marker

HOST = "127.0.0.1"
# The share of a GPU's memory that all workers on it use together. By default, each JAX process allocates three quarters
# of it for itself.
_GPU_MEMORY_SHARE = 0.9


@dataclass(frozen=True, kw_only=True, slots=True)
class LaunchSettings:
    """A cluster to start on this machine.

    Attributes:
      invocation: the program that every task runs.
      ps: number of parameter server tasks.
      workers: number of worker tasks.
      chief: whether there is a task of job ``chief`` in addition.
      flags: whether to pass the cluster as ``--ps_hosts --worker_hosts --job_name --task_index``, too.
      log_dir: the folder of a log file per task, and of the tasks' journals unless ``HEADWATER_LOG_DIR`` names another
        folder; None for no log files.
      env: variables for the tasks, in addition to the launcher's environment.
      grace_s: seconds between asking a task to end and killing it.
      restarts: maximum number of restarts. In an elastic cluster, each replacement of a lost worker counts; otherwise,
        each restart of all tasks after the loss of a task that other tasks need.
      most_workers: the maximum number of workers of an elastic cluster; None: the number is fixed.
    """

    invocation: Invocation
    ps: int
    workers: int
    chief: bool = False
    flags: bool = False
    log_dir: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    grace_s: float = 4.0
    restarts: int = 3
    most_workers: int | None = None

    def __post_init__(self) -> None:
        if self.ps < 0:
            raise ValueError(f"--ps must not be negative, but is {self.ps}")
        if self.workers < 0:
            raise ValueError(f"--workers must not be negative, but is {self.workers}")
        if self.workers == 0 and not self.chief:
            raise ValueError("--workers must be at least 1 without --chief")
        if self.chief and self.flags:
            raise ValueError("--chief cannot be used with --flags, which has no flag for a chief's address")
        if self.grace_s < 0:
            raise ValueError(f"--grace must not be negative, but is {self.grace_s:g}")
        if self.most_workers is not None and self.most_workers < self.workers:
            raise ValueError(f"--workers must not be from {self.workers} to {self.most_workers}, which is less")
        if self.most_workers is not None and not self.ps:
            raise ValueError("--workers can be a range only with --ps, which new workers connect to")
        if self.restarts < 0:
            raise ValueError(f"--restarts must not be negative, but is {self.restarts}")

    @property
    def tasks(self) -> tuple[TaskName, ...]:
        """All tasks, in start order."""
        jobs = ((PS, self.ps), ("chief", int(self.chief)), ("worker", self.workers))
        return tuple(TaskName(job, index) for job, count in jobs for index in range(count))


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskPlan:
    """The process of one task.

    Attributes:
      task: the name of the task.
      address: the task's ``host:port``.
      command: the task's command line.
      env: the complete environment of the task.
      listening: the descriptor of a socket that is bound to ``address`` and listens; the process inherits it.
    """

    task: TaskName
    address: str
    command: tuple[str, ...]
    env: Mapping[str, str]
    listening: int


def reserve_address() -> socket.socket:
    """Returns a socket that listens at a free port of this machine.

    The port is reserved from this moment on: the task inherits the socket, not the number, so that no other process can
    take the port in between. A peer that connects before the task is ready waits.
    """
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.bind((HOST, 0))
    listening.listen(socket.SOMAXCONN)
    return listening


def plan_tasks(
    settings: LaunchSettings,
    sockets: Mapping[TaskName, socket.socket],
    *,
    job_id: str,
    status_address: str,
    launch_token: str,
    base_env: Mapping[str, str],
    gpus: Sequence[str],
) -> tuple[TaskPlan, ...]:
    """Plans the processes of all tasks.

    Args:
      settings: the cluster.
      sockets: for each task, the socket that listens at its address.
      job_id: marks the processes of this job.
      status_address: the path of the socket for progress reports.
      launch_token: a secret of this job's tasks.
      base_env: the environment of the launcher.
      gpus: the names of the GPUs that workers may use, as in ``CUDA_VISIBLE_DEVICES``.
    """
    addresses = {task: "{}:{}".format(*sockets[task].getsockname()) for task in settings.tasks}
    cluster: dict[str, list[str]] = {}
    for task, address in addresses.items():
        cluster.setdefault(task.job, []).append(address)
    common = {
        **base_env,
        "PYTHONUNBUFFERED": "1",
        JOB: job_marker(base_env, job_id),
        PARENT: str(os.getpid()),
        STATUS_VARIABLE: status_address,
        LAUNCH_TOKEN: launch_token,
    }
    if settings.log_dir is not None:
        common.setdefault(LOG_DIR, str(settings.log_dir.absolute()))
    workers = [task for task in settings.tasks if task.job != PS]
    plans: list[TaskPlan] = []
    for task, address in addresses.items():
        descriptor = sockets[task].fileno()
        env = {
            **common,
            "TF_CONFIG": json.dumps(
                {"cluster": cluster, "task": {"type": task.job, "index": task.index}, "environment": "cloud"}
            ),
            LISTEN_FDS: json.dumps({address: descriptor}),
            **_accelerators(task, workers, gpus, base_env),
            **({MAX_WORKERS: str(settings.most_workers)} if settings.most_workers is not None else {}),
            **settings.env,
        }
        invocation = settings.invocation
        if settings.flags:
            invocation = replace(invocation, arguments=invocation.arguments + _flags(task, cluster))
        command = tuple(interpreter_command(invocation))
        plans.append(TaskPlan(task=task, address=address, command=command, env=env, listening=descriptor))
    return tuple(plans)


def _accelerators(
    task: TaskName, workers: Sequence[TaskName], gpus: Sequence[str], base_env: Mapping[str, str]
) -> dict[str, str]:
    """Assigns GPUs to ``task``: none to a ``ps``; to a worker its share of the GPUs or, if there are more workers than
    GPUs, a GPU that it shares with others."""
    if task.job == PS:
        return dict(CPU_ONLY)
    if not gpus:
        return {}
    place = workers.index(task)
    if len(workers) <= len(gpus):
        return {VISIBLE: ",".join(gpus[place :: len(workers)])}
    gpu = place % len(gpus)
    sharing = len(range(gpu, len(workers), len(gpus)))
    env = {VISIBLE: gpus[gpu]}
    if sharing > 1 and "XLA_PYTHON_CLIENT_MEM_FRACTION" not in base_env:
        env["XLA_PYTHON_CLIENT_MEM_FRACTION"] = f"{_GPU_MEMORY_SHARE / sharing:.3f}"
    return env


def joining_command(settings: LaunchSettings, address: str) -> tuple[str, ...]:
    """Returns the command line of a worker that joins the cluster of the task at ``address``."""
    python, *rest = interpreter_command(settings.invocation)
    at = rest.index("exec")
    flags = ("--flags",) if settings.flags else ()
    return (python, *rest[:at], "worker", "--join", address, *flags, *rest[at + 1 :])


def joining_environment(plan: TaskPlan) -> dict[str, str]:
    """Returns the environment of a worker that replaces the worker of ``plan``."""
    return {name: value for name, value in plan.env.items() if name not in ("TF_CONFIG", LISTEN_FDS)}


def _flags(task: TaskName, cluster: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    return (
        f"--ps_hosts={','.join(cluster.get(PS, ()))}",
        f"--worker_hosts={','.join(cluster.get('worker', ()))}",
        f"--job_name={task.job}",
        f"--task_index={task.index}",
    )
