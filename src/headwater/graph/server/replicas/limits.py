"""Configurations that support replication of a graph's variables."""

from __future__ import annotations

import os
from collections.abc import Mapping

from headwater.cluster.config import TRAINING
from headwater.cluster.spec import ClusterSpec
from headwater.cluster.task.lifetime import PS
from headwater.cluster.variables import FIRST_PS, REPLICAS, SAVES
from headwater.errors import FailedPreconditionError, InvalidArgumentError


def tasks_of(cluster: ClusterSpec, environ: Mapping[str, str] | None = None) -> int:
    """Returns the number of a graph's ``ps`` tasks. Each ``ps`` of the cluster beyond this number is only a process
    that may hold replicas of these tasks."""
    environ = os.environ if environ is None else environ
    count, first = len(cluster.task_indices(PS)), environ.get(FIRST_PS, "")
    return min(count, int(first)) if first.isdecimal() and int(first) > 1 else count


def replicas_of(cluster: ClusterSpec, environ: Mapping[str, str] | None = None) -> int:
    """Reads the number of replicas of each variable of a graph from the environment: 1 or 2.

    Raises:
      InvalidArgumentError: the value is neither 1 nor 2.
      FailedPreconditionError: the value is 2, and the cluster or the rest of the environment does not allow it.
    """
    environ = os.environ if environ is None else environ
    text = environ.get(REPLICAS, "").strip() or "1"
    if text not in ("1", "2"):
        raise InvalidArgumentError(f"{REPLICAS} must be 1 or 2, not {text!r}")
    if text == "1" or PS not in cluster.jobs:
        return 1
    servers = len(cluster.task_indices(PS))
    if servers < 2:
        raise FailedPreconditionError(
            f"{REPLICAS}=2 needs a second ps for the backup, and this cluster has {servers}: start it with --ps 2, or "
            f"unset {REPLICAS}"
        )
    if not set(TRAINING).intersection(cluster.jobs):
        raise FailedPreconditionError(
            f"{REPLICAS}=2 needs a chief or a worker, which runs the witness; this cluster has none"
        )
    if environ.get(SAVES, ""):
        raise FailedPreconditionError(
            f"{REPLICAS}=2 and {SAVES} cannot be combined: a restarted ps receives a snapshot of the other "
            "replica. Unset one of them"
        )
    return 2
