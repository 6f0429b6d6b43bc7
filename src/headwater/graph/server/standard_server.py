"""A task's server configured by ``TF_CONFIG``, for programs that only run a server."""

from __future__ import annotations

from headwater.cluster.config import TRAINING, task_config_from_environment
from headwater.graph.server.server import Server


def run_standard_tensorflow_server(session_config: object = None) -> Server:
    """Starts the server of this task; `Server.join` waits for its end.

    Args:
      session_config: a ``ConfigProto``; see `Server`.

    Raises:
      ValueError: ``TF_CONFIG`` names no cluster or no task, or a cluster without chief and workers.
      ClusterConfigError: ``TF_CONFIG`` is invalid.
    """
    found = task_config_from_environment()
    if found is None or not found.cluster.jobs:
        raise ValueError('"cluster" is not found in TF_CONFIG.')
    if found.task is None:
        raise ValueError('"task" is not found in TF_CONFIG.')
    if not set(TRAINING).intersection(found.cluster.jobs):
        raise ValueError("You must have `chief` or `worker` jobs in the `cluster_spec`.")
    return Server(
        found.cluster, found.task.job, found.task.index, protocol=found.rest.get("rpc_layer"), config=session_config
    )
