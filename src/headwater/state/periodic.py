"""Something that a ``ps`` does every few seconds, in a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

_log = logging.getLogger("headwater")


class Periodic:
    """Does something again and again. An error is logged, and it is done again.

    Args:
      what: it does, for people.
      every_s: seconds between two times.
      action: does it.
    """

    def __init__(self, what: str, every_s: float, action: Callable[[], object]) -> None:
        self._what = what
        self._every_s = every_s
        self._action = action
        self._stopped = False
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._run, name=what, daemon=True)

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def soon(self) -> None:
        """Does it at once, in its thread."""
        self._woken.set()

    def stop(self) -> None:
        """Ends, once what is being done is done. May be called where it has not begun."""
        self._stopped = True
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while True:
            self._woken.wait(self._every_s)
            self._woken.clear()
            if self._stopped:
                return
            try:
                self._action()
            except Exception:  # noqa: BLE001 - whatever it is, it is tried again
                _log.exception("%s has failed", self._what)
