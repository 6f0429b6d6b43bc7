"""``headwater doctor``: connects to every task of a cluster from this machine, and shows problems."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from headwater.cluster.config import ClusterConfigError, check_cluster, parse_hosts, task_config_from_environment
from headwater.cluster.names import TaskName
from headwater.cluster.spec import ClusterSpec
from headwater.cluster.transport.doctor import Diagnosis, diagnose
from headwater.cluster.transport.security import Security
from headwater.platform.cli.console import table_console
from headwater.platform.cli.launcher.job import label

_MAX_CONCURRENT_CALLS = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskDiagnosis:
    """The diagnosis of one task."""

    task: TaskName
    diagnosis: Diagnosis


def cluster_to_examine(ps_hosts: str, worker_hosts: str) -> ClusterSpec:
    """Returns the cluster of the flags or, without flags, of ``TF_CONFIG``.

    Raises:
      ClusterConfigError: neither describes a valid cluster.
    """
    jobs = {"ps": parse_hosts(ps_hosts, "--ps_hosts"), "worker": parse_hosts(worker_hosts, "--worker_hosts")}
    cluster = ClusterSpec({job: hosts for job, hosts in jobs.items() if hosts})
    if not cluster:
        config = task_config_from_environment()
        if config is None or not config.cluster:
            raise ClusterConfigError("--ps_hosts", "and --worker_hosts are missing, and TF_CONFIG describes no cluster")
        return config.cluster
    check_cluster(cluster, "the flags'")
    return cluster


def examine(cluster: ClusterSpec, *, timeout_s: float) -> list[TaskDiagnosis]:
    """Connects to the tasks of ``cluster``, many at once, and diagnoses problems.

    Args:
      timeout_s: the timeout of each step of connecting, in seconds.
    """
    security = Security.from_environment()
    tasks = list(cluster.tasks())

    def examine_one(entry: tuple[TaskName, str]) -> TaskDiagnosis:
        task, address = entry
        diagnosis = diagnose(address, timeout_s=timeout_s, security=security, task=str(task))
        return TaskDiagnosis(task=task, diagnosis=diagnosis)

    with ThreadPoolExecutor(min(_MAX_CONCURRENT_CALLS, len(tasks))) as pool:
        return list(pool.map(examine_one, tasks))


def show(examined: Sequence[TaskDiagnosis]) -> None:
    """Prints a table of the diagnoses."""
    table = Table(box=None, pad_edge=False)
    for heading in ("task", "address", "state", "what to do"):
        table.add_column(heading, overflow="fold")
    for entry in examined:
        diagnosis = entry.diagnosis
        state = Text("ok", "green") if diagnosis.ok else Text(diagnosis.problem, "red")
        table.add_row(label(entry.task), Text(diagnosis.address), state, Text(diagnosis.hint))
    table_console().print(table)
