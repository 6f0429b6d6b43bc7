"""Handling of requests for the page: identification of users, and refusals as pages."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated
from urllib.parse import parse_qsl, quote

from fastapi import Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from headwater.platform.access import PlatformOf, identify
from headwater.platform.auth import Requester
from headwater.platform.backends.base import BackendError
from headwater.platform.errors import Refused
from headwater.platform.manager import NoSuchJob
from headwater.platform.policy import NotPossible
from headwater.platform.web.rendering import HEADERS, render

SIGN_IN = "/sign-in"
_UNAUTHORIZED = 401


class PageRoute(APIRoute):
    """A route that sets the page's headers, and answers refusals with pages, or with lines of text for scripts."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[object, object, Response]]:
        """Returns the handler of requests."""
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            try:
                response = await handle(request)
            except (Refused, NoSuchJob, NotPossible, BackendError, RequestValidationError) as error:
                response = _refusal(request, error)
            for name, value in HEADERS.items():
                response.headers.setdefault(name, value)
            return response

        return handled


def visitor(request: Request, platform: PlatformOf) -> Requester:
    """Returns the identity of the page's user; raises `Refused` without a valid session."""
    return identify(request, platform, None)


Visitor = Annotated[Requester, Depends(visitor)]


def _may_run(identity: Visitor) -> Requester:
    if not identity.may("run"):
        raise Refused(403, f"the token of {identity.name!r} permits viewing only")
    return identity


Runner = Annotated[Requester, Depends(_may_run)]


async def _form(request: Request) -> dict[str, str]:
    try:
        return dict(parse_qsl((await request.body()).decode(), keep_blank_values=True, max_num_fields=200))
    except ValueError as error:
        raise Refused(400, "the form cannot be read") from error


Form = Annotated[dict[str, str], Depends(_form)]
"""The fields of a form, URL-encoded as browsers send them by default."""


def redirect(to: str) -> Response:
    """Redirects a browser; the target is requested with GET."""
    return Response(status_code=303, headers={"Location": to})


def _refusal(request: Request, error: Exception) -> Response:
    status, headers = 409, {}
    match error:
        case Refused():
            status, headers = error.status, error.headers
        case NoSuchJob() | RequestValidationError():
            status = 404
        case BackendError():
            status = 503
        case _:
            pass
    scripted = "hx-request" in request.headers
    if status == _UNAUTHORIZED:
        target = SIGN_IN if scripted else f"{SIGN_IN}?next={quote(request.url.path, safe='/')}"
        return Response(status_code=401, headers={"HX-Redirect": target}) if scripted else redirect(target)
    message = str(error.args[0]) if isinstance(error, NoSuchJob) else str(error)
    if isinstance(error, RequestValidationError):
        message = "there is no such page"
    if scripted:
        return Response(message, status, headers, media_type="text/plain")
    response = render(request, "error.html", status=status, message=message)
    response.headers.update(headers)
    return response
