"""Shutdown of a program that only serves: its main thread waits until the task ends, or until SIGTERM."""

from __future__ import annotations

import signal
import threading
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Final

#: Interval at which the waiting main thread wakes up, in seconds. The kernel may deliver a signal to another thread,
#: for example after SIGSTOP and SIGCONT. Python runs the handler in the main thread, but only when the main thread
#: wakes up.
_WAKE_INTERVAL_S: Final = 1.0


class Ending:
    """A one-time event that wakes all threads that wait for the end of a task."""

    def __init__(self) -> None:
        # A queue rather than an event: a signal may arrive while the handler of another signal runs, and only
        # `SimpleQueue.put` is reentrant.
        self._come: SimpleQueue[None] = SimpleQueue()

    def set(self) -> None:
        """Sets the event; safe in signal handlers."""
        self._come.put(None)

    def wait(self) -> None:
        """Waits for the event. In the main thread, SIGTERM sets it, too, unless the program handles that signal itself.

        The signal handler stays installed afterwards, so that further signals do not interrupt the shutdown.
        """
        in_main = threading.current_thread() is threading.main_thread()
        if in_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._on_signal)
        while not self._has_come(_WAKE_INTERVAL_S if in_main else None):
            pass
        self.set()  # wakes other threads that wait

    def _has_come(self, within_s: float | None) -> bool:
        try:
            self._come.get(timeout=within_s)
        except Empty:
            return False
        return True

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self.set()
