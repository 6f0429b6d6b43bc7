"""A task without a program of its own."""

from __future__ import annotations

from task import start_server

start_server()
