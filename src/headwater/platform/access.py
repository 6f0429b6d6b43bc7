"""Authentication and authorization of requests, as dependencies of routes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from headwater.platform.auth import ANYONE, Requester
from headwater.platform.errors import Refused
from headwater.platform.records import TokenRole
from headwater.platform.service import Platform

if TYPE_CHECKING:
    from headwater.data.io.json_types import JsonObject

SESSION_COOKIE = "headwater_session"
CSRF_HEADER = "x-csrf-token"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

_bearer = HTTPBearer(
    auto_error=False, description="A token that the server issued; headwater serve prints the first one."
)


def platform_of(request: Request) -> Platform:
    """Returns the platform of the application that handles the request."""
    platform: Platform = request.app.state.platform
    return platform


PlatformOf = Annotated[Platform, Depends(platform_of)]


def identify(
    request: Request,
    platform: PlatformOf,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
) -> Requester:
    """Returns the identity of the request's sender.

    Raises:
      Refused: the token is missing or unknown, or the client exceeds its rate limit.
    """
    client = client_of(request)
    # Only failures count against the address, so a valid token is never refused because other clients behind the same
    # proxy have tried wrong tokens.
    identity = _known(request, platform, credentials)
    if identity is None:
        if credentials is not None or SESSION_COOKIE in request.cookies:
            check_rate(platform.failures.acquire(client), "too many wrong tokens")
            raise _unknown("the token is unknown, expired or revoked")
        raise _unknown("a token is needed: send it as 'Authorization: Bearer TOKEN'")
    check_rate(platform.rate.acquire(identity.token_id or client), "too many requests")
    return identity


def _known(request: Request, platform: Platform, credentials: HTTPAuthorizationCredentials | None) -> Requester | None:
    if not platform.auth.required:
        return ANYONE
    if credentials is not None:
        return platform.auth.identify(credentials.credentials)
    session = request.cookies.get(SESSION_COOKIE)
    if session is None:
        return None
    changes = request.method not in SAFE_METHODS
    return platform.auth.identify_session(session, csrf=request.headers.get(CSRF_HEADER), changes=changes)


def _may(role: TokenRole) -> Callable[[Requester], Requester]:
    def check(identity: Annotated[Requester, Depends(identify)]) -> Requester:
        if not identity.may(role):
            raise Refused(403, f"the token of {identity.name!r} has role {identity.role}, but this needs role {role}")
        return identity

    # FastAPI resolves textual annotations in the global namespace, but these annotations refer to the local `role`. So
    # set them as objects.
    check.__annotations__ = {"identity": Annotated[Requester, Depends(identify)], "return": Requester}
    return check


MayView = Annotated[Requester, Depends(_may("view"))]
MayRun = Annotated[Requester, Depends(_may("run"))]
MayAdmin = Annotated[Requester, Depends(_may("admin"))]


def client_of(request: Request) -> str:
    """Returns the client's address, as reported by a trusted proxy if there is one."""
    return request.client.host if request.client is not None else "?"


def check_rate(wait_s: float, message: str) -> None:
    """Raises `Refused` (429) if the client has to wait."""
    if wait_s > 0:
        seconds = max(1, math.ceil(wait_s))
        raise Refused(429, f"{message}: wait for {seconds} s", headers={"Retry-After": str(seconds)})


def _unknown(message: str) -> Refused:
    headers: JsonObject = {"WWW-Authenticate": "Bearer"}
    return Refused(401, message, headers=headers)
