"""Periodic reports to a task's launcher: traffic with other tasks, staleness of gradients, metrics of tables.

The reports are sent like progress (`headwater.cluster.telemetry.progress`), so that the launcher needs no connection to
the task.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from headwater.cluster.telemetry.progress import STATUS_VARIABLE, Progress, report
from headwater.cluster.telemetry.snapshot import Snapshot
from headwater.cluster.telemetry.table_metrics import table_metrics
from headwater.cluster.telemetry.task_activity import activity_of

_INTERVAL_S = 2.0


class ActivityReporter:
    """Reports the status of a task until it is closed; does nothing without a launcher.

    Args:
      task: the task's device name.
      snapshot: returns the current snapshot.
      every_s: seconds between two reports; rates are averages over this time.
    """

    def __init__(self, task: str, snapshot: Callable[[], Snapshot], every_s: float = _INTERVAL_S) -> None:
        self._task = task
        self._snapshot = snapshot
        self._every_s = every_s
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        if os.environ.get(STATUS_VARIABLE):
            self._thread = threading.Thread(target=self._run, name="headwater-activity", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stops the reports. Idempotent."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        before = None
        while not self._closing.wait(self._every_s):
            now = self._snapshot()
            report(Progress(task=self._task, activity=activity_of(before, now), metrics=table_metrics(before, now)))
            before = now
