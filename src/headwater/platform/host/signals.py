"""Handlers of signals for the length of a block."""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from types import FrameType

Handler = Callable[[int, FrameType | None], None]


@contextmanager
def handling(handlers: Mapping[signal.Signals, Handler]) -> Generator[None]:
    """Has ``handlers`` take their signals, and afterwards whoever took them before. In the main thread only."""
    previous = {signum: signal.signal(signum, handler) for signum, handler in handlers.items()}
    try:
        yield
    finally:
        for signum, handler in previous.items():
            signal.signal(signum, handler)
