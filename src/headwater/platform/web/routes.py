"""All routes of the page, for `headwater.platform.app.create_app`."""

from __future__ import annotations

from fastapi import APIRouter

from headwater.platform.web import metrics, pages, proxy
from headwater.platform.web.parts import lifespan


def _router() -> APIRouter:
    router = APIRouter(lifespan=lifespan)
    for part in (pages.router, proxy.router, metrics.router):
        router.include_router(part)
    return router


ROUTERS = (_router(),)
"""The routers that a server adds to its API."""
