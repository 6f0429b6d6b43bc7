"""The application: its routes, the middleware in front of them, and the mapping from errors to responses."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import OperationalError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import headwater
from headwater.cluster.telemetry.troubles import is_full_disk
from headwater.data.io.json_types import Json, JsonObject
from headwater.errors import OpError
from headwater.platform import api, stream
from headwater.platform.access import SAFE_METHODS
from headwater.platform.archive_store import TooLarge
from headwater.platform.archives import ArchiveError
from headwater.platform.backends.base import BackendError
from headwater.platform.errors import Refused
from headwater.platform.job_file import JobSpecError, Problem, format_path
from headwater.platform.manager import NoSuchJob
from headwater.platform.policy import NotPossible
from headwater.platform.service import Platform
from headwater.platform.spec import JobSpec

PREFIX = "/api/v1"
MAX_BODY = 2 << 20
_ARCHIVES = f"{PREFIX}/archives"


def create_app(platform: Platform, routers: Sequence[APIRouter] = ()) -> FastAPI:
    """Creates the application of a server.

    Args:
      platform: the state that the routes show and change.
      routers: further routes, such as the web page's.
    """

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncGenerator[None]:
        async with platform.feed.run():
            yield

    app = FastAPI(
        title="Headwater",
        version=headwater.__version__,
        summary="Jobs of distributed training: submit, watch, restart, scale.",
        lifespan=lifespan,
        openapi_url=f"{PREFIX}/openapi.json",
        # FastAPI's documentation pages load scripts from other sites.
        docs_url=None,
        redoc_url=None,
    )
    app.state.platform = platform
    app.include_router(stream.router, prefix=PREFIX)
    app.include_router(api.router, prefix=PREFIX)
    for router in routers:
        app.include_router(router)
    _handle_errors(app)
    _describe_jobs(app)
    app.add_middleware(_Guard, platform=platform)
    return app


class _Guard:
    """Refuses requests that are too large, and cross-site requests."""

    def __init__(self, app: ASGIApp, platform: Platform) -> None:
        self._app = app
        self._platform = platform

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._foreign(scope, headers)
        # Archives may be larger; the archive store counts their bytes.
        limit = None if scope["path"] == _ARCHIVES else MAX_BODY
        length = headers.get("content-length", "0")
        if refusal is None and limit is not None and (not length.isdigit() or int(length) > limit):
            refusal = (413, f"the request has {length} bytes, more than {limit}")
        if refusal is not None:
            response = JSONResponse({"message": refusal[1], "problems": []}, refusal[0])
            await response(scope, receive, send)
            return
        await self._app(scope, receive if limit is None else _counted(receive, limit), send)

    def _foreign(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        host = headers.get("host", "")
        if not self._platform.auth.required and _name(host) not in self._platform.hosts:
            # DNS rebinding: an attacker's name that resolves to this address would make a foreign page same-origin.
            return 400, f"this server does not have the name {host!r}"
        if scope["method"] in SAFE_METHODS:
            return None
        origin = headers.get("origin")
        foreign = origin is not None and urlsplit(origin).netloc != host
        if foreign or headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            return 403, "requests that change something are not accepted from other sites"
        return None


def _name(host: str) -> str:
    name, separator, port = host.rpartition(":")
    return name if separator and port.isdigit() else host


def _counted(receive: Receive, limit: int) -> Receive:
    size = 0

    async def counted() -> Message:
        nonlocal size
        message = await receive()
        # The declared length may be missing or wrong, so the received bytes are counted as well.
        size += len(message.get("body", b""))
        if size > limit:
            raise Refused(413, f"the request has more than {limit} bytes")
        return message

    return counted


def _handle_errors(app: FastAPI) -> None:
    def answer(
        status: int, message: str, problems: Sequence[Problem] = (), headers: Mapping[str, str] | None = None
    ) -> JSONResponse:
        shown = [{"field": item.field, "line": item.line, "message": item.message} for item in problems]
        return JSONResponse({"message": message, "problems": shown}, status, headers)

    def refused(error: Refused) -> JSONResponse:
        return answer(error.status, str(error), error.problems, error.headers)

    def wrong_job(error: JobSpecError) -> JSONResponse:
        return answer(422, str(error), error.problems)

    def unknown(error: HTTPException) -> JSONResponse:
        return answer(error.status_code, str(error.detail), headers=error.headers)

    def handler(error: type[Exception], handle: Callable[[Any], JSONResponse]) -> None:
        async def handled(_request: Request, raised: Exception) -> JSONResponse:
            return handle(raised)

        app.add_exception_handler(error, handled)

    def wrong_fields(error: RequestValidationError) -> JSONResponse:
        problems = [_problem(entry) for entry in error.errors()]
        return answer(422, "; ".join(f"{item.field}: {item.message}" for item in problems), problems)

    def failed_to_write(error: Exception) -> JSONResponse:
        if not is_full_disk(error):
            raise error
        return answer(507, "the server's disk is full: nothing was changed; make room and try again")

    for kind in (OSError, OpError, OperationalError):
        handler(kind, failed_to_write)
    handler(Refused, refused)
    handler(JobSpecError, wrong_job)
    handler(NoSuchJob, lambda error: answer(404, str(error.args[0])))
    handler(NotPossible, lambda error: answer(409, str(error)))
    handler(BackendError, lambda error: answer(503, str(error)))
    handler(TooLarge, lambda error: answer(413, str(error)))
    handler(ArchiveError, lambda error: answer(422, str(error)))
    handler(RequestValidationError, wrong_fields)
    handler(HTTPException, unknown)


def _problem(entry: Json) -> Problem:
    path = tuple(part for part in entry["loc"] if part not in ("body", "query", "path", "header"))
    return Problem(field=format_path(path), line=None, message=entry["msg"])


def _describe_jobs(app: FastAPI) -> None:
    """Adds the models of a job's parts, which the body of a submission refers to, to the OpenAPI description."""
    describe = app.openapi

    def described() -> JsonObject:
        if app.openapi_schema is None:
            schema = describe()
            parts = JobSpec.model_json_schema(ref_template="#/components/schemas/{model}")["$defs"]
            schema["components"]["schemas"].update(json.loads(json.dumps(parts)))
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = described
