"""Slurm, through its own commands (``sbatch``, ``squeue``, ``scancel``) on this machine.

The job is the script of `slurm_script`, with elastic workers as separate jobs (`slurm_workers`). The states of its
tasks are read from the job's folder, which this machine shares with the nodes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import secrets
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.cluster.names import TaskName
from headwater.cluster.telemetry.progress import Progress
from headwater.platform.backends.base import (
    BackendError,
    Capacity,
    Exited,
    HostCapacity,
    JobBackend,
    JobOrder,
    JobReport,
    Lost,
    Resources,
    Running,
    TaskState,
)
from headwater.platform.backends.slurm_ends import ALIVE, Asked, SlurmState, seconds, verdict
from headwater.platform.backends.slurm_script import WORKING, SlurmRendering, batch_script
from headwater.platform.backends.slurm_workers import further_name
from headwater.platform.host.folders import private_folder
from headwater.platform.host.records import AttemptFolder
from headwater.platform.host.secrets import secret_variable
from headwater.platform.spec import JobSpec

if TYPE_CHECKING:
    from headwater.data.io.json_types import JsonObject

_TIMEOUT_S = 60.0
_MIB = 1 << 20
_UNKNOWN_JOB = "Invalid job id"
_NO_ROOM = "no free resources at present"


@dataclass(frozen=True, kw_only=True, slots=True)
class SlurmSettings:
    """How Slurm is used.

    Attributes:
      folder: a folder that this machine shares with all nodes, for the jobs' own folders.
      python: the interpreter on the nodes that has Headwater.
    """

    folder: Path
    python: str = "python3"


class SlurmBackend(JobBackend):
    """Submits jobs to Slurm.

    Args:
      settings: how Slurm is used.

    Raises:
      BackendError: Slurm's commands are not installed here.
    """

    name = "slurm"
    elastic = True

    def __init__(self, settings: SlurmSettings) -> None:
        self._settings = settings
        for command in ("sbatch", "squeue", "scancel", "scontrol"):
            if shutil.which(command) is None:
                raise BackendError(f"{command} is not on the PATH: Slurm's commands must be installed here")

    def capacity(self) -> Capacity:
        hosts: list[HostCapacity] = []
        listed = _run(
            "sinfo", "--noheader", "--Node", "--Format=NodeList:|,CPUsState:|,Memory:|,AllocMem:|,StateLong:|"
        )
        for line in dict.fromkeys(listed.splitlines()):
            name, cpus, memory, taken, state = (part.strip() for part in line.split("|")[:5])
            _, idle, _, total = (int(part) for part in cpus.split("/"))
            usable = state in ("idle", "mixed", "allocated", "completing")
            hosts.append(
                HostCapacity(
                    host=name,
                    total=Resources(cpus=total, memory_bytes=int(memory) * _MIB),
                    free=Resources(cpus=idle, memory_bytes=max(0, int(memory) - int(taken)) * _MIB),
                    problem="" if usable else f"it is {state}",
                )
            )
        return Capacity(hosts=tuple(hosts))

    def submit_job(self, order: JobOrder) -> str:
        folder = (self._settings.folder / order.job_id).absolute()
        handle = {
            "folder": str(folder),
            "attempt": order.attempt,
            "log_dir": str(order.log_dir.absolute()),
            "grace_s": order.spec.deadlines.grace,
            # The job's folder is emptied between attempts, while the logs here are appended to.
            "log_from": {path.name: path.stat().st_size for path in order.log_dir.glob("*.log")},
        }
        known = self._submissions(order.job_id)
        # If the response to this submission was lost, the job may have ended by now: include ended jobs.
        submitted = known if order.attempt in known else self._submissions(order.job_id, "--states=all")
        if order.attempt in submitted:
            return json.dumps(handle | {"id": submitted[order.attempt]})
        if known:
            for number in known.values():
                _run("scancel", number)
            _cancel_further(order.job_id)
            raise BackendError(f"earlier attempts of {order.job_id} are being ended", temporary=True)
        order.log_dir.mkdir(parents=True, exist_ok=True)
        try:
            private_folder(folder)
        except OSError as error:
            raise BackendError(f"slurm.folder: {error}") from error
        archive = ""
        if order.archive is not None:
            archive = str(folder / f"archive-{order.attempt}")
            shutil.copyfile(order.archive, archive)
        how = SlurmRendering(
            job_id=order.job_id,
            attempt=order.attempt,
            folder=str(folder),
            python=self._settings.python,
            token=secrets.token_urlsafe(32),
            archive=archive,
            least=order.least,
        )
        script = folder / f"job-{order.attempt}.sh"
        script.touch(mode=0o600)
        script.write_text(batch_script(order.spec, how))
        # Secrets are passed in the environment, not in a file: Slurm stores the environment with the job, and restores
        # it on a requeue.
        variables = {secret_variable(name): value for name, value in order.secrets.items()}
        number = _run("sbatch", "--parsable", str(script), cwd=folder, variables=variables).strip().partition(";")[0]
        return json.dumps(handle | {"id": number})

    def poll_job(self, handle: str) -> JobReport:
        fields = json.loads(handle)
        folder = Path(fields["folder"])
        # Query Slurm before reading the tasks' files: a job that Slurm has ended writes nothing more.
        now = _state(fields["id"])
        elements = _elements(folder.name)
        first, further, restarts = _tasks(folder, elements)
        tasks = {**first, **further}
        result = _written(folder / f"result-{fields['attempt']}")
        asked = _written(folder / f"asked-{fields['attempt']}")
        # Read the logs after the result. The result is written after the last line of a log, so the logs of an ended
        # job are complete now; they are not fetched again.
        _fetch_logs(folder / "logs", Path(fields["log_dir"]), fields.get("log_from", {}))
        phase, reason = verdict(
            now,
            number=fields["id"],
            result=None if result is None or (int(result) == 0 and not _all_done(first)) else int(result),
            asked=None if asked is None else Asked.parse(asked),
            grace_s=float(fields.get("grace_s", 0.0)),
            failure=_first_failure(tasks),
        )
        if phase not in ("waiting", "running") and any(one.alive for one in elements.values()):
            # The job's remaining workers end by themselves, within their grace period.
            phase, reason = "running", ""
        return JobReport(phase=phase, reason=reason, tasks=tasks, restarts=restarts)

    def stop_job(self, handle: str, *, grace_s: float) -> None:
        fields = json.loads(handle)
        _write_grace(Path(fields["folder"]), grace_s)
        _run("scancel", "--state=PENDING", fields["id"], unless=_UNKNOWN_JOB)
        # Signal the batch script only: the script asks its tasks to end, and the tasks' keepers kill them after the
        # grace period. Slurm itself would kill the tasks after the time in its configuration.
        _run("scancel", "--batch", "--signal=TERM", fields["id"], unless=_UNKNOWN_JOB)
        _cancel_further(Path(fields["folder"]).name, "--state=PENDING")

    def delete_job(self, handle: str) -> None:
        fields = json.loads(handle)
        _run("scancel", fields["id"], unless=_UNKNOWN_JOB)
        _cancel_further(Path(fields["folder"]).name)
        shutil.rmtree(fields["folder"], ignore_errors=True)

    def remove(self, job_id: str, spec: JobSpec) -> None:
        for number in self._submissions(job_id).values():
            _run("scancel", number, unless=_UNKNOWN_JOB)
        _cancel_further(job_id)
        shutil.rmtree(self._settings.folder / job_id, ignore_errors=True)

    def _submissions(self, job_id: str, *options: str) -> dict[int, str]:
        """Returns Slurm's ids of this job's unfinished submissions, by attempt; ``options`` can select others."""
        listed = _run("squeue", "--noheader", "--me", f"--name={job_id}", "--format=%A|%k", *options)
        numbers: dict[int, str] = {}
        for line in listed.splitlines():
            number, _, comment = line.strip().partition("|")
            attempt = comment.rpartition("-")[2]
            if attempt.isdecimal():
                # The first component of a heterogeneous job represents the whole job.
                numbers[int(attempt)] = str(min(int(number), int(numbers.get(int(attempt), number))))
        return numbers


def _run(*command: str, cwd: Path | None = None, unless: str = "", variables: Mapping[str, str] | None = None) -> str:
    """Runs ``command`` with further environment ``variables``; ignores errors with ``unless``. Returns the output."""
    # Slurm's own variables, such as output formats, must not be inherited from the user who starts the server.
    env = {name: value for name, value in os.environ.items() if not name.startswith(("SQUEUE_", "SBATCH_", "SINFO_"))}
    env |= variables or {}
    try:
        done = subprocess.run(
            command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BackendError(f"{command[0]}: {error}", temporary=True) from error
    if done.returncode and not (unless and unless in done.stderr):
        message = done.stderr.strip() or f"exit code {done.returncode}"
        refused = "Unable to contact" not in message and "Connection refused" not in message
        raise BackendError(f"{command[0]}: {message}", temporary=not refused)
    return done.stdout


def _state(number: str) -> SlurmState:
    """Returns the state of a job as reported by Slurm."""
    listed = _run(
        "squeue", "--noheader", f"--jobs={number}", "--states=all", "--format=%T|%l|%r", unless=_UNKNOWN_JOB
    ).splitlines()
    # Each component of a heterogeneous job has a line; all components start and end together.
    state, _, rest = (listed[0] if listed else "").strip().partition("|")
    limit, _, why = rest.partition("|")
    return SlurmState(state=state, why=why, limit_s=seconds(limit))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Element:
    """An elastic worker in Slurm: its state, Slurm's reason for the state, and its node."""

    state: str
    why: str
    node: str

    @property
    def alive(self) -> bool:
        return self.state in ALIVE


def _elements(job_id: str) -> dict[TaskName, _Element]:
    """Returns the elastic workers of a job's latest round that Slurm has not ended."""
    listed = _run("squeue", "--noheader", "--array", "--me", f"--name={further_name(job_id)}", "--format=%K|%T|%r|%N")
    elements: dict[TaskName, _Element] = {}
    for line in listed.splitlines():
        index, state, why, node = line.strip().split("|")
        elements[TaskName("worker", int(index))] = _Element(state=state, why=why, node=node)
    return elements


def _cancel_further(job_id: str, *options: str) -> None:
    _run("scancel", "--quiet", "--me", f"--name={further_name(job_id)}", *options)


def _all_done(tasks: Mapping[TaskName, TaskState]) -> bool:
    """Returns whether all working ``tasks`` report success: ``srun`` may exit with 0 although its node failed."""
    working = [state for task, state in tasks.items() if task.job in WORKING]
    return all(isinstance(state, Exited) and state.code == 0 for state in working)


def _written(path: Path) -> str | None:
    """Returns the content of a file of the script; None if it does not exist."""
    with contextlib.suppress(FileNotFoundError):
        # The folder is shared: listing it makes a network file system refresh its cache.
        if path.name in os.listdir(path.parent):
            return path.read_text()
    return None


def _fetch_logs(source: Path, target: Path, begins: Mapping[str, int]) -> None:
    """Appends new output of tasks to their logs here, from ``begins`` on: by log, the position at which this attempt's
    output begins in the log here."""
    for path in source.glob("*.log"):
        copy = target / path.name
        with path.open("rb") as file, copy.open("ab") as appended:
            file.seek(max(0, appended.tell() - begins.get(path.name, 0)))
            shutil.copyfileobj(file, appended)


def _tasks(
    folder: Path, elements: Mapping[TaskName, _Element]
) -> tuple[dict[TaskName, TaskState], dict[TaskName, TaskState], dict[TaskName, int]]:
    """Returns the states of the latest round's tasks from the job's folder, and how often each was restarted.

    Elastic workers are returned separately from the other tasks.
    """
    tasks: dict[TaskName, TaskState] = {}
    further: dict[TaskName, TaskState] = {}
    restarts: dict[TaskName, int] = {}
    rounds = sorted((folder / "rounds").glob("*"), key=_round_order)
    if not (folder / "job.json").exists() or not rounds:
        return tasks, further, restarts
    job: JsonObject = json.loads((folder / "job.json").read_text())
    counts: dict[str, int] = job["counts"]
    for task in [TaskName(role, index) for role, count in counts.items() for index in range(count)]:
        starts = _starts(rounds[-1], task)
        tasks[task] = _task_state(starts[-1]) if starts else Running(waiting="it has not started yet")
        restarts[task] = len(rounds) - 1 + max(0, len(starts) - 1)
    first = counts.get("worker", 0)
    for task in [TaskName("worker", index) for index in range(first, first + job.get("further", 0))]:
        starts = _starts(rounds[-1], task)
        further[task] = _further_state(starts, elements.get(task))
        # Preemption is not a failure. Each start except the last was followed by another start.
        ends = [start.read("exit") for start in starts[:-1]]
        restarts[task] = sum(1 for end in ends if end is not None and not end["stopped"] and not end["preempted"])
    return tasks, further, restarts


def _starts(round_folder: Path, task: TaskName) -> list[AttemptFolder]:
    paths = (round_folder / f"{task.job}-{task.index}").glob("*")
    return [AttemptFolder(path) for path in sorted(paths, key=lambda path: int(path.name))]


def _further_state(starts: Sequence[AttemptFolder], element: _Element | None) -> TaskState:
    """Returns the state of an elastic worker: Slurm knows whether it has been placed."""
    if element is not None and not element.alive:
        return Running(waiting=f"{_NO_ROOM} (Slurm: {element.why})")
    if not starts:
        return Running(waiting="it has not started yet")
    state = _task_state(starts[-1])
    if isinstance(state, Running):
        if element is None:
            return Lost(reason="Slurm has ended it")
        return dataclasses.replace(state, host=element.node)
    return state


def _round_order(path: Path) -> list[int]:
    return [int(part) for part in path.name.split(".")]


def _task_state(folder: AttemptFolder) -> TaskState:
    progress = Progress.decode(report) if (report := folder.progress()) else None
    ended: JsonObject | None = folder.read("exit")
    if ended is None:
        return Running(started_at=(folder.read("keeper") or {}).get("started_at", 0.0), progress=progress)
    return Exited(
        code=ended["code"],
        reason=ended["reason"],
        stopped=ended["stopped"],
        preempted=ended["preempted"],
        at=ended["at"],
        last_lines=tuple(ended["last_lines"]),
        progress=progress,
    )


def _first_failure(tasks: dict[TaskName, TaskState]) -> str:
    """Describes the first failure of a task by its own fault; empty if there is none."""
    failed = [
        (state.at, f"{task.job} {task.index} failed: {state.reason}")
        for task, state in tasks.items()
        if isinstance(state, Exited) and state.code and not state.stopped and not state.preempted
    ]
    return min(failed)[1] if failed else ""


def _write_grace(folder: Path, grace_s: float) -> None:
    """Marks the end of all tasks as requested by the server, and passes the grace period to their keepers."""
    for path in (folder / "rounds").glob("*/*/*/order.json"):
        AttemptFolder(path.parent).write("stop", {"grace_s": math.ceil(grace_s)})
