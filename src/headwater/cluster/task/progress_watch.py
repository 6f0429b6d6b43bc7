"""Logs workers that make no steps."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping

from headwater.cluster.telemetry.watchdog import MIN_INTERVAL_S, ProgressWatchdog
from headwater.cluster.transport.waiting import positive_seconds_from

_log = logging.getLogger("headwater")

BEHIND_AFTER = "HEADWATER_BEHIND_AFTER_S"
"""Environment variable: minimum number of seconds without a step before a worker is called behind."""
_CHECK_INTERVAL_S = 1.0


def behind_after_s(environ: Mapping[str, str] | None = None) -> float:
    """Returns the minimum number of seconds without a step before a worker is called behind.

    Raises:
      InvalidArgumentError: `BEHIND_AFTER` is not a number above 0.
    """
    return positive_seconds_from(os.environ if environ is None else environ, BEHIND_AFTER, MIN_INTERVAL_S)


class ProgressWatch:
    """A thread that logs the messages of a watchdog.

    Args:
      task: the name of the task, for the log.
    """

    def __init__(self, watchdog: ProgressWatchdog, task: str) -> None:
        self._watchdog = watchdog
        self._task = task
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=f"progress of workers at {task}", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stops the thread, if it was started. Idempotent."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(_CHECK_INTERVAL_S):
            for sentence in self._watchdog.sentences():
                _log.warning("%s: %s", self._task, sentence)
