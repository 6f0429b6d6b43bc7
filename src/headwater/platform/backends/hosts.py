"""Tasks on hosts that each run an agent: common to this machine and hosts over ssh.

Resources are reserved here. All other operations are performed by the agent of a host
(`headwater.platform.host.agent`), which is reached through a `HostConnection`.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import os
import secrets
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from headwater.cluster.addresses import Address, parse_address
from headwater.cluster.names import TaskName
from headwater.cluster.telemetry.progress import Progress
from headwater.data.io.sealed import seal, unseal
from headwater.platform.backends.base import (
    BackendError,
    Capacity,
    Exited,
    Lost,
    Running,
    TaskBackend,
    TaskOrder,
    TaskPlace,
    TaskRequest,
    TaskState,
    Usage,
)
from headwater.platform.backends.placement import Host, Reservations
from headwater.platform.host.folders import private_folder

if TYPE_CHECKING:
    from headwater.data.io.json_types import Json, JsonObject

_TOKEN = "HEADWATER_TOKEN"
_ARCHIVE_PIECE = 1 << 20
# The maximum number of pieces of a log in one poll, so that a task that prints without end does not delay the polls of
# other tasks.
_MAX_LOG_PIECES = 32


class HostConnection(Protocol):
    """The connection to one host's agent. Its methods may be called from any thread.

    Attributes:
      host: the host's name.
      address: the name or address at which other hosts reach it.
      labels: the labels that the node selectors of jobs may require.
      local: whether the server and the host share their files.
    """

    host: str
    address: str
    labels: Mapping[str, str]
    local: bool

    def call(self, method: str, **arguments: object) -> Json:
        """Calls a method of the agent.

        Raises:
          BackendError: the host does not answer (temporary), or the call failed there.
        """
        ...

    def silence_s(self) -> float:
        """Returns for how many seconds the host has not answered; 0 while it does."""
        ...

    def close(self) -> None:
        """Closes the connection. Tasks continue."""
        ...


class HostsBackend(TaskBackend):
    """Runs tasks on hosts with agents.

    Args:
      connections: one for each host.
      lost_after_s: seconds without an answer of a host after which its tasks count as lost.
      state_dir: a folder of the server for the secret from which each job's token is derived.
      token_variable: the environment variable of the token: ``HEADWATER_TOKEN`` if tasks listen at addresses that other
        hosts can reach.
    """

    def __init__(
        self,
        connections: Sequence[HostConnection],
        *,
        lost_after_s: float,
        state_dir: Path,
        token_variable: str = _TOKEN,
    ) -> None:
        self._connections = {connection.host: connection for connection in connections}
        self._lost_after_s = lost_after_s
        self._secret = _secret(state_dir / "secret")
        self._token_variable = token_variable
        self._lock = threading.Lock()
        self._reservations = Reservations()
        self._known: set[str] = set()
        self._hosts_of: dict[str, set[str]] = {}

    def capacity(self) -> Capacity:
        problems = self._refresh_hosts()
        with self._lock:
            return Capacity(hosts=self._reservations.capacity(problems))

    def reserve(self, job_id: str, requests: Sequence[TaskRequest]) -> tuple[TaskPlace, ...]:
        problems = self._refresh_hosts()
        with self._lock:
            hosts = self._hosts_of.setdefault(job_id, set())  # stays empty if nothing can be placed
            assignments = self._reservations.place(job_id, requests, problems=problems)
            hosts.update(assignment.host for assignment in assignments)
        leased: dict[str, list[int]] = {}
        addresses: dict[TaskName, str] = {}
        try:
            for host in {assignment.host for assignment in assignments}:
                tasks = [assignment.task for assignment in assignments if assignment.host == host]
                connection = self._connections[host]
                leased[host] = connection.call("lease_ports", job_id=job_id, count=len(tasks))
                for task, port in zip(tasks, leased[host], strict=True):
                    addresses[task] = str(Address(connection.address, port))
        except BackendError:
            with self._lock:
                self._reservations.release(job_id, [assignment.task for assignment in assignments])
            for host, ports in leased.items():
                # An error here does no harm: the ports are returned at the latest when the job is released.
                with contextlib.suppress(BackendError):
                    self._connections[host].call("return_ports", job_id=job_id, ports=ports)
            raise
        return tuple(
            TaskPlace(
                task=assignment.task,
                host=assignment.host,
                address=addresses[assignment.task],
                resources=assignment.resources,
                cores=assignment.cores,
                gpus=assignment.gpus,
            )
            for assignment in assignments
        )

    def restore(self, job_id: str, places: Sequence[TaskPlace]) -> None:
        self._refresh_hosts()
        with self._lock:
            self._reservations.restore(job_id, places)
            self._hosts_of.setdefault(job_id, set()).update(place.host for place in places)
        for host in {place.host for place in places} & self._known:
            ports = [parse_address(place.address).port for place in places if place.host == host]
            self._connections[host].call("lease_again", job_id=job_id, ports=ports)

    def release(self, job_id: str, tasks: Sequence[TaskName] | None = None) -> None:
        named = None if tasks is None else [(task.job, task.index) for task in tasks]
        try:
            self._call_hosts_of(job_id, "release", tasks=named)
        finally:
            with self._lock:
                self._reservations.release(job_id, tasks)

    def forget(self, job_id: str) -> None:
        self._call_hosts_of(job_id, "forget")
        with self._lock:
            self._hosts_of.pop(job_id, None)

    def start(self, order: TaskOrder) -> str:
        connection = self._connection_for(order.place)
        if order.archive is not None:
            self._unpack(connection, order.job_id, order.archive)
        order.log_path.parent.mkdir(parents=True, exist_ok=True)
        order.log_path.touch()
        place = order.place
        handle = connection.call(
            "start",
            order={
                "job_id": order.job_id,
                "job": order.task.job,
                "index": order.task.index,
                "attempt": order.attempt,
                "argv": list(order.argv),
                "env": {**self._environment(order.job_id), **order.env},
                "secrets": dict(order.secrets),
                "cwd": order.cwd,
                "address": place.address,
                "cores": list(place.cores),
                "gpus": list(place.gpus),
                "memory_bytes": place.resources.memory_bytes,
                "log_path": str(order.log_path.absolute()) if connection.local else None,
                "remember": {} if connection.local else _log_here(order.log_path),
                "max_log_bytes": order.max_log_bytes,
            },
        )
        return json.dumps({**handle, "host": connection.host})

    def poll(self, handle: str) -> TaskState:
        fields = json.loads(handle)
        try:
            connection = self._connection(fields["host"])
        except BackendError as error:
            return Lost(reason=str(error))
        try:
            answer = _poll(connection, fields)
        except BackendError as error:
            return self._state_without_answer(connection, error)
        return _state(answer)

    def stop(self, handle: str, *, grace_s: float) -> None:
        fields = json.loads(handle)
        self._connection(fields["host"]).call("stop", handle=fields, grace_s=grace_s)

    def adopt(self, handle: str) -> bool:
        return isinstance(self.poll(handle), Running)

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def _environment(self, job_id: str) -> dict[str, str]:
        """Returns the environment variable with the token of a job, which is the same after every restart."""
        return {self._token_variable: hmac.new(self._secret, job_id.encode(), hashlib.sha256).hexdigest()}

    def _state_without_answer(self, connection: HostConnection, error: BackendError) -> TaskState:
        """Returns the state to assume for a task if its host did not answer."""
        silence_s = connection.silence_s()
        if silence_s > self._lost_after_s:
            return Lost(reason=f"host {connection.host} has not answered for {silence_s:.0f} s: {error}")
        return Running(waiting=str(error))

    def _connection_for(self, place: TaskPlace) -> HostConnection:
        return self._connection(place.host)

    def _connection(self, host: str) -> HostConnection:
        connection = self._connections.get(host)
        if connection is None:
            raise BackendError(f"there is no host {host!r}; there are {', '.join(self._connections)}")
        return connection

    def _refresh_hosts(self) -> dict[str, str]:
        """Updates the reservations with the hosts' resources; returns errors of the hosts that do not answer."""
        problems: dict[str, str] = {}
        for host, connection in self._connections.items():
            try:
                description = connection.call("describe")
            except BackendError as error:
                problems[host] = str(error)
                continue
            with self._lock:
                self._known.add(host)
                self._reservations.set_host(
                    Host(
                        name=host,
                        cores=tuple(description["cores"]),
                        memory_bytes=description["memory_bytes"],
                        gpus=tuple(description["gpus"]),
                        labels=connection.labels,
                    )
                )
        return problems

    def _call_hosts_of(self, job_id: str, method: str, **arguments: object) -> None:
        """Calls all hosts on which the job has had places, even if the call of one host fails."""
        with self._lock:
            # The hosts of a job from before the server's restart are unknown: ask all.
            hosts = set(self._hosts_of.get(job_id, self._connections)) & self._connections.keys()
        errors: list[BackendError] = []
        for host in hosts:
            try:
                self._connections[host].call(method, job_id=job_id, **arguments)
            except BackendError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def _unpack(self, connection: HostConnection, job_id: str, archive: Path) -> None:
        if connection.call("has_archive", job_id=job_id):
            return
        if not connection.local:
            with archive.open("rb") as file:
                offset = 0
                while (piece := file.read(_ARCHIVE_PIECE)) or not offset:
                    data = base64.b64encode(piece).decode()
                    connection.call("put_archive", job_id=job_id, name=archive.name, offset=offset, data=data)
                    offset += len(piece)
                    if not piece:
                        break
        connection.call("unpack_archive", job_id=job_id, path=str(archive.absolute()))


def _poll(connection: HostConnection, fields: Mapping[str, Json]) -> JsonObject:
    """Polls the agent, and appends the task's new output to its log here."""
    if "log" not in fields:
        answer: JsonObject = connection.call("poll", handle=fields)
        return answer
    path = Path(fields["log"])
    state: JsonObject = {"state": "running"}
    for _ in range(_MAX_LOG_PIECES):
        state = connection.call("poll", handle=fields, log_from=_size(path) - fields["log_from"])
        piece = base64.b64decode(state["log"])
        if not piece:
            return state
        with path.open("ab") as file:
            file.write(piece)
    # The task's log is not complete here yet. A task that is reported as exited is not polled again, so report it as
    # running until the rest of the log has arrived.
    return state if state["state"] != "exited" else {"state": "running", "progress": state["progress"]}


def _state(answer: Mapping[str, Json]) -> TaskState:
    progress = Progress.decode(answer["progress"].encode()) if answer.get("progress") else None
    match answer["state"]:
        case "exited":
            return Exited(
                code=answer["code"],
                reason=answer["reason"],
                stopped=answer["stopped"],
                preempted=answer["preempted"],
                at=answer["at"],
                last_lines=tuple(answer["last_lines"]),
                progress=progress,
            )
        case "lost":
            return Lost(reason=answer["reason"])
        case _:
            usage = None
            if "cpu_s" in answer:
                usage = Usage(
                    cpu_s=answer["cpu_s"],
                    memory_bytes=answer["memory_bytes"],
                    gpu_memory_bytes=answer["gpu_memory_bytes"],
                    gpu_utilization=answer["gpu_utilization"],
                )
            return Running(started_at=answer.get("started_at", 0.0), progress=progress, usage=usage)


def _log_here(path: Path) -> dict[str, object]:
    """Returns the path of a remote task's log here, and the size at which this attempt's output begins."""
    return {"log": str(path.absolute()), "log_from": _size(path)}


def _secret(path: Path) -> bytes:
    """Reads the secret at ``path``, or creates it."""
    private_folder(path.parent)
    if not path.exists():
        # The file gets its name only once it is complete; of two concurrent writers, the first wins.
        written = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        with open(written, "xb", opener=_private) as file:
            file.write(seal(secrets.token_hex(32).encode() + b"\n"))
        with contextlib.suppress(FileExistsError):
            os.link(written, path)
        written.unlink()
    content, sealed = unseal(path.read_bytes())
    if sealed == "broken" or not content:
        raise BackendError(
            f"{path}, the source of tokens of jobs, is damaged. Restore it; or remove it while no job runs, "
            "since tasks with different tokens refuse each other"
        )
    return content


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
