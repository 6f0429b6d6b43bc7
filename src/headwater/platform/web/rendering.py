"""Templates, and the formats of times, sizes and numbers in them."""

from __future__ import annotations

import math
import signal
import time

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

import headwater
from headwater.cluster.telemetry.sizes import size_text
from headwater.data.io.json_types import JsonObject

_GROUPED = 1000
CSRF_COOKIE = "headwater_csrf"

NOTHING = "\N{EN DASH}"
"""The placeholder of a missing value."""

HEADERS = {
    # No resources from other sites, no inline scripts and styles, no embedding in other pages.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    # With "no-referrer", browsers would hide the origin of a form, and the server refuses forms of unknown origin.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""The headers of every response of the page."""


def duration(seconds: float | None) -> str:
    """Formats ``seconds`` with their two largest units."""
    if seconds is None:
        return NOTHING
    whole = max(0, int(seconds))
    days, rest = divmod(whole, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, left = divmod(rest, 60)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {left} s" if minutes else f"{left} s"


def number(value: float | str | None, digits: int = 4) -> str:
    """Formats a number with ``digits`` significant digits; returns text unchanged."""
    if value is None:
        return NOTHING
    if isinstance(value, str):
        return value
    if isinstance(value, int) or (math.isfinite(value) and abs(value) >= _GROUPED):
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def moment(at: float | None) -> str:
    """Formats a time in UTC, for ``<time datetime>``."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)) if at is not None else ""


def clock(at: float | None) -> str:
    """Formats a time in the server's time zone."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at)) if at is not None else NOTHING


def code(value: int | None) -> str:
    """Describes an exit code: ``ended by SIGTERM``, ``exit code 3``."""
    if value is None:
        return NOTHING
    if value >= 0:
        return f"exit code {value}"
    try:
        return f"ended by {signal.Signals(-value).name}"
    except ValueError:  # a real-time signal has a number only
        return f"ended by signal {-value}"


def ended(reason: str, value: int | None) -> str:
    """Returns why a task ended: the given reason, or a description of its exit code."""
    return reason or code(value)


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("headwater.platform.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shown: JsonObject = {"duration": duration, "number": number, "moment": moment, "clock": clock}
    shown |= {"size": size_text, "code": code, "ended": ended}
    environment.filters.update(shown)
    return environment


_templates = _environment()


def render(request: Request, template: str, *, status: int = 200, **values: object) -> HTMLResponse:
    """Renders a page, or a part of one.

    Args:
      template: the template's file name.
      status: the HTTP status.
      values: variables of the template, in addition to ``path``, ``csrf``, ``now`` and ``version``.
    """
    text = _templates.get_template(template).render(
        path=request.url.path,
        csrf=request.cookies.get(CSRF_COOKIE, ""),
        now=time.time(),
        version=headwater.__version__,
        **values,
    )
    return HTMLResponse(text, status, {"Cache-Control": "no-store"})
