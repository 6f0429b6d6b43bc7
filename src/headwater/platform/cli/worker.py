"""``headwater worker --join``: starts a worker that is not in the initial cluster spec."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace

from headwater.cluster.addresses import Address, parse_address
from headwater.cluster.names import TaskName
from headwater.cluster.telemetry.snapshot import SNAPSHOT_DETAIL, Snapshot
from headwater.cluster.transport.control_client import ControlClient
from headwater.cluster.transport.ports import listen
from headwater.cluster.transport.security import Security
from headwater.cluster.variables import JOINED, LISTEN_FDS
from headwater.platform.cli.arguments import Invocation
from headwater.platform.cli.execute import interpreter_command

_JOB = "worker"
_VACANT = "vacant-{index}.invalid:1"
"""The placeholder in a list of addresses for a worker that has left."""


def join(address: str, host: str) -> tuple[socket.socket, dict[str, str]]:
    """Joins a running cluster as a new worker.

    Args:
      address: ``host:port`` of any task of the cluster.
      host: the host at which others reach the new worker; empty: the local address of a connection to ``address``.

    Returns:
      A socket that listens at the worker's address, and environment variables that describe the cluster to its program.

    Raises:
      OutOfRangeError: the job is over.
      OpError: the cluster cannot be reached, or the address is not available.
      ValueError: ``address`` is not an address, or the task there does not support joining.
    """
    security = Security.from_environment()
    registrar = _registrar(address, security)
    listening = listen(Address(host or _own_host(parse_address(registrar)), 0), environ={})
    client = ControlClient(parse_address(registrar), peer="the cluster", security=security)
    try:
        own = "{}:{}".format(*listening.getsockname()[:2])
        index, cluster = client.join(_JOB, own)
    except BaseException:
        listening.close()
        raise
    finally:
        client.close()
    environment = {
        "TF_CONFIG": json.dumps({"cluster": _jobs(cluster), "task": {"type": _JOB, "index": index}}),
        LISTEN_FDS: json.dumps({own: listening.fileno()}),
        JOINED: registrar,
    }
    return listening, environment


def _registrar(address: str, security: Security) -> str:
    """Returns the address of the task that admits workers: the first ps or, without any, the first task."""
    client = ControlClient(parse_address(address), peer="the cluster", security=security)
    try:
        status = client.status()
    finally:
        client.close()
    data = status.details.get(SNAPSHOT_DETAIL)
    cluster = Snapshot.decode(data).cluster if data is not None else {}
    if not cluster:
        raise ValueError(f"{status.task} at {address} runs Headwater {status.version}, which no worker can join")
    return cluster[min(cluster, key=lambda name: (TaskName.parse(name).job != "ps", TaskName.parse(name)))]


def _own_host(address: Address) -> str:
    """Returns the local address of a connection to ``address``."""
    with socket.create_connection(address, timeout=10) as connected:
        return str(connected.getsockname()[0])


def _jobs(cluster: Mapping[str, str]) -> dict[str, list[str]]:
    """Returns the addresses of each job's tasks without gaps, as programs expect."""
    jobs: dict[str, dict[int, str]] = {}
    for name, its_address in cluster.items():
        task = TaskName.parse(name)
        jobs.setdefault(task.job, {})[task.index] = its_address
    return {
        job: [tasks.get(index, _VACANT.format(index=index)) for index in range(max(tasks) + 1)]
        for job, tasks in jobs.items()
    }


def flags(environment: Mapping[str, str]) -> Sequence[str]:
    """Returns the cluster as ``--ps_hosts --worker_hosts --job_name --task_index``."""
    config = json.loads(environment["TF_CONFIG"])
    return (
        f"--ps_hosts={','.join(config['cluster'].get('ps', ()))}",
        f"--worker_hosts={','.join(config['cluster'][_JOB])}",
        f"--job_name={_JOB}",
        f"--task_index={config['task']['index']}",
    )


def run_worker(invocation: Invocation, address: str, *, host: str, as_flags: bool) -> None:
    """Joins the cluster and replaces this process by the program; does not return.

    Raises:
      OpError, ValueError: see `join`.
      OSError: the program cannot be started.
    """
    listening, environment = join(address, host)
    os.set_inheritable(listening.fileno(), True)
    if as_flags:
        invocation = replace(invocation, arguments=(*invocation.arguments, *flags(environment)))
    command = interpreter_command(invocation)
    os.execve(command[0], command, {**os.environ, **environment})
