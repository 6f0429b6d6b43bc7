"""What a job is: the fields of ``job.yaml``, their bounds and defaults, and their JSON schema.

::

    name: linear
    program: train.py
    args: [--steps, 1000]
    ps: 1
    workers: {count: "2:8", cpus: 1, memory: 2GiB}

A field is named in errors as it is written in the file, with its line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    WithJsonSchema,
    model_serializer,
    model_validator,
)

from headwater.cluster.telemetry.printed import compile_pattern
from headwater.data.io.json_types import Json, JsonObject
from headwater.platform.job_file import JobFile, JobSpecError, Problem, read_job_file
from headwater.platform.quantities import Duration, Size

Role = Literal["ps", "chief", "worker", "evaluator"]
"""What a task is for, as ``TF_CONFIG`` calls it."""

ROLES: tuple[Role, ...] = ("ps", "chief", "worker", "evaluator")
"""All roles, in the order in which a job's tasks are started."""

FOLDERS = ("checkpoint_dir", "log_dir", "data_dir")
"""The fields that name a job's folders; arguments may name them in braces."""

MAX_TASKS = 1000
_SCHEMA_ID = "https://json-schema.org/draft/2020-12/schema"
_FIELDS: dict[Role, str] = {"ps": "ps", "chief": "chief", "worker": "workers", "evaluator": "evaluator"}


class _Model(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", coerce_numbers_to_str=True, allow_inf_nan=False
    )


class Count(_Model):
    """How many tasks: as many as fit from ``least`` to ``most``.

    Attributes:
      least: the job does not start with fewer.
      most: it is never scaled beyond; equal to ``least`` where the file gives one number.
    """

    least: int = Field(ge=0, le=MAX_TASKS)
    most: int = Field(ge=0, le=MAX_TASKS)

    def __str__(self) -> str:
        return str(self.least) if self.least == self.most else f"{self.least}:{self.most}"

    @model_serializer
    def _as_written(self) -> int | str:
        return self.least if self.least == self.most else str(self)


def _count(value: Json) -> Json:
    if isinstance(value, Count | dict):
        return value  # pyright: ignore[reportUnknownVariableType]  # the model itself says what is wrong with it
    least = most = value
    if isinstance(value, str):
        match = re.fullmatch(r"(\d{1,6})(?::(\d{1,6}))?", value)
        if match is not None:
            least, most = int(match[1]), int(match[2] or match[1])
    if isinstance(least, bool) or not isinstance(least, int) or not isinstance(most, int):
        raise ValueError(f"must be a number such as 2 or a range such as 2:8, but is {value!r}")
    if not 0 <= least <= most <= MAX_TASKS:
        raise ValueError(f"must be from 0 to {MAX_TASKS}, the smaller number first, but is {value!r}")
    return Count(least=least, most=most)


Number = Annotated[
    Count,
    BeforeValidator(_count),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": MAX_TASKS},
                {"type": "string", "pattern": r"^\d{1,6}(:\d{1,6})?$"},
            ],
            "description": "How many tasks: a number, or a range such as 2:8.",
        }
    ),
]


def _text_of(value: Json) -> Json:
    if isinstance(value, bool) or value is None:
        raise ValueError(
            f"must be text, but is {'true or false' if value is not None else 'nothing'}: put it in quotes"
        )
    if isinstance(value, str) and "\0" in value:
        raise ValueError("must not hold a zero byte")
    return value


Text = Annotated[str, BeforeValidator(_text_of, json_schema_input_type=str | int | float), Field(max_length=32_768)]
"""Text; a number counts as its digits."""


SecretName = Annotated[str, Field(max_length=63, pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")]
"""What a secret is called: lower-case letters, digits and dashes."""


def _folder(value: str) -> str:
    if "\n" in value or not value.strip():
        raise ValueError(f"must be the path of a folder, but is {value!r}")
    return value


Folder = Annotated[Text, AfterValidator(_folder), Field(max_length=1000)]
"""A path; relative ones are within the job's working folder."""


def _inside(value: str) -> str:
    path = PurePosixPath(value)
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"must be a path within the archive, but is {value!r}")
    return value


def _variable_name(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
        raise ValueError(f"{value!r} cannot be the name of an environment variable")
    return value


class SecretRef(_Model):
    """A value that is not in the job file: `secret` names what the server keeps encrypted.

    Attributes:
      secret: its name, as ``headwater secret set`` was given it.
    """

    secret: SecretName


def _value(value: Json) -> Json:
    if isinstance(value, dict | SecretRef):
        return value  # pyright: ignore[reportUnknownVariableType]  the model itself says what is wrong with it
    return _text_of(value)


Value = Annotated[str | SecretRef, BeforeValidator(_value, json_schema_input_type=str | int | float | SecretRef)]
"""The value of a variable: text, or a reference to a secret."""

Variables = dict[Annotated[Text, AfterValidator(_variable_name)], Value]


class RoleSpec(_Model):
    """The tasks of one role. A role that asks for no CPUs, memory or GPUs is not counted against what there is.

    Attributes:
      count: how many tasks; a range lets `headwater scale`, and the room there is, choose.
      cpus: CPUs of each task; 0 for a share of what there is.
      memory: bytes of each task, e.g. ``4GiB``; 0 for no bound.
      gpus: GPUs of each task.
      env: environment variables for this role, besides the job's.
      node_selector: labels that a machine must have (Kubernetes).
    """

    count: Number = Count(least=1, most=1)
    cpus: float = Field(default=0, ge=0, le=100_000)
    memory: Size = 0
    gpus: int = Field(default=0, ge=0, le=10_000)
    env: Variables = {}
    node_selector: dict[Text, Text] = {}

    @model_serializer(mode="wrap")
    def _as_written(self, handler: SerializerFunctionWrapHandler) -> Json:
        """As people write it: a role of which no more than a number is asked is that number."""
        fields: JsonObject = handler(self)
        return fields if set(fields) - {"count"} else fields.get("count", self.count.least)


def _role(value: Json) -> Json:
    if isinstance(value, bool):
        return {"count": int(value)}
    if isinstance(value, int | str):
        return {"count": value}
    return value


Tasks = Annotated[RoleSpec, BeforeValidator(_role, json_schema_input_type=int | str | RoleSpec)]
"""A number of tasks, or all that is asked for them."""
OneTask = Annotated[RoleSpec, BeforeValidator(_role, json_schema_input_type=bool | RoleSpec)]
"""Whether there is such a task, or all that is asked for it."""


class RestartSpec(_Model):
    """What happens when a task fails.

    Attributes:
      policy: ``on-failure`` restarts what failed; ``never`` fails the job at once.
      scope: what is restarted: the ``task`` alone, or the whole ``job``, as mirrored training needs it. ``auto`` is
        ``task`` for a job with parameter servers, and ``job`` for one without.
      limit: how many restarts, of one task or of the job by scope, before the job has failed.
      backoff: the pause before the first restart; it doubles with each.
      max_backoff: the longest pause.
      reset_after: a task that ran so long is healthy again: its restarts are forgotten, and so are its pauses.
    """

    policy: Literal["on-failure", "never"] = "on-failure"
    scope: Literal["auto", "task", "job"] = "auto"
    limit: int = Field(default=3, ge=0, le=1_000_000)
    backoff: Duration = 1.0
    max_backoff: Duration = 60.0
    reset_after: Duration = 600.0


class DeadlineSpec(_Model):
    """How long things may take; null for as long as they like.

    Attributes:
      pending: waiting for the resources that the job asks for.
      run: all of the job's run, restarts included.
      progress: without a further step, while a task that has reported steps runs.
      evaluator: for an evaluator to validate the last of the training, from when the workers are done.
      grace: between asking a task to end and killing it.
    """

    pending: Duration | None = 86_400.0
    run: Duration | None = None
    progress: Duration | None = None
    evaluator: Duration | None = 600.0
    grace: Duration = 30.0


def _progress_pattern(value: str) -> str:
    compile_pattern(value)
    return value


class ProgressSpec(_Model):
    """How the platform learns how far a task is, for programs that print it and report nothing.

    Attributes:
      pattern: a regular expression with a group ``(?P<step>...)``, ``(?P<loss>...)`` or both, which each line that a
        task prints is held against. Unless given, lines such as ``Step: 1200, loss: 0.031`` are understood.
    """

    pattern: Annotated[Text, AfterValidator(_progress_pattern), Field(max_length=1000)] | None = None


class NotifySpec(_Model):
    """Whom to tell when the job ends.

    Attributes:
      webhook: an address of http or https that gets a JSON object by POST.
      on: which ends to tell of.
    """

    webhook: Annotated[Text, Field(max_length=2000, pattern=r"^https?://[^\s]+$")]
    on: list[Literal["succeeded", "failed", "stopped", "restarted"]] = ["succeeded", "failed"]


class VolumeSpec(_Model):
    """A folder of a Kubernetes pod, from a claim, a host's path or nothing (then it is empty and lost with the pod).

    Attributes:
      path: where tasks see it.
      claim: the name of a PersistentVolumeClaim.
      host_path: a folder of the machine.
      read_only: whether tasks may only read it.
    """

    path: Annotated[Text, Field(pattern=r"^/")]
    claim: Text | None = None
    host_path: Annotated[Text, Field(pattern=r"^/")] | None = None
    read_only: bool = False


class TolerationSpec(_Model):
    """A taint of machines that does not keep tasks away; as Kubernetes has it."""

    key: Text | None = None
    operator: Literal["Exists", "Equal"] = "Equal"
    value: Text | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None


class KubernetesSpec(_Model):
    """What only Kubernetes needs to know.

    Attributes:
      image: the container image; the server's default unless given.
      namespace: where the objects go; the server's default unless given.
      image_pull_policy: as Kubernetes has it.
      service_account: whose rights tasks have.
      gpu_resource: how the cluster calls a GPU.
      volumes: folders of every pod.
      user: the number of the user as which tasks run, who is not root; pods then fit the standard ``restricted`` of pod
        security. The image's own user unless given.
      shm: the size of ``/dev/shm``, e.g. ``1GiB``; 0 for that of the container's runtime.
      image_pull_secrets: names of secrets with which the image is pulled.
      tolerations: taints of machines that do not keep the tasks away.
      priority_class: a class of priority of the cluster.
      queue: a queue of Kueue, which starts each task when the queue has room for it.
      keep: for how long Kubernetes keeps Jobs that have ended; until the job is deleted unless given.
      gang: for how long some tasks may hold places while others find none: after that all is given back, and tried
        again later. For ever with null.
      network_policy: whether only tasks of the job may connect to its tasks, where the cluster's network can do that.
      disruption_budget: whether the cluster's keepers may not evict tasks without which the others cannot go on: the
        ``ps`` and the chief, or all where a restart concerns the whole job.
    """

    image: Text | None = None
    namespace: Text | None = None
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    service_account: Text | None = None
    gpu_resource: Text = "nvidia.com/gpu"
    volumes: list[VolumeSpec] = Field(default=[], max_length=50)
    user: int | None = Field(default=None, ge=1, le=2**31 - 1)
    shm: Size = 0
    image_pull_secrets: list[Text] = Field(default=[], max_length=20)
    tolerations: list[TolerationSpec] = Field(default=[], max_length=50)
    priority_class: Text | None = None
    queue: Text | None = None
    keep: Duration | None = None
    gang: Duration | None = 600.0
    network_policy: bool = False
    disruption_budget: bool = False


Partition = Annotated[Text, Field(pattern=r"^[\w,.-]+$")]
SlurmName = Annotated[Text, Field(pattern=r"^[\w.-]+$")]
SlurmOptions = list[Annotated[Text, Field(pattern=r"^--?[\w-]+(=[^\n]*)?$")]]


class FurtherWorkers(_Model):
    """Where workers that come and go run on Slurm.

    Attributes:
      partition: such as one whose jobs are preempted.
      account: who pays.
      qos: the quality of service.
      options: in place of those of the rest.
    """

    partition: Partition | None = None
    account: SlurmName | None = None
    qos: SlurmName | None = None
    options: SlurmOptions | None = Field(default=None, max_length=100)


class SlurmSpec(_Model):
    """What only Slurm needs to know.

    Attributes:
      partition: where the job runs; Slurm's default unless given.
      account: who pays.
      qos: the quality of service.
      options: further ``#SBATCH`` options, such as ``--constraint=ib``.
      further: where workers beyond the first number run, in a job whose workers come and go; a part that is not given
        is as for the rest.
    """

    partition: Partition | None = None
    account: SlurmName | None = None
    qos: SlurmName | None = None
    options: SlurmOptions = Field(default=[], max_length=100)
    further: FurtherWorkers = FurtherWorkers()


class JobSpec(_Model):
    """A job: which program runs in which tasks, with what, and what happens when one of them fails.

    Exactly one of ``program``, ``module`` and ``command`` says what every task runs.

    Attributes:
      name: what people call the job: lower-case letters, digits and dashes.
      program: a Python program, run as by ``headwater exec``; relative to the working folder.
      module: a Python module, run as by ``headwater exec -m``.
      command: a command line of any kind, run as it is.
      args: arguments of the program. ``{checkpoint_dir}``, ``{log_dir}`` and ``{data_dir}`` in them are replaced.
      flags: whether to pass the cluster as ``--ps_hosts --worker_hosts --job_name --task_index``, too.
      workdir: the folder in which tasks run; within the archive where there is one.
      archive: a tar or zip file that is unpacked for the job; ``workdir`` is then within it.
      env: environment variables of all tasks; a value may be ``{secret: NAME}``, which the server keeps encrypted.
      ps: the parameter servers.
      workers: the workers.
      chief: a task of job ``chief`` besides the workers.
      evaluator: a task that evaluates beside the training.
      restart: what happens when a task fails.
      deadlines: how long things may take.
      progress: how lines that tasks print tell their progress.
      priority: jobs with a higher one start first.
      requeue: whether a preempted job goes back to the queue; otherwise it has failed.
      preemptible: whether its workers run on machines that may be taken away: with parameter servers the others go on
        meanwhile, a lost worker counts as no failure, and the number of workers follows the room that there is, within
        its range.
      checkpoint_dir: where the job keeps its checkpoints; tasks find it in ``HEADWATER_CHECKPOINT_DIR``.
      log_dir: where it writes its event files; tasks find it in ``HEADWATER_LOG_DIR``.
      data_dir: where it finds its data; tasks find it in ``HEADWATER_DATA_DIR``.
      backend: which of the server's backends runs it; the server's default unless given.
      notify: whom to tell when it ends.
      kubernetes: what only Kubernetes needs to know; other backends pass over it.
      slurm: what only Slurm needs to know; other backends pass over it.
    """

    name: Annotated[str, Field(max_length=40, pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")]
    program: Folder | None = None
    module: Annotated[Text, Field(max_length=1000, pattern=r"^[A-Za-z_][\w.]*$")] | None = None
    command: list[Text] | None = Field(default=None, min_length=1, max_length=1000)
    args: list[Text] = Field(default=[], max_length=1000)
    flags: bool = False
    workdir: Folder | None = None
    archive: Folder | None = None
    env: Variables = {}
    ps: Tasks = RoleSpec(count=Count(least=0, most=0))
    workers: Tasks = RoleSpec()
    chief: OneTask = RoleSpec(count=Count(least=0, most=0))
    evaluator: OneTask = RoleSpec(count=Count(least=0, most=0))
    restart: RestartSpec = RestartSpec()
    deadlines: DeadlineSpec = DeadlineSpec()
    progress: ProgressSpec = ProgressSpec()
    priority: int = Field(default=0, ge=-1000, le=1000)
    requeue: bool = True
    preemptible: bool = False
    checkpoint_dir: Folder | None = None
    log_dir: Folder | None = None
    data_dir: Folder | None = None
    backend: Literal["local", "ssh", "ray", "kubernetes", "slurm"] | None = None
    notify: NotifySpec | None = None
    kubernetes: KubernetesSpec = KubernetesSpec()
    slurm: SlurmSpec = SlurmSpec()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        given = [name for name in ("program", "module", "command") if getattr(self, name) is not None]
        if len(given) != 1:
            raise _FieldError(
                given[1] if given else "",
                f"cannot be given together with {given[0]}" if given else "must have a program, a module or a command",
            )
        for role in ("chief", "evaluator"):
            if self.role(role).count.most > 1:
                raise _FieldError(role, f"can be one task at most, not {self.role(role).count}")
        if self.ps.count.least != self.ps.count.most and (not self.ps.count.least or self.restart_scope != "task"):
            raise _FieldError("ps", "may be a range from 1 on, where tasks restart by themselves (restart.scope)")
        if self.workers.count.least == 0 and self.chief.count.least == 0:
            raise _FieldError("workers", "must be at least 1 where there is no chief")
        if self.flags and self.chief.count.most:
            raise _FieldError("flags", "cannot be used with a chief, for whose address there is no flag")
        for field in ("args", "command"):
            for folder in FOLDERS:
                if getattr(self, folder) is None and any(
                    f"{{{folder}}}" in part for part in getattr(self, field) or ()
                ):
                    raise _FieldError(field, f"names {{{folder}}}, but the job has no {folder}")
        if sum(self.role(role).count.most for role in ROLES) > MAX_TASKS:
            raise _FieldError("", f"has more than {MAX_TASKS} tasks")
        if self.archive is not None and self.workdir is not None:
            try:
                _inside(self.workdir)
            except ValueError as error:
                raise _FieldError("workdir", str(error)) from error
        if self.restart.max_backoff < self.restart.backoff:
            raise _FieldError("restart.max_backoff", "must not be shorter than restart.backoff")
        return self

    def role(self, role: Role) -> RoleSpec:
        """What is asked for the tasks of ``role``."""
        tasks: RoleSpec = getattr(self, _FIELDS[role])
        return tasks

    @property
    def restart_scope(self) -> Literal["task", "job"]:
        """What a restart restarts, with ``auto`` decided."""
        if self.restart.scope == "auto":
            return "task" if self.ps.count.most else "job"
        return self.restart.scope

    @property
    def elastic(self) -> bool:
        """Whether single workers come and go with the room there is, while the others go on."""
        return self.preemptible and self.restart_scope == "task"

    def secrets(self) -> dict[str, str]:
        """The secrets that its tasks are given, each with the field that names it."""
        roles: list[tuple[str, RoleSpec]] = [(f"{_FIELDS[role]}.env", self.role(role)) for role in ROLES]
        return {
            value.secret: f"{field}.{name}"
            for field, part in [*roles, ("env", self)]
            for name, value in part.env.items()
            if isinstance(value, SecretRef)
        }

    def counts(self, workers: int | None = None, ps: int | None = None) -> dict[Role, int]:
        """How many tasks each role has, those with none left out.

        Args:
          workers: how many workers; the least that the job starts with unless given.
          ps: likewise.

        Raises:
          ValueError: ``workers`` or ``ps`` is not in the job's range.
        """
        for field, count, allowed in (("workers", workers, self.workers.count), ("ps", ps, self.ps.count)):
            if count is not None and not allowed.least <= count <= allowed.most:
                raise ValueError(f"{field} must be within {allowed}, but is {count}")
        counts: dict[Role, int] = {role: self.role(role).count.least for role in ROLES}
        if workers is not None:
            counts["worker"] = workers
        if ps is not None:
            counts["ps"] = ps
        return {role: count for role, count in counts.items() if count}


class _FieldError(ValueError):
    """A problem of several fields that belongs to one of them."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def parse_job(text: str, source: str = "job.yaml") -> JobSpec:
    """Reads a job file, of YAML or JSON.

    Raises:
      JobSpecError: with every problem that was found, each with its field and line.
    """
    return job_of(read_job_file(text, source))


def job_of(file: JobFile) -> JobSpec:
    """The job that ``file`` describes; raises as `parse_job` does."""
    try:
        return JobSpec.model_validate(file.data)
    except ValidationError as error:
        raise JobSpecError([_problem(file, entry) for entry in error.errors()], file.source) from error


def job_from_data(data: Mapping[str, Json], source: str = "job") -> JobSpec:
    """The job that plain values describe, where there is no file and so no line; raises as `parse_job` does."""
    return job_of(JobFile(data=dict(data), source=source, lines={}))


def job_schema() -> JsonObject:
    """The JSON schema of a job file."""
    return {"$schema": _SCHEMA_ID, **JobSpec.model_json_schema()}


def _problem(file: JobFile, entry: Json) -> Problem:
    path = tuple(part for part in entry["loc"] if part != "[key]")
    cause = entry.get("ctx", {}).get("error")
    if isinstance(cause, _FieldError):
        return file.problem(tuple(cause.field.split(".")) if cause.field else (), str(cause))
    if cause is not None:
        return file.problem(path, str(cause))
    match entry["type"]:
        case "extra_forbidden":
            return file.problem(path, "is no field of a job")
        case "missing":
            return file.problem(path, "is missing")
        case _:
            message = str(entry["msg"])
            return file.problem(path, f"{message[0].lower()}{message[1:]}, but is {_shown(entry['input'])}")


def _shown(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
