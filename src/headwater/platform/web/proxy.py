"""The proxy to a job's TensorBoard: it requires a session of the page, and does not forward the session's cookie."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Annotated

import httpx
from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from headwater.platform.access import SESSION_COOKIE, PlatformOf
from headwater.platform.api import JobId
from headwater.platform.errors import Refused
from headwater.platform.web.parts import PartsOf
from headwater.platform.web.routing import PageRoute, redirect

router: APIRouter = APIRouter(route_class=PageRoute, include_in_schema=False)

_PATH = "/jobs/{job_id}/tensorboard"
# Headers that are not forwarded: they concern one connection, contain the user's credentials, or are set by the proxy.
_NOT_PASSED = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "authorization",
        "cookie",
        "set-cookie",
        "host",
        "date",
        "server",
    }
)


def _require_session(request: Request, platform: PlatformOf) -> None:
    """Requires a session, but no CSRF secret: TensorBoard uses POST for reading, too, and has no requests that change
    anything."""
    session = request.cookies.get(SESSION_COOKIE, "")
    known = not platform.auth.required or platform.auth.identify_session(session, csrf=None, changes=False) is not None
    if not known:
        raise Refused(401, "sign in first")


@router.get(_PATH)
def without_slash(job_id: JobId) -> Response:
    """Redirects to the path with a slash."""
    return redirect(f"/jobs/{job_id}/tensorboard/")


@router.api_route(_PATH + "/{path:path}", methods=["GET", "HEAD", "POST"])
async def tensorboard(
    request: Request,
    job_id: JobId,
    path: str,
    platform: PlatformOf,
    parts: PartsOf,
    known: Annotated[None, Depends(_require_session)],
) -> Response:
    """Forwards a request to TensorBoard, which is started on demand."""
    record = await run_in_threadpool(platform.manager.job, job_id)
    folder = record.state.spec.log_dir
    if folder is None:
        raise Refused(404, f"{job_id} has no log_dir, so there is nothing for TensorBoard to show")
    prefix = f"/jobs/{job_id}/tensorboard"
    port = await run_in_threadpool(parts.boards.port, job_id, folder, prefix)
    asked = parts.http.build_request(
        request.method,
        httpx.URL(f"http://127.0.0.1:{port}{prefix}/{path}", query=request.url.query.encode()),
        headers=[(name, value) for name, value in request.headers.items() if name not in _NOT_PASSED],
        content=await request.body(),
    )
    try:
        answer = await parts.http.send(asked, stream=True)
    except httpx.HTTPError as error:
        raise Refused(503, f"the TensorBoard of {job_id} does not answer: {error}") from error
    headers = {name: value for name, value in answer.headers.items() if name not in _NOT_PASSED}
    return StreamingResponse(_body(answer), answer.status_code, headers)


async def _body(answer: httpx.Response) -> AsyncGenerator[bytes]:
    try:
        async for part in answer.aiter_raw():
            yield part
    finally:
        await answer.aclose()
