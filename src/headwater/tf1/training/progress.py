"""Training as the launcher of this process sees it. Without a launcher nothing is reported."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

from headwater.cluster.config import ClusterConfigError, task_config_from_environment
from headwater.cluster.telemetry.progress import MAX_METRICS, Progress, ProgressReporter
from headwater.cluster.telemetry.progress import report as send
from headwater.errors import OpError
from headwater.tensorboard_protos import config_pb2
from headwater.tf1.training.coordinator import Coordinator, LooperThread

if TYPE_CHECKING:
    from headwater.graph.session.session import BaseSession
    from headwater.graph.types import TensorLike


_REPORT_S = 1.0
#: Time limit for reading the last step, in milliseconds.
_READ_MS = 1000

_reporter: ProgressReporter | None = None
_lock = threading.Lock()


def progress_reporter() -> ProgressReporter:
    """Returns this process's reporter; it drops reports if no launcher listens, or no task is named."""
    global _reporter
    with _lock:
        if _reporter is None:
            try:
                config = task_config_from_environment()
            except ClusterConfigError:  # reported when the cluster is created; here it only disables reports
                config = None
            task = config.task if config is not None else None
            if task is None:
                _reporter = ProgressReporter(task="", address=None)
            else:
                _reporter = ProgressReporter.from_environment(str(task))
        return _reporter


def report(*, step: int | None = None, loss: float | None = None, **metrics: float) -> None:
    """Reports the progress of the training to the launcher of this process (the platform, or ``headwater run``).

    It never waits, and without a launcher it does nothing. A few reports a second are enough::

        headwater.report(step=step, loss=loss, accuracy=accuracy)

    Args:
      step: the global step of the job.
      loss: the latest loss.
      metrics: further numbers by name, at most 16; the platform shows each as a plot.

    Raises:
      ValueError: there are more than 16 further numbers.
      TypeError: one of them is not a number.
    """
    if len(metrics) > MAX_METRICS:
        raise ValueError(f"at most {MAX_METRICS} further numbers can be reported, but there are {len(metrics)}")
    task = progress_reporter().task
    send(
        Progress(
            task=task,
            step=None if step is None else int(step),
            loss=None if loss is None else float(loss),
            metrics={name: float(value) for name, value in metrics.items()},
        )
    )


def report_end(sess: Any, global_step: TensorLike | None) -> None:
    """Reports the last step of a training to a launcher, if one listens; omitted if it cannot be read immediately."""
    if global_step is None or not progress_reporter().listening:
        return
    options = config_pb2.RunOptions(timeout_in_ms=_READ_MS)
    with contextlib.suppress(OpError, RuntimeError):
        report(step=int(sess.run(global_step, options=options)))


class GlobalStepThread(LooperThread):
    """Reports the shared step once a second.

    Args:
      coord: stops it.
      sess: the session to read it in.
      global_step: the variable or tensor.
    """

    def __init__(self, coord: Coordinator, sess: BaseSession, global_step: TensorLike | None) -> None:
        super().__init__(coord, _REPORT_S)
        self._sess = sess
        self._global_step = global_step

    def run_loop(self) -> None:
        progress_reporter().step(int(self._sess.run(self._global_step)), steps=0)
