"""How the program of a task that only serves waits for its end."""

from __future__ import annotations

import signal
import threading
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Final

#: How often the main thread wakes up while it waits, in seconds. A signal of a process that is stopped may go to any
#: thread when that process goes on; what handles it runs in the main thread, as soon as this wakes up.
_WAKES_S: Final = 1.0


class Ending:
    """The end of a task that serves: it comes once, and wakes all that wait for it."""

    def __init__(self) -> None:
        # A queue rather than an event: a signal may come while the handler of another one runs, and only `put` may then
        # be called again.
        self._come: SimpleQueue[None] = SimpleQueue()

    def come(self) -> None:
        """The end has come."""
        self._come.put(None)

    def wait(self) -> None:
        """Waits for the end. In the main thread SIGTERM is the end, too, unless the program handles it itself.

        It stays so: the program ends now, and a task that is asked to end while it does so has nothing else to do.
        """
        in_main = threading.current_thread() is threading.main_thread()
        if in_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._on_signal)
        while not self._has_come(_WAKES_S if in_main else None):
            pass
        self.come()  # for other threads that wait

    def _has_come(self, within_s: float | None) -> bool:
        try:
            self._come.get(timeout=within_s)
        except Empty:
            return False
        return True

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self.come()
