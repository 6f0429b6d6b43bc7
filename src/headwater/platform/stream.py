"""Live events and logs, as server-sent events.

A client that reconnects sends the last event's id as ``Last-Event-ID``, and misses no event.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import APIRouter, Header, Query
from sse_starlette import EventSourceResponse
from starlette.concurrency import run_in_threadpool

from headwater.platform.access import MayView, PlatformOf
from headwater.platform.api import JobId, check_task, task_names
from headwater.platform.logfiles import Follower, in_order
from headwater.platform.manager import NoSuchJob
from headwater.platform.records import JobRecord
from headwater.platform.service import Platform
from headwater.platform.views import ErrorView, EventView, JobView

# Log files are polled, since their growth is not signalled.
_LOG_INTERVAL_S = 0.25
_EVENT_INTERVAL_S = 15.0
_JOB_INTERVAL_S = 1.0

_STREAM: dict[int | str, dict[str, object]] = {
    200: {"description": "Server-sent events.", "content": {"text/event-stream": {"schema": {"type": "string"}}}},
    **{status: {"model": ErrorView} for status in (400, 401, 403, 404, 422, 429)},
}
router: APIRouter = APIRouter(responses=_STREAM, default_response_class=EventSourceResponse)

LastEvent = Annotated[int, Header(alias="Last-Event-ID", ge=0, lt=2**53)]


@router.get("/events/stream", tags=["jobs"])
async def stream_events(platform: PlatformOf, identity: MayView, last: LastEvent = 0) -> EventSourceResponse:
    """Streams events of all jobs: from now on, or after the event with the id ``Last-Event-ID``."""
    after = last or await run_in_threadpool(platform.store.last_event)
    return EventSourceResponse(_events(platform, None, after, values=False))


@router.get("/jobs/{job_id}/stream", tags=["jobs"])
async def stream_job(
    job_id: JobId, platform: PlatformOf, identity: MayView, last: LastEvent = 0
) -> EventSourceResponse:
    """Streams a job: ``event: event`` for its events from the first one, ``event: job`` for its state, once a second.

    The stream ends when the job is over.
    """
    await run_in_threadpool(platform.manager.job, job_id)
    return EventSourceResponse(_events(platform, job_id, last, values=identity.may("run")))


@router.get("/jobs/{job_id}/logs", tags=["jobs"])
async def stream_logs(
    job_id: JobId,
    platform: PlatformOf,
    identity: MayView,
    task: Annotated[str | None, Query(max_length=40, description="Only logs of this task, e.g. worker-0.")] = None,
    tail: Annotated[int | None, Query(ge=0, le=100_000, description="Number of earlier lines to send.")] = None,
    follow: Annotated[bool, Query(description="Follow until the job is over.")] = True,
) -> EventSourceResponse:
    """Streams the output of a job's tasks, merged by time: ``{"task": "ps-0", "at": ..., "line": "..."}`` per line.

    ``at`` is in seconds since 1970 by the clock of the task's host. With ``tail``, the stream begins with this number
    of last lines of all tasks together.
    """
    record = await run_in_threadpool(platform.manager.job, job_id)
    if task is not None:
        check_task(record, task)
    return EventSourceResponse(_lines(platform, job_id, task, tail, follow))


async def _events(
    platform: Platform, job_id: str | None, after: int, *, values: bool
) -> AsyncGenerator[dict[str, str]]:
    shown = ""
    async with platform.feed.listen() as changed:
        while not platform.feed.closing:
            record = await _job(platform, job_id) if job_id is not None else None
            events = await run_in_threadpool(platform.store.events, job_id=job_id, after=after)
            for event in events:
                after = event.id
                yield {"event": "event", "id": str(event.id), "data": EventView.of(event).model_dump_json()}
            if job_id is not None:
                if record is None:
                    return
                view = JobView.of(record, values=values).model_dump_json()
                if view != shown:
                    shown = view
                    yield {"event": "job", "data": view}
                if record.state.phase.over and not events:
                    return
            if not events:
                await platform.feed.wait(changed, _EVENT_INTERVAL_S if job_id is None else _JOB_INTERVAL_S)


async def _lines(
    platform: Platform, job_id: str, only: str | None, tail: int | None, follow: bool
) -> AsyncGenerator[dict[str, str]]:
    followers: dict[str, Follower] = {}
    first = True
    async with platform.feed.listen() as changed:
        while not platform.feed.closing:
            # Read the job before its logs: if the job is over at this point, the logs that are read next are complete.
            record = await _job(platform, job_id)
            if record is None:
                return
            last = not follow or record.state.phase.over
            names = [name for name in task_names(record) if only in (None, name)]
            for name in names:
                if name not in followers:
                    path = platform.settings.log_path(job_id, name)
                    followers[name] = await run_in_threadpool(Follower, path, tail=tail)
            lines = {name: await run_in_threadpool(followers[name].lines) for name in names}
            more = any(lines.values())
            if last and not more:
                lines = {name: followers[name].close() for name in names}
            shown = list(in_order(lines))
            for name, line in shown[-tail:] if first and tail else shown:
                yield {"data": json.dumps({"task": name, "at": line.at, "line": line.text})}
            first = False
            if last and not more:
                return
            if not more:
                await platform.feed.wait(changed, _LOG_INTERVAL_S)


async def _job(platform: Platform, job_id: str) -> JobRecord | None:
    try:
        return await run_in_threadpool(platform.manager.job, job_id)
    except NoSuchJob:  # the job was deleted while a client watched it
        return None
