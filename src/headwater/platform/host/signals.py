"""Handlers of signals for the length of a block, and signals as what a selector can wait for."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from types import FrameType

Handler = Callable[[int, FrameType | None], None]


@contextmanager
def handling(handlers: Mapping[signal.Signals, Handler]) -> Generator[None]:
    """Has ``handlers`` take their signals, and afterwards the handlers from before. In the main thread only."""
    previous = {signum: signal.signal(signum, handler) for signum, handler in handlers.items()}
    try:
        yield
    finally:
        for signum, handler in previous.items():
            signal.signal(signum, handler)


def signal_socket(*signals: signal.Signals) -> socket.socket:
    """A socket that gives the number of each of ``signals`` as a byte, from now on. In the main thread only."""

    def note(_signum: int, _frame: FrameType | None) -> None:
        """A signal needs a handler of Python's for its number to arrive at the socket."""

    reading, writing = socket.socketpair()
    writing.setblocking(False)
    signal.set_wakeup_fd(writing.detach(), warn_on_full_buffer=False)
    # Not ignored, because processes that are started would inherit that.
    for signum in signals:
        signal.signal(signum, note)
    return reading
