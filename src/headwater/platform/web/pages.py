"""The pages: signing in and out, the list of jobs, the form for a new one, a job."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import yaml
from fastapi import APIRouter, Query, Request, Response

from headwater.platform.access import SESSION_COOKIE, PlatformOf, check_rate, client_of
from headwater.platform.api import JobId
from headwater.platform.auth import SESSION_S
from headwater.platform.errors import Refused
from headwater.platform.service import Platform
from headwater.platform.states import AskRestart, AskScale, AskStop, label
from headwater.platform.views import EventView, JobSummary, JobView
from headwater.platform.web.forms import DEFAULTS, ROLES, draft
from headwater.platform.web.picture import BOX_HEIGHT, BOX_WIDTH, draw
from headwater.platform.web.rendering import CSRF_COOKIE, render
from headwater.platform.web.routing import SIGN_IN, Form, PageRoute, Runner, Visitor, redirect

router: APIRouter = APIRouter(route_class=PageRoute, include_in_schema=False)

_STATIC = Path(__file__).with_name("static")
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".txt": "text/plain"}
_FILES = {path.name: path for path in _STATIC.iterdir()}
_ON_PAGE = 50
_EVENTS = 200

Before = Annotated[float | None, Query(ge=0, le=1e11)]


@router.get("/static/{name}")
def static(name: str) -> Response:
    """A style sheet, a script, a picture."""
    path = _FILES.get(name)
    if path is None:
        raise Refused(404, f"there is no file {name}")
    headers = {"Cache-Control": "no-cache"}
    return Response(path.read_bytes(), media_type=_TYPES.get(path.suffix, "application/octet-stream"), headers=headers)


@router.get(SIGN_IN)
def sign_in_page(request: Request, platform: PlatformOf, next: str = "/") -> Response:
    """The form that asks for a token."""
    if not platform.auth.required:
        return redirect("/")
    return render(request, "sign_in.html", next=_own(next), problem="")


@router.post(SIGN_IN)
def sign_in(request: Request, platform: PlatformOf, form: Form) -> Response:
    """Opens a session for whoever shows a token."""
    target = _own(form.get("next", "/"))
    opened = platform.auth.open_session(form.get("token", "").strip())
    if opened is None:
        check_rate(platform.failures.take(client_of(request)), "too many wrong tokens")
        return render(request, "sign_in.html", status=403, next=target, problem="This token is not valid.")
    response = redirect(target)
    for name, value in ((SESSION_COOKIE, opened.secret), (CSRF_COOKIE, opened.csrf)):
        response.set_cookie(
            name, value, max_age=int(SESSION_S), httponly=True, samesite="strict", secure=request.url.scheme == "https"
        )
    return response


@router.post("/sign-out")
def sign_out(request: Request, platform: PlatformOf, identity: Visitor) -> Response:
    """Ends the session."""
    platform.auth.close_session(request.cookies.get(SESSION_COOKIE, ""))
    response = _go(SIGN_IN)
    for name in (SESSION_COOKIE, CSRF_COOKIE):
        response.delete_cookie(name)
    return response


@router.get("/")
def jobs(request: Request, platform: PlatformOf, identity: Visitor, before: Before = None) -> Response:
    """All jobs, the latest first."""
    return render(request, "jobs.html", identity=identity, **_listed(platform, before))


@router.get("/rows")
def rows(request: Request, platform: PlatformOf, identity: Visitor, before: Before = None) -> Response:
    """The list alone, as it is now."""
    return render(request, "rows.html", **_listed(platform, before))


@router.get("/new")
def new(request: Request, platform: PlatformOf, identity: Runner) -> Response:
    """The form for a new job."""
    return _form_page(request, platform, identity, DEFAULTS)


@router.post("/new/preview")
def preview(request: Request, identity: Runner, form: Form) -> Response:
    """The job file that says what the form says, and what is wrong with it."""
    return render(request, "preview.html", draft=draft(form))


@router.post("/new")
def submit(request: Request, platform: PlatformOf, identity: Runner, form: Form) -> Response:
    """Submits the form's job."""
    made = draft(form)
    if made.spec is None:
        return render(request, "preview.html", status=422, draft=made)
    archive = form.get("archive.digest") if made.spec.archive is not None else None
    record = platform.submit(made.spec, owner=identity.name, archive=archive or None)
    return _go(f"/jobs/{record.id}")


@router.get("/jobs/{job_id}")
def job(request: Request, job_id: JobId, platform: PlatformOf, identity: Visitor) -> Response:
    """A job."""
    return render(request, "job.html", identity=identity, **_shown(platform, job_id))


@router.get("/jobs/{job_id}/overview")
def overview(request: Request, job_id: JobId, platform: PlatformOf, identity: Visitor) -> Response:
    """The part of a job's page that changes: its state, its cluster, its events."""
    return render(request, "overview.html", identity=identity, **_shown(platform, job_id))


@router.post("/jobs/{job_id}/stop")
def stop(job_id: JobId, platform: PlatformOf, identity: Runner) -> Response:
    """Asks all tasks of a job to end."""
    platform.manager.ask(job_id, AskStop(identity.name))
    return _changed()


@router.post("/jobs/{job_id}/restart")
def restart(job_id: JobId, platform: PlatformOf, identity: Runner) -> Response:
    """Starts all tasks of a job anew."""
    platform.manager.ask(job_id, AskRestart(identity.name))
    return _changed()


@router.post("/jobs/{job_id}/scale")
def scale(job_id: JobId, platform: PlatformOf, identity: Runner, form: Form) -> Response:
    """Gives a job another number of workers."""
    workers = form.get("workers", "")
    if not workers.isdecimal() or len(workers) > 4:
        raise Refused(422, f"workers must be a number, but is {workers!r}")
    platform.manager.ask(job_id, AskScale(identity.name, int(workers)))
    return _changed()


@router.post("/jobs/{job_id}/delete")
def delete(job_id: JobId, platform: PlatformOf, identity: Runner) -> Response:
    """Forgets a job that is over, with its logs."""
    platform.manager.delete(job_id)
    return _go("/")


def _listed(platform: Platform, before: float | None) -> dict[str, Any]:
    found = platform.jobs(before=before, limit=_ON_PAGE)
    return {
        "jobs": [JobSummary.of(record) for record in found],
        "before": before,
        "older": found[-1].submitted_at if len(found) == _ON_PAGE else None,
        "counts": platform.store.counts(),
    }


def _shown(platform: Platform, job_id: str) -> dict[str, Any]:
    record = platform.manager.job(job_id)
    view = JobView.of(record)
    events = platform.store.events(job_id=job_id)
    workers = record.state.spec.workers.count
    return {
        "job": view,
        "picture": draw(view, {label(name): talk for name, talk in record.talks.items()}),
        "size": (BOX_WIDTH, BOX_HEIGHT),
        "events": [EventView.of(event) for event in reversed(events[-_EVENTS:])],
        "workers": workers,
        "log_dir": record.state.spec.log_dir,
        "text": yaml.safe_dump(view.spec, sort_keys=False, allow_unicode=True),
    }


def _form_page(request: Request, platform: Platform, identity: Any, fields: Any) -> Response:
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


def _own(target: str) -> str:
    """``target`` where it is a page of ours, else the first page."""
    return target if target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable() else "/"


def _go(target: str) -> Response:
    """Sends a page whose script asked elsewhere."""
    return Response(status_code=204, headers={"HX-Redirect": target})


def _changed() -> Response:
    """Tells the script that what it shows has changed."""
    return Response(status_code=204, headers={"HX-Trigger": "headwater:changed"})
