"""What `fit` tells the launcher or the platform that started this process: its steps, its speed and its loss."""

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
      reporter: where to.
      shared: whether this process's steps are those of all, as in mirrored training; the optimizer's own count of its
        updates then is the global step.
    """

    async_safe = True

    def __init__(self, reporter: ProgressReporter, *, shared: bool) -> None:
        super().__init__()
        self._reporter = reporter
        self._shared = shared
        self._step: int | None = None
        # Keras calls from several threads, and batches may overtake each other on their way here.
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
