"""Compilations by XLA during a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import jax.monitoring


@contextmanager
def compilations() -> Iterator[list[str]]:
    """Context manager that yields a list, to which each compilation by XLA in this process adds its duration."""
    found: list[str] = []
    # The listener stays registered after the context, so it is disabled at the end.
    listening = True

    def listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if listening and event == "/jax/core/compile/backend_compile_duration":
            found.append(f"{duration_secs} s")

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield found
    finally:
        listening = False
