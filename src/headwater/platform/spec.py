"""The specification of a job: the fields of ``job.yaml``, their bounds and defaults, and their JSON schema.

::

    name: linear
    program: train.py
    args: [--steps, 1000]
    ps: 1
    workers: {count: "2:8", cpus: 1, memory: 2GiB}

Errors name a field as it is written in the file, with its line.
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
"""The role of a task, as in ``TF_CONFIG``."""

ROLES: tuple[Role, ...] = ("ps", "chief", "worker", "evaluator")
"""All roles, in the start order of a job's tasks."""

FOLDERS = ("checkpoint_dir", "log_dir", "data_dir")
"""The fields with a job's folders; arguments can refer to them in braces."""

MAX_TASKS = 1000
_SCHEMA_ID = "https://json-schema.org/draft/2020-12/schema"
_FIELDS: dict[Role, str] = {"ps": "ps", "chief": "chief", "worker": "workers", "evaluator": "evaluator"}


class _Model(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", coerce_numbers_to_str=True, allow_inf_nan=False
    )


class Count(_Model):
    """A number of tasks: as many as can be placed, but at least ``least`` and at most ``most``.

    Attributes:
      least: the minimum for the job to start.
      most: the maximum to scale to; equal to ``least`` if the file gives one number.
    """

    least: int = Field(ge=0, le=MAX_TASKS)
    most: int = Field(ge=0, le=MAX_TASKS)

    def __str__(self) -> str:
        return str(self.least) if self.least == self.most else f"{self.least}:{self.most}"

    @model_serializer
    def _short_form(self) -> int | str:
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
        raise ValueError(f"must be from 0 to {MAX_TASKS}, with the smaller number first, but is {value!r}")
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
        raise ValueError("must not contain a zero byte")
    return value


Text = Annotated[str, BeforeValidator(_text_of, json_schema_input_type=str | int | float), Field(max_length=32_768)]
"""Text; a number is converted to its digits."""


SecretName = Annotated[str, Field(max_length=63, pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")]
"""The name of a secret: lower-case letters, digits and dashes."""


def _folder(value: str) -> str:
    if "\n" in value or not value.strip():
        raise ValueError(f"must be the path of a folder, but is {value!r}")
    return value


Folder = Annotated[Text, AfterValidator(_folder), Field(max_length=1000)]
"""A path; a relative one is within the job's working folder."""


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
    """A value that is not in the job file: `secret` names a secret that the server keeps encrypted.

    Attributes:
      secret: the name of the secret, as given to ``headwater secret set``.
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
    """The tasks of one role. Without CPUs, memory and GPUs, a role's tasks reserve no resources.

    Attributes:
      count: the number of tasks; within a range, it depends on `headwater scale` and the free resources.
      cpus: CPUs that are reserved for each task. With 0, a task shares the CPUs of its machine.
      memory: bytes of each task, e.g. ``4GiB``; 0 for no limit.
      gpus: GPUs of each task.
      env: environment variables for this role, in addition to the job's.
      node_selector: labels that a machine must have (Kubernetes).
    """

    count: Number = Count(least=1, most=1)
    cpus: float = Field(default=0, ge=0, le=100_000)
    memory: Size = 0
    gpus: int = Field(default=0, ge=0, le=10_000)
    env: Variables = {}
    node_selector: dict[Text, Text] = {}

    @model_serializer(mode="wrap")
    def _short_form(self, handler: SerializerFunctionWrapHandler) -> Json:
        """Serializes the role as people write it: as a number if only the count differs from the defaults."""
        fields: JsonObject = handler(self)
        return fields if set(fields) - {"count"} else fields.get("count", self.count.least)


def _role(value: Json) -> Json:
    if isinstance(value, bool):
        return {"count": int(value)}
    if isinstance(value, int | str):
        return {"count": value}
    return value


Tasks = Annotated[RoleSpec, BeforeValidator(_role, json_schema_input_type=int | str | RoleSpec)]
"""A number of tasks, or the complete settings of a role."""
OneTask = Annotated[RoleSpec, BeforeValidator(_role, json_schema_input_type=bool | RoleSpec)]
"""Whether the job has a task of this role, or the complete settings of the role."""


class RestartSpec(_Model):
    """Reaction to the failure of a task.

    Attributes:
      policy: ``on-failure`` restarts the failed task or job; ``never`` fails the job immediately.
      scope: the unit of a restart: the ``task``, or the whole ``job``, which mirrored training needs. ``auto`` is
        ``task`` for a job with parameter servers, and ``job`` for a job without them.
      limit: maximum number of restarts, of each task or of the job by scope, before the job fails.
      backoff: the pause before the first restart; the pause doubles with each further restart.
      max_backoff: the longest pause.
      reset_after: a task or job that has run this long is healthy: its earlier restarts no longer count towards
        ``limit``, nor lengthen its pauses.
    """

    policy: Literal["on-failure", "never"] = "on-failure"
    scope: Literal["auto", "task", "job"] = "auto"
    limit: int = Field(default=3, ge=0, le=1_000_000)
    backoff: Duration = 1.0
    max_backoff: Duration = 60.0
    reset_after: Duration = 600.0


class DeadlineSpec(_Model):
    """Time limits; null for no limit.

    Attributes:
      pending: time to wait for the resources that the job requests.
      run: run time of the job, including restarts.
      progress: time without a new step, for a running task that has reported steps.
      evaluator: time for an evaluator to validate the end of the training, after the workers are done.
      grace: time between asking a task to end and killing it.
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
    """Parsing of progress from the output of programs that do not report it.

    Attributes:
      pattern: a regular expression with a group ``(?P<step>...)``, ``(?P<loss>...)`` or both, which is matched with
        each line of a task's output. Unless given, lines such as ``Step: 1200, loss: 0.031`` are recognized.
    """

    pattern: Annotated[Text, AfterValidator(_progress_pattern), Field(max_length=1000)] | None = None


class NotifySpec(_Model):
    """Notification of a job's end.

    Attributes:
      webhook: an http or https address that receives a JSON object by POST.
      on: the events to notify of.
    """

    webhook: Annotated[Text, Field(max_length=2000, pattern=r"^https?://[^\s]+$")]
    on: list[Literal["succeeded", "failed", "stopped", "restarted"]] = ["succeeded", "failed"]


class VolumeSpec(_Model):
    """A folder of a Kubernetes pod, from a claim, a host's path or neither. In the last case it is initially empty, and
    lost with the pod.

    Attributes:
      path: the path of the folder in tasks.
      claim: the name of a PersistentVolumeClaim.
      host_path: a folder of the machine.
      read_only: whether tasks can only read it.
    """

    path: Annotated[Text, Field(pattern=r"^/")]
    claim: Text | None = None
    host_path: Annotated[Text, Field(pattern=r"^/")] | None = None
    read_only: bool = False


class TolerationSpec(_Model):
    """A taint of machines that tasks tolerate; as in Kubernetes."""

    key: Text | None = None
    operator: Literal["Exists", "Equal"] = "Equal"
    value: Text | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None


class KubernetesSpec(_Model):
    """Settings for Kubernetes only.

    Attributes:
      image: the container image; the server's default unless given.
      namespace: the namespace of the objects; the server's default unless given.
      image_pull_policy: as in Kubernetes.
      service_account: the service account of the tasks.
      gpu_resource: the cluster's resource name of a GPU.
      volumes: folders of every pod.
      user: the number of the user that runs the tasks, not root; pods then satisfy the ``restricted`` pod security
        standard. By default, the image's own user.
      shm: the size of ``/dev/shm``, e.g. ``1GiB``; 0 for the default of the container runtime.
      image_pull_secrets: names of secrets for pulling the image.
      tolerations: taints of machines that the tasks tolerate.
      priority_class: a priority class of the cluster.
      queue: a queue of Kueue, which starts each task when the queue has room for it.
      keep: how long Kubernetes keeps its Jobs after their end; if not given, until the job is deleted.
      gang: how long some tasks may hold resources while other tasks of the job cannot be placed. After that time, the
        job releases all of its resources and is tried again later. null for no limit.
      network_policy: whether only tasks of the job may connect to its tasks, if the cluster's network supports it.
      disruption_budget: whether to protect tasks that other tasks need from voluntary evictions: the ``ps`` and the
        chief, or all if a restart concerns the whole job.
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
    """Placement of elastic workers on Slurm.

    Attributes:
      partition: a partition, for example a preemptible one.
      account: the account to charge.
      qos: the quality of service.
      options: further options, which replace the job's.
    """

    partition: Partition | None = None
    account: SlurmName | None = None
    qos: SlurmName | None = None
    options: SlurmOptions | None = Field(default=None, max_length=100)


class SlurmSpec(_Model):
    """Settings for Slurm only.

    Attributes:
      partition: the job's partition; Slurm's default unless given.
      account: the account to charge.
      qos: the quality of service.
      options: further ``#SBATCH`` options, such as ``--constraint=ib``.
      further: how an elastic job's workers beyond its minimum are submitted. A field that is not given has the value
        for the other tasks.
    """

    partition: Partition | None = None
    account: SlurmName | None = None
    qos: SlurmName | None = None
    options: SlurmOptions = Field(default=[], max_length=100)
    further: FurtherWorkers = FurtherWorkers()


class JobSpec(_Model):
    """A job: the program to run, its tasks with their resources, and the reaction to failures.

    Exactly one of ``program``, ``module`` and ``command`` gives the program of every task.

    Attributes:
      name: the job's name: lower-case letters, digits and dashes.
      program: a Python program, run as by ``headwater exec``; relative to the working folder.
      module: a Python module, run as by ``headwater exec -m``.
      command: a command line of any kind, run unchanged.
      args: arguments of the program. ``{checkpoint_dir}``, ``{log_dir}`` and ``{data_dir}`` in them are replaced.
      flags: whether to pass the cluster as ``--ps_hosts --worker_hosts --job_name --task_index``, too.
      workdir: the folder in which tasks run; with an archive, a folder within it.
      archive: a tar or zip file that is unpacked for the job; ``workdir`` is then within it.
      env: environment variables of all tasks; a value may be ``{secret: NAME}``, which the server keeps encrypted.
      ps: the parameter servers.
      chief: a task of job ``chief`` in addition to the workers.
      evaluator: a task that evaluates during the training.
      restart: the reaction to the failure of a task.
      deadlines: time limits.
      progress: parsing of progress from the tasks' output.
      priority: jobs with a higher priority start first.
      requeue: whether a preempted job returns to the queue; otherwise it fails.
      preemptible: whether the job's workers run on machines that may be taken away. With parameter servers, the other
        workers continue, the loss of a worker does not count as a failure, and the number of workers follows the free
        resources, within its range.
      checkpoint_dir: the folder of the job's checkpoints; ``HEADWATER_CHECKPOINT_DIR`` in tasks.
      log_dir: the folder of the job's event files; ``HEADWATER_LOG_DIR`` in tasks.
      data_dir: the folder of the job's data; ``HEADWATER_DATA_DIR`` in tasks.
      backend: the server's backend that runs the job; by default, the server's default backend.
      notify: notification of the job's end.
      kubernetes: settings for Kubernetes only; other backends ignore them.
      slurm: settings for Slurm only; other backends ignore them.
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
        present = [name for name in ("program", "module", "command") if getattr(self, name) is not None]
        if len(present) != 1:
            raise _FieldError(
                present[1] if present else "",
                f"cannot be given together with {present[0]}"
                if present
                else "must have a program, a module or a command",
            )
        for role in ("chief", "evaluator"):
            if self.role(role).count.most > 1:
                raise _FieldError(role, f"must be at most one task, but is {self.role(role).count}")
        if self.ps.count.least != self.ps.count.most and (not self.ps.count.least or self.restart_scope != "task"):
            raise _FieldError("ps", "can only be a range from 1 on, with restart.scope: task")
        if self.workers.count.least == 0 and self.chief.count.least == 0:
            raise _FieldError("workers", "must be at least 1 without a chief")
        if self.flags and self.chief.count.most:
            raise _FieldError("flags", "cannot be used with a chief, because there is no flag for its address")
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
        """Returns the settings of ``role``."""
        tasks: RoleSpec = getattr(self, _FIELDS[role])
        return tasks

    @property
    def restart_scope(self) -> Literal["task", "job"]:
        """The unit of a restart, with ``auto`` resolved."""
        if self.restart.scope == "auto":
            return "task" if self.ps.count.most else "job"
        return self.restart.scope

    @property
    def elastic(self) -> bool:
        """Whether single workers can be lost and added while all other tasks continue."""
        return self.preemptible and self.restart_scope == "task"

    def secrets(self) -> dict[str, str]:
        """Returns the secrets of the job's tasks, each with the field that refers to it."""
        roles: list[tuple[str, RoleSpec]] = [(f"{_FIELDS[role]}.env", self.role(role)) for role in ROLES]
        return {
            value.secret: f"{field}.{name}"
            for field, part in [*roles, ("env", self)]
            for name, value in part.env.items()
            if isinstance(value, SecretRef)
        }

    def counts(self, workers: int | None = None, ps: int | None = None) -> dict[Role, int]:
        """Returns the number of tasks of each role, without roles that have none.

        Args:
          workers: the number of workers; the minimum unless given.
          ps: the number of ``ps``; the minimum unless given.

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
    """A problem that concerns several fields, and is reported for one of them."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def parse_job(text: str, source: str = "job.yaml") -> JobSpec:
    """Parses a job file, in YAML or JSON.

    Raises:
      JobSpecError: the job is invalid; lists every problem with its field and line.
    """
    return job_of(read_job_file(text, source))


def job_of(file: JobFile) -> JobSpec:
    """Returns the job in ``file``; raises as `parse_job` does."""
    try:
        return JobSpec.model_validate(file.data)
    except ValidationError as error:
        raise JobSpecError([_problem(file, entry) for entry in error.errors()], file.source) from error


def job_from_data(data: Mapping[str, Json], source: str = "job") -> JobSpec:
    """Returns the job described by plain values, without a file and lines; raises as `parse_job` does."""
    return job_of(JobFile(data=dict(data), source=source, lines={}))


def job_schema() -> JsonObject:
    """Returns the JSON schema of job files."""
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
            return file.problem(path, "is not a field of a job")
        case "missing":
            return file.problem(path, "is missing")
        case _:
            message = str(entry["msg"])
            return file.problem(path, f"{message[0].lower()}{message[1:]}, but is {_shown(entry['input'])}")


def _shown(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
