"""Signal handlers for the duration of a block, and signals as bytes on a socket for selectors."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from types import FrameType

Handler = Callable[[int, FrameType | None], None]


@contextmanager
def handling(handlers: Mapping[signal.Signals, Handler]) -> Generator[None]:
    """Installs ``handlers`` and restores the previous ones afterwards. In the main thread only."""
    previous = {signum: signal.signal(signum, handler) for signum, handler in handlers.items()}
    try:
        yield
    finally:
        for signum, handler in previous.items():
            signal.signal(signum, handler)


def signal_socket(*signals: signal.Signals) -> socket.socket:
    """Returns a socket that receives the number of each of ``signals`` as a byte. In the main thread only."""

    def ignore(_signum: int, _frame: FrameType | None) -> None:
        """Does nothing: a Python handler is required for the signal's number to be written to the socket."""

    reading, writing = socket.socketpair()
    writing.setblocking(False)
    signal.set_wakeup_fd(writing.detach(), warn_on_full_buffer=False)
    # Handled rather than ignored, because child processes would inherit ignored signals.
    for signum in signals:
        signal.signal(signum, ignore)
    return reading
