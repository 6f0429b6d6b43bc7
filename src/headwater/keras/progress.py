"""Reports the progress of `fit`, its steps, speed and loss, to the launcher or platform that started this process."""

from __future__ import annotations

import threading
from typing import Any

from headwater.cluster.telemetry.progress import ProgressReporter
from headwater.keras.internals import Callback
from headwater.keras.programs import updates_made
from headwater.tf1.training.progress import progress_reporter

_base: Any = Callback


class ReportsProgress(_base):
    """Reports each step of `fit`.

    Args:
      reporter: receives the reports.
      shared: whether all processes make the same steps together, as in mirrored training. If so, the reported global
        step is the optimizer's count of updates.
    """

    async_safe = True

    def __init__(self, reporter: ProgressReporter, *, shared: bool) -> None:
        super().__init__()
        self._reporter = reporter
        self._shared = shared
        self._step: int | None = None
        # Keras calls this from several threads, and batches may arrive out of order.
        self._lock = threading.Lock()
        self._latest = -1

    def on_train_begin(self, logs: object = None) -> None:
        if self._shared:
            self._step = updates_made(self.model.optimizer)

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
        self._latest = -1

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        with self._lock:
            if self._step is not None:
                self._step += 1
            overtaken, self._latest = batch < self._latest, max(batch, self._latest)
            self._reporter.step(self._step, loss=None if overtaken else (logs or {}).get("loss"))


def progress_callbacks(*, shared: bool) -> list[object]:
    """The callback that reports `fit`'s progress to the launcher."""
    reporter = progress_reporter()
    return [ReportsProgress(reporter, shared=shared)] if reporter.listening else []
