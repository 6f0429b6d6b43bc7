"""A periodic action of a ``ps``, in its own thread."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

_log = logging.getLogger("headwater")


class Periodic:
    """Runs an action periodically. Errors are logged, and the action is run again after the usual interval.

    Args:
      what: a description of the action, for logs and the name of the thread.
      every_s: seconds between two runs.
      action: called in a thread of this object.
    """

    def __init__(self, what: str, every_s: float, action: Callable[[], object]) -> None:
        self._what = what
        self._every_s = every_s
        self._action = action
        self._stopped = False
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name=what, daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def trigger(self) -> None:
        """Makes the thread run the action now, instead of at the end of the interval."""
        self._wake.set()

    def stop(self) -> None:
        """Stops the thread once a running action has returned. May be called before `start`."""
        self._stopped = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while True:
            self._wake.wait(self._every_s)
            self._wake.clear()
            if self._stopped:
                return
            try:
                self._action()
            except Exception:  # noqa: BLE001 - retry after any error
                _log.exception("%s has failed", self._what)
