"""All routes of the page, for `headwater.platform.app.create_app`."""

from __future__ import annotations

from headwater.platform.web import pages

ROUTERS = (pages.router,)
"""What a server is given besides its API."""
