"""One task of a job on Slurm: the program that ``srun`` starts on the task's node.

The program kills processes of earlier rounds of the job on this node, takes a port, announces its address to the other
tasks through the job's folder, and waits for their addresses. So no task of this round starts before the processes of
earlier rounds are gone from all nodes. Then the program keeps the task (`headwater.platform.host.keeper`), and restarts
the task after a failure, if the job restarts single tasks.

::

    FOLDER/rounds/ROUND/ROLE-INDEX.address           the address at which the task listens
    FOLDER/rounds/ROUND/ROLE-INDEX/ATTEMPT/...       records, as `headwater.platform.host.records` describes them
    FOLDER/logs/ROLE-INDEX.log                       its output

The clusters of the other tasks do not contain an elastic worker (`slurm_workers`); its own cluster contains the job's
initial tasks.

Usage: python -P -m headwater.platform.backends.slurm_task FOLDER ROLE [INDEX], under ``srun``
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.cluster.addresses import Address
from headwater.cluster.names import TaskName
from headwater.cluster.pauses import pause
from headwater.data.io.files import atomic_write
from headwater.data.io.sealed import read_text, seal
from headwater.platform.archives import unpack
from headwater.platform.host import guard
from headwater.platform.host.gpus import CPU_ONLY
from headwater.platform.host.keeper import CANNOT_START, Keeper
from headwater.platform.host.ports import lease_folder, lease_ports, release_ports
from headwater.platform.host.records import AttemptFolder
from headwater.platform.host.secrets import secret_variable, secrets_for_keeper, without_secrets
from headwater.platform.spec import JobSpec, job_from_data
from headwater.platform.tasks import (
    COMMAND_PLACEHOLDER,
    LOCAL_COMMAND,
    cluster_of,
    task_command,
    task_environment,
    task_secrets,
)

if TYPE_CHECKING:
    from headwater.data.io.json_types import JsonObject

_POLL_INTERVAL_S = 0.2
_RENDEZVOUS_TIMEOUT_S = 600.0
_MAX_LOG_BYTES = 1 << 30


class SlurmTask:
    """One task.

    Args:
      folder: the job's folder.
      task: the name of the task.
      round_name: the round, which is one start of all tasks.
      further: whether the task is an elastic worker.
    """

    def __init__(self, folder: Path, task: TaskName, round_name: str, *, further: bool = False) -> None:
        self._folder = folder
        self._task = task
        self._round = folder / "rounds" / round_name
        self._further = further
        self._job: JsonObject = json.loads((folder / "job.json").read_text())
        self._spec: JobSpec = job_from_data(self._job["spec"])
        # This process carries the mark of its round, so that a later round ends this process. Its task has a mark of
        # its own.
        self._own_mark = f"{os.environ[guard.JOB]}.{task.job}.{task.index}"

    def run(self) -> int:
        """Runs the task to its end, including restarts; returns the exit code of this process."""
        for other in self._round.parent.iterdir():
            if other != self._round:
                guard.end_job(f"{self._job['job_id']}.{other.name}")
        leases = lease_folder()
        (port,) = lease_ports(leases, self._own_mark, self._folder, 1)
        try:
            address = str(Address(socket.gethostname(), port))
            addresses = self._exchange_addresses(address)
            code = self._run_until_success(address, addresses)
        finally:
            release_ports(leases, self._own_mark)
        return _exit_code(code)

    def _run_until_success(self, address: str, addresses: dict[TaskName, str]) -> int:
        # A preempted worker has earlier attempts in this round.
        attempt = sum(1 for _ in (self._round / f"{self._task.job}-{self._task.index}").glob("*"))
        restarts = 0
        rules = self._spec.restart
        while True:
            began = time.monotonic()
            ended = self._run_once(address, addresses, attempt)
            code: int = ended["code"]
            if time.monotonic() - began >= rules.reset_after:
                restarts = 0
            hopeless = code == CANNOT_START or restarts == self._limit()
            asked = ended["stopped"] or ended["preempted"]
            if self._further and hopeless and code and not asked:
                with atomic_write(self._round / f"{self._task.job}-{self._task.index}.code") as file:
                    file.write(f"{_exit_code(code)}\n".encode())
            if code == 0 or asked or hopeless:
                return code
            print(f"headwater: {self._task.job} {self._task.index} failed: {ended['reason']}", flush=True)
            pause(min(rules.backoff * 2.0**restarts, rules.max_backoff))
            attempt, restarts = attempt + 1, restarts + 1

    def _limit(self) -> int:
        restart = self._spec.restart
        return restart.limit if restart.policy == "on-failure" and self._spec.restart_scope == "task" else 0

    def _exchange_addresses(self, address: str) -> dict[TaskName, str]:
        """Announces this task's address and waits for the addresses of the other tasks.

        Raises:
          SystemExit: a task did not start in time.
        """
        tasks = [TaskName(role, index) for role, count in self._job["counts"].items() for index in range(count)]
        own = self._address_file(self._task)
        own.with_suffix(".tmp").write_bytes(seal(f"{address}\n".encode()))
        own.with_suffix(".tmp").replace(own)
        deadline = time.monotonic() + _RENDEZVOUS_TIMEOUT_S
        while missing := [task for task in tasks if not self._address_file(task).exists()]:
            if time.monotonic() > deadline:
                raise SystemExit(
                    f"headwater: {missing[0].job} {missing[0].index} did not start in {_RENDEZVOUS_TIMEOUT_S:.0f} s"
                )
            # Poll: shared disks do not notify of changes.
            pause(_POLL_INTERVAL_S)
        return {task: read_text(self._address_file(task)).strip() for task in (*tasks, self._task)}

    def _address_file(self, task: TaskName) -> Path:
        return self._round / f"{task.job}-{task.index}.address"

    def _run_once(self, address: str, addresses: dict[TaskName, str], attempt: int) -> JsonObject:
        """Keeps one start of the task; returns its exit record."""
        task, spec = self._task, self._spec
        path = self._round / f"{task.job}-{task.index}" / str(attempt)
        path.mkdir(parents=True)
        folder = AttemptFolder(path)
        cluster = cluster_of(addresses)
        role = spec.role(task.job)  # pyright: ignore[reportArgumentType]  tasks are made of roles
        env = {
            **without_secrets(os.environ),
            "HEADWATER_TOKEN": self._job["token"],
            **({} if role.gpus else CPU_ONLY),
            **task_environment(spec, task, cluster, job_id=self._job["job_id"], attempt=attempt),
            guard.JOB: f"{os.environ[guard.JOB]}:{self._own_mark}",
        }
        secrets = self._secrets()
        os.environ.update(secrets_for_keeper(secrets))
        command = LOCAL_COMMAND if spec.command is None else COMMAND_PLACEHOLDER
        order = {
            "argv": list(task_command(spec, task, cluster, headwater_command=command)),
            "env": env,
            "secrets": list(secrets),
            "cwd": str(self._working_folder()),
            "log_path": str(self._folder / "logs" / f"{task.job}-{task.index}.log"),
            "max_log_bytes": _MAX_LOG_BYTES,
            "memory_bytes": role.memory,
            "cores": [],
            "address": address,
            "mark": self._own_mark,
            "creator": None,
            # Slurm itself sends signals to all processes of a step, so the keeper must not send them again.
            "relay": False,
            "grace_s": spec.deadlines.grace,
        }
        folder.write("order", order)
        with open(os.devnull, "wb") as ready:
            Keeper(folder, order).run(ready)
        # Until the next start there is no keeper: restore the default action of SIGTERM.
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        ended = folder.read("exit")
        assert ended is not None
        return ended

    def _secrets(self) -> dict[str, str]:
        """Returns the task's secret variables: Slurm passes the environment of ``sbatch`` to the job's tasks.

        Raises:
          SystemExit: a secret is missing.
        """
        secrets: dict[str, str] = {}
        for variable, secret in task_secrets(self._spec, self._task).items():
            value = os.environ.get(secret_variable(secret))
            if value is None:
                raise SystemExit(
                    f"headwater: env.{variable}: the secret {secret!r} is missing: set {secret_variable(secret)} for "
                    "sbatch, and do not let --export keep it from the job"
                )
            secrets[variable] = value
        return secrets

    def _working_folder(self) -> Path:
        work = self._folder / "work"
        if self._job["archive"]:
            with (self._folder / "archive.lock").open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not (self._folder / "archive.done").exists():
                    unpack(Path(self._job["archive"]), work)
                    (self._folder / "archive.done").touch()
        return work / (self._spec.workdir or "")


def _exit_code(code: int) -> int:
    """Returns ``code`` as a shell reports it: 128 plus the number of the signal that killed the process."""
    return code if code >= 0 else 128 - code


def main() -> int:
    """Runs the task that Slurm's environment names."""
    folder, role, *further = sys.argv[1:]
    (index,) = further or [os.environ["SLURM_PROCID"]]
    task = TaskName(role, int(index))
    return SlurmTask(Path(folder), task, os.environ["HEADWATER_SLURM_ROUND"], further=bool(further)).run()


if __name__ == "__main__":
    sys.exit(main())
