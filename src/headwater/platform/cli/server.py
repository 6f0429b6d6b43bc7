"""``headwater server``: a task that runs no program, for remote clients."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from headwater.cluster.config import ClusterConfigError, TaskConfig, parse_task_config
from headwater.cluster.variables import INSECURE
from headwater.graph.server.server import Server

_FORM = 'JSON, such as {"ps": ["a:2222"], "worker": ["b:2222"]}, or job|host:port;host:port,job|host:port'


def task_of(cluster: str, job: str, index: int) -> TaskConfig:
    """Returns the task that the options describe.

    Args:
      cluster: a mapping from jobs to addresses, as JSON or as ``ps|a:2222;b:2222,worker|c:2222``.
      job: the job of the task.
      index: the index of the task.

    Raises:
      ClusterConfigError: an option is wrong; the message is one line that names it.
    """
    jobs = _json(cluster) if cluster.lstrip().startswith("{") else _listed(cluster)
    return parse_task_config(json.dumps({"cluster": jobs, "task": {"type": job, "index": index}}), source="--cluster")


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ClusterConfigError("--cluster", f"is not {_FORM}: {error}") from error


def _listed(text: str) -> dict[str, Sequence[str]]:
    jobs: dict[str, Sequence[str]] = {}
    for part in text.split(","):
        job, separator, addresses = part.strip().partition("|")
        if not separator or job in jobs:
            raise ClusterConfigError("--cluster", f"is {text!r}; write {_FORM}")
        jobs[job] = [address for address in addresses.split(";") if address]
    return jobs


def serve(config: TaskConfig, *, protocol: str, insecure: bool) -> None:
    """Runs the task until SIGTERM, or until the job has ended.

    Raises:
      OpError: the server cannot start; see `Server`.
      KeyboardInterrupt: Ctrl-C was pressed.
    """
    assert config.task is not None
    if insecure:
        os.environ[INSECURE] = "1"
    server = Server(config.cluster, config.task.job, config.task.index, protocol=protocol)
    print(f"{config.task} serves at {server.target}", flush=True)
    server.join()
