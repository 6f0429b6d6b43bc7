"""Resources that the page holds for the lifetime of the server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

import httpx
from fastapi import Depends, FastAPI, Request
from starlette.concurrency import run_in_threadpool

from headwater.platform.web.tensorboards import TensorBoards

_IDLE_INTERVAL_S = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """Resources of the page.

    Attributes:
      boards: starts and ends TensorBoards.
      http: sends requests to the TensorBoards.
    """

    boards: TensorBoards
    http: httpx.AsyncClient


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    """Holds the resources while the application runs."""
    async with httpx.AsyncClient(trust_env=False, timeout=60.0, follow_redirects=False) as http:
        parts = Parts(boards=TensorBoards(), http=http)
        app.state.parts = parts
        reaper = asyncio.create_task(_forget_idle(parts.boards))
        try:
            yield
        finally:
            reaper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reaper
            await run_in_threadpool(parts.boards.close)


async def _forget_idle(boards: TensorBoards) -> None:
    while True:
        await asyncio.sleep(_IDLE_INTERVAL_S)
        await run_in_threadpool(boards.forget_idle)


def _parts_of(request: Request) -> Parts:
    parts: Parts = request.app.state.parts
    return parts


PartsOf = Annotated[Parts, Depends(_parts_of)]
