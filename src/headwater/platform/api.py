"""The platform over HTTP, as JSON: jobs, their tasks, logs, events and history, machines, tokens.

Every request except the health check carries ``Authorization: Bearer TOKEN`` or a session cookie. A refused request is
answered with a `headwater.platform.views.ErrorView` that names the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Body, Depends, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import StringConstraints

import headwater
from headwater.data.io.json_types import JsonObject
from headwater.platform.access import MayAdmin, MayRun, MayView, PlatformOf
from headwater.platform.backends.base import BackendError, HostCapacity, Resources
from headwater.platform.errors import Refused
from headwater.platform.finding import CURSOR, find_lines, whole_log
from headwater.platform.job_file import JobSpecError, read_job_file
from headwater.platform.job_secrets import SecretError
from headwater.platform.logfiles import MAX_PART, plain, read_part
from headwater.platform.records import JobRecord
from headwater.platform.secret_store import MAX_BYTES
from headwater.platform.service import HOSTS_TIMEOUT_S
from headwater.platform.spec import JobSpec, SecretName, job_of, job_schema
from headwater.platform.states import AskRestart, AskScale, AskStop, JobPhase
from headwater.platform.views import (
    ApiView,
    AttemptView,
    ErrorView,
    EventView,
    FoundView,
    HostView,
    JobList,
    JobSummary,
    JobView,
    LogView,
    NewTokenView,
    SampleView,
    SecretView,
    TokenView,
)

_REFUSALS: dict[int | str, JsonObject] = {
    400: {"model": ErrorView, "description": "The request is malformed."},
    401: {"model": ErrorView, "description": "No valid token."},
    403: {"model": ErrorView, "description": "The token does not permit the request."},
    404: {"model": ErrorView, "description": "The job, task, token or file does not exist."},
    409: {"model": ErrorView, "description": "The job's state does not permit the request."},
    413: {"model": ErrorView, "description": "Too large."},
    422: {"model": ErrorView, "description": "A field is invalid."},
    429: {"model": ErrorView, "description": "Too many requests."},
    503: {"model": ErrorView, "description": "A backend does not answer."},
}
router: APIRouter = APIRouter(responses=_REFUSALS)

JobId = Annotated[str, Path(pattern=r"^[a-z0-9-]{1,64}$", description="The job's id.")]
TaskPart = Annotated[str, Path(pattern=r"^(ps|chief|worker|evaluator)-\d{1,6}$", description="E.g. worker-0.")]
TaskQuery = Annotated[
    str | None,
    Query(pattern=r"^(ps|chief|worker|evaluator)-\d{1,6}$", description="Only logs of this task, e.g. worker-0."),
]
_BYTES = {"type": "string", "format": "binary"}
_ARCHIVE_BODY = {"requestBody": {"required": True, "content": {"application/octet-stream": {"schema": _BYTES}}}}
_JOB_SCHEMA = JobSpec.model_json_schema(ref_template="#/components/schemas/{model}")
_JOB_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {name: part for name, part in _JOB_SCHEMA.items() if name != "$defs"}},
            "application/yaml": {"schema": {"type": "string", "description": "The text of a job file."}},
        },
    }
}


class Health(ApiView):
    """The server's health."""

    status: Literal["ok"]
    version: str


class Me(ApiView):
    """The caller's name and role."""

    name: str
    role: Literal["view", "run", "admin"]


class Digest(ApiView):
    """The digest of an uploaded archive, which is the archive's name."""

    digest: str


class Validated(ApiView):
    """The result of validating a job file: its problems, or the complete job."""

    ok: bool
    error: ErrorView | None
    spec: JsonObject | None


class StopRequest(ApiView):
    """How a job is to stop; ``requeue`` puts it back into the queue, as after a preemption."""

    requeue: bool = False


class ScaleRequest(ApiView):
    """The desired numbers of a job's workers and parameter servers; a number that is not given does not change."""

    workers: Annotated[int | None, Body(ge=0, le=1000)] = None
    ps: Annotated[int | None, Body(ge=1, le=1000)] = None


class SecretRequest(ApiView):
    """The value of a secret: text of 64 KiB at most."""

    value: Annotated[str, Body(min_length=1, max_length=MAX_BYTES)]


class TokenRequest(ApiView):
    """A token to be issued; ``valid_s``: its validity in seconds; without it, the token does not expire."""

    name: Annotated[str, Body(min_length=1, max_length=100, pattern=r"^[\w .@-]+$")]
    role: Literal["view", "run", "admin"]
    valid_s: Annotated[float, Body(gt=0, le=10 * 366 * 86400)] | None = None


async def _text(request: Request) -> str:
    try:
        return (await request.body()).decode()
    except UnicodeDecodeError as error:
        raise Refused(400, "the job file is not UTF-8") from error


JobText = Annotated[str, Depends(_text)]


@router.get("/health", tags=["server"])
def health() -> Health:
    """Reports that the server runs; needs no token."""
    return Health(status="ok", version=headwater.__version__)


@router.get("/me", tags=["server"])
def me(identity: MayView) -> Me:
    """Returns the name and the role of the token in use."""
    return Me(name=identity.name, role=identity.role)


@router.get("/schema", tags=["jobs"])
def schema(identity: MayView) -> JsonObject:
    """The JSON schema of job files."""
    return job_schema()


@router.get("/hosts", tags=["server"])
def hosts(platform: PlatformOf, identity: MayView) -> list[HostView]:
    """Returns all machines and their free resources. A backend that does not answer is one entry without a host."""
    views: list[HostView] = []
    for name, lane in platform.manager.lanes.items():
        try:
            views += [HostView.of(name, host) for host in lane.capacity(HOSTS_TIMEOUT_S).hosts]
        except BackendError as error:
            nothing = Resources()
            views.append(HostView.of(name, HostCapacity(host="", total=nothing, free=nothing, problem=str(error))))
    return views


@router.put("/archives", tags=["jobs"], status_code=201, openapi_extra=_ARCHIVE_BODY)
async def put_archive(request: Request, platform: PlatformOf, identity: MayRun) -> Digest:
    """Stores a tar or zip file, for jobs that are submitted later."""
    return Digest(digest=await platform.archives.put(request.stream()))


@router.post("/validate", tags=["jobs"], openapi_extra=_JOB_BODY)
def validate(text: JobText, identity: MayView) -> Validated:
    """Returns the problems of a job file without submitting it."""
    try:
        spec = job_of(read_job_file(text))
    except JobSpecError as error:
        return Validated(ok=False, error=_spec_error(error), spec=None)
    return Validated(ok=True, error=None, spec=spec.model_dump(mode="json", exclude_defaults=True))


@router.post("/jobs", tags=["jobs"], status_code=201, openapi_extra=_JOB_BODY)
def submit(
    text: JobText,
    platform: PlatformOf,
    identity: MayRun,
    workers: Annotated[
        int | None, Query(ge=0, le=1000, description="Number of workers, within the job's range.")
    ] = None,
    archive: Annotated[str | None, Query(pattern=r"^[0-9a-f]{64}$", description="An archive's digest.")] = None,
    sweep: Annotated[
        str | None, Query(pattern=r"^[a-z0-9-]{1,64}$", description="The sweep that the job belongs to.")
    ] = None,
    setting: Annotated[
        list[Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][\w.-]{0,60}=[^\x00]{0,200}$")]] | None,
        Query(max_length=20, description="NAME=VALUE that differs within the sweep, passed as --NAME=VALUE."),
    ] = None,
) -> JobView:
    """Queues a job from a job file in YAML or JSON. Paths in it are paths on the server's machine."""
    settings = {name: value for name, _, value in (one.partition("=") for one in setting or ())}
    spec = job_of(read_job_file(text))
    if settings:
        spec = spec.model_copy(
            update={"args": [*spec.args, *(f"--{name}={value}" for name, value in settings.items())]}
        )
    record = platform.submit(
        spec, owner=identity.name, archive=archive, workers=workers, sweep=sweep, settings=settings
    )
    return JobView.of(record)


@router.get("/jobs", tags=["jobs"])
def jobs(
    platform: PlatformOf,
    identity: MayView,
    phase: JobPhase | None = None,
    live: Annotated[bool | None, Query(description="true: only unfinished jobs; false: only finished jobs.")] = None,
    name: Annotated[str | None, Query(max_length=40)] = None,
    owner: Annotated[str | None, Query(max_length=100)] = None,
    before: Annotated[float | None, Query(description="Only jobs submitted before this time.", ge=0, le=1e11)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> JobList:
    """Lists jobs, the most recently submitted first."""
    stored = platform.store.jobs(phase=phase, live=live, name=name, owner=owner, before=before, limit=limit)
    more = stored[-1].submitted_at if len(stored) == limit else None
    return JobList(jobs=[JobSummary.of(record) for record in platform.current(stored)], before=more)


@router.get("/jobs/{job_id}", tags=["jobs"])
def job(job_id: JobId, platform: PlatformOf, identity: MayView) -> JobView:
    """Returns all details of a job. Values of its environment variables are shown only to tokens that may run jobs."""
    return JobView.of(platform.manager.job(job_id), values=identity.may("run"))


@router.delete("/jobs/{job_id}", tags=["jobs"], status_code=204)
def delete(job_id: JobId, platform: PlatformOf, identity: MayRun) -> Response:
    """Deletes a finished job with its history and logs. Its checkpoint and log folders stay."""
    platform.manager.delete(job_id)
    return Response(status_code=204)


@router.post("/jobs/{job_id}/stop", tags=["jobs"])
def stop(job_id: JobId, platform: PlatformOf, identity: MayRun, request: StopRequest | None = None) -> JobView:
    """Requests a graceful stop of all tasks of a job."""
    requeue = request is not None and request.requeue
    return JobView.of(platform.manager.apply_request(job_id, AskStop(identity.name, requeue)))


@router.post("/jobs/{job_id}/restart", tags=["jobs"])
def restart(job_id: JobId, platform: PlatformOf, identity: MayRun) -> JobView:
    """Restarts all tasks of a job, also of a finished one."""
    return JobView.of(platform.manager.apply_request(job_id, AskRestart(identity.name)))


@router.post("/jobs/{job_id}/scale", tags=["jobs"])
def scale(job_id: JobId, request: ScaleRequest, platform: PlatformOf, identity: MayRun) -> JobView:
    """Changes the number of workers, of parameter servers, or of both."""
    return JobView.of(platform.manager.apply_request(job_id, AskScale(identity.name, request.workers, ps=request.ps)))


@router.get("/jobs/{job_id}/events", tags=["jobs"])
def job_events(
    job_id: JobId,
    platform: PlatformOf,
    identity: MayView,
    after: Annotated[int, Query(ge=0, lt=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 1000,
) -> list[EventView]:
    """Lists a job's events with their reasons, the oldest first."""
    platform.manager.job(job_id)
    return [EventView.of(event) for event in platform.store.events(job_id=job_id, after=after, limit=limit)]


@router.get("/events", tags=["jobs"])
def events(
    platform: PlatformOf,
    identity: MayView,
    after: Annotated[int, Query(ge=0, lt=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 1000,
) -> list[EventView]:
    """Lists the events of all jobs, the oldest first."""
    return [EventView.of(event) for event in platform.store.events(after=after, limit=limit)]


@router.get("/jobs/{job_id}/attempts", tags=["jobs"])
def attempts(job_id: JobId, platform: PlatformOf, identity: MayView) -> list[AttemptView]:
    """Lists the attempts of a job's tasks with exit codes and reasons, the latest first."""
    platform.manager.job(job_id)
    return [AttemptView.of(attempt) for attempt in platform.store.attempts(job_id)]


@router.get("/jobs/{job_id}/samples", tags=["jobs"])
def samples(
    job_id: JobId, platform: PlatformOf, identity: MayView, after: Annotated[float, Query(ge=0, le=1e11)] = 0.0
) -> list[SampleView]:
    """Lists speed and resource usage of a job's tasks over time."""
    platform.manager.job(job_id)
    return [SampleView.of(sample) for sample in platform.store.samples(job_id, after=after)]


@router.get("/jobs/{job_id}/logs/{task}", tags=["jobs"])
def log(
    job_id: JobId,
    task: TaskPart,
    platform: PlatformOf,
    identity: MayView,
    offset: Annotated[int, Query(ge=-(2**53), lt=2**53, description="In bytes; negative from the end.")] = 0,
    tail: Annotated[int | None, Query(ge=0, le=100_000, description="Instead, number of last lines to return.")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PART, description="Maximum number of bytes.")] = MAX_PART,
    times: Annotated[bool, Query(description="With the time before each line.")] = False,
) -> LogView:
    """Returns a part of a task's log. Offsets and sizes refer to the stored log, which has a time before each line."""
    check_task(platform.manager.job(job_id), task)
    part = read_part(platform.settings.log_path(job_id, task), offset=offset, tail=tail, limit=limit)
    text = plain(part.data, times=times)
    return LogView(task=task, text=text, offset=part.offset, next_offset=part.offset + len(part.data), size=part.size)


@router.get("/jobs/{job_id}/search", tags=["jobs"])
def search_logs(
    job_id: JobId,
    platform: PlatformOf,
    identity: MayView,
    text: Annotated[str, Query(min_length=1, max_length=200, description="Part of a line, case-insensitive.")],
    task: TaskQuery = None,
    cursor: Annotated[
        str | None, Query(max_length=40, pattern=CURSOR, description="The cursor in the previous response.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="Maximum number of lines.")] = 200,
) -> FoundView:
    """Finds the lines with a text in the logs of a job's tasks, task after task."""
    record = platform.manager.job(job_id)
    if task is not None:
        check_task(record, task)
    names = task_names(record) if task is None else [task]
    return find_lines(platform.settings, job_id, names, text, cursor=cursor, limit=limit)


@router.get(
    "/jobs/{job_id}/download",
    tags=["jobs"],
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def download_logs(
    job_id: JobId,
    platform: PlatformOf,
    identity: MayView,
    task: TaskQuery = None,
    times: Annotated[bool, Query(description="With the time before each line.")] = True,
) -> StreamingResponse:
    """Returns the whole log of a task, or of all tasks merged by time, as one file."""
    record = platform.manager.job(job_id)
    if task is not None:
        check_task(record, task)
    names = task_names(record) if task is None else [task]
    headers = {"Content-Disposition": f'attachment; filename="{job_id}{f"-{task}" if task else ""}.log"'}
    lines = whole_log(platform.settings, job_id, names, times=times)
    return StreamingResponse(lines, media_type="text/plain; charset=utf-8", headers=headers)


@router.get("/secrets", tags=["secrets"])
def secrets(platform: PlatformOf, identity: MayRun) -> list[SecretView]:
    """Lists all secrets, without their values, which are never shown."""
    return [SecretView.of(secret) for secret in platform.secrets.all()]


@router.put("/secrets/{name}", tags=["secrets"])
def put_secret(
    name: Annotated[SecretName, Path()], request: SecretRequest, platform: PlatformOf, identity: MayRun
) -> SecretView:
    """Stores a secret, replacing a secret of the same name. Tasks that start from now on get the new value."""
    try:
        return SecretView.of(platform.secrets.put(name, request.value, identity.name))
    except SecretError as error:
        raise Refused(422, str(error)) from error


@router.delete("/secrets/{name}", tags=["secrets"], status_code=204)
def delete_secret(name: Annotated[SecretName, Path()], platform: PlatformOf, identity: MayRun) -> Response:
    """Deletes a secret; refused while an unfinished job names it."""
    platform.manager.free_secret(name)
    if not platform.secrets.delete(name):
        raise Refused(404, f"there is no secret {name!r}")
    return Response(status_code=204)


@router.get("/tokens", tags=["tokens"])
def tokens(platform: PlatformOf, identity: MayAdmin) -> list[TokenView]:
    """Lists all tokens."""
    return [TokenView.of(token) for token in platform.auth.tokens()]


@router.post("/tokens", tags=["tokens"], status_code=201)
def issue_token(request: TokenRequest, platform: PlatformOf, identity: MayAdmin) -> NewTokenView:
    """Issues a new token. Its secret is in the response, and never shown again."""
    token, secret = platform.auth.issue_token(request.name, request.role, valid_s=request.valid_s)
    return NewTokenView(**TokenView.of(token).model_dump(), secret=secret)


@router.delete("/tokens/{token_id}", tags=["tokens"], status_code=204)
def revoke_token(
    token_id: Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")], platform: PlatformOf, identity: MayAdmin
) -> Response:
    """Revokes a token and the sessions that it opened."""
    if not platform.auth.revoke_token(token_id):
        raise Refused(404, f"there is no token {token_id}")
    return Response(status_code=204)


def check_task(record: JobRecord, task: str) -> None:
    """Raises `Refused` (404) if a job has no such task."""
    known = task_names(record)
    if task not in known:
        raise Refused(404, f"job {record.id} has no task {task}; it has {', '.join(known[:20])}")


def task_names(record: JobRecord) -> Sequence[str]:
    """Returns the labels of a job's tasks, as used in logs and events."""
    return [task.label for task in record.state.tasks.values()]


def _spec_error(error: JobSpecError) -> ErrorView:
    return ErrorView.model_validate({"message": str(error), "problems": list(error.problems)}, from_attributes=True)
