"""The agent: the operations of the platform's server on one host. Their arguments and results are JSON values.

For its own machine, the server calls the agent's methods. For another host, the agent is a program at the other end of
a connection. It reads one request per line from standard input, and writes one response per line to standard output::

    {"method": "poll", "arguments": {"handle": {...}}}
    {"result": {...}}                                     or {"error": "...", "kind": "NoPort"}

Usage: python -P -m headwater.platform.host.agent ROOT
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import headwater
from headwater.cluster.names import TaskName
from headwater.cluster.telemetry.progress import STATUS_VARIABLE
from headwater.cluster.variables import LISTEN_FDS
from headwater.errors import DataLossError, OpError
from headwater.platform.archives import ArchiveError, unpack
from headwater.platform.host import guard
from headwater.platform.host.folders import UMASK_AT_START
from headwater.platform.host.gpus import CPU_ONLY, VISIBLE, find_gpus, gpu_use
from headwater.platform.host.ports import NoPort, lease_again, lease_folder, lease_ports, release_ports
from headwater.platform.host.processes import (
    ProcessTable,
    boot_id,
    cpu_seconds,
    identity,
    memory_of_machine,
    resident_bytes,
)
from headwater.platform.host.records import AttemptFolder, HostFolder
from headwater.platform.host.secrets import secrets_for_keeper

if TYPE_CHECKING:
    from headwater.data.io.json_types import Json, JsonObject

PS = "ps"
#: Maximum length of the part of a log that one `Agent.poll` returns, in bytes.
MAX_LOG_PIECE = 256 * 1024
# Variables with this prefix configure the server or its parent, and are not passed to tasks.
_OWN_PREFIX = "HEADWATER_"
_ARCHIVE = "archive"
_TABLE_AGE_S = 0.5
_MAIN = str(Path(headwater.__file__).with_name("__main__.py"))


class AgentError(Exception):
    """The host could not carry out a request; the message names the request and the reason."""


class Agent:
    """One host, as seen by the platform.

    Args:
      root: the folder for records; created if it does not exist.
      environ: the environment that tasks inherit.
      outlive: whether tasks continue when this process ends.
    """

    def __init__(self, root: Path, environ: Mapping[str, str], *, outlive: bool = True) -> None:
        self._folder = HostFolder(root)
        self._folder.prepare()
        self._environ = {
            name: value for name, value in environ.items() if not name.startswith(_OWN_PREFIX) or name == guard.JOB
        }
        # The server creates private files; tasks get the umask that the server was started with.
        self._umask = UMASK_AT_START
        self._creator = None if outlive else dataclasses.asdict(identity(os.getpid()))
        self._leases = lease_folder()
        self._table = ProcessTable()
        self._table_until = 0.0

    def describe(self) -> dict[str, object]:
        """Returns ``cores`` (numbers), ``memory_bytes``, ``gpus`` (as in ``CUDA_VISIBLE_DEVICES``) and ``boot``."""
        return {
            "cores": sorted(os.sched_getaffinity(0)),
            "memory_bytes": memory_of_machine(),
            "gpus": list(find_gpus(self._environ)),
            "boot": boot_id(),
        }

    def lease_ports(self, job_id: str, count: int) -> list[int]:
        """Leases ``count`` more ports to the job, and returns them; raises `NoPort`."""
        return lease_ports(self._leases, self._owner(job_id), self._folder.root, count)

    def return_ports(self, job_id: str, ports: list[int]) -> None:
        """Ends the job's leases of ``ports``, with which no task was started."""
        release_ports(self._leases, self._owner(job_id), ports)

    def lease_again(self, job_id: str, ports: list[int]) -> None:
        """Renews the job's leases of ``ports``, which a restart of the machine may have ended."""
        lease_again(self._leases, self._owner(job_id), self._folder.root, ports)

    def start(self, order: Mapping[str, Json]) -> JsonObject:
        """Kills the remaining processes of a task's earlier attempts, and starts the task. Idempotent for one attempt.

        Args:
          order: ``job_id``, ``job`` (the role), ``index``, ``attempt``, ``argv``, ``env``, ``secrets`` (further
            variables, which are stored in no file), ``cwd``, ``address``, ``cores``, ``gpus``, ``memory_bytes``,
            ``log_path`` (None for a file among the records), ``max_log_bytes``, ``remember`` (values that are returned
            with the handle).

        Returns:
          The handle: ``folder``, and the values of ``remember``.

        Raises:
          AgentError: no keeper could be started, a later attempt exists, or the record of this attempt is damaged.
        """
        job_id, task, attempt = order["job_id"], TaskName(order["job"], order["index"]), int(order["attempt"])
        # Concurrent starts of a task, as by a server and its successor, must not start it twice.
        with self._folder.lock_task(job_id, task):
            attempts = self._folder.attempts(job_id, task)
            if max(attempts, default=-1) > attempt:
                raise AgentError(f"attempt {attempt} of {job_id} {task} was followed by attempt {max(attempts)}")
            same = attempts.get(attempt)
            if same is not None and (same.read("keeper") or same.read("exit")):
                known = same.read("order")
                if known is None:
                    raise AgentError(f"{same.path}/order.json is missing, so that the task cannot be found again")
                return {"folder": str(same.path), **known["remember"]}
            # Two attempts of a task at once would use the same port and save to the same folder.
            mark = self._folder.task_marker(job_id, task)
            self._fence(job_id, task, mark)
            folder = self._folder.make_attempt(job_id, task, attempt)
            work = self._folder.work(job_id)
            work.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.write(
                "order",
                {
                    "argv": _command(order["argv"]),
                    "env": self._environment(order, mark),
                    "secrets": list(order["secrets"]),
                    "cwd": str(work / order["cwd"]),
                    "log_path": order["log_path"] or str(folder.log),
                    "max_log_bytes": order["max_log_bytes"],
                    "memory_bytes": order["memory_bytes"],
                    "cores": order["cores"],
                    "address": order["address"],
                    "mark": mark,
                    "creator": self._creator,
                    "relay": True,
                    "umask": self._umask,
                    "remember": order["remember"],
                },
            )
            self._start_keeper(folder, order["secrets"])
        return {"folder": str(folder.path), **order["remember"]}

    def poll(self, handle: Mapping[str, Json], log_from: int | None = None) -> JsonObject:
        """Returns the state of a task.

        Args:
          handle: the result of `start`.
          log_from: the offset from which to read the log that is kept among the records, in bytes; None for no log.

        Returns:
          ``state``: ``running`` with ``started_at``, ``cpu_s``, ``memory_bytes``, ``gpu_memory_bytes`` and
          ``gpu_utilization``; ``exited`` with the fields of ``exit.json``; or ``lost`` with a ``reason``. Also
          ``progress``, the latest report as text, and with ``log_from``, ``log``: at most `MAX_LOG_PIECE` bytes, in
          base64.
        """
        folder = AttemptFolder(Path(handle["folder"]))
        try:
            state = self._state(folder)
        except DataLossError as error:
            state = {"state": "lost", "reason": error.message}
        state["progress"] = folder.progress().decode(errors="replace")
        if log_from is not None:
            # Read after the state: the log of an exited task is complete.
            state["log"] = base64.b64encode(_read_log(folder.log, log_from)).decode()
        return state

    def stop(self, handle: Mapping[str, Json], grace_s: float) -> None:
        """Asks a task to end, and has it killed ``grace_s`` seconds later; does nothing if the task has ended."""
        folder = AttemptFolder(Path(handle["folder"]))
        keeper = folder.keeper()
        if keeper is not None and keeper.is_alive():
            folder.write("stop", {"grace_s": grace_s})
            keeper.send(signal.SIGTERM)

    def release(self, job_id: str, tasks: list[tuple[str, int]] | None = None) -> None:
        """Kills the remaining processes of ``tasks``. Without ``tasks``, kills all processes of the job and returns its
        ports."""
        for task in self._folder.tasks(job_id):
            if tasks is None or (task.job, task.index) in {(job, index) for job, index in tasks}:
                with self._folder.lock_task(job_id, task):
                    self._fence(job_id, task, self._folder.task_marker(job_id, task))
        if tasks is None:
            release_ports(self._leases, self._owner(job_id))

    def forget(self, job_id: str) -> None:
        """Removes all records of a job, and its folder."""
        self.release(job_id)
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._folder.job(job_id))

    def has_archive(self, job_id: str) -> bool:
        """Returns whether the job's archive has been unpacked here."""
        return (self._folder.job(job_id) / f"{_ARCHIVE}.done").exists()

    def put_archive(self, job_id: str, name: str, offset: int, data: str) -> None:
        """Writes a piece of the job's archive.

        Args:
          job_id: the job.
          name: the name of the archive, whose suffix gives its format.
          offset: the place of the piece in the archive, in bytes; at 0, an earlier upload is discarded.
          data: the piece, in base64.
        """
        folder = self._folder.job(job_id)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(folder / f"{_ARCHIVE}-{Path(name).name}", "wb" if offset == 0 else "r+b") as file:
            file.seek(offset)
            file.write(base64.b64decode(data))

    def unpack_archive(self, job_id: str, path: str) -> None:
        """Unpacks an archive into the job's folder: the uploaded one with the file name of ``path``, or else ``path``.

        Raises:
          AgentError: the file is not an archive, or would be unpacked outside of that folder.
        """
        folder = self._folder.job(job_id)
        work = self._folder.work(job_id)
        work.mkdir(mode=0o700, parents=True, exist_ok=True)
        put = folder / f"{_ARCHIVE}-{Path(path).name}"
        # Two tasks of a job may be started at the same time.
        with (folder / f"{_ARCHIVE}.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self.has_archive(job_id):
                return
            try:
                unpack(put if put.exists() else Path(path), work)
            except ArchiveError as error:
                raise AgentError(str(error)) from error
            put.unlink(missing_ok=True)
            (folder / f"{_ARCHIVE}.done").touch()

    def _owner(self, job_id: str) -> str:
        return f"{self._folder.name}.{job_id}"

    def _environment(self, order: Mapping[str, Json], mark: str) -> dict[str, str]:
        gpus: list[str] = order["gpus"]
        if order["job"] == PS:
            accelerators = dict(CPU_ONLY)
        elif gpus or find_gpus(self._environ):
            accelerators = {VISIBLE: ",".join(gpus)}
        else:
            accelerators = {}
        env = {**self._environ, "PYTHONUNBUFFERED": "1", **accelerators, **order["env"]}
        for name in (LISTEN_FDS, STATUS_VARIABLE):
            env.pop(name, None)
        return env | {guard.JOB: guard.job_marker(self._environ, mark)}

    def _fence(self, job_id: str, task: TaskName, mark: str) -> None:
        """Kills all remaining processes of a task, whose environments contain ``mark``. The lock of the task must be
        held."""
        for folder in self._folder.attempts(job_id, task).values():
            # A keeper with a damaged record is found by its task's mark instead, and killed with the task.
            with contextlib.suppress(DataLossError):
                keeper = folder.keeper()
                if keeper is not None:
                    keeper.send(signal.SIGKILL)
        guard.end_job(mark)

    def _descendants(self, pid: int) -> list[int]:
        now = time.monotonic()
        # Reading the process table is most of the cost of a poll, so the table is cached for a short time. A slightly
        # old table is good enough for a task that it already contains.
        if now >= self._table_until or not self._table.descendants(pid):
            self._table, self._table_until = ProcessTable(), now + _TABLE_AGE_S
        return self._table.descendants(pid)

    def _start_keeper(self, folder: AttemptFolder, secrets: Mapping[str, str]) -> None:
        command = [sys.executable, "-P", "-m", "headwater.platform.host.keeper", str(folder.path)]
        env = {name: value for name, value in os.environ.items() if name != guard.JOB} | secrets_for_keeper(secrets)
        with open(folder.keeper_log, "ab") as log:
            started = subprocess.run(
                command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, start_new_session=True
            )
        if b"ready" not in started.stdout:
            log_lines = folder.keeper_log.read_text(errors="replace").strip().splitlines()
            raise AgentError(
                f"the keeper of {folder.path} could not be started: {log_lines[-1] if log_lines else 'no reason'}"
            )

    def _state(self, folder: AttemptFolder) -> dict[str, object]:
        alive = (keeper := folder.keeper()) is not None and keeper.is_alive()
        # Check the keeper first and read its record afterwards. The keeper writes the record before it exits, so an
        # exit between the two is not mistaken for a loss of the task.
        ended = folder.read("exit")
        if ended is not None:
            return {"state": "exited", **ended}
        if keeper is None:
            return {"state": "lost", "reason": f"it was never started: {folder.path} has no keeper.json"}
        if not alive:
            restarted = keeper.boot != boot_id()
            reason = "its host was restarted" if restarted else f"its keeper, process {keeper.pid}, was killed"
            return {"state": "lost", "reason": reason}
        pids = self._descendants(keeper.pid)
        environ: dict[str, str] = (folder.read("order") or {}).get("env", {})
        use = gpu_use([name for name in environ.get(VISIBLE, "").split(",") if name], pids)
        return {
            "state": "running",
            "started_at": (folder.read("keeper") or {})["started_at"],
            "cpu_s": cpu_seconds(pids),
            "memory_bytes": resident_bytes(pids),
            "gpu_memory_bytes": use.memory_bytes if use else None,
            "gpu_utilization": use.utilization if use else None,
        }


def _command(argv: Sequence[str]) -> list[str]:
    """Returns ``argv``, with the command ``headwater`` replaced by this installation."""
    return [sys.executable, _MAIN, *argv[1:]] if argv[0] == "headwater" else list(argv)


def _read_log(path: Path, start: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(start)
            return file.read(MAX_LOG_PIECE)
    except FileNotFoundError:
        return b""


def serve(agent: Agent) -> None:
    """Answers requests until standard input ends."""
    methods: dict[str, Callable[..., object]] = {
        name: getattr(agent, name)
        for name in (
            "describe",
            "lease_ports",
            "return_ports",
            "lease_again",
            "start",
            "poll",
            "stop",
            "release",
            "forget",
            "has_archive",
            "put_archive",
            "unpack_archive",
        )
    }
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"result": methods[request["method"]](**request["arguments"])}
        except (AgentError, NoPort, OSError, OpError) as error:
            answer = {"error": str(error), "kind": type(error).__name__}
        print(json.dumps(answer), flush=True)


def main() -> None:
    """Serves the host that this process runs on."""
    # An interrupt at the server's terminal reaches ssh and its children; tasks must not notice it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(Agent(Path(sys.argv[1]).expanduser(), os.environ))


if __name__ == "__main__":
    main()
