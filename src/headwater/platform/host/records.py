"""Files through which agents and keepers communicate, so that nothing is lost while the server is down.

::

    ROOT/id                                  a random name of this root, part of the marks of its processes
    ROOT/jobs/JOB/work                       the job's own folder: working directory of its tasks
    ROOT/jobs/JOB/ROLE-INDEX/lock            held while a task is started
    ROOT/jobs/JOB/ROLE-INDEX/ATTEMPT/order.json     the task to run; written by the agent
                                     keeper.json    the keeper's process and start time; written by the keeper
                                     stop.json      the grace period of a request to end; written by the agent
                                     progress.json  the task's latest report; written by the keeper
                                     exit.json      how the task ended; written by the keeper, last of all
                                     log            the task's output, unless the order names another file
                                     keeper.log     errors of the keeper

The files contain environments, and possibly secrets: only their owner may read them.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.cluster.names import TaskName
from headwater.data.io.files import atomic_write
from headwater.data.io.sealed import pack_json, read_json, read_text, seal
from headwater.errors import DataLossError, NotFoundError, OpError
from headwater.platform.host.folders import private_folder
from headwater.platform.host.processes import ProcessIdentity

if TYPE_CHECKING:
    from headwater.data.io.json_types import Json, JsonObject


@dataclass(frozen=True, slots=True)
class AttemptFolder:
    """The records of one attempt of one task."""

    path: Path

    @property
    def log(self) -> Path:
        """The log of the task's output, unless its order names another file."""
        return self.path / "log"

    @property
    def keeper_log(self) -> Path:
        """The log of the keeper's errors."""
        return self.path / "keeper.log"

    def write(self, name: str, values: Mapping[str, Json]) -> None:
        """Writes ``name``.json atomically and durably."""
        with atomic_write(self.path / f"{name}.json") as file:
            file.write(pack_json(values))

    def write_progress(self, report: bytes) -> None:
        """Writes ``progress.json`` atomically, but not durably: after a crash of the machine it may be missing."""
        temporary = self.path / "progress.tmp"
        temporary.write_bytes(report)
        temporary.replace(self.path / "progress.json")

    def read(self, name: str) -> JsonObject | None:
        """Returns the content of ``name``.json; None if it does not exist. Raises DataLossError if it is damaged."""
        try:
            values: JsonObject = read_json(self.path / f"{name}.json")
        except NotFoundError:
            return None
        return values

    def progress(self) -> bytes:
        """Returns the latest report; empty without one."""
        try:
            return (self.path / "progress.json").read_bytes()
        except FileNotFoundError:
            return b""

    def keeper(self) -> ProcessIdentity | None:
        """Returns the process that keeps the task; None if no keeper has started."""
        keeper = self.read("keeper")
        return ProcessIdentity(pid=keeper["pid"], start=keeper["start"], boot=keeper["boot"]) if keeper else None


@dataclass(frozen=True, slots=True)
class HostFolder:
    """All records of one server on one host."""

    root: Path

    def prepare(self) -> None:
        """Creates the folder, for its owner only, and its name.

        Raises:
          PermissionError: the folder belongs to another user.
        """
        private_folder(self.root)
        try:
            self.name  # noqa: B018  raises if it is missing or damaged
        except NotFoundError:
            self._create_id(self._name_of_orders() or secrets.token_hex(6))
        except DataLossError:
            name = self._name_of_orders()
            if name is None:
                raise
            (self.root / "id").unlink(missing_ok=True)
            self._create_id(name)

    @property
    def name(self) -> str:
        """The random name of this root."""
        return read_text(self.root / "id", _check_name).strip()

    def _create_id(self, name: str) -> None:
        # If two processes create the id at the same time, `os.link` succeeds in only one process, and both use the name
        # that it has written.
        temporary = self.root / f"id.{secrets.token_hex(4)}"
        temporary.write_bytes(seal(f"{name}\n".encode()))
        with contextlib.suppress(FileExistsError):
            os.link(temporary, self.root / "id")
        temporary.unlink()

    def _name_of_orders(self) -> str | None:
        """Recovers the name from the mark in a task's order; None without orders. Processes of tasks are found by marks
        with this name, so it must not change while they may run."""
        for path in sorted((self.root / "jobs").glob("*/*/*/order.json")):
            with contextlib.suppress(OpError):
                mark: str = read_json(path)["mark"]
                return mark.partition(".")[0]
        return None

    def task_marker(self, job_id: str, task: TaskName) -> str:
        """Returns the mark in the environment of all processes of ``task``, and of no others."""
        return f"{self.name}.{job_id}.{task.job}.{task.index}"

    def job(self, job_id: str) -> Path:
        """Returns the folder of a job."""
        return self.root / "jobs" / job_id

    def work(self, job_id: str) -> Path:
        """Returns the job's own folder, which is the working directory of its tasks."""
        return self.job(job_id) / "work"

    def tasks(self, job_id: str) -> list[TaskName]:
        """Returns the tasks of a job that have been started here."""
        try:
            names = [entry.name for entry in self.job(job_id).iterdir() if (entry / "lock").exists()]
        except FileNotFoundError:
            return []
        return sorted(TaskName(job, int(index)) for job, _, index in (name.rpartition("-") for name in names))

    def attempts(self, job_id: str, task: TaskName) -> dict[int, AttemptFolder]:
        """Returns the attempts of a task, by number."""
        try:
            entries = list(self._task(job_id, task).iterdir())
        except FileNotFoundError:
            return {}
        return {int(entry.name): AttemptFolder(entry) for entry in entries if entry.name.isdecimal()}

    def make_attempt(self, job_id: str, task: TaskName, attempt: int) -> AttemptFolder:
        """Returns the folder of an attempt, created for its owner only if it does not exist."""
        path = self._task(job_id, task) / str(attempt)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return AttemptFolder(path)

    @contextlib.contextmanager
    def lock_task(self, job_id: str, task: TaskName) -> Generator[None]:
        """Locks ``task``, so that no other process starts or fences it."""
        folder = self._task(job_id, task)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (folder / "lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _task(self, job_id: str, task: TaskName) -> Path:
        return self.job(job_id) / f"{task.job}-{task.index}"


def _check_name(text: str) -> None:
    if re.fullmatch(r"[0-9a-f]{12}\s*", text) is None:
        raise ValueError("it is not a name of a root")
