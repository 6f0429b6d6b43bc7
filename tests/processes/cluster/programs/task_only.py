"""A task, and nothing more."""

from __future__ import annotations

from task import start_server

start_server()
