"""Roles of the tasks in a cluster of parameter servers and workers."""

from __future__ import annotations

from typing import Any

from headwater.cluster.config import EVALUATOR, TRAINING, TaskConfig, task_config_from_environment
from headwater.cluster.names import TaskName
from headwater.cluster.spec import ClusterSpec


class Members:
    """Roles of the tasks in a cluster of parameter servers.

    Args:
      cluster: all tasks.
      me: this task. Its job is ``ps``, ``worker``, ``chief`` (or ``master``) or ``evaluator``.

    Raises:
      ValueError: the cluster has no ``ps`` or no worker, or this task has another job.
    """

    def __init__(self, cluster: ClusterSpec, me: TaskName) -> None:
        self.cluster = cluster
        self.me = me
        jobs = cluster.jobs
        self.servers: list[TaskName] = (
            [TaskName("ps", index) for index in cluster.task_indices("ps")] if "ps" in jobs else []
        )
        self.workers: list[TaskName] = [
            TaskName(job, index) for job in TRAINING if job in jobs for index in cluster.task_indices(job)
        ]
        if not self.servers:
            raise ValueError(f"the cluster has no job 'ps', only {jobs}: no task can store parameters")
        if not self.workers:
            raise ValueError(f"the cluster has no job 'worker', only {jobs}: no task computes gradients")
        if me not in self.servers and me not in self.workers and me.job != EVALUATOR:
            raise ValueError(f"{me} is none of the jobs 'ps', 'worker', 'chief', 'master' and 'evaluator'")

    @property
    def is_server(self) -> bool:
        """Whether this task keeps parameters."""
        return self.me in self.servers

    @property
    def is_evaluator(self) -> bool:
        """Whether this task only evaluates."""
        return self.me.job == EVALUATOR

    @property
    def is_chief(self) -> bool:
        """Whether this task is the worker that provides initial values and writes files."""
        return self.me == self.workers[0]

    @property
    def number(self) -> int:
        """This task's number among the servers, or among the workers; 0 for an evaluator."""
        if self.is_evaluator:
            return 0
        return (self.servers if self.is_server else self.workers).index(self.me)


def find_members(resolver: Any = None) -> Members | None:
    """Returns the roles in the cluster of a resolver, or of ``TF_CONFIG``; None if neither names a cluster.

    Args:
      resolver: a cluster resolver with a task type and a task id, or None.

    Raises:
      ClusterConfigError, ValueError: the description is invalid, or not of a cluster with parameter servers.
    """
    if resolver is not None:
        cluster, job = ClusterSpec(resolver.cluster_spec()), resolver.task_type
        if not cluster:
            return None
        if job is None:
            raise ValueError("the cluster resolver does not say which task this process is (task_type, task_id)")
        return Members(cluster, TaskName(job, int(resolver.task_id or 0)))
    config: TaskConfig | None = task_config_from_environment()
    if config is None or not config.cluster:
        return None
    if config.task is None:
        raise ValueError("TF_CONFIG does not say which task this process is ('task')")
    return Members(config.cluster, config.task)
