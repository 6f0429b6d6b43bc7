"""The pages: sign-in, the list of jobs, the comparison of jobs, the form for a new job, the page of a job."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import yaml
from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import StringConstraints

from headwater.data.io.json_types import Json, JsonObject
from headwater.platform.access import SESSION_COOKIE, PlatformOf, check_rate, client_of
from headwater.platform.api import JobId
from headwater.platform.auth import SESSION_S, Requester
from headwater.platform.errors import Refused
from headwater.platform.service import Platform
from headwater.platform.states import AskRestart, AskScale, AskStop, JobPhase, label
from headwater.platform.views import EventView, JobSummary, JobView
from headwater.platform.web.forms import DEFAULTS, ROLES, draft
from headwater.platform.web.picture import BOX_HEIGHT, BOX_WIDTH, draw
from headwater.platform.web.rendering import CSRF_COOKIE, render
from headwater.platform.web.routing import SIGN_IN, Form, PageRoute, Runner, Visitor, redirect

router: APIRouter = APIRouter(route_class=PageRoute, include_in_schema=False)

_STATIC = Path(__file__).with_name("static")
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".txt": "text/plain"}
_FILES = {path.name: path for path in _STATIC.iterdir()}
_JOBS_PER_PAGE = 50
_MAX_SEARCHED = 1000
_MAX_COMPARED = 8
_EVENTS = 200

JobName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]{1,64}$")]
_SORTS: dict[str, tuple[str, Callable[[JobSummary], Any]]] = {
    "latest": ("latest first", lambda job: -job.submitted_at),
    "name": ("name", lambda job: (job.name, -job.submitted_at)),
    "state": ("state", lambda job: (job.phase.value, -job.submitted_at)),
    "step": ("furthest step", lambda job: -(job.step or 0)),
    "loss": ("lowest loss", lambda job: _loss(job)),
    "time": ("longest run", lambda job: (job.started_at or math.inf) - (job.ended_at or time.time())),
}
Before = Annotated[float | None, Query(ge=0, le=1e11)]


@router.get("/static/{name}")
def static(name: str) -> Response:
    """Returns a style sheet, a script or an image."""
    path = _FILES.get(name)
    if path is None:
        raise Refused(404, f"there is no file {name}")
    headers = {"Cache-Control": "no-cache"}
    return Response(path.read_bytes(), media_type=_TYPES.get(path.suffix, "application/octet-stream"), headers=headers)


@router.get(SIGN_IN)
def sign_in_page(request: Request, platform: PlatformOf, next: str = "/") -> Response:
    """Returns the sign-in page."""
    if not platform.auth.required:
        return redirect("/")
    return render(request, "sign_in.html", next=_safe_path(next), problem="")


@router.post(SIGN_IN)
def sign_in(request: Request, platform: PlatformOf, form: Form) -> Response:
    """Opens a session for the owner of a token."""
    target = _safe_path(form.get("next", "/"))
    opened = platform.auth.open_session(form.get("token", "").strip())
    if opened is None:
        check_rate(platform.failures.acquire(client_of(request)), "too many wrong tokens")
        return render(request, "sign_in.html", status=403, next=target, problem="This token is not valid.")
    response = redirect(target)
    for name, value in ((SESSION_COOKIE, opened.secret), (CSRF_COOKIE, opened.csrf)):
        response.set_cookie(
            name, value, max_age=int(SESSION_S), httponly=True, samesite="strict", secure=request.url.scheme == "https"
        )
    return response


@router.post("/sign-out")
def sign_out(request: Request, platform: PlatformOf, identity: Visitor) -> Response:
    """Closes the session."""
    platform.auth.close_session(request.cookies.get(SESSION_COOKIE, ""))
    response = _redirect(SIGN_IN)
    for name in (SESSION_COOKIE, CSRF_COOKIE):
        response.delete_cookie(name)
    return response


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """Filters and order of a list of jobs.

    Attributes:
      q: part of a name, an id or an owner.
      phase: only jobs in this phase; empty for all.
      backend: only jobs of this backend; empty for all.
      sort: one of `_SORTS`.
    """

    q: str = ""
    phase: str = ""
    backend: str = ""
    sort: str = "latest"

    @property
    def is_filtered(self) -> bool:
        """Whether the filters may exclude jobs."""
        return bool(self.q or self.phase or self.backend)


def _wanted(
    q: Annotated[str, Query(max_length=100)] = "",
    phase: Annotated[str, Query(max_length=20)] = "",
    backend: Annotated[str, Query(max_length=20)] = "",
    sort: Annotated[str, Query(max_length=20)] = "latest",
) -> Wanted:
    return Wanted(q=q.strip(), phase=phase, backend=backend, sort=sort)


WantedJobs = Annotated[Wanted, Depends(_wanted)]


@router.get("/")
def jobs(
    request: Request, platform: PlatformOf, identity: Visitor, wanted: WantedJobs, before: Before = None
) -> Response:
    """Returns the list of jobs, the latest first unless another order is chosen."""
    return render(
        request,
        "jobs.html",
        identity=identity,
        phases=[phase.value for phase in JobPhase],
        backends=list(platform.manager.lanes),
        sorts=[(name, title) for name, (title, _) in _SORTS.items()],
        **_listed(platform, identity, wanted, before),
    )


@router.get("/rows")
def rows(
    request: Request, platform: PlatformOf, identity: Visitor, wanted: WantedJobs, before: Before = None
) -> Response:
    """Returns the current list without the page around it."""
    return render(request, "rows.html", **_listed(platform, identity, wanted, before))


@router.get("/compare")
def compare(
    request: Request,
    platform: PlatformOf,
    identity: Visitor,
    job: Annotated[list[JobName] | None, Query(max_length=_MAX_COMPARED)] = None,
) -> Response:
    """Returns a page with the curves of several jobs in one plot."""
    records = [platform.manager.job(job_id) for job_id in dict.fromkeys(job or ())]
    names = sorted({name for record in records for name in record.settings})
    labels = [
        {"id": record.id, "label": ", ".join(f"{name}={value}" for name, value in record.settings.items()) or record.id}
        for record in records
    ]
    return render(
        request,
        "compare.html",
        identity=identity,
        jobs=[JobSummary.of(record) for record in records],
        names=names,
        settings={record.id: record.settings for record in records},
        labels=labels,
    )


@router.get("/new")
def new(request: Request, platform: PlatformOf, identity: Runner) -> Response:
    """Returns the form for a new job."""
    return _form_page(request, platform, identity, DEFAULTS)


@router.post("/new/preview")
def preview(request: Request, identity: Runner, form: Form) -> Response:
    """Returns the job file that the form describes, and the form's problems."""
    return render(request, "preview.html", draft=draft(form))


@router.post("/new")
def submit(request: Request, platform: PlatformOf, identity: Runner, form: Form) -> Response:
    """Submits the job of the form."""
    result = draft(form)
    if result.spec is None:
        return render(request, "preview.html", status=422, draft=result)
    archive = form.get("archive.digest") if result.spec.archive is not None else None
    record = platform.submit(result.spec, owner=identity.name, archive=archive or None)
    return _redirect(f"/jobs/{record.id}")


@router.get("/jobs/{job_id}")
def job(request: Request, job_id: JobId, platform: PlatformOf, identity: Visitor) -> Response:
    """Returns the page of a job."""
    return render(request, "job.html", identity=identity, **_shown(platform, identity, job_id))


@router.get("/jobs/{job_id}/overview")
def overview(request: Request, job_id: JobId, platform: PlatformOf, identity: Visitor) -> Response:
    """Returns the changing part of a job's page: its state, its cluster, its events."""
    return render(request, "overview.html", identity=identity, **_shown(platform, identity, job_id))


@router.post("/jobs/{job_id}/stop")
def stop(job_id: JobId, platform: PlatformOf, identity: Runner) -> Response:
    """Requests a graceful stop of all tasks of a job."""
    platform.manager.apply_request(job_id, AskStop(identity.name))
    return _notify_script()


@router.post("/jobs/{job_id}/restart")
def restart(job_id: JobId, platform: PlatformOf, identity: Runner) -> Response:
    """Restarts all tasks of a job."""
    platform.manager.apply_request(job_id, AskRestart(identity.name))
    return _notify_script()


@router.post("/jobs/{job_id}/scale")
def scale(job_id: JobId, platform: PlatformOf, identity: Runner, form: Form) -> Response:
    """Changes the number of workers of a job."""
    workers = form.get("workers", "")
    if not workers.isdecimal() or len(workers) > 4:
        raise Refused(422, f"workers must be a number, but is {workers!r}")
    platform.manager.apply_request(job_id, AskScale(identity.name, int(workers)))
    return _notify_script()


@router.post("/jobs/{job_id}/delete")
def delete(job_id: JobId, platform: PlatformOf, identity: Runner) -> Response:
    """Deletes a finished job, with its logs."""
    platform.manager.delete(job_id)
    return _redirect("/")


def _listed(platform: Platform, identity: Requester, wanted: Wanted, before: float | None) -> JsonObject:
    plain = wanted == Wanted()
    # Searching and sorting need more than one page of jobs, so look further back.
    stored = platform.store.jobs(before=before, limit=_JOBS_PER_PAGE if plain else _MAX_SEARCHED)
    shown = [JobSummary.of(record) for record in platform.current(stored)]
    if not plain:
        _, key = _SORTS.get(wanted.sort, _SORTS["latest"])
        shown = sorted((view for view in shown if _is_wanted(view, wanted)), key=key)[:_JOBS_PER_PAGE]
    return {
        "jobs": shown,
        "before": before,
        "older": stored[-1].submitted_at if plain and len(stored) == _JOBS_PER_PAGE else None,
        "counts": platform.store.counts(),
        "wanted": wanted,
        "filtered": wanted.is_filtered,
        "may_run": identity.may("run"),
    }


def _is_wanted(job: JobSummary, wanted: Wanted) -> bool:
    text = wanted.q.lower()
    return (
        (not text or text in job.id.lower() or text in job.owner.lower())
        and wanted.phase in ("", job.phase.value)
        and wanted.backend in ("", job.backend)
    )


def _loss(job: JobSummary) -> float:
    return job.loss if isinstance(job.loss, float) else math.inf


def _shown(platform: Platform, identity: Requester, job_id: str) -> JsonObject:
    record = platform.manager.job(job_id)
    view = JobView.of(record, values=identity.may("run"))
    events = platform.store.events(job_id=job_id, limit=_EVENTS, latest_first=True)
    workers = record.state.spec.workers.count
    return {
        "job": view,
        "picture": draw(view, {label(name): activity for name, activity in record.activities.items()}),
        "size": (BOX_WIDTH, BOX_HEIGHT),
        "events": [EventView.of(event) for event in events],
        "workers": workers,
        "log_dir": record.state.spec.log_dir,
        "text": yaml.safe_dump(view.spec, sort_keys=False, allow_unicode=True),
    }


def _form_page(request: Request, platform: Platform, identity: object, fields: Json) -> Response:
    return render(
        request,
        "new.html",
        identity=identity,
        fields=fields,
        roles=ROLES,
        backends=list(platform.manager.lanes),
        default_backend=platform.manager.default_backend,
        max_archive_bytes=platform.archives.max_bytes,
        draft=draft(fields),
        fresh=True,
    )


def _safe_path(target: str) -> str:
    """Returns ``target`` if it is a path of this site, else the first page: an open redirect would help phishing."""
    return target if target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable() else "/"


def _redirect(target: str) -> Response:
    """Answers a request of the page's script (htmx): the browser then loads ``target``."""
    return Response(status_code=204, headers={"HX-Redirect": target})


def _notify_script() -> Response:
    """Notifies the script that the displayed job has changed."""
    return Response(status_code=204, headers={"HX-Trigger": "headwater:changed"})
